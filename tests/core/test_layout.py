"""Steady lines: tables for the rules, Hypothesis for the law."""

from dataclasses import dataclass, replace
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.choices import Choices, made, thorough
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.layout import Layout, Measure, Screen
from surtitle.core.line_breaking import clusters


def passage(
    key: int = 0,
    settled: str = "",
    tentative: str = "",
    *,
    start: float = 0.0,
    end: float = 0.0,
    gap: bool = False,
    source: str = "",
) -> Passage:
    return Passage(
        key=key,
        settled=settled,
        tentative=tentative,
        start=int(start * SAMPLE_RATE),
        end=int(end * SAMPLE_RATE),
        closed=not tentative,
        gap=gap,
        source=source,
    )


@dataclass
class Reader:
    """A layout at ten characters a line, and everything it ever showed as settled."""

    layout: Layout
    width: float = 10
    lines: int = 2
    measure: Measure = len
    revision: int = 0

    def sees(self, *passages: Passage) -> Screen:
        self.revision += 1
        snapshot = Snapshot(revision=self.revision, passages=passages)
        return self.layout.update(
            snapshot, width=self.width, lines=self.lines, measure=self.measure
        )

    def reads(self, *passages: Passage) -> list[str]:
        return [line.settled + line.tentative for line in self.sees(*passages).lines]


@pytest.fixture
def reader() -> Reader:
    return Reader(Layout())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   ", []),
        ("one", ["one"]),
        ("one two", ["one two"]),
        ("exactly10!", ["exactly10!"]),
        ("one two three", ["one two", "three"]),
        ("  one \n two\t", ["one two"]),
        ("one two three four five six", ["three four", "five six"]),
        ("abcdefghijklm", ["abcdefghij", "klm"]),
        ("a bcdefghijklmn o", ["bcdefghijk", "lmn o"]),
        ("ab well-known", ["ab well-", "known"]),
        ("\u65e5" * 12, ["\u65e5" * 10, "\u65e5" * 2]),
        ("a " + "\u65e5" * 10 + "\u3002", ["a " + "\u65e5" * 8, "\u65e5\u65e5\u3002"]),
    ],
)
@pytest.mark.parametrize("tentative", [False, True])
def test_lines_are_filled_greedily(
    reader: Reader, text: str, expected: list[str], *, tentative: bool
) -> None:
    shown = passage(tentative=text) if tentative else passage(settled=text)
    assert reader.reads(shown) == expected


def test_settled_and_tentative_share_a_line(reader: Reader) -> None:
    (line,) = reader.sees(passage(settled="one", tentative=" two")).lines
    assert (line.number, line.settled, line.tentative, line.gap) == (0, "one", " two", False)


def test_an_unfinished_settled_word_is_placed_where_the_whole_of_it_fits(reader: Reader) -> None:
    assert reader.reads(passage(settled="one two th", tentative="ree")) == ["one two", "three"]


def test_a_settled_word_that_grows_out_of_its_line_stays_and_is_cut(reader: Reader) -> None:
    assert reader.reads(passage(settled="one two th")) == ["one two th"]
    assert reader.reads(passage(settled="one two three")) == ["one two th", "ree"]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (passage(1, "on", start=2.5), ["go on"]),
        (passage(1, " on", start=2.5), ["go on"]),
        (passage(1, "on", start=3.0), ["go", "on"]),
        (passage(1, "on", start=1.0, source="Me"), ["go", "on"]),
        (passage(1, "[lost]", start=1.0, gap=True), ["go", "[lost]"]),
    ],
)
def test_a_passage_continues_after_a_short_pause_only(
    reader: Reader, second: Passage, expected: list[str]
) -> None:
    assert reader.reads(passage(0, "go", end=1.0), second) == expected


def test_a_gap_mark_has_its_own_line(reader: Reader) -> None:
    reader.lines = 3
    lines = reader.sees(
        passage(0, "a", end=1.0),
        passage(1, "[lost]", start=1.0, end=2.0, gap=True),
        passage(2, "b", start=2.0),
    ).lines
    assert [(line.settled, line.gap) for line in lines] == [
        ("a", False),
        ("[lost]", True),
        ("b", False),
    ]


def test_the_end_of_the_previous_passage_counts_when_the_next_one_begins(reader: Reader) -> None:
    reader.sees(passage(0, "go", end=1.0))
    assert reader.reads(passage(0, "go", end=5.0), passage(1, "on", start=6.0)) == ["go on"]


