"""What the Realtime protocol needs from whatever carries it: text frames, in order, both ways."""

from typing import Protocol

__all__ = ["Transport"]


class Transport(Protocol):
    """One connection to a speech server; opened once.

    Whatever goes wrong is an EngineError whose decision says whether another
    connection may help.
    """

    @property
    def place(self) -> str:
        """Where the sound goes, such as `to gpu.home`."""

    async def open(self) -> None:
        """Connect, in at most 15 s. Raises EngineError, or UsageError for what cannot be meant."""

    async def send(self, frame: str) -> None:
        """Send one text frame; waits while the other side takes none, but not for long.

        Called by one task at a time. Raises EngineError.
        """

    async def receive(self) -> str:
        """The next text frame. May be cancelled: no frame is lost by it.

        Raises EngineError when no more will come, also when the other side closed politely.
        """

    async def close(self) -> None:
        """Let go of everything. Safe in every state, more than once; at most 2 s; never raises."""
