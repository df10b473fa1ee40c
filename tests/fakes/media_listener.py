"""Listens to a source to its end and remembers everything."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from surtitle.captioner import Source
from surtitle.core.audio import Block, Format, Gap, Lost, Notice, SourceEvent, Started
from surtitle.core.errors import SurtitleError
from surtitle.core.intake import Intake


@dataclass(slots=True, kw_only=True)
class Heard:
    """Everything a source said."""

    events: list[SourceEvent] = field(default_factory=list)

    @property
    def format(self) -> Format:
        started = self.events[0]
        assert isinstance(started, Started), started
        return started.format

    @property
    def pcm(self) -> bytes:
        """All the sound, without the gaps."""
        return b"".join(event.pcm for event in self.events if isinstance(event, Block))

    @property
    def frames(self) -> int:
        return len(self.pcm) // (2 * self.format.channels)

    @property
    def seconds(self) -> float:
        return self.frames / self.format.rate

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def gaps(self) -> list[Gap]:
        return [event for event in self.events if isinstance(event, Gap)]

    @property
    def error(self) -> SurtitleError:
        """Why the source was lost, which must be the last thing it said."""
        lost = self.events[-1]
        assert isinstance(lost, Lost), lost
        return lost.error

    @property
    def lost(self) -> bool:
        return any(isinstance(event, Lost) for event in self.events)

    @property
    def mono(self) -> NDArray[np.int16]:
        """What an engine would be given, with silence for the gaps."""
        intake = Intake(self.format)
        parts: list[bytes] = []
        for event in self.events:
            match event:
                case Block():
                    parts += [chunk.pcm for chunk in intake.push(event.pcm)]
                case Gap():
                    chunks, (start, end) = intake.skip(event.frames)
                    parts += [*(chunk.pcm for chunk in chunks), bytes(2 * (end - start))]
                case _:
                    pass
        parts += [chunk.pcm for chunk in intake.flush()]
        return np.frombuffer(b"".join(parts), "<i2")


def listen(source: Source, *, timeout: float = 20.0) -> Heard:
    """Hear a source to its end and close it."""
    heard = Heard()

    async def hear() -> None:
        async with asyncio.timeout(timeout):
            async for event in source.events():
                heard.events.append(event)
            await source.close()

    asyncio.run(hear())
    return heard
