"""The folder `.venv`: a Python to make it from, pinned packages in it, and Surtitle itself."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import system_packages
from terminal import SetupError, ask, run, say

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["REQUIREMENTS", "ROOT", "Interpreter", "find_interpreter", "prepare", "script", "uv"]

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "packaging" / "requirements"

_VERSIONS = ((3, 12), (3, 13))
"""What Surtitle runs on; the oldest first, so that nothing newer is relied on unnoticed."""

_VENV = ROOT / ".venv"
_STAMP = _VENV / "surtitle-setup"
_PROBE = """
import sys, ctypes, sqlite3, ssl, venv
try:
    import ensurepip
except ImportError:
    ensurepip = None
print(*sys.version_info[:2], int(ensurepip is not None), sys.executable)
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that `.venv` can be made from."""

    path: str
    version: tuple[int, int]
    ensurepip: bool
    """False on Debian until the package python3.x-venv is there."""


def script(name: str) -> str:
    """Return the path of a program in `.venv`."""
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    return str(_VENV / folder / (name + suffix))


def prepare(*, tests: bool, system: bool = True) -> None:
    """Install what is missing; returns at once if nothing is.

    Args:
        tests: Whether what the tests need is wanted too.
        system: Whether to look after the system's packages.

    Raises:
        SetupError: Something cannot be had.
    """
    kinds = ["run", "dev"] if tests else ["run"]
    ready = set(kinds) <= _stamped()
    extra: list[str] = []
    interpreter = None
    if not ready and not _venv_works():
        interpreter = find_interpreter()
        if interpreter is None and not _can_install_uv():
            extra = ["python3-venv"]
        elif interpreter is not None and not interpreter.ensurepip:
            extra = ["python{}.{}-venv".format(*interpreter.version)]
    if system:
        system_packages.ensure(tests=tests, extra=extra)
    if ready:
        return
    if not _venv_works():
        _make_venv(interpreter or _fetch_interpreter())
    _install(kinds)


def find_interpreter() -> Interpreter | None:
    """Find a Python that Surtitle runs on, or None if this computer has none."""
    seen: set[str] = set()
    for candidate in _candidates():
        if candidate in seen:
            continue
        seen.add(candidate)
        found = _probe(candidate)
        if found is not None and found.version in _VERSIONS:
            return found
    return None


def _candidates() -> Iterator[str]:
    """Where a Python may be: the running one, PATH, pyenv's folder, uv's, the py launcher."""
    if sys.version_info[:2] in _VERSIONS:
        yield sys.executable
    folders = [
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "uv" / "python",
    ]
    launcher = shutil.which("py")
    for major, minor in _VERSIONS:
        name = f"python{major}.{minor}"
        on_path = shutil.which(name)  # may be a pyenv shim, which fails unless chosen: probed
        if on_path:
            yield on_path
        for folder in folders:
            yield from sorted(map(str, folder.glob(f"*/bin/{name}")), reverse=True)
            yield from sorted(map(str, folder.glob(f"*{major}.{minor}*/python.exe")), reverse=True)
        if launcher:
            where = ask([launcher, f"-{major}.{minor}", "-c", "import sys; print(sys.executable)"])
            if where:
                yield where.strip()


def _probe(path: str) -> Interpreter | None:
    """Ask a Python what it is; None if it does not run or lacks a module that we need."""
    answer = ask([path, "-I", "-c", _PROBE])
    if answer is None:
        return None
    major, minor, ensurepip, executable = answer.strip().split(" ", 3)
    return Interpreter(
        path=executable, version=(int(major), int(minor)), ensurepip=ensurepip == "1"
    )


def _venv_works() -> bool:
    found = _probe(script("python"))
    return (
        found is not None
        and found.version in _VERSIONS
        and ask([script("python"), "-m", "pip", "--version"]) is not None
    )


def _make_venv(interpreter: Interpreter) -> None:
    say("Making .venv with Python {}.{} ({})".format(*interpreter.version, interpreter.path))
    if run([interpreter.path, "-m", "venv", "--clear", str(_VENV)]) != 0:
        raise SetupError(
            f"{interpreter.path} could not make the folder {_VENV}; its message is above. "
            "On Debian and Ubuntu the package python{}.{}-venv is needed.".format(
                *interpreter.version
            )
        )


def _install(kinds: list[str]) -> None:
    """Install the packages of the largest kind, then Surtitle, and note what was done."""
    _STAMP.unlink(missing_ok=True)
    pip = [script("python"), "-m", "pip", "--disable-pip-version-check", "install"]
    if not sys.stdout.isatty():
        pip.append("-q")  # a log needs no progress
    chosen = REQUIREMENTS / f"{kinds[-1]}.txt"
    say(f"Installing the Python packages of {chosen.relative_to(ROOT)} into .venv")
    pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(chosen)]
    if run([*pip, *pinned]) != 0:
        raise SetupError(
            "pip could not install the Python packages; its message is above. "
            "Check the network, then run this again."
        )
    # A new description of the project may leave its version as it was: install it anew.
    itself = ["--no-deps", "--no-build-isolation", "--force-reinstall", "-e", str(ROOT)]
    if run([*pip, *itself]) != 0:
        raise SetupError("pip could not install Surtitle itself; its message is above.")
    _STAMP.write_text("".join(f"{kind} {_digest(kind)}\n" for kind in kinds), encoding="utf-8")


def _stamped() -> set[str]:
    """Return the kinds of packages that `.venv` has, in their present versions."""
    if not Path(script("python")).exists():  # also when the Python it links to has gone
        return set()
    try:
        lines = _STAMP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {kind for kind in ("run", "dev") if f"{kind} {_digest(kind)}" in lines}


def _digest(kind: str) -> str:
    """Return a fingerprint of all that decides what is in `.venv`."""
    parts = [
        REQUIREMENTS / f"{kind}.txt",
        ROOT / "pyproject.toml",
        _VENV / "pyvenv.cfg",
    ]
    digest = hashlib.sha256(os.fsencode(ROOT))  # a moved .venv does not work any more
    for part in parts:
        digest.update(hashlib.sha256(part.read_bytes()).digest())
    return digest.hexdigest()


def uv(folder: str) -> str | None:
    """Install uv, pinned, into a folder; its path, or None if that fails."""
    python = str(Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    steps = (
        [sys.executable, "-m", "venv", folder],
        [
            *(python, "-m", "pip", "--disable-pip-version-check", "install", "-q"),
            *("--require-hashes", "--only-binary", ":all:", "-r", str(REQUIREMENTS / "uv.txt")),
        ],
    )
    if any(run(step) != 0 for step in steps):
        return None
    return str(Path(python).with_name("uv"))


def _can_install_uv() -> bool:
    found = _probe(sys.executable)
    return found is not None and found.ensurepip


def _fetch_interpreter() -> Interpreter:
    """Let uv fetch a Python.

    Raises:
        SetupError: It could not; the text says what to install.
    """
    say("No Python 3.12 or 3.13 found; asking uv to fetch one")
    with tempfile.TemporaryDirectory(prefix="surtitle-uv-") as folder:
        program = uv(folder)
        if program and run([program, "python", "install", "-q", "3.13"]) == 0:
            path = ask([program, "python", "find", "--managed-python", "3.13"])
            found = _probe(path.strip()) if path else None
            if found is not None:
                return found
    raise SetupError(
        "Surtitle needs Python 3.12 or 3.13; this computer has neither and it could not be "
        "fetched. Install one of them from your system's packages or with pyenv "
        "(pyenv install 3.13), then run this again."
    )
