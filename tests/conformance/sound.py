"""Sound whose transcript is known to the word: the tiny model counts the loud time in it.

After a quiet frame it begins at "one" again and says a word every 240 ms of loud
sound, so bursts of 2.4 s with pauses between give "one" to "ten" each, and any
lost or doubled 240 ms shows.
"""

import random
from dataclasses import dataclass
from functools import cache

from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE

__all__ = ["COUNT", "Sound", "bursts", "loud", "quiet"]

COUNT = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_LOUDNESS = 12_000
"""Amplitude of the noise, out of 32,768."""
_DELAY = 9_600
"""Samples by which a word that is counted may be told before its sound would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Signed 16-bit samples, and where one stretch of speech can be cut from the next."""

    pcm: bytes
    pauses: tuple[tuple[int, int], ...] = ()
    """First sample of each pause, and one past its last."""
    text: str = ""
    """What is counted in it."""

    @property
    def samples(self) -> int:
        return len(self.pcm) // 2

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE

    def pieces(self, samples: int) -> list[tuple[int, bytes]]:
        """Cut it into pieces of so many samples, each with its position."""
        size = 2 * samples
        return [(at // 2, self.pcm[at : at + size]) for at in range(0, len(self.pcm), size)]

    def in_pause(self, position: int) -> bool:
        """Whether the sound can be cut here: silence before it and enough after it."""
        return any(first + 4_800 <= position <= end - _DELAY for first, end in self.pauses)

    def settled(self, position: int) -> int:
        """The newest cut all words before which have come, if text has come up to `position`."""
        cuts = [end - _DELAY for _, end in self.pauses if end - _DELAY <= position]
        return cuts[-1] if cuts else 0

    def __add__(self, other: "Sound") -> "Sound":
        moved = tuple((first + self.samples, end + self.samples) for first, end in other.pauses)
        return Sound(
            pcm=self.pcm + other.pcm,
            pauses=self.pauses + moved,
            text=f"{self.text} {other.text}".strip(),
        )


@cache
def _noise(frames: int) -> bytes:
    chance = random.Random(frames)  # noqa: S311 - noise, not a secret
    size = frames * CHUNK_SAMPLES
    return b"".join(
        chance.randrange(-_LOUDNESS, _LOUDNESS).to_bytes(2, "little", signed=True)
        for _ in range(size)
    )


def loud(seconds: float, *, counted: int | None = None) -> Sound:
    """Noise that is counted: `counted` words, or as many as there are if it follows silence."""
    frames = round(seconds * SAMPLE_RATE / CHUNK_SAMPLES)
    words = frames // 3 if counted is None else counted
    text = " ".join(COUNT[number % len(COUNT)] for number in range(words))
    return Sound(pcm=_noise(frames), text=text)


def quiet(seconds: float) -> Sound:
    """Silence that may be cut in."""
    samples = round(seconds * SAMPLE_RATE / CHUNK_SAMPLES) * CHUNK_SAMPLES
    return Sound(pcm=bytes(2 * samples), pauses=((0, samples),))


def bursts(count: int, *, seconds: float = 2.4, pause: float = 1.2) -> Sound:
    """Pauses of 1.2 s and bursts that are counted to ten, so many of each."""
    sound = Sound(pcm=b"")
    for _ in range(count):
        sound += quiet(pause) + loud(seconds)
    return sound + quiet(pause)
