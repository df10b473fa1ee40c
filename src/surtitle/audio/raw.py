"""Sound without a header: 16-bit, 16 kHz, mono, from a file or from standard input."""

import contextlib
import functools
import io
import os
import select
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import BinaryIO

from surtitle.audio.complaints import read_failed
from surtitle.audio.reader import Reader
from surtitle.core.audio import SAMPLE_RATE, Block, Format, Lost, Notice, SourceEvent, Started
from surtitle.core.errors import MediaError, UsageError

__all__ = ["RAW_FORMAT", "RawStream", "raw_events"]

RAW_FORMAT = Format(rate=SAMPLE_RATE, channels=1)
"""What headerless sound is taken to be."""

BLOCK_BYTES = SAMPLE_RATE // 10 * 2
"""100 ms."""

_AHEAD = 8
_POLL = 0.25
"""Seconds between two looks at whether somebody has closed the stream."""

_CLOSE = 1.0
"""Seconds to wait for a thread on closing; a blocked read is left behind after that."""


def raw_events(
    read: Callable[[int], bytes], *, name: str, if_nothing: MediaError
) -> Generator[SourceEvent]:
    """Tell what `read` gives until it gives nothing.

    Args:
        read: Gives at most so many bytes, as soon as there are any; none at the end.
        name: What a person recognises.
        if_nothing: What to say when there was not a single sample.
    """
    yield Started(format=RAW_FORMAT, name=name)
    half = b""
    anything = False
    try:
        while data := read(BLOCK_BYTES):
            pcm = half + data
            whole = len(pcm) // 2 * 2
            half = pcm[whole:]
            if whole:
                anything = True
                yield Block(pcm=pcm[:whole])
    except OSError as error:
        failure = read_failed(name, error)
        failure.__cause__ = error
        yield Lost(error=failure)
        return
    if not anything:
        yield Lost(error=if_nothing)
    elif half:
        yield Notice(
            text=f"{name} ends in the middle of a sample: "
            "was it really 16-bit sound, and was it cut off?"
        )


class RawStream:
    """Source of headerless sound from a binary stream, usually standard input.

    It starts at once and waits for sound as long as the stream is open.

    Args:
        stream: What to read; by its descriptor where it has one, past its buffer.
        name: What a person recognises.
    """

    live = False

    def __init__(self, stream: BinaryIO, *, name: str = "Standard input") -> None:
        self.name = name
        self._stream = stream
        self._closed = threading.Event()
        self._reader: Reader[SourceEvent] = Reader(
            self._read_events(), ahead=_AHEAD, name="surtitle-raw"
        )

    async def events(self) -> AsyncGenerator[SourceEvent]:
        """Tell what comes. `Lost` with a `UsageError` when a person would have to type sound."""
        if self._stream.isatty():
            yield Lost(
                error=UsageError(
                    "Standard input is a terminal, which sends no sound.",
                    remedy="Pipe 16-bit, 16 kHz, mono sound into this command.",
                )
            )
            return
        try:
            async with contextlib.aclosing(self._reader.read()) as events:
                async for event in events:
                    yield event
        finally:
            self._closed.set()

    async def close(self) -> None:
        """Stop reading. The stream itself stays open: it is not ours."""
        self._closed.set()
        await self._reader.close(timeout=_CLOSE)

    def _read_events(self) -> Generator[SourceEvent]:
        try:
            descriptor = self._stream.fileno()
        except io.UnsupportedOperation:
            return self._tell(self._stream.read)
        return self._tell(functools.partial(self._read_descriptor, descriptor))

    def _tell(self, read: Callable[[int], bytes]) -> Generator[SourceEvent]:
        return raw_events(
            read,
            name=self.name,
            if_nothing=MediaError(
                f"No sound came from {self.name[:1].lower()}{self.name[1:]}.",
                remedy="Pipe 16-bit, 16 kHz, mono sound into this command.",
                usage=True,
            ),
        )

    # Python's own buffered reader is gone around: it holds a lock while it waits,
    # and a thread that holds it when the program quits makes the interpreter abort.
    def _read_descriptor(self, descriptor: int, size: int) -> bytes:
        """Read as soon as something is there; nothing at the end or when closed."""
        while not self._closed.is_set():
            # Windows can wait for sockets only: there the daemon thread waits in the read.
            if sys.platform != "win32" and not select.select([descriptor], [], [], _POLL)[0]:
                continue
            try:
                return os.read(descriptor, size)
            except BlockingIOError:  # somebody else was quicker, or there is nothing after all
                continue
        return b""
