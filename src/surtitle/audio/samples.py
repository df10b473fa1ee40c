"""Decoded frames of any sample format become interleaved 16-bit samples."""

from typing import Any

import numpy as np
from av import AudioFrame, AudioResampler
from numpy.typing import NDArray

from surtitle.core.audio import Format

__all__ = ["Converter"]

_LOWEST = -32768
_HIGHEST = 32767


class Converter:
    """Makes every frame of a track look like its first.

    Scales by powers of two without dither; what is beyond full scale is clipped
    and what is not a number is silence.

    Args:
        first: The first frame, which decides rate and channels.
    """

    def __init__(self, first: AudioFrame) -> None:
        self.format = Format(rate=first.sample_rate, channels=first.layout.nb_channels)
        self._layout = first.layout.name
        self._adapter: AudioResampler | None = None
        self._adapts: tuple[str, str, int] | None = None

    def convert(self, frame: AudioFrame) -> NDArray[np.int16]:
        """Samples of this frame, interleaved.

        Raises:
            av.FFmpegError: If a frame in another format than the first cannot be adapted.
            ValueError: If PyAV cannot give the samples out.
        """
        same = (frame.sample_rate, frame.layout.nb_channels) == (
            self.format.rate,
            self.format.channels,
        )
        if same and (samples := _to_16_bit(frame)) is not None:
            return samples
        return self._adapt(frame)

    def _adapt(self, frame: AudioFrame) -> NDArray[np.int16]:
        """Let FFmpeg convert what changed in mid-file (a broadcast, files put end to end)."""
        shape = (frame.format.name, frame.layout.name, frame.sample_rate)
        if self._adapter is None or self._adapts != shape:
            self._adapter = AudioResampler(format="s16", layout=self._layout, rate=self.format.rate)
            self._adapts = shape
        adapted = [_to_16_bit(part) for part in self._adapter.resample(frame)]
        present = [samples for samples in adapted if samples is not None]
        return np.concatenate(present) if present else np.empty(0, np.int16)


def _to_16_bit(frame: AudioFrame) -> NDArray[np.int16] | None:
    """Interleaved samples, or None for a sample format that numpy cannot be given."""
    kind = frame.format.name.removesuffix("p")
    if kind not in {"u8", "s16", "s32", "flt", "dbl"}:
        return None
    array: NDArray[Any] = frame.to_ndarray()  # the type depends on the format of the frame
    flat = array.T.reshape(-1) if frame.format.is_planar else array.reshape(-1)
    return _scale(flat, kind).astype(np.int16, copy=False)


def _scale(samples: NDArray[Any], kind: str) -> NDArray[Any]:
    """Whole numbers on the scale of 16-bit samples."""
    match kind:
        case "s16":
            return samples
        case "u8":
            return (samples.astype(np.int16) - 128) * 256
        case "s32":
            # The lower half decides which way to round; the very top would round up too far.
            wide: NDArray[np.int64] = (samples.astype(np.int64) + 0x8000) >> 16
            return wide.clip(max=_HIGHEST)
        case _:
            with np.errstate(invalid="ignore"):  # what is not a number may say so when it is copied
                full: NDArray[np.float64] = samples.astype(np.float64)
            np.nan_to_num(full, copy=False)
            scaled = full.clip(-1.0, 1.0) * -_LOWEST
            return scaled.round().clip(_LOWEST, _HIGHEST)
