"""A program under test, in a session of its own, so that nothing of it outlives the test."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

__all__ = ["Running", "until"]

_ENGINE = "surtitle.engines.worker"
_PIPE = 65_536
_FAULTS = {"PYTHONFAULTHANDLER": "1"}


def until(condition: Callable[[], bool], what: str, *, seconds: float = 60) -> None:
    """Wait for a condition; fail, saying what was waited for, if it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        time.sleep(0.05)


class Running:
    """A Python program that has been started.

    On leaving the `with` block, it and everything it has started are killed.

    Args:
        arguments: What comes after `python`.
        folder: Where what it says is written to.
        environment: The variables it sees.
        open_input: Whether it can be written to; else its input is empty.
    """

    def __init__(
        self,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        open_input: bool = False,
    ) -> None:
        number = len(list(folder.glob("*.out")))
        self._out = folder / f"{number}.out"
        self._err = folder / f"{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE if open_input else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                # A crash of a library says where it was.
                env={**(os.environ if environment is None else environment), **_FAULTS},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        for process in self.processes():
            _kill(process, signal.SIGKILL)
        self.process.wait(timeout=10)

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def hears(self, data: bytes) -> None:
        """Put something into its input, at most a megabyte; whether it is taken or not."""
        fcntl.fcntl(self.input, fcntl.F_SETPIPE_SZ, max(len(data), _PIPE))
        self.input.write(data)
        self.input.flush()

    @property
    def said(self) -> str:
        """What it has written to standard output so far."""
        return self._out.read_text(encoding="utf-8")

    @property
    def complained(self) -> str:
        """What it has written to standard error so far."""
        return self._err.read_text(encoding="utf-8")

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal, and only it, and wait until it has taken it."""
        self.process.send_signal(number)

        def taken() -> bool:
            if self.process.poll() is not None:  # that was its end
                return True
            status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
            pending = [int(line.split()[1], 16) for line in status.splitlines() if "Pnd:" in line]
            return not any(signals >> (number - 1) & 1 for signals in pending)

        until(taken, f"{number.name} to arrive")

    def ends(self, code: int, *, within: float = 30) -> None:
        """Wait for its end; fail if it does not end in time, or with another exit code."""
        try:
            found: int | str = self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            found = f"no end within {within} s"
        assert found == code, f"{self.said[-2000:]}\n{self.complained[-4000:]}"

    def processes(self, of: str = "") -> list[int]:
        """Return the live processes of its session with `of` in their command line."""
        found: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                # After the name in parentheses: state, parent, group, session.
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, ValueError):  # ended meanwhile
                continue
            if int(session) == self.process.pid and state not in "ZX" and of in command:
                found.append(int(folder.name))
        return found

    def engine(self, *, but: int = 0) -> int:
        """Wait for its engine's process, another one than `but`; return its number."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [each for each in self.processes(_ENGINE) if each != but]
            return bool(found)

        until(there, "the engine's process")
        return found[0]

    def leaves_nothing(self, *, within: float = 10) -> None:
        """Wait until no process of it is left."""
        until(lambda: not self.processes(), "the end of all its processes", seconds=within)


def _kill(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return
