"""An engine that counts as the tiny model does, so that our own server can stand beside vLLM."""

import asyncio
import struct
from collections.abc import AsyncIterator

from conformance.sound import COUNT
from surtitle.core.audio import CHUNK_SAMPLES, Chunk
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice

__all__ = ["CountingEngine"]

_SILENT_STEPS = 3
"""Loud frames for a word."""
_PROMPT = 6 * CHUNK_SAMPLES
"""The first sound, in which no word is heard; words are told so much before their place."""
_LOUD = 1_000


class CountingEngine:
    """As `surtitle.server.realtime_connection.SpeechEngine`."""

    def __init__(self) -> None:
        self._sound: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._loud = 0
        """Loud frames in a row."""
        self._utterance = 0
        self._began = self._end = 0

    async def start(self) -> None:
        """Nothing is to be loaded."""

    async def feed(self, chunk: Chunk) -> None:
        self._sound.put_nowait(chunk)

    async def finish(self) -> None:
        self._sound.put_nowait(None)

    async def events(self) -> AsyncIterator[EngineEvent]:
        while (chunk := await self._sound.get()) is not None:
            self._end = chunk.end
            for event in self._hear(chunk):
                yield event
        if self._loud:
            yield self._final(self._end - _PROMPT)

    async def stop(self) -> None:
        """Nothing is held."""

    def _hear(self, chunk: Chunk) -> list[EngineEvent]:
        samples = struct.unpack(f"<{chunk.samples}h", chunk.pcm)
        if chunk.end <= _PROMPT or max(map(abs, samples)) < _LOUD:
            events: list[EngineEvent] = []
            if self._loud:
                events.append(self._final(chunk.start - _PROMPT))
            self._loud = 0
            return [*events, Progress(position=chunk.end)]
        if not self._loud:
            self._utterance += 1
            self._began = chunk.start - _PROMPT
        self._loud += 1
        text = self._text()
        return [
            Partial(
                utterance=self._utterance,
                text=text,
                stable_until=len(text),
                start=self._began,
                end=chunk.end - _PROMPT,
            ),
            Voice(start=chunk.start, end=chunk.end, probability=1.0),
        ]

    def _final(self, end: int) -> Final:
        return Final(utterance=self._utterance, text=self._text(), start=self._began, end=end)

    def _text(self) -> str:
        return " ".join(COUNT[n % len(COUNT)] for n in range(self._loud // _SILENT_STEPS))
