"""One channel at any rate becomes 16-bit samples at `SAMPLE_RATE`, as a stream."""

from typing import Protocol, cast

import numpy as np
import soxr
from numpy.typing import NDArray

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.mixing import Mono

__all__ = ["Resampler", "position"]

_LOWEST = -32768
_HIGHEST = 32767


def position(frames: int, rate: int) -> int:
    """Where frame number `frames` at `rate` hertz lies, in samples at `SAMPLE_RATE`.

    Rounded from whole numbers each time, so that it is as true after a day as after a second.
    """
    return (2 * frames * SAMPLE_RATE + rate) // (2 * rate)


class Resampler:
    """Changes the rate of one stretch of sound after another.

    Its output comes in bursts and late (21 ms for 48 kHz); `finish` gives the rest.

    Args:
        rate: Frames per second of what is pushed.
    """

    def __init__(self, rate: int) -> None:
        self._soxr = None if rate == SAMPLE_RATE else _Soxr(rate)

    def push(self, mono: Mono) -> NDArray[np.int16]:
        """Take sound; give what is ready, which may be nothing."""
        return _round(mono if self._soxr is None else self._soxr.push(mono))

    def finish(self, samples: int) -> NDArray[np.int16]:
        """End the stretch: give exactly `samples` more and be ready for the next stretch.

        Where a stretch begins and ends is rounded to whole samples, so its length
        may differ by one from what its sound alone amounts to.
        """
        rest = np.empty(0, np.float32) if self._soxr is None else self._soxr.finish()
        missing = samples - len(rest)
        if missing > 0:
            rest = np.pad(rest, (0, missing), mode="edge" if len(rest) else "constant")
        return _round(rest[: max(0, samples)])


class _Process(Protocol):
    """What is used of `soxr.ResampleStream`, which is not typed."""

    def resample_chunk(self, x: Mono, last: bool = ...) -> Mono: ...  # noqa: FBT001 — not ours
    def clear(self) -> None: ...


class _Soxr:
    """A soxr stream that can be used again after its end."""

    def __init__(self, rate: int) -> None:
        stream = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
        self._stream = cast("_Process", stream)

    def push(self, mono: Mono) -> Mono:
        return self._stream.resample_chunk(mono)

    def finish(self) -> Mono:
        rest = self._stream.resample_chunk(np.empty(0, np.float32), last=True)
        self._stream.clear()
        return rest


def _round(mono: Mono) -> NDArray[np.int16]:
    """Nearest 16-bit sample; what is too loud is clipped, never wrapped around."""
    return np.rint(mono).clip(_LOWEST, _HIGHEST).astype(np.int16)
