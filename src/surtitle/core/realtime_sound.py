"""Pieces of sound that wait to be sent, or may have to be sent again."""

from collections import deque
from collections.abc import Iterable, Iterator

from surtitle.core.audio import CHUNK_SAMPLES

__all__ = ["MESSAGE_SAMPLES", "Piece", "Shelf", "in_messages"]

MESSAGE_SAMPLES = 9 * CHUNK_SAMPLES
"""Sound in one message at most: 30 KB of base64."""

type Piece = tuple[int, bytes]
"""Position of the first sample, and signed 16-bit samples."""


class Shelf:
    """Pieces in order.

    Args:
        bound: Samples that are to lie here at most; the owner decides what happens beyond.
    """

    def __init__(self, *, bound: int) -> None:
        self._bound = bound
        self._pieces: deque[Piece] = deque()
        self._samples = 0

    @property
    def samples(self) -> int:
        """How much lies here."""
        return self._samples

    @property
    def full(self) -> bool:
        """Whether there is more than the bound."""
        return self._samples > self._bound

    def put(self, start: int, pcm: bytes) -> None:
        """Add the newest piece."""
        self._pieces.append((start, pcm))
        self._samples += len(pcm) // 2

    def drop(self) -> int:
        """Let the oldest piece go; gives the position one past its end."""
        start, pcm = self._pieces.popleft()
        self._samples -= len(pcm) // 2
        return start + len(pcm) // 2

    def release(self, position: int) -> None:
        """Let go of the pieces that lie before `position` as a whole."""
        while self._pieces and _end(self._pieces[0]) <= position:
            self.drop()

    def take(self, *, since: int = 0) -> list[Piece]:
        """Take everything that lies at `since` or later; the rest is gone too."""
        self.release(since)
        pieces = list(self._pieces)
        self._pieces.clear()
        self._samples = 0
        if pieces and pieces[0][0] < since:
            start, pcm = pieces[0]
            pieces[0] = (since, pcm[2 * (since - start) :])
        return pieces


def in_messages(sound: Iterable[Piece]) -> Iterator[Piece]:
    """Join pieces that follow each other, and cut, so that none is too long for a message."""
    most = 2 * MESSAGE_SAMPLES
    at, joined = 0, bytearray()
    for start, pcm in sound:
        if joined and (start != at + len(joined) // 2 or len(joined) + len(pcm) > most):
            yield at, bytes(joined)
            joined.clear()
        if not joined:
            at = start
        joined += pcm
        while len(joined) > most:
            yield at, bytes(joined[:most])
            del joined[:most]
            at += MESSAGE_SAMPLES
    if joined:
        yield at, bytes(joined)


def _end(piece: Piece) -> int:
    return piece[0] + len(piece[1]) // 2
