"""What was said, when: entries and gaps, and the forms in which they leave the program."""

from dataclasses import dataclass

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One utterance or one gap in a transcript."""

    key: int
    """Identifies the entry within its session; an entry with the same key replaces it."""
    start: float
    """Seconds of audio since the session began."""
    end: float
    """Seconds of audio since the session began; never before `start`."""
    text: str
    """What was said; empty for a gap."""
    gap: bool = False
    """Sound between `start` and `end` was lost; there is no text for it."""
    source: str = ""
    """Whose sound it is, such as `Me`; empty while there is one source only."""
    closed: bool = True
    """False while the utterance is still growing."""
