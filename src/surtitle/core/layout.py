"""Text and a measuring function in; steady screen lines out.

The one law: the settled text of a line only ever grows at its end, and only on
the newest line that has any. So a settled word, once placed, stays on its line
and at its distance from the edge until the width or the font changes.

Lines have absolute numbers that grow for ever. The screen shows the newest of
them and never rolls back: text that vanishes leaves an empty line, and what
comes next fills it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.line_breaking import clusters, has_words, simple_breaks, words

__all__ = ["Breaks", "Layout", "Measure", "Screen", "ScreenLine"]

type Measure = Callable[[str], float]
"""How wide a text is, in the unit of the width. Longer text is never narrower."""

type Breaks = Callable[[str], Iterable[int]]
"""Where a word may be cut: offsets into it, each that of a character that may begin a line."""

_PAUSE_SAMPLES = 2 * SAMPLE_RATE
"""A passage that begins so long after the previous one begins a new line."""

_KEPT_LINES = 24
"""Lines remembered, so that a wider window can show again what had rolled away."""

_CONTEXT = 32
"""Characters before new text that are looked at to see where the word may be cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenLine:
    """One line as it is to be painted: `settled + tentative`, from its left edge."""

    number: int
    """Absolute: grows from line to line; never used again for other text."""
    settled: str
    """Only ever grows at its end."""
    tentative: str
    """May change or vanish; brings the space it needs."""
    gap: bool
    """Not speech but a mark for lost sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the window shows. The first line belongs in the top row."""

    lines: tuple[ScreenLine, ...]
    """At most as many as were asked for; fewer while the rows below are empty."""
    revision: int
    """Grows whenever the lines change."""


class _Opening(Enum):
    """What stood between the end of the line above and the beginning of this one."""

    HARD = auto()
    """A line of its own, whatever the width."""
    SPACE = auto()
    JOINED = auto()
    """Nothing: a word, or text written without spaces, was cut here."""


@dataclass(slots=True, kw_only=True)
class _Line:
    number: int
    opening: _Opening
    text: str = ""
    gap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    """The passage that wrote last."""

    key: int
    end: int
    gap: bool
    source: str

    @classmethod
    def of(cls, passage: Passage) -> "_Owner":
        return cls(key=passage.key, end=passage.end, gap=passage.gap, source=passage.source)


@dataclass(slots=True, kw_only=True)
class _Page:
    """Lines being filled."""

    width: float
    measure: Measure
    breaks: Breaks
    lines: list[_Line]
    """Never empty. Text is added to the last one."""
    owner: _Owner | None = None
    space: bool = False
    """White space has been read that nothing has followed yet."""

    @property
    def line(self) -> _Line:
        return self.lines[-1]

    def fork(self) -> "_Page":
        """A page that begins with a copy of the last line and can be thrown away."""
        return replace(self, lines=[replace(self.line)])

    def begin(self, passage: Passage) -> None:
        """Get ready for text of this passage: on the same line, or on a new one."""
        owner = self.owner
        self.owner = _Owner.of(passage)
        if owner is None or owner.key == passage.key:
            self.line.gap = self.line.gap or passage.gap
            return
        continues = (
            not (owner.gap or passage.gap)
            and owner.source == passage.source
            and passage.start - owner.end < _PAUSE_SAMPLES
        )
        if continues:
            self.space = True
        else:
            self.open(_Opening.HARD, gap=passage.gap)

    def open(self, opening: _Opening, *, gap: bool = False, number: int | None = None) -> None:
        """Begin a new line; an empty one is used again unless a number is asked for."""
        self.space = False
        if self.line.text or number is not None:
            following = self.line.number + 1 if number is None else number
            self.lines.append(_Line(number=following, opening=opening, gap=gap))
        else:
            self.line.opening = opening
            self.line.gap = gap

    def write(self, text: str, *, ahead: str = "") -> None:
        """Add text.

        Args:
            text: What to add; runs of white space count as one space.
            ahead: What is going to follow as far as is known, so that a word that
                is still growing is placed where the whole of it fits.
        """
        rest = next(iter(words(ahead)), None)
        growth = ahead[: rest[1]] if rest and rest[0] == 0 else ""
        reached = 0
        for start, end in words(text):
            self.space = self.space or start > reached
            self._word(text[start:end], growth if end == len(text) else "")
            reached = end
        self.space = self.space or reached < len(text)

    def _word(self, word: str, growth: str) -> None:
        """Place one word, of which `growth` may yet follow."""
        context = "" if self.space else self.line.text[-_CONTEXT:]
        whole = context + word + growth
        begin = len(context)
        end = begin + len(word)
        cuts = {offset for offset in self.breaks(whole) if begin <= offset < len(whole)}
        edges = sorted(cuts | {begin, len(whole)})
        for left, right in pairwise(edges):
            if left < end:
                may_open = self.space or left in cuts
                self._piece(whole[left:right], whole[left : min(right, end)], may_open=may_open)

    def _piece(self, piece: str, part: str, *, may_open: bool) -> None:
        """Place `part`, the beginning of an unbreakable `piece`."""
        gap = self.line.gap
        join = " " if self.space and self.line.text else ""
        opening = _Opening.SPACE if self.space else _Opening.JOINED
        self.space = False
        if not self._fits(join + piece) and may_open and self.line.text:
            self.open(opening, gap=gap)
            join = ""
        if self._fits(join + piece):
            self.line.text += join + part
            return
        # Wider than a whole line, or grown out of the line it began on.
        for cluster in clusters(part):
            if self.line.text and not self._fits(join + cluster):
                self.open(_Opening.JOINED, gap=gap)
                join = ""
            self.line.text += join + cluster
            join = ""

    def _fits(self, addition: str) -> bool:
        return self.measure(self.line.text + addition) <= self.width


