from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given

from fakes.choices import Choices, choices, made, thorough
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.speech import Final, Partial
from surtitle.core.stability import Enough, Stability

RULES = Stability(show=(Enough(2, 0.2),), settle=(Enough(3, 0.5), Enough(1, 3.0)))
STEP = SAMPLE_RATE // 5
"""Sound between two hypotheses."""

type Event = Partial | Final
type Deed = Event | tuple[int, int] | None
"""What happens to captions: an event, a gap, or (None) an interruption."""


def partial(utterance: int, text: str, *, step: int, start: int = 0, stable: int = 0) -> Partial:
    return Partial(
        utterance=utterance, text=text, start=start * STEP, end=step * STEP, stable_until=stable
    )


def final(utterance: int, text: str, *, step: int, start: int = 0) -> Final:
    return Final(utterance=utterance, text=text, start=start * STEP, end=step * STEP)


def do(captions: Captions, deed: Deed) -> list[Passage]:
    match deed:
        case None:
            captions.interrupted()
            return []
        case (start, end):
            return captions.gap(start, end)
        case Partial() | Final():
            return captions.apply(deed)


def after(*deeds: Deed) -> Captions:
    captions = Captions(RULES)
    for deed in deeds:
        do(captions, deed)
    return captions


def texts(snapshot: Snapshot) -> list[tuple[int, str, str]]:
    return [(p.key, p.settled, p.tentative) for p in snapshot.passages]


def lines(captions: Captions) -> list[str]:
    return [p.settled + p.tentative for p in captions.snapshot().passages]


def test_a_gap_that_began_before_the_words_it_ends_is_told_behind_them() -> None:
    captions = after(partial(1, "one two ", start=5, step=9, stable=8))
    words, mark = captions.gap(0, 20 * STEP)
    assert (words.settled, words.start) == ("one two", 5 * STEP)
    assert (mark.gap, mark.start, mark.end) == (True, 5 * STEP, 20 * STEP)


@pytest.mark.parametrize(
    ("deeds", "between"),
    [
        pytest.param([], True, id="nothing yet"),
        pytest.param([partial(1, "one", step=1)], False, id="an utterance"),
        pytest.param([partial(1, "one", step=1), final(1, "one", step=2)], True, id="is over"),
        pytest.param([partial(1, "one", step=1), (0, STEP)], True, id="a gap ends it"),
        pytest.param([partial(1, "one", step=1), None], True, id="its session broke"),
        pytest.param(
            [partial(1, "one", step=1), None, partial(1, "one", step=1)], False, id="heard again"
        ),
        pytest.param(
            [partial(1, "one", step=1), None, partial(1, "two", start=3, step=4)],
            *(False,),
            id="another one begins",
        ),
    ],
)
def test_whether_the_session_is_between_two_utterances(deeds: list[Deed], *, between: bool) -> None:
    assert after(*deeds).between is between


# Tables.


