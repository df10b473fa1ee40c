"""A media file becomes source events, by way of FFmpeg. Blocks; to be run off the loop."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
from av.container import InputContainer
from numpy.typing import NDArray

from surtitle.audio.complaints import (
    cannot_open,
    no_sound,
    not_media,
    read_failed,
    seconds_in_words,
    shown,
)
from surtitle.audio.samples import Converter
from surtitle.audio.timestamps import Timestamps
from surtitle.audio.wave_header import read_wave_header
from surtitle.core.audio import Block, Format, Gap, Lost, Notice, SourceEvent, Started
from surtitle.core.errors import MediaError

__all__ = ["Decoder", "OpenFile", "open_binary"]

type OpenFile = Callable[[Path], BinaryIO]

_BLOCKS_PER_SECOND = 10

_RATES = range(4_000, 384_001)
_CHANNELS = range(1, 65)

_TOLERANCE = 0.25
"""Seconds by which a container may be wrong about its length without a word from us."""

_WAVE_TOLERANCE = 0.01
"""The same for a WAV header, which counts bytes."""

_UNTIMED = frozenset(
    {"aac", "ac3", "aiff", "amr", "au", "caf", "dts", "eac3", "loas", "w64", "wav"}
)
"""Files without timestamps: FFmpeg makes them up from the position and the bit rate."""

_UNMEASURED = frozenset({"aac", "ac3", "amr", "dts", "eac3", "loas", "mpeg", "mpegts", "wav"})
"""Files whose length is FFmpeg's guess; for WAV the header is read here instead."""

