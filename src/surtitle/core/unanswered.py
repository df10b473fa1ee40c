"""Speech that a service has been given and has sent no words for.

It may be a service in a rut, which must not cost what was said, or no speech at all,
which must not be asked about for ever.
"""

from collections import deque

from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE

__all__ = ["Doubts", "Unanswered"]

_MUTE = 15.0
"""Seconds of speech without a word after which the service is in a rut."""
_MUTE_AT_MOST = 240.0
_MUTE_AT_END = 1.0
"""The same where more will not come. Less may be a cough."""
_HELD = 40 * SAMPLE_RATE
"""Sound that is kept at most because there is speech in it."""
_LEAD = SAMPLE_RATE // 2
"""Sound that belongs to speech before the voice detector hears it."""


class Unanswered:
    """The speech of one session that has no words yet. Positions are samples."""

    def __init__(self) -> None:
        self._spans: deque[tuple[int, int]] = deque()
        """Where somebody spoke; what touches is one span."""
        self._last = 0
        """Up to where the newest words speak."""

    @property
    def seconds(self) -> float:
        """How much there is."""
        return sum(end - start for start, end in self._spans) / SAMPLE_RATE

    def voice(self, start: int, end: int) -> None:
        """Somebody speaks from `start` to `end`."""
        if self._spans and self._spans[-1][1] == start:
            start, _ = self._spans.pop()
        self._spans.append((start, end))

    def words(self, position: int) -> None:
        """Words have come that speak of the sound before `position`."""
        self._last = position
        self._done(position)

    def final(self, start: int, end: int) -> int:
        """Where a final, from `start` to `end` by the pauses, ends by the words that it has.

        If there has been much speech behind them, it is not done with.
        """
        behind = sum(min(b, end) - a for a, b in self._spans if a < end) / SAMPLE_RATE
        if behind < _MUTE_AT_END or not start < self._last < end:
            self._done(end)
            return end
        # Words end somewhere in the last 80 ms that they speak of; others may begin there.
        return max(start, self._last - CHUNK_SAMPLES)

    def forgive(self) -> None:
        """It was none."""
        self._spans.clear()

    def held(self, position: int) -> int:
        """How much of the sound before `position`, which has its text, is done with."""
        if not self._spans:
            return position
        return min(position, max(self._spans[0][0] - _LEAD, self._last, position - _HELD))

    def _done(self, position: int) -> None:
        while self._spans and self._spans[0][0] < position:
            _, end = self._spans.popleft()
            if end > position:
                self._spans.appendleft((position, end))


class Doubts:
    """What the sessions of one engine have to know of each other: sound that gave no words.

    A second session that hears nothing in it either is right: it was no speech. So music
    that the voice detector takes for speech is asked about less and less often.
    """

    def __init__(self) -> None:
        self._doubted_until = -1
        """Sound before this position has been sent to a session that gave no words."""
        self._patience = _MUTE

    def words(self) -> None:
        """Words have come."""
        self._patience = _MUTE

    def arise(
        self, unanswered: float, *, settled: int, sent: int, ended: bool = False
    ) -> bool | None:
        """Judge so many seconds of speech without a word.

        Args:
            unanswered: Seconds.
            settled: Where the next session would begin.
            sent: One past the newest sample that the service has.
            ended: Whether no more sound comes.

        Returns:
            Whether to have it heard again; None if there is nothing to judge yet.
        """
        if unanswered <= (_MUTE_AT_END if ended else self._patience):
            return None
        self._patience = min(2 * self._patience, _MUTE_AT_MOST)
        if settled < self._doubted_until:
            return False
        self._doubted_until = sent
        return True