def test_rolled_up_lines_do_not_come_back_when_a_tail_vanishes(reader: Reader) -> None:
    reader.sees(passage(settled="aaaa aaaa bbbb bbbb", tentative=" cccc"))
    screen = reader.sees(passage(settled="aaaa aaaa bbbb bbbb"))
    assert [line.number for line in screen.lines] == [1]
    screen = reader.sees(passage(settled="aaaa aaaa bbbb bbbb dddd"))
    assert [(line.number, line.settled) for line in screen.lines] == [(1, "bbbb bbbb"), (2, "dddd")]


def test_new_text_is_seen_after_a_tail_of_several_lines_vanished(reader: Reader) -> None:
    reader.sees(passage(settled="aaaa", tentative=" xxxxxxxx xxxxxxxx xxxxxxxx"))
    assert reader.sees(passage(settled="aaaa")).lines == ()
    assert reader.reads(passage(settled="aaaa", tentative=" b")) == ["b"]
    (line,) = reader.sees(passage(settled="aaaa b c")).lines
    assert (line.number, line.settled) == (2, "b c")


def test_the_same_snapshot_again_changes_nothing(reader: Reader) -> None:
    first = reader.sees(passage(settled="one two three", tentative=" four"))
    assert reader.sees(passage(settled="one two three", tentative=" four")) is first


def test_a_new_width_flows_what_is_remembered_again_under_new_numbers(reader: Reader) -> None:
    text = passage(settled="one two three four five six", tentative=" seven")
    before = reader.sees(text)
    reader.width = 20
    after = reader.sees(text)
    assert [line.settled + line.tentative for line in after.lines] == [
        "one two three four",
        "five six seven",
    ]
    assert min(line.number for line in after.lines) > max(line.number for line in before.lines)
    reader.width = 8
    assert reader.reads(text) == ["five six", "seven"]


def test_cut_words_are_whole_again_on_a_wider_line(reader: Reader) -> None:
    text = passage(settled="abcdefghijklm o\u65e5\u672c")
    reader.sees(text)
    reader.width = 40
    assert reader.reads(text) == ["abcdefghijklm o\u65e5\u672c"]


def test_a_character_wider_than_the_line_has_it_to_itself(reader: Reader) -> None:
    reader.width = 0.5
    lines = reader.sees(passage(settled="ab")).lines
    assert [(line.number, line.settled) for line in lines] == [(0, "a"), (1, "b")]


def test_another_font_flows_again(reader: Reader) -> None:
    reader.sees(passage(settled="one two"))
    reader.measure = lambda text: 2.0 * len(text)
    assert reader.reads(passage(settled="one two")) == ["one", "two"]


def test_more_lines_show_what_had_rolled_away(reader: Reader) -> None:
    text = passage(settled="aaaaaaaa bbbbbbbb cccccccc")
    assert reader.reads(text) == ["bbbbbbbb", "cccccccc"]
    reader.lines = 3
    assert reader.reads(text) == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]


def test_work_and_memory_do_not_grow_with_what_was_said() -> None:
    measured = 0

    def measure(text: str) -> float:
        nonlocal measured
        measured += len(text)
        return len(text)

    reader = Reader(Layout(), width=40, measure=measure)
    text = ""
    costs: list[int] = []
    for number in range(600):
        text += f" word{number % 10}"
        before = measured
        reader.sees(passage(settled=text, tentative=" and more"))
        costs.append(measured - before)
    assert max(costs[-100:]) <= max(costs[:100])
    page = reader.layout._page  # nothing public tells how much is kept
    assert page is not None
    assert len(page.lines) < 30


def test_other_breaks_can_be_given() -> None:
    reader = Reader(Layout(breaks=lambda word: [word.index("/") + 1] if "/" in word else []))
    assert reader.reads(passage(settled="a then/otherwise")) == ["a then/", "otherwise"]


# The law, over anything that can be said.

_LETTERS = "ab m\u65e5\u3002\u300c-\n\u0301\U0001f469\u200d"


def _text(choose: Choices) -> str:
    """Text that is settled bit by bit: prose, or any characters in a row."""
    if choose.seldom(2):
        return choose.text(_LETTERS, most=choose.of([5, 12, 60]))
    return " ".join(choose.several(lambda: choose.text("ab-\u65e5", least=1, most=7), most=12))


