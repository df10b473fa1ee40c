"""How far each thing has come: sound taken in, handed to an engine, heard, turned into text."""

from surtitle.core.audio import Chunk
from surtitle.core.gaps import Gaps
from surtitle.core.replay import ReplayBuffer

__all__ = ["Backlog"]


class Backlog:
    """The sound that has no settled text yet, and the gaps that are not marked yet.

    Args:
        origin: Position of the first sample.
        bound: Seconds of sound kept at most. When more comes, the oldest becomes a gap.
    """

    def __init__(self, *, origin: int, bound: float) -> None:
        self._buffer = ReplayBuffer(bound=bound)
        self._gaps = Gaps()
        self._settled = self._handed = self._reached = self._furthest = origin
        self._marked = 0

    @property
    def settled(self) -> int:
        """Everything before this position has its text, or a gap mark."""
        return self._settled

    @property
    def handed(self) -> int:
        """How far sound has been handed to any engine session."""
        return self._handed

    @property
    def reached(self) -> int:
        """How far the engine session has come by its own account."""
        return max(self._reached, self._settled)

    @property
    def waiting(self) -> int:
        """Samples that are to be handed out."""
        return self._buffer.waiting

    @property
    def lost(self) -> int:
        """Samples that have no text and get none, marked or not yet."""
        return self._marked + self.unmarked

    @property
    def unmarked(self) -> int:
        """Samples of them whose mark the text has not come to."""
        return self._gaps.samples

    def put(self, chunk: Chunk) -> None:
        """Add the newest sound."""
        if (lost := self._buffer.put(chunk)) is not None:
            self._gaps.add(max(lost[0], self._settled), lost[1])

    def lose(self, start: int, end: int) -> None:
        """Note that the sound from `start` to `end` never came, or will have no text."""
        self._gaps.add(start, end)

    def take(self, *, fresh: bool) -> Chunk | None:
        """The next chunk for the engine; unless `fresh`, only what an engine had before."""
        chunk = self._buffer.take()
        if chunk is None or not (fresh or chunk.start < self._handed):
            return None
        self._handed = max(self._handed, chunk.end)
        return chunk

    def leave_out(self, position: int) -> None:
        """Give up what lies before `position` and has not been handed out.

        And what an earlier session had heard: words of it may have been read, and must
        not come again behind the mark.
        """
        position = max(position, self._furthest)
        if (lost := self._buffer.leave_out(position)) is not None:
            self._gaps.add(*lost)

    def reach(self, position: int) -> None:
        """The engine speaks of sound up to `position`."""
        self._reached = max(self._reached, min(position, self._handed))
        self._furthest = max(self._furthest, self._reached)

    def settle(self, position: int) -> bool:
        """Everything before `position` is done with. Tells whether that is news."""
        if position <= self._settled:
            return False
        self._settled = position
        self._buffer.release(position)
        return True

    def due(self, position: int | None) -> list[tuple[int, int]]:
        """Take out the gaps that the text has come to at `position`; all of them if it is None."""
        due = self._gaps.due(position)
        for start, end in due:
            self._settled = max(self._settled, end)
            self._marked += end - start
        return due

    def rewind(self) -> None:
        """Begin again for a new engine session, with what has no settled text."""
        self._buffer.rewind(self._settled)
        self._reached = self._settled

    def pass_over(self) -> None:
        """Leave out what the session had been given, or an earlier one had heard.

        Not less: words of it may have been read, and must not come again behind the mark.
        """
        begin = self._settled
        while (lost := self._buffer.skip()) is not None:
            self._settled = lost[1]
            if self._settled >= self._furthest:
                break
        self._gaps.add(begin, self._settled)