def test_a_partial_replaces_and_a_final_ends() -> None:
    captions = after(*(partial(1, "one two", step=n) for n in range(1, 4)))
    assert lines(captions) == ["one two"]
    captions.apply(partial(1, "one two three", step=4))
    captions.apply(partial(1, "one two three", step=6))
    assert lines(captions) == ["one two three"]
    (closed,) = captions.apply(final(1, "one two three four", step=7))
    assert (closed.settled, closed.tentative, closed.closed) == ("one two three four", "", True)
    assert (closed.start, closed.end) == (0, 7 * STEP)
    captions.apply(final(2, "five", start=8, step=9))
    assert lines(captions) == ["one two three four", "five"]


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        pytest.param(
            [partial(1, "one two three ", step=1, stable=14), final(1, "one", step=2)],
            ["one two three"],
            id="a final is never shorter than what was settled",
        ),
        pytest.param(
            [partial(1, "one ", step=1, stable=4), partial(2, "two", start=2, step=3)],
            ["one"],
            id="an utterance without a final keeps what was settled",
        ),
        pytest.param(
            [final(1, "one", step=1), final(1, "one", step=1), partial(1, "one", step=2)],
            ["one"],
            id="nothing comes after a final",
        ),
        pytest.param(
            [partial(2, "two ", step=1, stable=4), final(1, "one", step=1)],
            ["two"],
            id="nothing comes of an utterance before the present one",
        ),
        pytest.param(
            [final(1, "one", step=1), None, final(1, "two", start=1, step=2)],
            ["one", "two"],
            id="a new session numbers anew",
        ),
        pytest.param(
            [
                *(partial(3, "one two", step=n) for n in (1, 2, 3, 4)),
                *(None, final(1, "one two three", step=9)),
            ],
            ["one two three"],
            id="a new session goes on with the open utterance",
        ),
        pytest.param(
            [
                *(partial(3, "one two", step=n) for n in (1, 2, 3, 4)),
                *(None, final(1, "one", step=2), final(2, "two three", start=2, step=5)),
            ],
            ["one two", "three"],
            id="a new session ends it sooner",
        ),
        pytest.param(
            [
                partial(3, "a b c d ", step=5, stable=8),
                *(None, final(1, "a", step=1), final(2, "b", start=1, step=2)),
                *(final(3, "", start=2, step=2), final(4, "c d e", start=2, step=6)),
            ],
            ["a b c d", "e"],
            id="a new session ends it much sooner",
        ),
        pytest.param(
            [
                partial(3, "a b c d ", step=5, stable=8),
                *(None, final(1, "a b", step=2), partial(2, "c", start=2, step=3), None),
                *(final(1, "c d", start=2, step=4), final(2, "e", start=4, step=6)),
            ],
            ["a b c d", "e"],
            id="interrupted again in the replay",
        ),
        pytest.param(
            [
                partial(3, "a b c d ", step=5, stable=8),
                *(None, final(1, "a b", step=2), None, final(1, "c d e", start=2, step=6)),
            ],
            ["a b c d", "e"],
            id="interrupted again between two utterances of the replay",
        ),
        pytest.param(
            [
                partial(3, "a b c d ", step=5, stable=8),
                *(None, final(1, "a b", step=2), final(2, "e f", start=5, step=7)),
            ],
            ["a b c d", "e f"],
            id="what lies behind the replay is new, whatever the replay left out",
        ),
        pytest.param(
            [
                partial(3, "a b c d ", step=5, stable=8),
                *(None, partial(1, "a b", step=2), final(2, "c d e", start=2, step=6)),
            ],
            ["a b c d", "e"],
            id="a new session ends it without a final",
        ),
        pytest.param(
            [
                partial(3, "one ", step=2, stable=4),
                *(None, final(1, "one more", start=3, step=5)),
            ],
            ["one", "one more"],
            id="an utterance behind the broken one is another",
        ),
        pytest.param(
            [final(1, "one", step=1), (STEP, 16 * STEP), final(2, "two", start=16, step=17)],
            ["one", "[3 s missing]", "two"],
            id="a gap stands in its place",
        ),
        pytest.param(
            [
                partial(1, "one two ", step=2, stable=8),
                *((2 * STEP, 7 * STEP), final(1, "one two three", step=9)),
            ],
            ["one two", "[1 s missing]", "three"],
            id="a gap inside an utterance",
        ),
        pytest.param(
            [partial(1, "one ", start=7, step=9, stable=4), (0, 5 * STEP)],
            ["[1 s missing]", "one"],
            id="a gap before the open utterance leaves it open",
        ),
        pytest.param([final(1, "", step=1), final(2, " ", start=1, step=2)], [], id="no speech"),
    ],
)
def test_what_is_read_afterwards(deeds: Sequence[Deed], expected: list[str]) -> None:
    assert lines(after(*deeds)) == expected


def test_what_nobody_saw_changes_nothing() -> None:
    captions = after(final(1, "one", step=1))
    before = captions.snapshot()
    assert captions.apply(partial(2, "hm", start=1, step=2)) == []
    assert captions.apply(final(2, "", start=1, step=3)) == []
    assert captions.snapshot() == before


def test_what_was_seen_and_was_nothing_is_told() -> None:
    captions = after(*(partial(1, "hm", step=n) for n in (1, 2)))
    assert lines(captions) == ["hm"]
    (passage,) = captions.apply(final(1, "", step=3))
    assert (passage.settled, passage.tentative, passage.closed) == ("", "", True)
    assert lines(captions) == []


def test_no_speech_pushes_no_words_out() -> None:
    captions = Captions(RULES, keep=3)
    captions.apply(final(1, "one", step=1))
    for number in range(2, 20):
        captions.apply(final(number, "", start=number, step=number + 1))
    assert lines(captions) == ["one"]


