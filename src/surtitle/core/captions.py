"""Engine events in; settled text and a tentative tail out."""

from dataclasses import dataclass

__all__ = ["Passage", "Snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One utterance, or one gap mark, as the reader sees it.

    What is read is `settled + tentative`; each brings the white space it needs.
    """

    key: int
    """Grows from passage to passage and never changes."""
    settled: str
    """Only ever grows at its end."""
    tentative: str
    """May change, shrink or vanish until it is settled."""
    start: int
    """First sample."""
    end: int
    """One past the last sample heard so far."""
    closed: bool
    """Nothing more will be added, and `tentative` is empty."""
    gap: bool = False
    """Not speech but a mark for sound that was lost between `start` and `end`."""
    source: str = ""
    """Whose sound it is, such as `Me`; empty while there is one source only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the window needs to know about the text."""

    revision: int
    """Grows with each change, so that a painter can skip what it has shown."""
    passages: tuple[Passage, ...]
    """The latest ones, oldest first. A passage with no text at all is not among them."""
