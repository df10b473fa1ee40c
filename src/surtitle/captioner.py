"""The conductor: sound in; captions, status and transcript entries out. Asyncio only."""

from collections.abc import AsyncIterator
from typing import Protocol

from surtitle.core.audio import Chunk, SourceEvent
from surtitle.core.speech import EngineEvent
from surtitle.core.transcript import Entry

__all__ = ["Engine", "Keeper", "Source"]


class Source(Protocol):
    """Something that can be listened to: a device, the system's sound, a file."""

    @property
    def name(self) -> str:
        """What a person recognises."""

    @property
    def live(self) -> bool:
        """Whether sound that is not taken in time is lost (a device) or waits (a file)."""

    def events(self) -> AsyncIterator[SourceEvent]:
        """Open the source and tell what comes, `Started` first; ends when the sound ends.

        Failing to open is told as `Lost`. May be called once.
        """

    async def close(self) -> None:
        """Stop and let go of the device. Safe in every state, more than once; at most 2 s."""


class Engine(Protocol):
    """Something that turns sound into text."""

    @property
    def name(self) -> str:
        """What a person recognises, such as `Moonshine Tiny`."""

    @property
    def place(self) -> str:
        """Where the sound goes, such as `on this computer`."""

    async def start(self) -> None:
        """Become ready. Raises EngineError, also when it takes too long."""

    async def feed(self, chunk: Chunk) -> None:
        """Take a chunk; waits while the engine has too much unheard. Raises EngineError."""

    async def finish(self) -> None:
        """Say that no more sound comes; `events` ends when all its text is out."""

    def events(self) -> AsyncIterator[EngineEvent]:
        """Tell the text as it comes. Raises EngineError when the engine breaks."""

    async def stop(self) -> None:
        """Let go of everything at once. Safe in every state, more than once; at most 2 s."""


class Keeper(Protocol):
    """Something that keeps the transcript."""

    def keep(self, entry: Entry) -> None:
        """Store an entry, in place of the one with the same key. Never blocks, never raises."""
