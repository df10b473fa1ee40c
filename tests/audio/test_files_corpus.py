"""Every file of the speech corpus's `format` folder, against the utterance they all hold."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.media_listener import Heard, listen
from surtitle.audio.files import MediaFile

VALID = [
    "aac-adts.aac",
    "aiff.aiff",
    "au.au",
    "caf.caf",
    "flac-48k-s24-stereo.flac",
    "m4a-aac.m4a",
    "m4a-alac.m4a",
    "mkv-opus.mkv",
    "mp3-16k-24k.mp3",
    "mp3-cbr64.mp3",
    "mp3-vbr-stereo.mp3",
    "mp4-video-aac.mp4",
    "ogg-opus.opus",
    "ogg-vorbis.ogg",
    "raw-s16le-16k.pcm",
    "wav-11k025.wav",
    "wav-16k-f32.wav",
    "wav-16k-f64.wav",
    "wav-16k-ima-adpcm.wav",
    "wav-16k-s16.wav",
    "wav-16k-s32.wav",
    "wav-16k-u8.wav",
    "wav-22k05.wav",
    "wav-3ch.wav",
    "wav-44k1-stereo.wav",
    "wav-48k-5ch1.wav",
    "wav-48k-s24.wav",
    "wav-8k-alaw.wav",
    "wav-8k-mulaw.wav",
    "wav-96k.wav",
    "wav-extensible.wav",
    "wav-extra-chunks.wav",
    "wav-fmt18.wav",
    "wav-len-ffffffff.wav",
    "wav-len-too-long.wav",
    "wav-len-zero.wav",
    "wav-rf64.wav",
    "wav-riff-size-wrong.wav",
    "wav-stereo-antiphase.wav",
    "wav-stereo-right-only.wav",
    "wav-trailing-garbage.wav",
    "wav-truncated-odd.wav",
    "wave64.w64",
    "webm-opus.webm",
    "wma.wma",
]

INVALID = {
    "empty-file.wav": "is empty",
    "header-cut.wav": "is no media file",
    "header-only.wav": "holds no sound",
    "random-bytes.mp3": "is no media file",
    "text-as-wav.wav": "is no media file",
}

NOTICES = {
    "wav-len-too-long.wav": ["The file promises 11.3 s of sound but ends after 3.8 s."],
    "wav-truncated-odd.wav": ["The file promises 3.8 s of sound but ends after 3.7 s."],
}

# The encoder filled up its last block of 1,017 samples, and says so in no header.
SLACK = {"wav-16k-ima-adpcm.wav": 0.07}


@cache
def heard(path: Path) -> Heard:
    return listen(MediaFile(path))


@cache
def seconds(corpus: Path) -> dict[str, float]:
    lines = (corpus / "manifest.jsonl").read_text("utf-8").splitlines()
    return {record["file"]: record["seconds"] for record in map(json.loads, lines)}


def speech_band(samples: NDArray[np.int16]) -> NDArray[np.complex128]:
    """Spectrum from 300 to 3,000 Hz, which even a telephone carries."""
    size = 1 << 17
    spectrum = np.fft.rfft(samples, size)
    hertz = np.fft.rfftfreq(size, 1 / 16_000)
    spectrum[(hertz < 300) | (hertz > 3_000)] = 0
    return spectrum


def likeness(one: NDArray[np.int16], other: NDArray[np.int16]) -> tuple[float, int]:
    """Largest correlation, -1 to 1, and the shift in samples that gives it."""
    a, b = speech_band(one), speech_band(other)
    products = np.fft.irfft(a * np.conj(b))
    norm = np.sqrt(np.fft.irfft(a * np.conj(a))[0] * np.fft.irfft(b * np.conj(b))[0])
    shift = int(np.abs(products).argmax())
    like = float(products[shift] / norm)
    return like, shift if shift < len(products) // 2 else shift - len(products)


@pytest.mark.parametrize("name", VALID)
def test_every_file_gives_the_utterance(corpus: Path, name: str) -> None:
    result = heard(corpus / "format" / name)
    assert not result.lost
    assert result.notices == NOTICES.get(name, [])
    assert result.gaps == []
    expected = seconds(corpus)[f"format/{name}"]
    assert result.seconds == pytest.approx(expected, abs=SLACK.get(name, 0.06))
    reference = heard(corpus / "format" / "wav-16k-s16.wav").mono
    like, shift = likeness(result.mono, reference)
    assert abs(like) > 0.9
    assert abs(shift) / 16_000 < 0.06


@pytest.mark.parametrize(("name", "words"), INVALID.items())
def test_files_without_sound_are_refused(corpus: Path, name: str, words: str) -> None:
    result = heard(corpus / "format" / name)
    assert len(result.events) == 1
    assert result.error.exit_code == 2
    assert f'{name}" {words}' in result.error.message
    assert result.error.remedy


def test_a_single_sample_is_a_very_short_file(corpus: Path) -> None:
    result = heard(corpus / "format" / "one-sample.wav")
    assert (result.frames, result.notices, result.lost) == (1, [], False)


def test_no_file_was_forgotten(corpus: Path) -> None:
    there = {path.name for path in (corpus / "format").iterdir()}
    assert there == {*VALID, *INVALID, "one-sample.wav"}


@pytest.mark.parametrize("name", ["wav-48k-5ch1.wav", "wav-3ch.wav", "wav-stereo-antiphase.wav"])
def test_no_voice_is_lost_in_the_channels(corpus: Path, name: str) -> None:
    reference = heard(corpus / "format" / "wav-16k-s16.wav").mono
    mono = heard(corpus / "format" / name).mono
    assert np.abs(mono).max() == pytest.approx(np.abs(reference).max(), rel=0.1)
