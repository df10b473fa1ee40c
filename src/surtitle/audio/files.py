"""Media files as sources: as fast as they are taken, or at the pace of the sound."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from enum import StrEnum
from pathlib import Path

from surtitle.audio.complaints import cannot_open, no_sound, shown
from surtitle.audio.decoding import Decoder, OpenFile, open_binary
from surtitle.audio.pacing import at_real_time
from surtitle.audio.raw import RAW_FORMAT, raw_events
from surtitle.audio.reader import Reader
from surtitle.core.audio import Lost, SourceEvent

__all__ = ["RAW_SUFFIXES", "MediaFile", "Pace"]

RAW_SUFFIXES = frozenset({".raw", ".pcm", ".s16le"})
"""Names of files that are taken to be 16-bit, 16 kHz, mono sound without a header."""

_AHEAD = 8
"""Blocks decoded before they are wanted: 0.8 s."""

_CLOSE = 1.0
"""Seconds to wait for the decoder on closing; a blocked read is left behind after that."""


class Pace(StrEnum):
    """How fast a file is heard."""

    FAST = "fast"
    """As fast as the listener takes it."""
    REAL_TIME = "real-time"
    """As a microphone would: every block comes when its last sample would have sounded."""


class MediaFile:
    """Source of the sound of a file, of any kind FFmpeg knows.

    Args:
        path: The file.
        pace: How fast it is heard.
        open_file: How the file is opened.
    """

    live = False

    def __init__(
        self, path: Path, *, pace: Pace = Pace.FAST, open_file: OpenFile = open_binary
    ) -> None:
        self.name = shown(Path(path.name))
        self._path = path
        self._pace = pace
        self._open_file = open_file
        self._decoder = Decoder(path, open_file=open_file)
        self._raw_duration: float | None = None
        raw = path.suffix.lower() in RAW_SUFFIXES
        items = self._raw_events() if raw else self._decoder.events()
        self._reader: Reader[SourceEvent] = Reader(items, ahead=_AHEAD, name="surtitle-file")
        self._closed = asyncio.Event()

    @property
    def duration(self) -> float | None:
        """Seconds of sound the file tells, for progress; None before `Started` or if unknown."""
        return self._decoder.duration if self._raw_duration is None else self._raw_duration

    async def events(self) -> AsyncGenerator[SourceEvent]:
        """Tell what comes. `Lost` with a `MediaError` first when the file cannot be used."""
        async with contextlib.aclosing(self._reader.read()) as events:
            if self._pace is Pace.FAST:
                async for event in events:
                    yield event
            else:
                paced = at_real_time(events, closed=self._closed)
                async with contextlib.aclosing(paced):
                    async for event in paced:
                        yield event

    async def close(self) -> None:
        """Stop decoding and close the file."""
        self._closed.set()
        await self._reader.close(timeout=_CLOSE)

    def _raw_events(self) -> Generator[SourceEvent]:
        try:
            file = self._open_file(self._path)
        except (OSError, ValueError) as error:
            failure = cannot_open(self._path, error)
            failure.__cause__ = error
            yield Lost(error=failure)
            return
        with file:
            empty = no_sound(self._path, "is empty")
            if file.seekable():
                size = file.seek(0, 2)
                if size == 0:
                    yield Lost(error=empty)
                    return
                file.seek(0)
                self._raw_duration = size / (2 * RAW_FORMAT.rate)
            yield from raw_events(file.read, name=self.name, if_nothing=empty)
