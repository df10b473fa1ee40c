"""A source that tells what a script says, when it says so."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress

from fakes.speech import seconds
from surtitle.core.audio import CHUNK_SAMPLES, Block, Format, SourceEvent, Started

__all__ = ["MONO", "ScriptedSource", "block", "sound"]

MONO = Format(rate=16_000, channels=1)

type Script = Sequence[tuple[float, SourceEvent]]


class ScriptedSource:
    """As `surtitle.captioner.Source`.

    Args:
        script: (seconds after the beginning, event), in order.
        live: Whether it is a device.
        endless: Stay silent after the script until closed.
    """

    name = "Script"

    def __init__(self, script: Script, *, live: bool = False, endless: bool = False) -> None:
        self.live = live
        self.told = 0
        """Events that were taken."""
        self.open = False
        self._script = script
        self._endless = endless
        self._closed = asyncio.Event()

    async def events(self) -> AsyncGenerator[SourceEvent]:
        began = asyncio.get_running_loop().time()
        self.open = True
        try:
            for at, event in self._script:
                if await self._closed_by(began + at):
                    return
                yield event
                self.told += 1
            if self._endless:
                await self._closed.wait()
        finally:
            self.open = False

    async def close(self) -> None:
        self._closed.set()

    async def _closed_by(self, time: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(time):
                await self._closed.wait()
        return self._closed.is_set()


def block(samples: int = CHUNK_SAMPLES) -> Block:
    """Sound that is not silent."""
    return Block(pcm=b"\x10\x00" * samples)


def sound(
    length: float, *, live: bool, after: float = 0.0, started: bool = True
) -> Iterator[tuple[float, SourceEvent]]:
    """So many seconds of sound in blocks: all at once, or each when it has sounded."""
    if started:
        yield after, Started(format=MONO, name="Script")
    for start in range(0, seconds(length), CHUNK_SAMPLES):
        end = min(start + CHUNK_SAMPLES, seconds(length))
        yield after + (end / MONO.rate if live else 0.0), block(end - start)
