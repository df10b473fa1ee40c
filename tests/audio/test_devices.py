"""Devices carry names people recognise, and a name means one device or is asked about."""

import asyncio
import threading
from dataclasses import replace

import pytest

from fakes.sound import Machine
from fakes.sound_device import PortAudioError, entry
from fakes.sound_server import microphone, output
from surtitle.audio import devices as devices_module
from surtitle.audio.devices import Device, Kind, choose, list_devices, ways_to
from surtitle.audio.sound_server import SoundServer, Survey
from surtitle.core.errors import SourceError, UsageError


def device(id_: str, name: str, *, kind: Kind = Kind.MIC, default: bool = False) -> Device:
    return Device(id=id_, kind=kind, name=name, default=default, rate=48_000, channels=1)


BUILT_IN = device("pci.analog", "Built-in Audio Analog Stereo")
YETI = device("usb.yeti", "Blue Yeti", default=True)
YETI_X = device("usb.yeti-x", "Blue Yeti X")
SPEAKERS = device("pci.out", "Speakers", kind=Kind.SYSTEM, default=True)
HDMI_1 = device("hdmi.1", "HDMI", kind=Kind.SYSTEM)
HDMI_2 = device("hdmi.2", "HDMI", kind=Kind.SYSTEM)
ALL = [BUILT_IN, YETI, YETI_X, SPEAKERS, HDMI_1, HDMI_2]


@pytest.mark.parametrize(
    ("kind", "wanted", "meant"),
    [
        (Kind.MIC, None, YETI),
        (Kind.SYSTEM, None, SPEAKERS),
        (Kind.MIC, "usb.yeti", YETI),  # an id comes before a part of another one
        (Kind.MIC, "Blue Yeti", YETI),
        (Kind.MIC, "blue yeti", YETI),
        (Kind.MIC, "YETI X", YETI_X),
        (Kind.MIC, "built", BUILT_IN),
        (Kind.SYSTEM, "hdmi.2", HDMI_2),
        (Kind.SYSTEM, "PCI", SPEAKERS),
    ],
)
def test_choose(kind: Kind, wanted: str | None, meant: Device) -> None:
    assert choose(ALL, kind, wanted) == meant


def test_without_a_default_the_first_is_taken() -> None:
    assert choose([BUILT_IN, YETI_X], Kind.MIC, None) == BUILT_IN


@pytest.mark.parametrize(
    ("kind", "wanted", "names", "hides"),
    [
        (Kind.MIC, "Yeti", ["Blue Yeti", "Blue Yeti X"], ["Built-in", "Speakers"]),
        (Kind.SYSTEM, "HDMI", ["hdmi.1", "hdmi.2"], ["Speakers"]),  # ids tell them apart
        (Kind.MIC, "blue yetti", ["Blue Yeti"], ["Built-in", "Speakers"]),
        (Kind.MIC, "xyz", ["Built-in", "Blue Yeti", "Blue Yeti X"], ["Speakers"]),
        (Kind.MIC, "Speakers", ["Blue Yeti"], ["HDMI"]),
        (Kind.MIC, "", ["Built-in", "Blue Yeti"], []),
    ],
)
def test_an_unclear_name_is_asked_about(
    kind: Kind, wanted: str, names: list[str], hides: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        choose(ALL, kind, wanted)
    said = str(caught.value)
    assert caught.value.exit_code == 2
    assert f"“{wanted}”" in said
    assert all(name in said for name in names)
    assert not any(name in said for name in hides if name != wanted)


@pytest.mark.parametrize(
    ("kind", "platform", "says"),
    [
        (Kind.MIC, "linux", "no microphone"),
        (Kind.MIC, "win32", "no microphone"),
        (Kind.SYSTEM, "linux", "PipeWire or PulseAudio"),
        (Kind.SYSTEM, "win32", "cannot yet hear what the computer plays on Windows"),
        (Kind.SYSTEM, "darwin", "cannot yet hear what the computer plays on macOS"),
    ],
)
def test_no_device_at_all_is_said(kind: Kind, platform: str, says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        choose([], kind, None, platform=platform)
    assert caught.value.remedy


def listed(machine: Machine) -> list[Device]:
    with machine:
        return asyncio.run(list_devices(system=machine.system))


LOUD = output("loud", "Loudspeakers")
HEAD = output("head", "Headphones", rate=44_100)
TABLE = microphone("table", "Table microphone")


def test_a_sound_server_names_both_kinds() -> None:
    machine = Machine(HEAD, LOUD, TABLE)
    assert machine.server is not None
    machine.server.make_default(LOUD)
    found = listed(machine)
    assert [(d.kind, d.id, d.name, d.default, d.rate, d.channels) for d in found] == [
        (Kind.MIC, "table", "Table microphone", True, 48_000, 1),
        (Kind.SYSTEM, "loud", "Loudspeakers", True, 48_000, 2),
        (Kind.SYSTEM, "head", "Headphones", False, 44_100, 2),
    ]
    assert all(each.on_server for each in found)
    assert machine.server.open_connections == 0


def test_without_a_sound_server_portaudio_names_the_microphones() -> None:
    found = listed(Machine(inputs=[entry("USB (hw:1,0)", channels=1), entry("default")]))
    assert [(d.id, d.name, d.kind, d.on_server) for d in found] == [
        ("ALSA/USB (hw:1,0)", "USB (hw:1,0)", Kind.MIC, False)
    ]


def test_without_a_way_to_the_server_microphones_are_opened_directly() -> None:
    found = listed(Machine(LOUD, TABLE, inputs=[entry("USB (hw:1,0)")]))
    assert [(d.name, d.on_server) for d in found] == [
        ("USB (hw:1,0)", False),
        ("Loudspeakers", True),
    ]


def test_pipewire_is_reached_by_its_own_pcm_first() -> None:
    assert ways_to(Survey(server="pulseaudio")) == ("pulse",)
    assert ways_to(Survey(server="PulseAudio (on PipeWire 1.0.5)")) == ("pipewire", "pulse")


def test_no_devices_are_an_empty_list() -> None:
    assert listed(Machine(inputs=[])) == []


def test_a_server_that_ends_while_asked_is_no_server() -> None:
    machine = Machine(LOUD, inputs=[entry("USB")])
    server = machine.server
    assert server is not None

    async def run() -> list[Device]:
        connection = await server.connect()

        async def connect() -> SoundServer | None:
            server.die()
            return connection

        system = replace(machine.system, connect=connect)
        return await list_devices(system=system)

    with machine:
        assert [d.name for d in asyncio.run(run())] == ["USB"]
    assert server.open_connections == 0


def test_a_broken_portaudio_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(inputs=[])

    def fail() -> tuple[dict[str, object], ...]:
        raise PortAudioError("Internal error", -9986)

    monkeypatch.setattr(machine.module, "query_hostapis", fail)
    with pytest.raises(SourceError, match="cannot be started"):
        listed(machine)


def test_a_portaudio_that_hangs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(inputs=[])
    release = threading.Event()
    monkeypatch.setattr(machine.module, "query_hostapis", lambda: release.wait(10) and ())
    monkeypatch.setattr(devices_module, "_LIST_LIMIT", 0.05)
    try:
        with pytest.raises(SourceError, match="does not answer"):
            listed(machine)
    finally:
        release.set()
