"""Where decoded sound belongs, by the timestamps of its container."""

__all__ = ["Timestamps"]

_HOLE = 0.2
"""Seconds that timestamps may be off before it means that sound is missing."""

_LONGEST = 60.0
"""Seconds of missing sound that are believed where the file does not tell its length."""

_SLACK = 1.0
"""Seconds that a hole may reach beyond the length the file tells."""


class Timestamps:
    """Compares the timestamps of frames with the sound counted so far.

    Args:
        rate: Frames per second.
        origin: Timestamp, in seconds, at which the whole file begins.
        length: Seconds the file tells, if it does.
    """

    def __init__(self, *, rate: int, origin: float, length: float | None) -> None:
        self._rate = rate
        self._origin = origin
        self._length = length
        self._frames = 0

    @property
    def frames(self) -> int:
        """Frames so far, present and missing."""
        return self._frames

    def advance(self, frames: int) -> None:
        """Count sound that is there."""
        self._frames += frames

    def hole(self, timestamp: float | None) -> int:
        """How many frames are missing before the frame with this timestamp; they are counted.

        A jump back, or one to somewhere beyond the file, is a fault of the
        timestamps (a broadcast cut together, a clock that started anew): the sound
        is then taken to go on without a hole.
        """
        if timestamp is None:
            return 0
        here = self._frames / self._rate
        there = timestamp - self._origin
        if -_HOLE <= there - here <= _HOLE:
            return 0
        end = here + _LONGEST if self._length is None else self._length + _SLACK
        if there < here or there > end:
            self._origin = timestamp - here
            return 0
        missing = round(there * self._rate) - self._frames
        self._frames += missing
        return missing
