"""Inputs are listed whatever one of them is like, and opened in a form they accept."""

import importlib
import os
import sys
from dataclasses import replace

import pytest

from fakes.sound_device import FakeSoundDevice, PortAudioError, entry
from surtitle.audio.portaudio import Hush, Input, PortAudio, Request, formats, preferred
from surtitle.core.audio import Format
from surtitle.core.errors import SourceError

ABSENT = SourceError("Desk microphone is not there.")
REQUEST = Request(label="Desk microphone", names=("Study", "Desk"), absent=ABSENT)


def heard(_pcm: object, _frames: int, _times: object, _flags: object) -> None:
    pass


def finished() -> None:
    pass


@pytest.mark.parametrize(
    ("rate", "channels", "first", "counts"),
    [
        (44_100, 2, Format(rate=44_100, channels=2), {2, 1}),
        (48_000, 1, Format(rate=48_000, channels=1), {1}),
        (16_000, 8, Format(rate=16_000, channels=2), {2, 1, 8}),
        (8_000, 6, Format(rate=8_000, channels=2), {2, 1, 6}),
        (192_000, 32, Format(rate=96_000, channels=2), {2, 1, 8}),
        (4_000, 0, Format(rate=8_000, channels=1), {1}),
    ],
)
def test_formats_begin_with_the_devices_own(
    rate: int, channels: int, first: Format, counts: set[int]
) -> None:
    ladder = formats(rate, channels)
    assert ladder[0] == first
    assert {each.channels for each in ladder} == counts
    assert {48_000, 44_100, 16_000} <= {each.rate for each in ladder}
    assert len(set(ladder)) == len(ladder)


def test_a_bad_entry_hides_no_other() -> None:
    module = FakeSoundDevice(
        entries=[
            entry("Desk"),
            PortAudioError("Invalid device", -9996),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
            {"name": "half"},
            entry("Loudspeaker", channels=0),
            entry("Head", channels=1, rate=16_000.0),
        ]
    )
    assert PortAudio(module).inputs() == [
        Input(name="Desk", host="ALSA", index=0, rate=44_100, channels=2, default=True),
        Input(name="Head", host="ALSA", index=5, rate=16_000, channels=1, default=False),
    ]


def test_one_host_api_is_preferred() -> None:
    def of(host: str) -> Input:
        return Input(name="Mic", host=host, index=0, rate=48_000, channels=1, default=False)

    windows = [of("MME"), of("Windows DirectSound"), of("Windows WASAPI"), of("Windows WDM-KS")]
    assert preferred(windows) == [of("Windows WASAPI")]
    assert preferred(windows[:2]) == [of("MME")]
    assert preferred([of("JACK Audio Connection Kit")]) == [of("JACK Audio Connection Kit")]
    assert preferred([]) == []


def test_it_opens_at_the_first_format_that_is_accepted() -> None:
    module = FakeSoundDevice(
        entries=[entry("Desk", channels=8, rate=96_000.0)],
        accepted=lambda rate, channels: rate == 48_000 and channels == 8,
    )
    opened = PortAudio(module).open(REQUEST, callback=heard, finished=finished)
    assert opened.format == Format(rate=48_000, channels=8)
    stream = module.streams[0]
    assert (stream.blocksize, stream.dtype) == (960, "int16")
    assert 0.1 <= stream.latency <= 0.2
    stream.close()


@pytest.mark.parametrize(
    ("refusal", "attempts", "says"),
    [
        (PortAudioError("Device unavailable", -9985), 1, "another program"),
        (PortAudioError("Host error", -9999, (0, -5, "")), 1, "cannot be opened"),
        (PortAudioError("odd"), 1, "cannot be opened"),
        (PortAudioError("Invalid rate", -9997), 6, "cannot be opened"),
    ],
)
def test_what_does_not_open_is_said(refusal: PortAudioError, attempts: int, says: str) -> None:
    module = FakeSoundDevice(entries=[entry("Desk")], refuse_with=refusal)
    with pytest.raises(SourceError, match=says) as caught:
        PortAudio(module).open(REQUEST, callback=heard, finished=finished)
    assert "Desk microphone" in caught.value.message
    assert caught.value.remedy
    assert caught.value.__cause__ is refusal
    assert len(module.attempts) == attempts


def test_what_is_not_there_is_said() -> None:
    module = FakeSoundDevice(entries=[entry("Head")])
    with pytest.raises(SourceError, match="Desk microphone is not there"):
        PortAudio(module).open(REQUEST, callback=heard, finished=finished)


def test_the_list_is_refreshed_but_never_under_an_open_stream() -> None:
    module = FakeSoundDevice(entries=[entry("Desk")])
    audio = PortAudio(module)
    opened = audio.open(REQUEST, callback=heard, finished=finished)
    refreshed = module.refreshed
    audio.inputs()  # the fake fails if this ends the stream
    assert module.refreshed == refreshed
    audio.close(opened)
    audio.inputs()
    assert module.refreshed == refreshed + 1


def test_the_environment_is_set_for_the_opening_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_PROP", "before")
    monkeypatch.delenv("PULSE_SOURCE", raising=False)
    module = FakeSoundDevice(entries=[entry("Desk")])
    variables = {"PULSE_SOURCE": "x", "PULSE_PROP": "y"}
    request = replace(REQUEST, environment=variables)
    PortAudio(module).open(request, callback=heard, finished=finished).stream.close()
    seen = module.streams[0].environment
    assert (seen["PULSE_SOURCE"], seen["PULSE_PROP"]) == ("x", "y")
    assert os.environ["PULSE_PROP"] == "before"
    assert "PULSE_SOURCE" not in os.environ


def test_no_portaudio_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> object:
        raise OSError("PortAudio library not found")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(SourceError, match="libportaudio2"):
        PortAudio().inputs()


def test_closing_what_has_ended_by_itself_is_fine() -> None:
    module = FakeSoundDevice(entries=[entry("Desk")])
    audio = PortAudio(module)
    opened = audio.open(REQUEST, callback=heard, finished=finished)
    module.streams[0].end()
    audio.close(opened)
    audio.close(opened)
    assert module.streams[0].closed


def test_the_fake_ends_like_the_real_one_when_a_callback_raises() -> None:
    ended: list[bool] = []

    def broken(_pcm: object, _frames: int, _times: object, _flags: object) -> None:
        raise ValueError

    module = FakeSoundDevice(entries=[entry("Desk")])
    PortAudio(module).open(REQUEST, callback=broken, finished=lambda: ended.append(True))
    module.streams[0].push(bytes(8))
    module.streams[0].close()
    assert ended == [True]


def test_c_libraries_are_silenced_and_no_one_else(capfd: pytest.CaptureFixture[str]) -> None:
    hush = Hush()
    os.write(2, b"before ")
    with hush.quiet():
        os.write(2, b"noise ")
    os.write(2, b"after")
    assert capfd.readouterr().err == "before after"


def test_the_quiet_of_a_call_that_hangs_is_ended_from_outside(
    capfd: pytest.CaptureFixture[str],
) -> None:
    hush = Hush()
    hanging = hush.quiet()
    hanging.__enter__()
    hush.restore()
    os.write(2, b"heard ")
    with hush.quiet():
        hanging.__exit__(None, None, None)  # it ends after all: this quiet is not its own
        os.write(2, b"noise ")
    os.write(2, b"again")
    assert capfd.readouterr().err == "heard again"
    sys.stderr.flush()
