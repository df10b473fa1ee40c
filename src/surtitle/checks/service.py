"""The doctor's look at the speech server or endpoint that the settings name, if any."""

import asyncio
import os

from surtitle.checks.finding import Report, ok
from surtitle.speech_engines import chosen_engines
from surtitle.storage.places import Places
from surtitle.storage.settings_file import SettingsFile

__all__ = ["check_service"]


async def check_service(report: Report) -> None:
    """Open a session with it and close it again. Nothing that is heard is sent.

    Raises:
        SurtitleError: It cannot be reached or refuses; says why, and what to do.
    """
    settings, _ = SettingsFile(Places.find(os.environ).settings).read()
    if settings.engine_name == "on-device":
        return
    engine = (await chosen_engines(settings, stand_in=False)).chosen()
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        await engine.start()
        taken = clock() - began
    finally:
        await engine.stop()
    report(ok(f"{engine.name} ({engine.place}) opens a session in {taken:.1f} s"))
