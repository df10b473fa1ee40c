"""The folder for transcripts and settings: can it be written to, is there room?"""

import os
import shutil
import tempfile

from surtitle.audio.control import ControlThread
from surtitle.checks.finding import Finding, Report, fail, ok, warn
from surtitle.core.errors import OutputError
from surtitle.storage.files import shown, why
from surtitle.storage.places import Places

__all__ = ["check_folders", "room"]

_LIMIT = 8.0
"""Seconds; a folder on a network drive may not answer at all."""
_LITTLE = 100_000_000
"""Bytes; months of transcripts, but a full disk is near."""
_TRIAL = bytes(4096)


def room(folder: str, free: int) -> Finding:
    """Judge a folder that can be written to by what is free on its disk, in bytes."""
    if free < _LITTLE:
        return warn(
            f"Data folder {folder}: only {free / 1e6:.0f} MB are free there",
            "Make room on that disk: transcripts stop being kept when it is full.",
        )
    return ok(f"Data folder {folder}")


async def check_folders(report: Report) -> None:
    """Make the folders if they are missing, and write to the one for data."""
    thread = ControlThread()
    try:
        report(await thread.run(_try, limit=_LIMIT))
    except TimeoutError:
        report(fail("The data folder does not answer", "Choose another with --data-dir."))
    finally:
        thread.stop()


def _try() -> Finding:
    places = Places.find(os.environ)
    folder = shown(places.data)
    try:
        places.create()
    except OutputError as error:
        return fail(error.message.rstrip("."), error.remedy)
    try:
        with tempfile.TemporaryFile(dir=places.data) as file:
            file.write(_TRIAL)
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(places.data).free
    except OSError as error:
        return fail(
            f"Data folder {folder} cannot be written to: {why(error)}",
            "Make room there, or choose another with --data-dir.",
        )
    return room(folder, free)
