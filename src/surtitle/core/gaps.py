"""Sound that is lost and not yet marked in the text."""

from bisect import bisect_left

__all__ = ["Gaps"]


class Gaps:
    """Spans of samples in order, joined where they touch or overlap.

    They come in any order: a device tells the newest, a full buffer the oldest.
    """

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    @property
    def samples(self) -> int:
        """How much is lost and not marked."""
        return sum(end - start for start, end in self._spans)

    def add(self, start: int, end: int) -> None:
        """Note that the sound from `start` to `end` is lost; nothing if that is no sound at all."""
        if end <= start:
            return
        spans = self._spans
        first = bisect_left(spans, start, key=lambda span: span[1])
        last = first
        while last < len(spans) and spans[last][0] <= end:
            start, end = min(start, spans[last][0]), max(end, spans[last][1])
            last += 1
        spans[first:last] = [(start, end)]

    def due(self, position: int | None) -> list[tuple[int, int]]:
        """Take out the spans that begin at `position` or before; all of them if it is None."""
        spans = self._spans
        count = len(spans) if position is None else bisect_left(spans, (position + 1,))
        due = spans[:count]
        del spans[:count]
        return due
