"""Which words of a changing hypothesis may be shown, and which are settled.

A recogniser that listens to the same utterance again and again rewrites its
last words. A word that two successive hypotheses agree on is likely to stay; one
that several agree on over a longer stretch of sound is all but certain to. So a
word is first held back, then shown, then settled, and a settled word is never
taken back. What is shown gives way only to something that has been agreed on
in its turn, so that a hypothesis that strays once changes nothing on screen.
"""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from surtitle.core.audio import SAMPLE_RATE

__all__ = ["Enough", "Stability", "WordStream", "agreed_form", "words_of"]

_SOONER, _STEADIER = 1 / 3, 2 / 3
"""Where on the scale from sooner to steadier the three sets of rules meet."""

_NOT_WORD = re.compile(r"[^\w']+")

# Scripts written without spaces: every character is a word of its own there.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
)


def words_of(text: str) -> list[str]:
    """Cut `text` into words, each with the white space before it that it needs.

    Joining them gives the text with its white space evened out: one space
    between words, none at the beginning.
    """
    words: list[str] = []
    for part in text.split():
        pieces = [piece for piece in _UNSPACED.split(part) if piece]
        for number, piece in enumerate(pieces):
            words.append(f" {piece}" if number == 0 and words else piece)
    return words


def agreed_form(word: str) -> str:
    """What must be the same for two hypotheses to agree: not case, not punctuation."""
    bare = _NOT_WORD.sub("", word.casefold())
    return bare or word.strip()