class Layout:
    """Fills lines greedily and rolls them up.

    A passage continues on the line of the one before, after one space, unless
    two seconds lie between them, the source is another one, or one of them is a
    gap mark. Lines are cut at white space and where `breaks` says; only a word
    wider than a line is cut elsewhere, and then between whole characters.

    Settled text is placed in the order in which it settles. The work of an
    update grows with the new text and the tentative tail, not with what was
    said before, and so does memory.

    Args:
        breaks: Where words may be cut; by default after hyphens and
            between Chinese or Japanese characters.
    """

    def __init__(self, *, breaks: Breaks = simple_breaks) -> None:
        self._breaks = breaks
        self._page: _Page | None = None
        self._count = 0
        self._placed: dict[int, int] = {}  # passage key -> characters of `settled` placed
        self._top = 0
        self._screen = Screen(lines=(), revision=0)

    def update(self, snapshot: Snapshot, *, width: float, lines: int, measure: Measure) -> Screen:
        """Lay the snapshot out.

        Args:
            snapshot: The text. The same one again changes nothing.
            width: How wide a line may be, above 0.
            lines: How many lines are shown, at least 1.
            measure: The font. Give an equal object while the font is the same:
                another one, another width or another count re-flows what is shown.
        """
        page = self._page_for(width, lines, measure)
        # The owner may have been heard on since its text was placed.
        if page.owner is not None:
            for passage in snapshot.passages:
                if passage.key == page.owner.key:
                    page.owner = _Owner.of(passage)
        settled, tail = self._lay(page.fork(), snapshot)
        if tail.line.number < self._top and tail.line != page.line:
            # A vanished tail had rolled the screen up; what is new must not hide above it.
            jumped = page.fork()
            opening = _Opening.SPACE if page.space else _Opening.JOINED
            jumped.open(opening, number=self._top)
            settled, tail = self._lay(jumped, snapshot)
        page.lines[-1:] = settled.lines
        page.owner, page.space = settled.owner, settled.space
        del page.lines[: -max(_KEPT_LINES, lines)]
        self._placed = {passage.key: len(passage.settled) for passage in snapshot.passages}
        self._show(page, tail)
        return self._screen

    def _page_for(self, width: float, lines: int, measure: Measure) -> _Page:
        old = self._page
        if old is not None and (old.width, old.measure, self._count) == (width, measure, lines):
            return old
        first = _Line(number=0, opening=_Opening.HARD)
        page = _Page(width=width, measure=measure, breaks=self._breaks, lines=[first])
        if old is not None:
            # Fresh numbers: no line is ever given other text.
            numbers = [old.line.number, *(line.number for line in self._screen.lines)]
            first.number = 1 + max(numbers)
            for line in old.lines:
                if line.opening is _Opening.HARD:
                    page.open(_Opening.HARD, gap=line.gap)
                page.space = page.space or line.opening is _Opening.SPACE
                page.write(line.text)
            page.owner, page.space = old.owner, page.space or old.space
            self._top = first.number
        self._page, self._count = page, lines
        return page

    def _lay(self, page: _Page, snapshot: Snapshot) -> tuple[_Page, _Page]:
        """The page with all that is settled, and a fork of it with the tentative tails."""
        for passage in snapshot.passages:
            text = passage.settled[self._placed.get(passage.key, 0) :]
            if has_words(text):
                page.begin(passage)
            page.write(text, ahead=passage.tentative)
        tail = page.fork()
        for passage in snapshot.passages:
            if has_words(passage.tentative):
                tail.begin(passage)
                tail.write(passage.tentative)
        return page, tail

    def _show(self, page: _Page, tail: _Page) -> None:
        newest = tail.line.number
        self._top = max(self._top, newest - self._count + 1)
        settled = {line.number: line for line in page.lines}
        laid = settled | {line.number: line for line in tail.lines}
        shown: list[ScreenLine] = []
        for number in range(self._top, newest + 1):
            # A jump over a vanished tail leaves numbers that no line ever had.
            line = laid.get(number) or _Line(number=number, opening=_Opening.HARD)
            cut = len(settled[number].text) if number in settled else 0
            shown.append(
                ScreenLine(
                    number=number,
                    settled=line.text[:cut],
                    tentative=line.text[cut:],
                    gap=line.gap,
                )
            )
        if not any(line.settled or line.tentative for line in shown):
            shown.clear()
        if tuple(shown) != self._screen.lines:
            self._screen = Screen(lines=tuple(shown), revision=self._screen.revision + 1)