def _history(choose: Choices) -> list[Snapshot]:
    """Snapshots as `core.captions` may publish them; several passages may be open at once."""
    passages: list[Passage] = []
    snapshots: list[Snapshot] = []
    clock = 0.0
    for revision in range(choose.between(1, 12)):
        if not passages or choose.seldom(4):
            clock += choose.of([0.5, 3.0])
            gap = choose.seldom(6)
            passages.append(passage(len(passages), start=clock, end=clock, gap=gap))
        index = len(passages) - 1 - min(int(choose.seldom(4)), len(passages) - 1)
        old = passages[index]
        clock += 0.5
        passages[index] = replace(
            old,
            settled=old.settled + choose.text(_LETTERS, most=12),
            tentative=choose.text(_LETTERS, most=12),
            end=int(clock * SAMPLE_RATE),
        )
        shown = tuple(p for p in passages[-4:] if p.settled or p.tentative)
        snapshots.append(Snapshot(revision=revision, passages=shown))
    return snapshots


def _visible(text: str) -> str:
    return "".join(text.split())


def _assert_end_in_view(screen: Screen, snapshot: Snapshot) -> None:
    tails = [_visible(p.tentative) for p in snapshot.passages if _visible(p.tentative)]
    if tails:
        shown = _visible("".join(line.settled + line.tentative for line in screen.lines))
        assert shown
        assert shown.endswith(tails[-1]) or tails[-1].endswith(shown)


def _wide(text: str) -> float:
    """Ideographs two, accents and joiners nothing, the rest one."""
    widths = {"\u65e5": 2, "\u3002": 2, "\u300c": 2, "\U0001f469": 2, "\u0301": 0, "\u200d": 0}
    return sum(widths.get(character, 1) for character in text)


_measures: st.SearchStrategy[Measure] = st.sampled_from([_wide, lambda text: _wide(text) * 1.7])
_widths = st.integers(1, 12) | st.floats(1, 40)
_histories = made(_history, 220)


@thorough
@given(_histories, _widths, st.integers(1, 4), _measures)
def test_settled_text_never_moves_and_nothing_is_cut_or_lost(
    history: list[Snapshot], width: float, lines: int, measure: Measure
) -> None:
    layout = Layout()
    seen: dict[int, str] = {}
    top = 0
    placed: dict[int, int] = {}
    said = ""
    for snapshot in history:
        for new in snapshot.passages:
            said += _visible(new.settled[placed.get(new.key, 0) :])
            placed[new.key] = len(new.settled)
        screen = layout.update(snapshot, width=width, lines=lines, measure=measure)
        assert len(screen.lines) <= lines
        numbers = [line.number for line in screen.lines]
        if numbers:
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert numbers[0] >= top
            top = numbers[0]
        for line in screen.lines:
            # Only ever grows at its end: same words, same line, same distance from the edge.
            assert line.settled.startswith(seen.get(line.number, ""))
            text = line.settled + line.tentative
            assert measure(text) <= width or len(list(clusters(text))) == 1
        page = layout._page  # the hidden lines too must keep the law
        assert page is not None
        for kept in page.lines:
            assert kept.text.startswith(seen.get(kept.number, ""))
            seen[kept.number] = kept.text
        # The end of all that was said is always in view.
        _assert_end_in_view(screen, snapshot)
    assert _visible("".join(seen[number] for number in sorted(seen))) == said


@thorough
@example("\u300c\u65e5\u3002", [0, 1], 4, _wide)  # a glued piece, wider than the line, in two
@given(made(_text, 90), st.lists(st.integers(0, 60), max_size=5), st.integers(2, 15), _measures)
def test_settling_what_is_shown_moves_nothing(
    text: str, places: list[int], width: int, measure: Measure
) -> None:
    layout = Layout()
    # Captions settle whole words, and a hyphen ends none.
    ends = [
        end
        for end in (0, *accumulate(map(len, clusters(text))))
        if text[end : end + 1].isspace()
        or any("\u3040" <= c <= "\u9fff" for c in text[end - 1 : end + 1])
    ] or [0]
    cuts = sorted(ends[place % len(ends)] for place in places)
    first: dict[int, str] | None = None
    for revision, cut in enumerate([0, *cuts, len(text)]):
        snapshot = Snapshot(
            revision=revision, passages=(passage(settled=text[:cut], tentative=text[cut:]),)
        )
        screen = layout.update(snapshot, width=width, lines=3, measure=measure)
        shown = {line.number: line.settled + line.tentative for line in screen.lines}
        first = shown if first is None else first
        assert shown == first


@given(_histories, st.lists(_widths, min_size=2, max_size=4))
def test_any_change_of_width_keeps_the_newest_words_in_view(
    history: list[Snapshot], widths: list[float]
) -> None:
    layout = Layout()
    for step, snapshot in enumerate(history):
        width = widths[step % len(widths)]
        screen = layout.update(snapshot, width=width, lines=2, measure=_wide)
        assert layout.update(snapshot, width=width, lines=2, measure=_wide) is screen
        _assert_end_in_view(screen, snapshot)
