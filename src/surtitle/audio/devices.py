"""Which microphones and outputs there are, and which one is meant by a name."""

import difflib
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from surtitle.audio.control import ControlThread
from surtitle.audio.portaudio import HUSH, Input, PortAudio, find, preferred
from surtitle.audio.sound_server import Kind, SoundServer, Survey, connect
from surtitle.core.errors import Decision, SourceError, UsageError

__all__ = [
    "SOUND_SYSTEM",
    "Device",
    "Kind",
    "SoundSystem",
    "choose",
    "devices_of",
    "list_devices",
    "ways_to",
]

_PCMS = ("pipewire", "pulse")
"""The ALSA devices that lead to a sound server, best first; `pipewire` only to PipeWire."""

_LIST_LIMIT = 5.0
"""Seconds PortAudio may take to list the devices."""
_NOT_MICROPHONES = {*_PCMS, "jack", "default", "sysdefault"}
"""Names of ALSA devices that lead elsewhere; behind them are inputs listed otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Something that can be captioned."""

    id: str
    """Stays the same over restarts and re-plugging."""
    kind: Kind
    name: str
    """What a person recognises, such as `Built-in Audio Analog Stereo`."""
    default: bool
    """Whether it is what is used unless another one is asked for."""
    rate: int
    """Its own sample rate, Hertz."""
    channels: int
    """Its own channel count."""
    host: str = ""
    """PortAudio's host API; empty for a device of the Linux sound server."""

    @property
    def on_server(self) -> bool:
        """Whether it is reached through the Linux sound server."""
        return not self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundSystem:
    """What all capturing of this process goes through. Tests make one of fakes."""

    portaudio: PortAudio
    control: ControlThread
    connect: Callable[[], Awaitable[SoundServer | None]] = connect


SOUND_SYSTEM = SoundSystem(portaudio=PortAudio(), control=ControlThread(on_abandon=HUSH.restore))
"""PortAudio exists once in a process, and so does the thread for it."""


async def list_devices(*, system: SoundSystem = SOUND_SYSTEM) -> list[Device]:
    """List what can be captioned: microphones first, then outputs, defaults on top.

    Raises:
        SourceError: PortAudio is missing, broken or hangs.
    """
    try:
        inputs = await system.control.run(system.portaudio.inputs, limit=_LIST_LIMIT)
    except TimeoutError as error:
        raise SourceError(
            "The sound system of this computer does not answer.",
            remedy="Unplug or switch off sound devices that hang, then try again.",
            decision=Decision.RETRY,
        ) from error
    return devices_of(inputs, await _survey(system))


def devices_of(inputs: Sequence[Input], survey: Survey | None) -> list[Device]:
    """Put together what PortAudio and the sound server, if there is one, say."""
    devices: list[Device] = []
    through_server = survey is not None and find(inputs, names=ways_to(survey)) is not None
    if survey is not None:
        devices += [
            Device(
                id=endpoint.name,
                kind=endpoint.kind,
                name=endpoint.description,
                default=endpoint == survey.default(endpoint.kind),
                rate=endpoint.rate,
                channels=endpoint.channels,
            )
            for endpoint in survey.endpoints
            # Without a way through the server, microphones are opened directly.
            if through_server or endpoint.kind is Kind.SYSTEM
        ]
    if not through_server:
        devices += _direct(inputs)
    return sorted(devices, key=lambda d: (d.kind is Kind.SYSTEM, not d.default, d.name.casefold()))


def ways_to(survey: Survey) -> tuple[str, ...]:
    """Return the ALSA devices through which to record from this sound server, best first."""
    return _PCMS if survey.is_pipewire else _PCMS[1:]


def choose(
    devices: Sequence[Device], kind: Kind, wanted: str | None, *, platform: str = sys.platform
) -> Device:
    """Return the device that is meant.

    Args:
        devices: What `list_devices` returned.
        kind: Microphone or the system's sound.
        wanted: An id, a name or a part of a name in any case; None for the default.
        platform: As `sys.platform`.

    Raises:
        UsageError: The name fits no device, or several.
        SourceError: There is no device of the kind.
    """
    candidates = [device for device in devices if device.kind is kind]
    if not candidates:
        raise _none_at_all(kind, platform)
    if wanted is None:
        return next((device for device in candidates if device.default), candidates[0])
    for same in (
        lambda device: wanted == device.id,
        lambda device: wanted == device.name,
        lambda device: wanted.casefold() in (device.name.casefold(), device.id.casefold()),
        lambda device: wanted.casefold() in device.name.casefold(),
        lambda device: wanted.casefold() in device.id.casefold(),
    ):
        fitting = [device for device in candidates if wanted and same(device)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise _several(kind, wanted, fitting)
    raise _unknown(kind, wanted, candidates)


def _direct(inputs: Sequence[Input]) -> list[Device]:
    """Return the microphones that PortAudio reaches by itself."""
    usable = preferred(inputs)
    real = [each for each in usable if each.name not in _NOT_MICROPHONES]
    return [
        Device(
            id=f"{each.host}/{each.name}",
            kind=Kind.MIC,
            name=each.name,
            default=each.default,
            rate=each.rate,
            channels=each.channels,
            host=each.host,
        )
        for each in real
    ]


async def _survey(system: SoundSystem) -> Survey | None:
    server = await system.connect()
    if server is None:
        return None
    try:
        return await server.survey()
    except SourceError:  # it ended just now: the same as none
        return None
    finally:
        await server.close()


_NOUNS = {Kind.MIC: "microphone", Kind.SYSTEM: "output"}


def _listed(devices: Sequence[Device]) -> str:
    return ", ".join(f"“{device.name}”" for device in devices)


def _several(kind: Kind, wanted: str, fitting: Sequence[Device]) -> UsageError:
    if len({device.name for device in fitting}) < len(fitting):
        which = ", ".join(f"“{device.name}” ({device.id})" for device in fitting)
    else:
        which = _listed(fitting)
    return UsageError(
        f"“{wanted}” fits more than one {_NOUNS[kind]}: {which}.",
        remedy="Give more of the name, or the id that surtitle devices shows.",
        decision=Decision.RECONFIGURE,
        field="device",
    )


def _unknown(kind: Kind, wanted: str, candidates: Sequence[Device]) -> UsageError:
    near = difflib.get_close_matches(
        wanted.casefold(), [device.name.casefold() for device in candidates], n=3, cutoff=0.4
    )
    offered = [device for device in candidates if device.name.casefold() in near] or candidates
    return UsageError(
        f"There is no {_NOUNS[kind]} called “{wanted}”.",
        remedy=f"There is: {_listed(offered)}. A part of the name is enough.",
        decision=Decision.RECONFIGURE,
        field="device",
    )


def _none_at_all(kind: Kind, platform: str) -> SourceError:
    if kind is Kind.MIC:
        return SourceError(
            "This computer has no microphone that can be used.",
            remedy="Connect one, and check that programs are allowed to use it.",
            decision=Decision.RETRY,
        )
    if platform != "linux":
        system = {"win32": "Windows", "darwin": "macOS"}.get(platform, "this system")
        return SourceError(
            f"This version of Surtitle cannot yet hear what the computer plays on {system}.",
            remedy="Caption the microphone instead: surtitle caption mic.",
        )
    return SourceError(
        "What this computer plays cannot be heard: no sound server with an output answers.",
        remedy="Start PipeWire or PulseAudio, or caption a microphone: surtitle caption mic.",
        decision=Decision.RETRY,
    )