_DAMAGED = "damaged in the file"
_LATE = "the sound starts later than the file"


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; a folder is told apart on every system."""
    if path.is_dir():
        raise IsADirectoryError
    return path.open("rb")


class Decoder:
    """Decodes the best sound track of a file, whatever can be read of it.

    Args:
        path: The file.
        open_file: How it is opened. FFmpeg only sees the open file, so that a
            name cannot send it to the network and a playlist cannot send it on.
    """

    def __init__(self, path: Path, *, open_file: OpenFile = open_binary) -> None:
        self.path = path
        self.duration: float | None = None
        """Seconds the file tells; known, if at all, when `Started` comes."""
        self._open_file = open_file
        self._rest = np.empty(0, np.int16)
        self._damaged = 0
        self._cut_off = False

    def events(self) -> Generator[SourceEvent]:
        """Tell the sound in blocks of 100 ms and what is missing; then end."""
        try:
            yield from self._events()
        except MediaError as error:
            yield Lost(error=error)

    def _events(self) -> Generator[SourceEvent]:
        try:
            file = self._open_file(self.path)
        except (OSError, ValueError) as error:
            raise cannot_open(self.path, error) from error
        with file:
            try:
                yield from self._read(file)
            except av.FFmpegError as error:
                raise not_media(self.path, "is no media file, or one of an unknown kind") from error
            except OSError as error:
                yield from self._flush()
                raise read_failed(shown(self.path), error) from error

    def _read(self, file: BinaryIO) -> Generator[SourceEvent]:
        promised: float | None = None
        tolerance = _TOLERANCE
        if file.seekable():
            if file.seek(0, 2) == 0:
                raise no_sound(self.path, "is empty")
            header = read_wave_header(file)
            file.seek(0)
            if header is not None:
                promised, tolerance = header.seconds, _WAVE_TOLERANCE
        with av.open(file, "r") as container:
            track = container.streams.best("audio")
            if not isinstance(track, av.AudioStream):
                raise no_sound(self.path, "has no sound track")
            if track.codec_context is None or not track.codec_context.is_decoder:
                raise not_media(self.path, "has sound of a kind that cannot be decoded here")
            self.duration = _length(container, track)
            length = self.duration if _promises(container, track) else None
            if promised is None:
                promised = length
            yield from self._decode(
                container, track, length=length, promised=promised, tolerance=tolerance
            )

    def _decode(
        self,
        container: InputContainer,
        track: av.AudioStream,
        *,
        length: float | None,
        promised: float | None,
        tolerance: float,
    ) -> Generator[SourceEvent]:
        frames = self._frames(container, track)
        first = next(frames, None)
        if first is None:
            raise self._nothing()
        converter = Converter(first)
        form = converter.format
        if form.rate not in _RATES or form.channels not in _CHANNELS:
            raise not_media(
                self.path, f"has {form.channels} channels at {form.rate} Hz, which cannot be used"
            )
        yield Started(format=form, name=shown(Path(self.path.name)))
        origin = first.time if container.start_time is None else container.start_time / av.time_base
        timestamps = Timestamps(rate=form.rate, origin=origin or 0.0, length=length)
        frame: av.AudioFrame | None = first
        while frame is not None:
            reason = _DAMAGED if timestamps.frames else _LATE
            time = None if container.format.name in _UNTIMED else frame.time
            if missing := timestamps.hole(time):
                yield from self._flush()
                yield Gap(frames=missing, reason=reason)
            try:
                samples = converter.convert(frame)
            except (av.FFmpegError, ValueError):  # more planes than PyAV can count: ValueError
                self._damaged += 1
            else:
                timestamps.advance(len(samples) // form.channels)
                yield from self._cut(samples, form)
            frame = next(frames, None)
        yield from self._flush()
        if not timestamps.frames:
            raise self._nothing()
        yield from self._last_words(timestamps.frames / form.rate, promised, tolerance)

    def _frames(self, container: InputContainer, track: av.AudioStream) -> Generator[av.AudioFrame]:
        """Everything that can be decoded; what cannot is counted and left out."""
        packets = container.demux(track)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except av.FFmpegError:
                self._cut_off = True
                return
            try:
                yield from packet.decode()
            except (av.FFmpegError, ValueError):  # a decoder that could not be opened: ValueError
                self._damaged += 1

    def _cut(self, samples: NDArray[np.int16], form: Format) -> Generator[Block]:
        """Give whole blocks; keep the rest for later."""
        size = max(1, form.rate // _BLOCKS_PER_SECOND) * form.channels
        held = np.concatenate((self._rest, samples)) if len(self._rest) else samples
        whole = len(held) // size * size
        for start in range(0, whole, size):
            yield _block(held[start : start + size])
        self._rest = held[whole:].copy()

    def _flush(self) -> Generator[Block]:
        if len(self._rest):
            yield _block(self._rest)
            self._rest = np.empty(0, np.int16)

    def _nothing(self) -> MediaError:
        if self._damaged or self._cut_off:
            return not_media(
                self.path, "cannot be decoded at all; it may be damaged or copy-protected"
            )
        return no_sound(self.path, "holds no sound")

    def _last_words(
        self, seconds: float, promised: float | None, tolerance: float
    ) -> Generator[Notice]:
        """Say what was missing, once, at the end, when it is sure."""
        short = promised is not None and promised - seconds >= tolerance
        if self._damaged > short:  # where a file breaks off, one part is cut in two
            parts = "One part" if self._damaged == 1 else f"{self._damaged} parts"
            yield Notice(text=f"{parts} of the sound could not be decoded: the file is damaged.")
        if promised is not None and short:
            whole, there = seconds_in_words(promised, seconds)
            yield Notice(text=f"The file promises {whole} of sound but ends after {there}.")
        elif self._cut_off:
            yield Notice(text=f"The file cannot be read any further than {seconds:.1f} s.")


def _block(samples: NDArray[np.int16]) -> Block:
    return Block(pcm=samples.astype("<i2", copy=False).tobytes())


def _length(container: InputContainer, track: av.AudioStream) -> float | None:
    """Seconds from the beginning of the file to the end of its sound, as the file tells."""
    if track.duration is not None:
        late = 0.0
        if track.start_time is not None and container.start_time is not None:
            late = float(track.start_time * track.time_base) - container.start_time / av.time_base
        return max(0.0, late) + float(track.duration * track.time_base)
    return None if container.duration is None else container.duration / av.time_base


def _promises(container: InputContainer, track: av.AudioStream) -> bool:
    """Whether the length is written in the file and is that of the sound."""
    kind = container.format.name
    if kind == "mp3":
        # Only a file with a Xing or LAME header has a start time and a true length.
        return track.start_time is not None
    if kind in _UNMEASURED:
        return False
    return track.duration is not None or len(container.streams) == 1
