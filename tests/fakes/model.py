"""A speech model and a voice detector that read what the sound says.

Each sample of a word has the word's number as its value, so that any piece of the
sound can be understood by itself, as with a real model: no state, no clock.
"""

from array import array
from collections.abc import Sequence
from itertools import groupby

from surtitle.core.audio import SAMPLE_RATE, Chunk

__all__ = ["FIRST_WORD", "HISS", "Detector", "Model", "chunks", "hiss", "music", "pause", "words"]

HISS = 1
_MUSIC = 2
FIRST_WORD = 100
"""Number of the first word; its text is `word0`."""

_WORD = 4_800
"""0.3 s, and as much again is said of it when half of it is heard."""
_BETWEEN = 800
_STRIDE = 160


def _pcm(value: int, samples: int) -> bytes:
    return array("h", [value]).tobytes() * samples


def pause(seconds: float) -> bytes:
    """Exact zeros."""
    return _pcm(0, round(seconds * SAMPLE_RATE))


def hiss(seconds: float) -> bytes:
    """What a microphone hears when nobody speaks."""
    return _pcm(HISS, round(seconds * SAMPLE_RATE))


def music(seconds: float) -> bytes:
    """The detector takes it for speech."""
    return _pcm(_MUSIC, round(seconds * SAMPLE_RATE))


def words(first: int, last: int) -> bytes:
    """Words `first` to `last`, 0.35 s each."""
    return b"".join(
        _pcm(FIRST_WORD + number, _WORD) + _pcm(HISS, _BETWEEN) for number in range(first, last + 1)
    )


def chunks(sound: bytes, sizes: Sequence[int], *, start: int = 0) -> list[Chunk]:
    """Cut sound into chunks of these many samples, over and over."""
    cut: list[Chunk] = []
    at = 0
    while at < len(sound):
        size = 2 * sizes[len(cut) % len(sizes)]
        cut.append(Chunk(start=start + at // 2, pcm=sound[at : at + size], level=-20.0))
        at += size
    return cut


class Detector:
    """Says how likely speech is in a window of 512 samples; exact zeros are not for it."""

    def __init__(self) -> None:
        self.windows = 0

    def __call__(self, window: bytes) -> float:
        samples = array("h", window)
        assert len(samples) == 512
        assert any(samples), "exact zeros were scored"
        self.windows += 1
        return 0.95 if samples[len(samples) // 2] >= _MUSIC else 0.02


class Model:
    """Says the words that are in the sound, in order.

    Args:
        says: What it makes of certain words instead, by number.
        invents: What it answers to music, by turns; with silence before the sound the next one.
    """

    def __init__(
        self, *, says: dict[int, str] | None = None, invents: tuple[str, ...] = ()
    ) -> None:
        self._says = says or {}
        self._invents = invents
        self.asked: list[float] = []
        """Seconds of sound that it was asked about, without the silence around it."""
        self.led: list[bool] = []
        """Whether there was silence before the sound."""

    def __call__(self, pcm: bytes) -> str:
        samples = array("h", pcm)
        values = samples[::_STRIDE]
        led = bool(values) and values[0] == 0
        self.led.append(led)
        self.asked.append((len(samples) - _silence(samples)) / SAMPLE_RATE)
        heard = [(value, sum(1 for _ in run)) for value, run in groupby(values)]
        said = [
            self._says.get(value - FIRST_WORD, f"word{value - FIRST_WORD}")
            for value, count in heard
            if value >= FIRST_WORD and count * _STRIDE >= _WORD / 2
        ]
        if self._invents and any(value == _MUSIC for value, _ in heard):
            said.append(self._invents[len(self.asked) % len(self._invents)])
        return " ".join(said)


def _silence(samples: "array[int]") -> int:
    """How many exact zeros are at the two ends."""
    stripped = samples.tobytes().lstrip(b"\0").rstrip(b"\0")
    return len(samples) - (len(stripped) + 1) // 2
