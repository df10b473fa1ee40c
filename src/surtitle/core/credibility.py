"""Telling words that were said from words that a model invented.

Given music, noise or a breath, a speech model still answers, and with fluent
sentences. But it does not stand by them: listen again with a little silence put
before the sound, and the answer is another one. What was really said comes back
the same.

The same holds, word for word, in speech that is hard to understand: what a model
makes of it changes with a little more or less silence around it, and the answer
that its other answers are most like is the best one.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

from surtitle.core.stability import agreed_form, words_of

__all__ = ["Credibility", "is_filler", "likeness", "most_agreed"]

_CREDIBLE = 0.65
"""Share of words that must have come back for an utterance to be believed."""

_ENOUGH = 2
"""So many words must have come back; one may do so by chance."""

_FILLERS = frozenset(
    {
        ("bye",),
        ("hmm",),
        ("mm",),
        ("oh",),
        ("okay",),
        ("so",),
        ("thank", "you"),
        ("thank", "you", "for", "watching"),
        ("thanks", "for", "watching"),
        ("the",),
        ("uh",),
        ("um",),
        ("yeah",),
        ("you",),
    }
)
"""What models say when there is nothing to hear. People say it too, so it is only looked at
more closely."""


class Credibility:
    """How well one utterance's hypotheses stand by each other."""

    def __init__(self) -> None:
        self._before: list[str] | None = None
        self._kept = 0
        self._lost = 0

    @property
    def believed(self) -> bool:
        """Whether words have come back often enough to be shown."""
        return self._kept >= _ENOUGH and self._kept >= _CREDIBLE * (self._kept + self._lost)

    def hear(self, text: str) -> None:
        """Take the next hypothesis, made from more sound and in another setting."""
        words = _forms(text)
        # That a model says to nothing what it always says to nothing is no evidence.
        if self._before is not None and not is_filler(text):
            kept = _common(self._before, words)
            self._kept += kept
            # The last word may have been cut short; that it changes says nothing.
            self._lost += max(0, len(self._before) - 1 - kept)
        self._before = words


def likeness(a: str, b: str) -> float:
    """How much of two texts is the same words in the same order, from 0 to 1."""
    x, y = _forms(a), _forms(b)
    return 2 * _common(x, y) / (len(x) + len(y)) if x or y else 1.0


def most_agreed(texts: Sequence[str]) -> str:
    """That one of several answers to the same sound that the others are most like.

    Of equals the first. There must be one at least.
    """
    return max(texts, key=lambda text: sum(likeness(text, other) for other in texts))


def is_filler(text: str) -> bool:
    """Whether the text is one that models like to say to nothing."""
    return tuple(_forms(text)) in _FILLERS


def _forms(text: str) -> list[str]:
    return [agreed_form(word) for word in words_of(text)]


def _common(a: list[str], b: list[str]) -> int:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())
