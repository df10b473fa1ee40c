"""Sound that tells its own place, and speech that lies in it: what is heard twice or not shows."""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import overload

import numpy as np

from fakes.source import MONO
from fakes.speech import Spoken, Word, seconds
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Block, SourceEvent, Started

__all__ = ["CodedSound", "Speech", "coded", "place_of", "talk"]

_GAP = 0.08
"""Seconds between two words of an utterance, in which a detector is less sure."""
_LOW = 15
"""Bits of a place that the even samples hold."""


@lru_cache(maxsize=1024)
def coded(start: int, samples: int) -> bytes:
    """Sound from position `start` on: any two samples of it tell where they lie."""
    at = np.arange(start, start + samples)
    pair = at >> 1
    values = np.where(at & 1, -1 - (pair >> _LOW), pair & ((1 << _LOW) - 1))
    return values.astype("<i2").tobytes()


def place_of(pcm: bytes) -> int | None:
    """Position of the first sample; None for silence. Sound that does not hang together fails."""
    start = _place(pcm, 0)
    if start is not None:
        samples = len(pcm) // 2
        assert samples < 4 or _place(pcm, samples - 4) == start + samples - 4, "sound with a seam"
    return start


def _place(pcm: bytes, sample: int) -> int | None:
    a, b, c = (int(value) for value in struct.unpack_from("<hhh", pcm, 2 * sample))
    if a == b == 0:
        return None
    if a < 0:
        return 2 * (b | (-1 - c) << _LOW) - 1
    return 2 * (a | (-1 - b) << _LOW)


class Speech:
    """Utterances in order."""

    def __init__(self, spoken: Sequence[Spoken]) -> None:
        self.spoken = tuple(spoken)
        self.words = tuple(word for each in spoken for word in each.words)
        self.ends = [word.end for word in self.words]
        self._spans = [(each.words[0].start, each.words[-1].end) for each in spoken]
        self._span_ends = [end for _, end in self._spans]

    @property
    def length(self) -> float:
        """Seconds until the last word is over."""
        return self.ends[-1] / SAMPLE_RATE

    def score(self, window: bytes) -> float:
        """As a voice detector: how likely it is that somebody speaks in this sound."""
        start = place_of(window)
        if start is None:
            return 0.0
        end = start + len(window) // 2
        at = bisect_right(self.ends, start)
        if at < len(self.words) and self.words[at].start < end:
            return 0.9
        return 0.4 if self.speaking(start, end) else 0.05

    def speaking(self, start: int, end: int) -> int:
        """For how many samples from `start` to `end` an utterance is going on."""
        first = bisect_right(self._span_ends, start)
        spoken = 0
        for begin, over in self._spans[first:]:
            if begin >= end:
                break
            spoken += min(over, end) - max(begin, start)
        return spoken


def talk(*utterances: tuple[float, int]) -> Speech:
    """Speak so many words from so many seconds on, no two alike, 0.3 s each."""
    number, spoken = 0, []
    for at, count in utterances:
        words = tuple(
            Word(
                text=f"word{number + i}",
                start=seconds(at + 0.3 * i),
                end=seconds(at + 0.3 * (i + 1) - _GAP),
            )
            for i in range(count)
        )
        number += count
        spoken.append(Spoken(words=words))
    return Speech(spoken)


class CodedSound(Sequence[tuple[float, SourceEvent]]):
    """A script for `fakes.source.ScriptedSource`; made as it is read, it may be long.

    Args:
        length: Seconds.
        live: Whether each block comes when it has sounded.
    """

    def __init__(self, length: float, *, live: bool = True) -> None:
        self._blocks = -(-seconds(length) // CHUNK_SAMPLES)
        self._live = live

    def __len__(self) -> int:
        return self._blocks + 1

    @overload
    def __getitem__(self, index: int) -> tuple[float, SourceEvent]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[float, SourceEvent]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[float, SourceEvent] | list[tuple[float, SourceEvent]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index >= len(self):
            raise IndexError(index)
        if index == 0:
            return 0.0, Started(format=MONO, name="Script")
        start = (index - 1) * CHUNK_SAMPLES
        time = (start + CHUNK_SAMPLES) / SAMPLE_RATE if self._live else 0.0
        return time, Block(pcm=coded(start, CHUNK_SAMPLES))
