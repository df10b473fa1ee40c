"""Media files made to order, and files that behave as told."""

import io
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, override

import av
import numpy as np
from numpy.typing import NDArray

type Samples = NDArray[np.int16]


def tone(rate: int, seconds: float, *, hertz: float = 440.0, peak: int = 8000) -> Samples:
    """A sine, mono."""
    time = np.arange(int(rate * seconds)) / rate
    return (peak * np.sin(2 * np.pi * hertz * time)).astype("<i2")


def wave_bytes(
    data: bytes,
    *,
    rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    tag: int = 1,
    data_length: int | None = None,
    before_data: bytes = b"",
) -> bytes:
    """A WAV file with any header; `data_length` is what the header says, true or not."""
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits)
    length = len(data) if data_length is None else data_length
    body = b"WAVE" + _chunk(b"fmt ", form) + before_data
    body += b"data" + struct.pack("<I", length) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def wave_chunk(kind: bytes, data: bytes) -> bytes:
    """Any other chunk of a WAV file, padded to an even length."""
    return _chunk(kind, data) + b"\0" * (len(data) % 2)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data


def encode(  # one track of sound, perhaps with a picture
    path: Path,
    *,
    codec: str,
    samples: Samples | None,
    rate: int,
    starts_at: float = 0.0,
    video_seconds: float = 0.0,
    options: dict[str, str] | None = None,
) -> bytes:
    """Encode mono sound with FFmpeg; the container follows from the suffix."""
    with av.open(path, "w", options=options or {}) as container:
        # All tracks first: the first packet writes the header.
        video = container.add_stream("mpeg4", rate=5) if video_seconds else None
        track: Any = None if samples is None else container.add_stream(codec, rate=rate)
        if track is not None:
            track.layout = "mono"
        if video is not None:
            video.width, video.height, video.pix_fmt = 32, 32, "yuv420p"
            for number in range(int(5 * video_seconds)):
                picture = av.VideoFrame(32, 32, "yuv420p")
                for plane in picture.planes:
                    plane.update(bytes(plane.buffer_size))
                picture.pts = number
                container.mux(video.encode(picture))
            container.mux(video.encode(None))
        if samples is not None:
            adapt = av.AudioResampler(
                format=track.codec_context.format,
                layout="mono",
                rate=rate,
                frame_size=track.codec_context.frame_size or 1024,
            )
            frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), "s16", "mono")
            frame.sample_rate = rate
            frame.pts = round(starts_at * rate)
            frame.time_base = Fraction(1, rate)
            for part in [*adapt.resample(frame), *adapt.resample(None), None]:
                container.mux(track.encode(part))
    return path.read_bytes()


class FailingFile(io.BytesIO):
    """A file on a disk that breaks: reading beyond `limit` bytes fails."""

    name = "broken.wav"

    def __init__(self, data: bytes, *, limit: int) -> None:
        super().__init__(data)
        self._limit = limit

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= self._limit:
            raise OSError(5, "Input/output error")
        return super().read(size)


def opens(data: bytes, *, name: str = "fake.wav") -> Callable[[Path], BinaryIO]:
    """An opener whose file holds these bytes, whatever path it is asked for."""

    def open_file(_: Path) -> BinaryIO:
        file = io.BytesIO(data)
        file.name = name
        return file

    return open_file


def refuses(error: Exception) -> Callable[[Path], BinaryIO]:
    """An opener that always fails."""

    def open_file(_: Path) -> BinaryIO:
        raise error

    return open_file