def test_only_the_latest_passages_are_kept() -> None:
    captions = Captions(RULES, keep=3)
    for number in range(1, 9):
        captions.apply(final(number, f"word{number}", start=number, step=number + 1))
    assert lines(captions) == ["word6", "word7", "word8"]


def test_the_end_drops_what_is_not_settled() -> None:
    captions = after(*(partial(1, "one two", step=n, stable=4) for n in (1, 2)))
    assert lines(captions) == ["one two"]
    (passage,) = captions.ended()
    assert (passage.settled, passage.tentative, passage.closed) == ("one", "", True)
    assert captions.ended() == []
    captions.apply(final(1, "one", step=1))  # of the next source
    assert lines(captions) == ["one", "one"]


def test_the_source_is_on_every_passage() -> None:
    captions = Captions(RULES, source="Me")
    captions.apply(final(1, "one", step=1))
    captions.gap(STEP, 2 * STEP)
    captions.apply(partial(2, "two ", start=3, step=4, stable=4))
    assert {passage.source for passage in captions.snapshot().passages} == {"Me"}


def test_new_rules_are_for_new_utterances() -> None:
    captions = after(partial(1, "one", step=1))
    captions.stability = Stability.of(1)
    captions.apply(partial(1, "one", step=2))
    assert lines(captions) == ["one"]
    captions.apply(final(1, "one", step=3))
    for step in (4, 5, 6, 7):
        captions.apply(partial(2, "two", start=3, step=step))
        assert lines(captions) == ["one"]


def test_a_transcript_gets_settled_text_and_seconds() -> None:
    captions = after(partial(1, "one two", start=5, step=10, stable=4))
    (passage,) = captions.snapshot().passages
    entry = passage.entry
    assert (entry.text, entry.start, entry.end) == ("one", 1.0, 2.0)
    assert (entry.gap, entry.closed) == (False, False)
    mark = captions.gap(10 * STEP, 20 * STEP)[-1].entry
    assert (mark.text, mark.start, mark.end, mark.gap, mark.closed) == ("", 2.0, 4.0, True, True)


# Streams of anything.

VOCABULARY = ["the", "The,", "no", "a", "日本", "語。"]


def anything(choose: Choices) -> list[Deed]:
    """Time goes on and utterances are numbered upwards; nothing else makes sense."""
    deeds: list[Deed] = []
    step, number = 1, 1
    for kind in choose.several(lambda: choose.of("pppppfffngi"), most=25):
        step += choose.between(0, 4)
        start = choose.between(max(0, step - 9), step)
        text = " ".join(choose.several(lambda: choose.of(VOCABULARY), most=5))
        match kind:
            case "p":
                stable = choose.of((0, 0, 3, 9))
                deeds.append(partial(number, text, step=step, start=start, stable=stable))
            case "f":
                deeds.append(final(number, text, step=step, start=start))
                number += 1
            case "n":
                number += 1
            case "g":
                deeds.append((start * STEP, step * STEP + 1))
            case _:
                deeds.append(None)
                number = 1
    return deeds


DEEDS = made(anything, 150)


@thorough
@given(DEEDS)
def test_nothing_that_is_settled_changes(deeds: list[Deed]) -> None:
    captions = Captions(RULES, keep=1000)
    known: dict[int, Passage] = {}
    for deed in deeds:
        changed = do(captions, deed)
        for passage in (*changed, *captions.snapshot().passages):
            before = known.get(passage.key)
            if before is not None:
                assert passage.settled.startswith(before.settled)
                assert passage == before or not before.closed
                assert (passage.start, passage.gap) == (before.start, before.gap)
            assert not (passage.closed and passage.tentative)
            known[passage.key] = passage
        shown = [passage.key for passage in captions.snapshot().passages]
        assert shown == sorted(set(shown))
        assert {key for key, passage in known.items() if passage.settled} <= set(shown)


@given(DEEDS)
def test_who_is_told_of_changes_knows_what_the_window_knows(deeds: list[Deed]) -> None:
    captions = Captions(RULES, keep=1000)
    told: dict[int, Passage] = {}
    before = captions.snapshot()
    for deed in deeds:
        changed = do(captions, deed)
        told |= {passage.key: passage for passage in changed}
        now = captions.snapshot()
        assert texts(now) == [
            (p.key, p.settled, p.tentative) for p in told.values() if p.settled or p.tentative
        ]
        assert (now.revision > before.revision) == bool(changed)
        assert now.revision > before.revision or texts(now) == texts(before)
        before = now


