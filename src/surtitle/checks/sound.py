"""Sound: PortAudio, the sound server, and what can be heard, each with its level."""

import json
import sys
from collections.abc import Sequence

from surtitle.audio.capture import measure
from surtitle.audio.devices import SOUND_SYSTEM, Device, Kind, SoundSystem, choose, list_devices
from surtitle.checks.child import Answer, run_python
from surtitle.checks.finding import Finding, Level, Report, fail, ok, warn
from surtitle.core.errors import SourceError

__all__ = ["check_sound", "level", "meter", "others", "portaudio", "server"]

_PORTAUDIO_LIMIT = 10.0
_MEASURED = 1.0
"""Seconds that each default device is listened to."""
_BAR = 10
_QUIETEST, _ZEROS = -60.0, -120.0
_INAUDIBLE = -80.0
"""Levels in dBFS: where the bar begins, digital silence, and less than any room."""
_NOUNS = {Kind.MIC: "microphone", Kind.SYSTEM: "output"}
_NOT_STARTED = "Check that sound works in other programs; restart the computer if it does not."
_NOT_FOR_FILES = "Media files can be captioned all the same."


def portaudio(answer: Answer) -> Finding:
    """Judge PortAudio by what `portaudio_probe` says."""
    if answer.code is None:
        return fail("PortAudio does not answer", "Unplug sound devices that hang, then try again.")
    try:
        found = json.loads(answer.output)
        if found.get("missing"):
            return fail(
                "The PortAudio library is not installed, so no sound can be captured",
                "Install it, for example: sudo apt install libportaudio2.",
            )
        hosts = [f"{name} ({_count(n, 'input')})" for name, n in found["hosts"].items()]
        version = found["version"]
    except (ValueError, AttributeError, LookupError, TypeError):
        what = "crashes" if answer.crashed else "cannot be started"
        return fail(f"PortAudio {what}", _NOT_STARTED)
    if not hosts:
        return fail(f"PortAudio {version} reaches no sound system", _NOT_STARTED)
    return ok(f"PortAudio {version}: {', '.join(hosts)}")


def server(name: str | None) -> Finding:
    """Judge the Linux sound server by what it calls itself, None if none answers."""
    if name is None:
        return warn(
            "No sound server answers, so what this computer plays cannot be heard",
            "Start PipeWire or PulseAudio, or log out and in again.",
        )
    return ok(f"Sound server {name}")


def meter(dbfs: float) -> str:
    """Draw a level and give its number; digital silence has none."""
    share = (min(max(dbfs, _QUIETEST), 0.0) - _QUIETEST) / -_QUIETEST
    bar = "#" * round(_BAR * share)
    number = "silence" if dbfs <= _ZEROS else f"{dbfs:.0f} dBFS"
    return f"[{bar:.<{_BAR}}] {number}"


def level(kind: Kind, name: str, dbfs: float) -> Finding:
    """Judge a device by the loudest that was heard of it, in dBFS."""
    text = f"{_NOUNS[kind].capitalize()} “{name}”  {meter(dbfs)}"
    if kind is Kind.SYSTEM:
        quiet = dbfs < _INAUDIBLE
        return ok(f"{text}, as it should be while nothing plays" if quiet else text)
    if dbfs <= _ZEROS:
        return warn(
            f"{text}: nothing but exact zeros",
            "Unmute it, and check that programs are allowed to use the microphone.",
        )
    return ok(text)


def others(kind: Kind, devices: Sequence[Device]) -> Finding:
    """Name the devices that are not listened to now."""
    names = ", ".join(f"“{device.name}”" for device in devices)
    return ok(f"{_count(len(devices), f'more {_NOUNS[kind]}')}: {names}")


async def check_sound(
    report: Report, *, system: SoundSystem = SOUND_SYSTEM, platform: str = sys.platform
) -> None:
    """Look at PortAudio and the sound server, and listen to the default devices."""
    try:
        answer = await run_python("-m", "surtitle.checks.portaudio_probe", limit=_PORTAUDIO_LIMIT)
        finding = portaudio(answer)
        report(finding)
        kinds = list(Kind)
        if platform == "linux":
            name = await _server_name(system)
            report(server(name))
            if name is None:  # then it has been said that there is no output
                kinds.remove(Kind.SYSTEM)
        if finding.level is not Level.FAIL:
            await check_devices(report, kinds, system=system, platform=platform)
    finally:
        system.control.stop()


async def check_devices(
    report: Report, kinds: Sequence[Kind], *, system: SoundSystem, platform: str
) -> None:
    """Listen to the default device of each kind, and name the others."""
    try:
        devices = await list_devices(system=system)
    except SourceError as error:
        report(fail(error.message.rstrip("."), error.remedy))
        return
    for kind in kinds:
        try:
            chosen = choose(devices, kind, None, platform=platform)
        except SourceError as error:
            report(warn(error.message.rstrip("."), f"{error.remedy} {_NOT_FOR_FILES}"))
            continue
        try:
            report(level(kind, chosen.name, await measure(chosen, _MEASURED, system=system)))
        except SourceError as error:
            report(fail(error.message.rstrip("."), error.remedy))
        rest = [device for device in devices if device.kind is kind and device != chosen]
        if rest:
            report(others(kind, rest))


async def _server_name(system: SoundSystem) -> str | None:
    connection = await system.connect()
    if connection is None:
        return None
    try:
        return (await connection.survey()).server
    except SourceError:  # it ended just now: the same as none
        return None
    finally:
        await connection.close()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
