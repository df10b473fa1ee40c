"""Recorded speech that ships inside the speech engine's package, cut to length."""

import re
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

__all__ = ["plain", "raw_recording", "recording"]

_RATE = 48_000


def recording(file: Path, *, seconds: float) -> Path:
    """Write the beginning of A Tale of Two Cities, mono.

    "It was the best of times, it was the worst of times, it was the age of wisdom,
    it was the age of foolishness": read in 8.5 s.
    """
    with wave.open(str(file), "wb") as copy:
        copy.setnchannels(1)
        copy.setsampwidth(2)
        copy.setframerate(_RATE)
        copy.writeframes(_frames(seconds))
    return file


def raw_recording(*, seconds: float) -> bytes:
    """Return the same as 16-bit samples, 16 kHz, mono."""
    samples = np.frombuffer(_frames(seconds), "<i2").astype(np.int32)
    thirds = samples[: len(samples) // 3 * 3].reshape(-1, 3)
    return thirds.mean(axis=1).astype("<i2").tobytes()


def plain(text: str) -> str:
    """Return the words alone: the model is not of one mind about commas and capitals."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def _frames(seconds: float) -> bytes:
    package = find_spec("moonshine_voice")
    if package is None or package.origin is None:
        pytest.skip("needs the on-device engine, which this system does not have")
    original = Path(package.origin).parent / "assets" / "two_cities.wav"
    with wave.open(str(original), "rb") as source:
        assert (source.getnchannels(), source.getsampwidth()) == (1, 2)
        assert source.getframerate() == _RATE
        return source.readframes(int(seconds * _RATE))
