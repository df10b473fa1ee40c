import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.engine import WELL, ScriptedEngine
from fakes.speech import Spoken, numbered, say, seconds
from surtitle.core.audio import Chunk
from surtitle.core.realtime_deltas import DeltaWriter
from surtitle.core.realtime_generation import due_deltas, total_deltas
from surtitle.core.realtime_messages import Delta
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.stability import Stability

FRAME = 1_280
RULES = Stability.of(0.5)


def writer(samples: int = 10**6, *, most: int | None = None) -> DeltaWriter:
    result = DeltaWriter(RULES, most=most)
    result.sound(samples)
    return result


def partial(text: str, end: int, *, stable: int = 0) -> Partial:
    return Partial(utterance=1, text=text, start=0, end=end, stable_until=stable)


@pytest.mark.parametrize(
    ("samples", "due", "total"),
    [
        (0, 0, 0),
        (320, 0, 11),
        (8_999, 0, 17),
        (9_000, 1, 18),
        (10_279, 1, 18),
        (10_280, 2, 19),
        (2 * 16_000, 18, 35),
        (4 * 16_000, 43, 60),
        (6 * 16_000, 68, 85),
        (8 * 16_000, 93, 110),
        (20 * 16_000, 243, 260),
    ],
)
def test_as_many_deltas_as_were_seen(samples: int, due: int, total: int) -> None:
    """0.02 s: 11, 2 s: 35, 4 s: 60, 6 s: 85 (68 before the end), 8 s: 110, 20 s: 243 before it."""
    assert (due_deltas(samples), total_deltas(samples)) == (due, total)
    silent = writer(samples)
    before = silent.hear(Progress(position=samples))
    assert len(before) == due
    assert len(before) + len(silent.finish()) == total == silent.deltas
    assert silent.text == ""


def test_each_delta_says_how_far_it_goes() -> None:
    silent = writer(10_280)
    silent.hear(Progress(position=10_280))
    ends = [delta.end for delta in silent.finish()]
    assert ends[:6] == [3 * FRAME, 4 * FRAME, 5 * FRAME, 6 * FRAME, 7 * FRAME, 8 * FRAME]
    assert set(ends[6:]) == {10_280}


def test_an_engine_that_lags_makes_the_deltas_lag() -> None:
    slow = writer()
    assert len(slow.hear(Voice(start=0, end=20_000, probability=0.0))) == 0, "it may be speech"
    assert len(slow.hear(Progress(position=20_000))) == due_deltas(20_000)


def test_what_is_not_settled_holds_the_deltas_back_but_not_for_ever() -> None:
    speaking = writer()
    speaking.hear(Progress(position=10 * FRAME))
    assert speaking.deltas == 3
    for frame in range(11, 60):
        speaking.hear(Voice(start=0, end=frame * FRAME, probability=1.0))
        due = due_deltas(frame * FRAME)
        assert speaking.deltas == max(min(10, due), due - 31)


