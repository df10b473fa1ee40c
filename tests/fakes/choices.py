"""Streams of anything, made from one draw: Hypothesis takes long over a hundred small ones."""

from collections.abc import Callable, Sequence

from hypothesis import settings
from hypothesis import strategies as st

__all__ = ["Choices", "any_text", "choices", "made", "thorough"]

thorough = settings(max_examples=2 * settings().max_examples)
"""For the laws whose exceptions are rare: more examples than other tests get."""

ODD = "\t\n\x00\x1b\x85\u00a0\u00ad\u0301\u200b\u200d\u2028\u202e\u3000\ufeff\ufffd\U0010ffff"


class Choices:
    """Decisions read off bytes; when these are used up, every decision is for the first or least.

    So bytes that Hypothesis has made simpler, when a test fails, are a simpler stream.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._rest = iter(data)

    def __repr__(self) -> str:
        return f"Choices({self._data!r})"

    def between(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        span = high - low + 1
        number, reach = 0, 1
        while reach < span:
            number = number * 256 + next(self._rest, 0)
            reach *= 256
        return low + number % span

    def seldom(self, times: int) -> bool:
        """Return true once in so many times."""
        return self.between(1, times) == times

    def of[T](self, options: Sequence[T]) -> T:
        """Return one of these."""
        return options[self.between(0, len(options) - 1)]

    def several[T](self, make: Callable[[], T], *, least: int = 0, most: int) -> list[T]:
        """Make some, no more than `most`."""
        return [make() for _ in range(self.between(least, most))]

    def number(self, high: float) -> float:
        """Return any number from 0 to `high`, at times one on the edge of something."""
        if self.seldom(3):
            return self.of((0.0, 5e-324, 1e-9, 0.0005, 0.001, 0.9999, 1.0, high))
        return high * self.between(0, 65_535) / 65_535

    def text(self, alphabet: str = "", *, least: int = 0, most: int) -> str:
        """Return text of these characters, or of any that there are."""

        def character() -> str:
            return self.of(alphabet) if alphabet else self._character()

        return "".join(self.several(character, least=least, most=most))

    def _character(self) -> str:
        match self.between(0, 3):
            case 0:
                return chr(self.between(0x20, 0x7E))
            case 1:
                return self.of(ODD)
            case 2:
                return chr(self.between(0, 0x2FF))
            case _:
                # No halves of surrogate pairs: they are no characters.
                point = self.between(0, 0x10FFFF - 0x800)
                return chr(point if point < 0xD800 else point + 0x800)


def any_text(choose: Choices, *, most: int = 24) -> str:
    """Make text of any characters that there are."""
    return choose.text(most=most)


def choices(size: int) -> st.SearchStrategy[Choices]:
    """Draw so many bytes to choose by."""
    return st.binary(min_size=size, max_size=size).map(Choices)


def made[T](make: Callable[[Choices], T], size: int) -> st.SearchStrategy[T]:
    """Make something by choices from so many bytes."""
    return choices(size).map(make)
