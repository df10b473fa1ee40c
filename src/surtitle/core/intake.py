"""What a source delivers becomes what engines are given.

Every frame ends up in exactly one chunk or one gap, and chunks and gaps follow
each other without a hole, however the sound was cut into blocks.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surtitle.core.audio import CHUNK_SAMPLES, Chunk, Format
from surtitle.core.mixing import Mixer
from surtitle.core.resampling import Resampler, position

__all__ = ["SILENCE", "Intake", "level_of"]

SILENCE = -120.0
"""The level of digital silence, in dBFS."""

_FULL_SCALE = 32768.0


def level_of(samples: NDArray[np.int16]) -> float:
    """Root mean square in dBFS: 0 for a full-scale square wave, `SILENCE` for nothing."""
    if not len(samples):
        return SILENCE
    power = float(np.mean(np.square(samples, dtype=np.float64))) / _FULL_SCALE**2
    return max(SILENCE, 10.0 * math.log10(power)) if power > 0.0 else SILENCE


class Intake:
    """Mixes down, resamples and cuts into chunks, keeping count of every frame.

    Args:
        format: What the source delivers.

    Raises:
        ValueError: If the format is outside the limits that `Format` states.
    """

    def __init__(self, format: Format) -> None:  # noqa: A002 — the field's word
        if not 4_000 <= format.rate <= 384_000 or format.channels < 1:  # noqa: PLR2004 — as stated
            raise ValueError(f"{format} is outside the limits of Format")
        self._format = format
        self._mixer = Mixer(rate=format.rate, channels=format.channels)
        self._resampler = Resampler(format.rate)
        self._carry = b""
        self._frames = 0
        self._ready = np.empty(0, np.int16)
        self._given = 0  # samples that are out, in chunks and gaps

    @property
    def position(self) -> int:
        """How far the sound taken so far reaches, in samples, including what is still inside."""
        return position(self._frames, self._format.rate)

    def push(self, pcm: bytes) -> list[Chunk]:
        """Take sound in the source's format, cut anywhere, even within a sample.

        Returns:
            The full chunks that are ready, in order; often none.
        """
        self._resample(self._mixer.push(self._frames_of(pcm)))
        return self._chunks()

    def skip(self, frames: int) -> tuple[list[Chunk], tuple[int, int]]:
        """Note that so many frames are missing here.

        Returns:
            The chunks before the gap, the last of which may be short, and the
            first sample of the gap and one past its last.

        Raises:
            ValueError: If `frames` is negative.
        """
        if frames < 0:
            raise ValueError("a gap cannot be negative")
        start = self.position
        if frames == 0:
            return [], (start, start)
        chunks = self.flush()
        self._frames += frames
        self._given = self.position
        return chunks, (start, self._given)

    def flush(self) -> list[Chunk]:
        """End the sound here, or before a pause: give all that is inside, the last chunk short.

        A frame that is not complete is dropped. More may be pushed afterwards.
        """
        self._carry = b""
        self._resample(self._mixer.flush())
        rest = self._resampler.finish(self.position - self._given - len(self._ready))
        self._ready = np.concatenate((self._ready, rest))
        chunks = self._chunks()
        if len(self._ready):
            chunks.append(self._chunk(self._ready))
            self._ready = np.empty(0, np.int16)
        return chunks

    def _frames_of(self, pcm: bytes) -> NDArray[np.int16]:
        """The complete frames so far, as frames by channels."""
        if self._carry:
            pcm = self._carry + pcm
        size = 2 * self._format.channels
        count = len(pcm) // size
        self._carry = pcm[count * size :]
        self._frames += count
        flat = np.frombuffer(pcm, "<i2", count * self._format.channels)
        return flat.astype(np.int16, copy=False).reshape(count, self._format.channels)

    def _resample(self, mono: NDArray[np.float32]) -> None:
        if len(mono):
            self._ready = np.concatenate((self._ready, self._resampler.push(mono)))

    def _chunks(self) -> list[Chunk]:
        whole = len(self._ready) // CHUNK_SAMPLES * CHUNK_SAMPLES
        chunks = [
            self._chunk(self._ready[start : start + CHUNK_SAMPLES])
            for start in range(0, whole, CHUNK_SAMPLES)
        ]
        self._ready = self._ready[whole:]
        return chunks

    def _chunk(self, samples: NDArray[np.int16]) -> Chunk:
        start = self._given
        self._given += len(samples)
        pcm = samples.astype("<i2", copy=False).tobytes()
        return Chunk(start=start, pcm=pcm, level=level_of(samples))