@given(DEEDS, choices(25))
def test_any_cutting_and_any_repetition_gives_the_same_captions(
    deeds: list[Deed], choose: Choices
) -> None:
    once = Captions(RULES, keep=1000)
    first_told = [passage for deed in deeds for passage in do(once, deed)]
    again = Captions(RULES, keep=1000)
    told: list[Passage] = []
    finished: Final | None = None
    for deed in deeds:
        told += do(again, deed)
        times = choose.between(0, 2)
        for _ in range(times if isinstance(deed, Partial | Final) else 0):
            assert do(again, deed) == []
        if deed is None:
            finished = None
        elif isinstance(deed, Final):
            finished = deed
        if finished is not None and times:
            assert again.apply(finished) == []
        again.snapshot()  # looking changes nothing
    assert told == first_told
    assert again.snapshot() == once.snapshot()
    assert again.ended() == once.ended()


# A recogniser that hears a script: its hypotheses are true beginnings of what was said.

WORD = SAMPLE_RATE // 4
"""Each word of the script takes so long."""


def session(script: Sequence[str], begin: int, cuts: Sequence[int]) -> Iterator[Event]:
    """Listen from sample `begin`; utterances end at `cuts` and at the end of the script.

    A word belongs to the utterance in which it ends.
    """
    whole = len(script) * WORD
    bounds = [begin, *(cut for cut in sorted(set(cuts)) if begin < cut < whole), whole]
    for number, (start, end) in enumerate(pairwise(bounds), 1):
        for tick in range(start + STEP, end, STEP):
            text = " ".join(script[start // WORD : tick // WORD])
            yield Partial(utterance=number, text=text, start=start, end=tick)
        text = " ".join(script[start // WORD : end // WORD])
        yield Final(utterance=number, text=text, start=start, end=end)


def any_script(choose: Choices) -> list[str]:
    return choose.several(lambda: choose.of(["the", "no", "a", "word"]), least=1, most=14)


def any_cuts(choose: Choices) -> Sequence[int]:
    match choose.of(("none", "regular", "any")):
        case "none":
            return ()
        case "regular":
            every = choose.between(WORD // 2, 4 * WORD)
            return range(every, 14 * WORD, every)
        case _:
            return choose.several(lambda: choose.between(1, 14 * WORD), most=5)


def any_breaks(choose: Choices) -> list[tuple[Sequence[int], int]]:
    return choose.several(lambda: (any_cuts(choose), choose.between(3, 20)), most=3)


def any_ticks(choose: Choices) -> list[int]:
    return choose.several(lambda: choose.between(0, 60), most=20)


SCRIPTS, CUTS, BREAKS = made(any_script, 15), made(any_cuts, 12), made(any_breaks, 40)


def replayed(
    script: Sequence[str],
    sessions: Sequence[tuple[Sequence[int], int]],
    *,
    wanted: Callable[[Event], bool] = lambda _: True,
) -> str:
    """What is read when each session (cuts, number of events) but the last breaks off."""
    captions = Captions(RULES, keep=1000)
    settled = 0
    shown = ""
    for last, (cuts, count) in enumerate(sessions, 1 - len(sessions)):
        for number, event in enumerate(session(script, settled, cuts)):
            if number == count and last:
                break
            if isinstance(event, Partial) and not wanted(event):
                continue
            captions.apply(event)
            if isinstance(event, Final):
                settled = event.end
            now = " ".join(passage.settled for passage in captions.snapshot().passages)
            assert now.strip().startswith(shown)
            shown = now.strip()
        if last:
            captions.interrupted()
    return shown


@thorough
@given(SCRIPTS, BREAKS, CUTS)
def test_interruption_and_replay_say_no_word_twice_and_leave_none_out(
    script: list[str], broken: list[tuple[Sequence[int], int]], cuts: Sequence[int]
) -> None:
    assert replayed(script, [*broken, (cuts, 0)]) == " ".join(script)


@given(SCRIPTS, CUTS, made(any_ticks, 21))
def test_the_text_does_not_depend_on_how_often_the_engine_tells(
    script: list[str], cuts: Sequence[int], dropped: list[int]
) -> None:
    whole = replayed(script, [(cuts, 0)])
    assert replayed(script, [(cuts, 0)], wanted=lambda e: e.end // STEP not in dropped) == whole
