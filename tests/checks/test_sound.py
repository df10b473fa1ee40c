"""What the doctor says of sound."""

import asyncio
import json
import math
from array import array
from collections.abc import Iterator

import pytest

from fakes.sound_device import FakeSoundDevice, FakeStream, PortAudioError, entry
from surtitle.audio.control import ControlThread
from surtitle.audio.devices import Device, Kind, SoundSystem
from surtitle.audio.portaudio import HUSH, PortAudio
from surtitle.checks.child import Answer
from surtitle.checks.finding import Finding, Level
from surtitle.checks.sound import check_devices, level, meter, others, portaudio, server


def says(**told: object) -> Answer:
    return Answer(code=0, output=json.dumps(told))


@pytest.mark.parametrize(
    ("answer", "verdict", "text"),
    [
        (says(version="19.6.0", hosts={"ALSA": 1, "OSS": 0}), Level.OK,
         "PortAudio 19.6.0: ALSA (1 input), OSS (0 inputs)"),
        (says(version="19.6.0", hosts={}), Level.FAIL, "reaches no sound system"),
        (says(missing=True), Level.FAIL, "is not installed"),
        (Answer(code=None), Level.FAIL, "does not answer"),
        (Answer(code=-11), Level.FAIL, "crashes"),
        (Answer(code=1), Level.FAIL, "cannot be started"),
        (Answer(code=0, output="noise"), Level.FAIL, "cannot be started"),
        (Answer(code=0, output="[1]"), Level.FAIL, "cannot be started"),
        (says(version="19.6.0", hosts=None), Level.FAIL, "cannot be started"),
    ],
)  # fmt: skip
def test_the_table_of_portaudio(answer: Answer, verdict: Level, text: str) -> None:
    found = portaudio(answer)
    assert found.level is verdict
    assert text in found.text
    assert bool(found.remedy) is (verdict is not Level.OK)


@pytest.mark.parametrize(
    ("name", "verdict"), [("PulseAudio (on PipeWire 1.4)", Level.OK), (None, Level.WARN)]
)
def test_the_sound_server(name: str | None, verdict: Level) -> None:
    assert server(name).level is verdict


@pytest.mark.parametrize(
    ("dbfs", "drawn"),
    [
        (-120.0, "[..........] silence"),
        (-119.0, "[..........] -119 dBFS"),
        (-60.0, "[..........] -60 dBFS"),
        (-30.0, "[#####.....] -30 dBFS"),
        (-6.2, "[#########.] -6 dBFS"),
        (0.0, "[##########] 0 dBFS"),
        (0.5, "[##########] 0 dBFS"),
    ],
)
def test_the_meter(dbfs: float, drawn: str) -> None:
    assert meter(dbfs) == drawn


@pytest.mark.parametrize(
    ("kind", "dbfs", "verdict", "said"),
    [
        (Kind.MIC, -30.0, Level.OK, ""),
        (Kind.MIC, -90.0, Level.OK, ""),
        (Kind.MIC, -120.0, Level.WARN, "exact zeros"),
        (Kind.SYSTEM, -120.0, Level.OK, "while nothing plays"),
        (Kind.SYSTEM, -90.0, Level.OK, "while nothing plays"),
        (Kind.SYSTEM, -20.0, Level.OK, ""),
    ],
)
def test_silence_is_a_fault_of_microphones_only(
    kind: Kind, dbfs: float, verdict: Level, said: str
) -> None:
    found = level(kind, "Headset", dbfs)
    assert found.level is verdict
    assert "“Headset”" in found.text
    if said:
        assert said in found.text
    else:
        assert found.text.endswith(meter(dbfs))


def device(name: str) -> Device:
    return Device(id=name, kind=Kind.MIC, name=name, default=False, rate=48_000, channels=1)


def test_others_are_named() -> None:
    assert others(Kind.MIC, [device("A")]).text == "1 more microphone: “A”"
    assert others(Kind.SYSTEM, [device("A"), device("B")]).text == "2 more outputs: “A”, “B”"


class World:
    """A computer without a sound server, with the devices that a test puts in."""

    def __init__(self) -> None:
        self.module = FakeSoundDevice()
        self.control = ControlThread(on_abandon=HUSH.restore)
        self.found: list[Finding] = []

    def check(self, *kinds: Kind) -> list[Finding]:
        async def connect() -> None:
            return None

        system = SoundSystem(
            portaudio=PortAudio(self.module), control=self.control, connect=connect
        )
        asyncio.run(check_devices(self.found.append, kinds, system=system, platform="linux"))
        return self.found


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.control.stop()


def play(sample: int) -> bytes:
    return array("h", [sample]).tobytes() * 2 * 882


@pytest.mark.parametrize(("sample", "verdict"), [(3_000, Level.OK), (0, Level.WARN)])
def test_the_default_microphone_is_listened_to(
    world: World, monkeypatch: pytest.MonkeyPatch, sample: int, verdict: Level
) -> None:
    # All the sound there is comes at once; with more patience it would wait for the next.
    monkeypatch.setattr("surtitle.checks.sound._MEASURED", 1e-6)
    world.module.entries = [entry("Table"), entry("Webcam")]

    def deliver(stream: FakeStream) -> None:
        for _ in range(5):
            stream.push(play(sample))

    world.module.on_start = deliver
    heard, rest = world.check(Kind.MIC)
    assert heard.level is verdict
    assert "“Table”" in heard.text
    if sample:
        assert f"{20 * math.log10(sample / 32768):.0f} dBFS" in heard.text
    assert rest.text == "1 more microphone: “Webcam”"
    assert all(stream.closed for stream in world.module.streams)


def test_a_device_that_does_not_open_fails_with_its_remedy(world: World) -> None:
    world.module.entries = [entry("Table")]
    world.module.refuse_with = PortAudioError("Device unavailable", -9985)
    (found,) = world.check(Kind.MIC)
    assert found.level is Level.FAIL
    assert "busy" in found.text
    assert found.remedy


def test_no_device_at_all_is_no_fault(world: World) -> None:
    found = world.check(*Kind)
    assert [each.level for each in found] == [Level.WARN, Level.WARN]
    assert all("files can be captioned" in each.remedy for each in found)