def test_a_settled_word_stands_where_it_was_first_heard() -> None:
    speaking = writer()
    first = 20 * FRAME + 5
    deltas = speaking.hear(Voice(start=0, end=first, probability=1.0))
    for step in range(10):
        end = first + step * 4_000
        deltas += speaking.hear(partial("hello" if step < 3 else "hello world", end))
    assert deltas[20] == Delta(delta=" hello", end=21 * FRAME)
    assert all(not d.delta for d in deltas[:20])
    rest = deltas + speaking.hear(Final(utterance=1, text="Hello, world!", start=0, end=50 * FRAME))
    rest += speaking.hear(Progress(position=80 * FRAME))
    assert [(n, d.delta) for n, d in enumerate(rest) if d.delta] == [
        (20, " hello"),
        (-(-(first + 12_000) // FRAME) - 1, " world"),
    ]


def test_a_final_stands_at_its_end_and_before_anything_later() -> None:
    speaking = writer()
    speaking.hear(partial("one", 30 * FRAME))
    speaking.hear(Final(utterance=1, text="one two", start=0, end=30 * FRAME))
    deltas = speaking.hear(Progress(position=60 * FRAME))
    places = [delta.end for delta in deltas if delta.delta]
    assert places == [30 * FRAME]
    assert deltas[-1].end == FRAME * due_deltas(60 * FRAME)


def test_a_final_without_words_lets_its_frames_go() -> None:
    noise = writer()
    noise.hear(partial("hm", 60 * FRAME))
    assert noise.deltas == due_deltas(60 * FRAME) - 31
    noise.hear(Final(utterance=1, text="", start=0, end=30 * FRAME))
    assert noise.deltas == 30


def test_a_promised_word_does_not_wait() -> None:
    speaking = writer()
    deltas = speaking.hear(partial("one two", 20 * FRAME, stable=4))
    deltas += speaking.hear(partial("one two", 30 * FRAME, stable=4))
    assert [d.delta for d in deltas if d.delta] == [" one"]


def test_a_late_final_stands_in_the_next_delta() -> None:
    late = writer()
    assert late.hear(Progress(position=50 * FRAME))
    deltas = late.hear(Final(utterance=1, text="one", start=0, end=10 * FRAME))
    deltas += late.hear(Progress(position=60 * FRAME))
    assert deltas[0].delta == " one"


def test_an_end_in_the_middle_of_a_word_loses_nothing() -> None:
    cut = writer(16_000)
    cut.hear(Final(utterance=1, text="one", start=0, end=10**6))
    assert "".join(d.delta for d in cut.finish()) == " one"


def test_no_more_than_the_context_has_room_for() -> None:
    narrow = writer(most=161)
    assert len(narrow.hear(Progress(position=213_799))) == 160
    full = [narrow.full]
    assert len(narrow.hear(Progress(position=10**6))) == 1
    assert [*full, narrow.full] == [False, True]
    assert narrow.finish() == []


def test_scripts_without_spaces_get_none_between_their_words() -> None:
    spoken = writer(64_000)
    deltas = spoken.hear(Final(utterance=1, text="你好 world", start=0, end=20_000))
    deltas += spoken.finish()
    assert "".join(d.delta for d in deltas) == " 你好 world"


def events(
    speech: tuple[Spoken, ...], pieces: list[int]
) -> tuple[list[EngineEvent], list[EngineEvent], int]:
    """What an engine says of the sound that comes in such pieces, and what when it has ended."""
    engine = ScriptedEngine(speech, WELL)
    during: list[EngineEvent] = []
    at = 0
    for samples in pieces:
        during += engine._hear(Chunk(start=at, pcm=bytes(2 * samples), level=0.0))
        at += samples
    return during, engine._close(), at


@given(
    st.lists(st.integers(1, 30), max_size=4),
    st.lists(st.integers(1, 6_000), min_size=1, max_size=200),
)
def test_every_word_comes_once_in_order_not_before_its_sound_and_on_time(
    lengths: list[int], pieces: list[int]
) -> None:
    speech = numbered(lengths)
    during, closing, samples = events(speech, pieces)
    told = writer(samples)
    deltas: list[Delta] = []
    for event in during:
        deltas += told.hear(event)
        due = due_deltas(told.heard)
        assert due - 31 <= told.deltas <= due
    for event in closing:
        deltas += told.hear(event)
    deltas += told.finish()
    assert len(deltas) == total_deltas(samples)
    ends = [min((n + 1) * FRAME, samples) for n in range(len(deltas))]
    assert [d.end for d in deltas] == ends
    words = [(word, d.end or 0) for d in deltas for word in d.delta.split()]
    said = [w for spoken in speech for w in spoken.words if w.end <= samples]
    assert [word for word, _ in words] == [w.text for w in said]
    for (_, end), word in zip(words, said, strict=True):
        assert end >= min(word.end, samples)
        assert end <= word.end + seconds(4.5), "and not long after it"


def test_words_come_soon() -> None:
    """In real time: a word is told at most 3.5 s after it was said, also in a long utterance."""
    speech = (say(" ".join(f"w{i}" for i in range(40)), at=1.0),)
    during, _, _ = events(speech, [FRAME] * 160)
    told = writer()
    ends = {word.text: word.end for word in speech[0].words}
    for event in during:
        for delta in told.hear(event):
            for word in delta.delta.split():
                assert told.heard - ends[word] <= seconds(3.5)