@dataclass(frozen=True, slots=True)
class Enough:
    """So many successive hypotheses that agree, over at least so many seconds of sound."""

    agreed: int
    age: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How sure is sure enough. Of several rules one that holds will do.

    A fast computer asks its model often and reaches the number first; where the
    hypotheses are further apart, fewer of them say as much.
    """

    show: tuple[Enough, ...]
    settle: tuple[Enough, ...]

    @classmethod
    def of(cls, steadiness: float) -> "Stability":
        """The rules for a setting from 0 (sooner) to 1 (steadier)."""
        if steadiness < _SOONER:
            return cls(
                show=(Enough(2, 0.15),), settle=(Enough(4, 0.7), Enough(3, 1.0), Enough(1, 2.5))
            )
        if steadiness > _STEADIER:
            return cls(
                show=(Enough(5, 0.5), Enough(3, 1.0)),
                settle=(Enough(6, 1.2), Enough(4, 1.6), Enough(1, 3.0)),
            )
        return cls(
            show=(Enough(3, 0.3), Enough(2, 0.4)),
            settle=(Enough(5, 0.8), Enough(3, 1.2), Enough(1, 2.5)),
        )


@dataclass(slots=True)
class _Candidate:
    word: str
    form: str
    first_heard: int
    agreed: int

    def is_sure(self, rules: tuple[Enough, ...], *, end: int) -> bool:
        """Whether one of the rules holds, given the sound up to sample `end`."""
        age = (end - self.first_heard) / SAMPLE_RATE
        return any(self.agreed >= rule.agreed and age >= rule.age for rule in rules)


class WordStream:
    """The words of one utterance, from its first hypothesis to its final.

    Args:
        rules: When a word is shown and when it is settled.
        already_settled: Words that the reader has seen already at this place,
            from before an interruption; they are not repeated.
    """

    def __init__(self, rules: Stability, *, already_settled: tuple[str, ...] = ()) -> None:
        self._rules = rules
        self._settled = list(already_settled)
        self._hidden = len(already_settled)
        self._candidates: list[_Candidate] = []
        self._shown: list[str] = []
        self._heard_until: int | None = None
        self._overhang: tuple[str, ...] = ()

    @property
    def settled(self) -> str:
        """The text that stays; it only grows at its end."""
        return _joined(self._settled[self._hidden :])

    @property
    def tentative(self) -> str:
        """The text shown after it, with the space between them, that may still change."""
        shown = "".join(self._shown)
        return shown if len(self._settled) > self._hidden else shown.lstrip()

    @property
    def overhang(self) -> tuple[str, ...]:
        """Settled words that the final no longer had at its end; all of them if none came."""
        return self._overhang

    def hear(self, text: str, *, end: int, stable_until: int = 0) -> None:
        """Take a hypothesis made from the sound up to sample `end`.

        `stable_until` characters of it are settled by the engine's own promise.
        The same hypothesis again changes nothing.
        """
        news = self._heard_until is None or end > self._heard_until
        words = words_of(text)
        at = _resume(self._settled, words)
        self._agree(self._tail(words, at), end=end, news=news)
        if news:
            self._heard_until = end
        self._settle(max(0, _whole_words(text, stable_until) - at), end=end)
        self._show(end=end)

    def finish(self, text: str) -> None:
        """Take the final: all of it that follows the settled words is settled."""
        words = words_of(text)
        at = _resume(self._settled, words)
        if at == len(words):
            self._overhang = tuple(self._settled[_resume(words, self._settled) :])
        self._settled += self._tail(words, at)
        self._candidates = []
        self._shown = []

    def abandon(self) -> None:
        """Drop what is not settled: there will be no more of this utterance."""
        self._overhang = tuple(self._settled)
        self._candidates = []
        self._shown = []

    def _tail(self, words: list[str], at: int) -> list[str]:
        """What follows the settled words, with the white space that it needs after them.

        Inside a text the words bring theirs; its first word does not.
        """
        if at or not self._settled or not words or _UNSPACED.match(words[0]):
            return words[at:]
        return [f" {words[0]}", *words[1:]]

    def _agree(self, words: list[str], *, end: int, news: bool) -> None:
        """Let the words that the last hypothesis had too grow in standing.

        A word that came in between, or in place of another, begins anew, but
        those after it keep their standing; a word in place of another keeps the
        place's age, so that a place cannot stay undecided for ever.
        """
        forms = [agreed_form(word) for word in words]
        before = self._candidates
        matcher = SequenceMatcher(None, [c.form for c in before], forms, autojunk=False)
        after: list[_Candidate] = []
        for kind, i0, i1, j0, j1 in matcher.get_opcodes():
            for offset, j in enumerate(range(j0, j1)):
                old = before[i0 + offset] if i0 + offset < i1 else None
                after.append(
                    _Candidate(
                        word=words[j],
                        form=forms[j],
                        first_heard=old.first_heard if old else end,
                        agreed=old.agreed + news if old and kind == "equal" else 1,
                    )
                )
        self._candidates = after

    def _settle(self, promised: int, *, end: int) -> None:
        count = 0
        for number, candidate in enumerate(self._candidates):
            if number >= promised and not candidate.is_sure(self._rules.settle, end=end):
                break
            count += 1
        if not count:
            return
        self._settled += [candidate.word for candidate in self._candidates[:count]]
        del self._candidates[:count]
        del self._shown[:count]

    def _show(self, *, end: int) -> None:
        sure = 0
        for candidate in self._candidates:
            if not candidate.is_sure(self._rules.show, end=end):
                break
            sure += 1
        fresh = [candidate.word for candidate in self._candidates[:sure]]
        # Words shown beyond the sure ones stay until others are sure in their place.
        self._shown = fresh + self._shown[sure:] if self._follows(fresh) else fresh

    def _follows(self, fresh: list[str]) -> bool:
        """Whether what is shown still begins with the words that are sure now."""
        return len(fresh) <= len(self._shown) and all(
            agreed_form(a) == agreed_form(b) for a, b in zip(fresh, self._shown, strict=False)
        )


def _whole_words(text: str, until: int) -> int:
    """How many words of `text` are over within its first `until` characters.

    A word with nothing behind it may still go on: an engine that only appends
    keeps its promise when it makes "know" into "knowing".
    """
    promised, following = text[:until], text[until : until + 1]
    count = len(words_of(promised))
    over = any(c.isspace() or _UNSPACED.match(c) for c in promised[-1:] + following)
    return count if over or not count else count - 1


def _joined(words: list[str]) -> str:
    return "".join(words).lstrip()


def _resume(settled: list[str], words: list[str]) -> int:
    """Where in `words` the text goes on that `settled` began.

    The split of least edits between `settled` and the words before it; of
    several, the one that leaves as many words behind as are settled.
    """
    a = [agreed_form(word) for word in settled]
    b = [agreed_form(word) for word in words]
    same = next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    if same == len(a) <= len(b):
        return same
    a, b = a[same:], b[same:]
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
    return same + min(range(len(b) + 1), key=lambda j: (row[j], abs(j - len(a))))
