"""Trying something out in a process of its own: if it crashes or hangs, only that ends."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Answer", "run_python"]

_KILLED_WITHIN = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the process ended."""

    code: int | None
    """Exit code, negative after a signal; None if it had to be killed for taking too long."""
    output: str = ""
    """The last line of its standard output."""

    @property
    def crashed(self) -> bool:
        """Whether the process died of the fault of a library."""
        return self.code is not None and not 0 <= self.code < 128  # noqa: PLR2004 - Windows' faults are above


async def run_python(*arguments: str, limit: float) -> Answer:
    """Run this Python interpreter with some arguments, for at most `limit` seconds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # a file of the user's that is called like a library is not meant
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(limit):
            output, _ = await process.communicate()
    except TimeoutError:
        return Answer(code=None)
    finally:
        if process.returncode is None:
            process.kill()
            # TimeoutError: the system itself holds it, as on a dead network drive.
            with suppress(TimeoutError):
                async with asyncio.timeout(_KILLED_WITHIN):
                    await process.wait()
    lines = output.decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return Answer(code=process.returncode, output=said[-1] if said else "")
