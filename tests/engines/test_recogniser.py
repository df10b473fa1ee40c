from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.model import FIRST_WORD, Detector, Model, chunks, hiss, music, pause, words
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Chunk
from surtitle.core.endpointing import Rules
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.stability import agreed_form, words_of
from surtitle.engines.recogniser import Recogniser, Schedule, without_loops

quick = settings(max_examples=15, deadline=None)

RULES = Rules(longest=4.0, search=1.0, pauses=((0.0, 0.6), (2.0, 0.3), (3.0, 0.16)))
"""As the default, but nobody has to talk so long."""


def heard(
    sound: Sequence[Chunk],
    model: Callable[[bytes], str] | None = None,
    *,
    rules: Rules = RULES,
    backlog: float = 0.0,
) -> list[EngineEvent]:
    recogniser = Recogniser(model or Model(), Detector(), rules=rules)
    events = [e for chunk in sound for e in recogniser.take(chunk, backlog=backlog)]
    return [*events, *recogniser.finish()]


def going_on(
    sound: Sequence[Chunk], model: Model, *, rules: Rules = RULES, backlog: float = 0.0
) -> None:
    """Sound that has not ended: nothing is asked for the sake of a final."""
    recogniser = Recogniser(model, Detector(), rules=rules)
    for chunk in sound:
        for _ in recogniser.take(chunk, backlog=backlog):
            pass


def even(sound: bytes, *, start: int = 0) -> list[Chunk]:
    return chunks(sound, [CHUNK_SAMPLES], start=start)


def finals(events: Sequence[EngineEvent]) -> list[Final]:
    return [event for event in events if isinstance(event, Final)]


def said(events: Sequence[EngineEvent]) -> list[str]:
    return [event.text for event in finals(events)]


def shown(events: Sequence[EngineEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Partial)]


def script(first: int, last: int) -> str:
    return " ".join(f"word{number}" for number in range(first, last + 1))


# What is said.


def test_a_sentence_grows_and_ends() -> None:
    events = heard(even(hiss(1) + words(0, 4) + hiss(2)))
    assert said(events) == [script(0, 4)]
    assert shown(events)
    assert all(script(0, 4).startswith(text) for text in shown(events))
    (final,) = finals(events)
    assert final.start == pytest.approx(0.5 * SAMPLE_RATE, abs=512)
    assert final.end == pytest.approx((1 + 1.75 + 0.25) * SAMPLE_RATE, abs=512)


def test_sentences_are_numbered() -> None:
    events = heard(even(words(0, 2) + hiss(2) + words(3, 5) + hiss(2) + words(6, 8)))
    assert [(f.utterance, f.text) for f in finals(events)] == [
        (1, script(0, 2)),
        (2, script(3, 5)),
        (3, script(6, 8)),
    ]


def test_who_never_pauses_loses_no_word() -> None:
    events = heard(even(words(0, 40)))
    assert len(finals(events)) > 3
    assert " ".join(said(events)) == script(0, 40)


@pytest.mark.parametrize(
    "sound", [pause(5), hiss(5), hiss(1) + music(0.15) + hiss(2)], ids=["zeros", "hiss", "a click"]
)
def test_where_nobody_speaks_no_words_are(sound: bytes) -> None:
    model = Model(invents=("thank you for watching",))
    events = heard(even(sound), model)
    assert "".join(said(events) + shown(events)) == ""
    assert events[-1] == Progress(position=len(sound) // 2)


def test_zeros_are_never_scored_and_speech_after_them_is_heard() -> None:
    events = heard(even(words(0, 2) + pause(20) + words(3, 5)))
    assert said(events) == [script(0, 2), script(3, 5)]


def test_the_sound_may_end_within_a_word() -> None:
    assert said(heard(even(words(0, 2)[:-2000]))) == [script(0, 2)]


def test_nothing_at_all() -> None:
    assert heard([]) == []


# Invented words.


@pytest.mark.parametrize(
    "invents",
    [
        ("the cat sat on the mat", "I like green eggs and ham"),
        ("the cat sat on the mat", ""),
        ("Thank you.", "Bye."),
    ],
)
def test_words_that_do_not_stand_are_dropped(invents: tuple[str, ...]) -> None:
    events = heard(even(hiss(1) + music(2) + hiss(2)), Model(invents=invents))
    assert said(events) == [""]
    assert shown(events) == []


def test_what_stands_is_kept_although_it_came_late() -> None:
    """Too short to be asked about twice before it ends: the final is asked about again."""
    model = Model()
    events = heard(chunks(hiss(0.2) + words(0, 0) + hiss(2), [40_000]), model)
    assert said(events) == ["word0"]
    assert model.led == [False, True]


def test_a_filler_is_held_back_and_kept_if_it_stands() -> None:
    model = Model(says={0: "thank", 1: "you."})
    events = heard(even(hiss(1) + words(0, 1) + hiss(2)), model)
    assert said(events) == ["thank you."]
    assert "thank you." not in shown(events)


def test_a_filler_is_not_shown_in_place_of_words_that_were_believed() -> None:
    model = Model(invents=("Thank you.", *["one two three"] * 5))
    events = heard(even(hiss(1) + music(3)), model)
    assert set(shown(events)) == {"one two three"}


@pytest.mark.parametrize(
    "invents",
    [
        pytest.param(("Thank you.", "Thank you.", "so"), id="with silence before it"),
        pytest.param(("so", "Thank you.", "Thank you."), id="with its beginning left out"),
    ],
)
def test_a_filler_that_does_not_stand_is_dropped(invents: tuple[str, ...]) -> None:
    model = Model(invents=invents)
    assert said(heard(chunks(hiss(0.2) + music(0.4) + hiss(2), [40_000]), model)) == [""]


def test_half_the_questions_have_silence_before_them_until_words_are_believed() -> None:
    model = Model()
    heard(even(hiss(1) + words(0, 5) + hiss(2)), model)
    first = model.led.index(True)
    assert first % 2 == 1
    assert True not in model.led[first + 3 :]
    doubted = Model(invents=("a b c d", "e f g h"))
    heard(even(hiss(1) + music(2)), doubted)
    assert doubted.led[:4] == [False, True, False, True]


# Which of several answers becomes the final.


class Moody:
    """A model that is put off by silence around the sound; of little sound it says always the same.

    Args:
        plain: Its answer to sound as it is.
        tailed: With silence behind it, also when there is some before it.
        led: With silence before it.
        early: In place of all three, for less than `until` seconds between the silences.
    """

    def __init__(
        self, plain: str, tailed: str, led: str, *, early: str = "", until: float = 0.0
    ) -> None:
        self._answers = {(False, False): plain, (True, False): led}
        self._tailed = tailed
        self._early = early
        self._until = until
        self.asked: list[str] = []

    def __call__(self, pcm: bytes) -> str:
        before, behind = pcm[:2] == b"\0\0", pcm[-2:] == b"\0\0"
        answer = self._answers.get((before, behind), self._tailed)
        if len(pcm.strip(b"\0")) < 2 * self._until * SAMPLE_RATE:
            answer = self._early
        self.asked.append(answer)
        return answer


SPEECH_AND_PAUSE = hiss(1) + music(2) + hiss(2)
"""In the pause at its end questions are asked."""
SPEECH_CUT_SHORT = hiss(1) + music(2.1)
"""Nothing is asked behind the last speech."""


@pytest.mark.parametrize(
    ("sound", "plain", "tailed", "led", "final"),
    [
        pytest.param(SPEECH_AND_PAUSE, "a b c", "A, b c.", "x", "a b c", id="agreed at once"),
        pytest.param(SPEECH_AND_PAUSE, "a b x", "a b c", "y b c", "a b c", id="that of the pause"),
        pytest.param(SPEECH_CUT_SHORT, "a b c", "A, b c.", "x", "a b c", id="cut: agreed at once"),
        pytest.param(SPEECH_CUT_SHORT, "a b c", "a x c", "a b y", "a b c", id="cut: plain"),
        pytest.param(
            SPEECH_CUT_SHORT, "a b x", "a b c", "y b c", "a b c", id="cut: silence behind"
        ),
        pytest.param(
            SPEECH_CUT_SHORT, "a b x", "y b c", "a b c", "a b c", id="cut: silence before"
        ),
    ],
)
def test_the_final_is_what_most_answers_say(
    sound: bytes, plain: str, tailed: str, led: str, final: str
) -> None:
    model = Moody(plain, tailed, led)
    assert said(heard(even(sound), model)) == [final]
    assert (led in model.asked) == (agreed_forms(plain) != agreed_forms(tailed))


@pytest.mark.parametrize(
    ("plain", "tailed", "led", "final", "questions"),
    [
        pytest.param("a b c", "x", "A, b c.", "a b c", 2, id="agreed at once"),
        pytest.param("a b x", "y b c", "a b c", "a b c", 3, id="silence before"),
        pytest.param("a b c x", "a b c d", "y b c d", "a b c d", 3, id="silence behind"),
        pytest.param("a b c", "a b y", "x b c", "a b c", 3, id="plain"),
        pytest.param("a b c", "a b c", "x y z", "", 2, id="it does not stand"),
    ],
)
def test_so_it_is_with_what_was_never_believed(
    plain: str, tailed: str, led: str, final: str, questions: int
) -> None:
    model = Moody(plain, tailed, led)
    assert said(heard(chunks(SPEECH_AND_PAUSE, [60_000]), model)) == [final]
    assert len(model.asked) == questions


def test_what_was_heard_in_the_pause_is_not_asked_again() -> None:
    model = Moody("a b c", "A, b c.", "x")
    heard(even(SPEECH_AND_PAUSE), model)
    assert model.asked[-1] == "a b c"


def test_of_equal_answers_the_newest_is_the_final() -> None:
    asked: list[bytes] = []

    def model(pcm: bytes) -> str:
        asked.append(pcm)
        return f"a b c{len(asked)}"

    assert said(heard(even(SPEECH_AND_PAUSE), model, rules=Rules())) == [f"a b c{len(asked) - 2}"]


def test_answers_from_before_the_last_words_have_no_say() -> None:
    model = Moody("a b c", "a b d", "a b c", early="old news today", until=2.3)
    sound = hiss(1) + music(0.8) + hiss(0.3) + music(0.8) + hiss(2)
    assert said(heard(even(sound), model)) == ["a b c"]
    assert model.asked.count("old news today") > model.asked.count("a b d") > 0


def agreed_forms(text: str) -> list[str]:
    return [agreed_form(word) for word in words_of(text)]


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("", ""),
        (" one two ", "one two"),
        ("you you you", "you you you"),
        ("you you you you", "you"),
        ("You. you. You. you. And so on.", "You. And so on."),
        ("a b c a b c a b c a b c", "a b c"),
        ("I said go, go, go, go now", "I said go now"),
        ("the theory the theme the then the there", "the theory the theme the then the there"),
        ("1 2 3 4 5 6 7 8 " * 20, "1 2 3 4 5 6 7 8"),
    ],
)
def test_a_phrase_without_end_is_said_once(text: str, once: str) -> None:
    assert without_loops(text) == once


# When the model is asked.


@pytest.mark.parametrize(
    ("backlog", "doubted", "step"),
    [
        pytest.param(0.0, False, 0.24, id="every 0.2 s, in whole chunks"),
        pytest.param(0.2, False, 0.64, id="less often with a backlog"),
        pytest.param(0.5, False, 1.2, id="much less often"),
        pytest.param(0.0, True, 0.24, id="doubted"),
        pytest.param(0.5, True, 0.4, id="doubted: not less often than every 0.4 s"),
        pytest.param(9.0, True, 0.4, id="however large the backlog"),
    ],
)
def test_how_often_it_is_asked(backlog: float, doubted: bool, step: float) -> None:  # noqa: FBT001 - a table
    model = Model(invents=("a b c d", "e f g h") if doubted else ("one two three",))
    going_on(even(hiss(1) + music(3.4)), model, backlog=backlog)
    # Before it is believed it is asked as often as if it were doubted.
    asked = [seconds for seconds in model.asked if seconds < 2.9 or not doubted]
    steps = [b - a for a, b in pairwise(asked)][0 if doubted else 2 :]
    assert len(steps) >= 1
    assert steps == pytest.approx([step] * len(steps))


def test_doubt_does_not_hold_up_for_ever() -> None:
    model = Model(invents=("a b c d", "e f g h"))
    going_on(even(hiss(1) + music(12)), model, rules=Rules(), backlog=1.0)
    late = [seconds for seconds in model.asked if seconds > Schedule().doubt]
    steps = [b - a for a, b in pairwise(late)]
    assert len(steps) >= 3
    assert all(2.2 <= step < 2.6 for step in steps)


@pytest.mark.parametrize(
    ("backlog", "step"), [pytest.param(0.0, 0.4, id="idle"), pytest.param(0.2, 0.8, id="backlog")]
)
def test_about_a_long_utterance_it_is_asked_less_often(backlog: float, step: float) -> None:
    model = Model(invents=("one two three",))
    going_on(even(hiss(1) + music(11)), model, rules=Rules(), backlog=backlog)
    steps = [b - a for a, b in pairwise(model.asked) if a > Schedule().long]
    assert len(steps) >= 3
    assert steps == pytest.approx([step] * len(steps))


@pytest.mark.parametrize("pre_roll", [0.0, 0.2, 0.5])
def test_little_sound_is_not_asked_about(pre_roll: float) -> None:
    model = Model()
    rules = Rules(pre_roll=pre_roll)
    heard(even(hiss(1) + words(0, 5)), model, rules=rules)
    assert Schedule().first <= model.asked[0] < max(Schedule().first, pre_roll) + 0.25


# Holes, places and memory.


def test_a_hole_ends_an_utterance() -> None:
    before = even(hiss(1) + words(0, 2))
    hole = 5 * SAMPLE_RATE
    behind = even(words(3, 5) + hiss(2), start=before[-1].end + hole)
    events = heard([*before, *behind])
    first, second = finals(events)
    assert (first.text, second.text) == (script(0, 2), script(3, 5))
    assert first.end <= before[-1].end
    assert second.start >= behind[0].start
    told = [e.position for e in events if isinstance(e, Progress)]
    assert before[-1].end in told
    assert events.index(Progress(position=before[-1].end)) < events.index(second)


def test_sound_may_begin_anywhere() -> None:
    start = 987_654_321
    events = heard(even(hiss(1) + words(0, 2) + hiss(2), start=start))
    near = heard(even(hiss(1) + words(0, 2) + hiss(2)))
    (far,), (here,) = finals(events), finals(near)
    assert (far.start - start, far.end - start, far.text) == (here.start, here.end, here.text)


@pytest.mark.parametrize("silence", [hiss, pause])
def test_no_sound_is_kept_in_silence(silence: Callable[[float], bytes]) -> None:
    recogniser = Recogniser(Model(), Detector())
    events: list[EngineEvent] = []
    for chunk in even(silence(60)):
        events += recogniser.take(chunk)
        # Its memory is what this is about.
        assert len(recogniser._sound) <= 2 * (SAMPLE_RATE // 2 + 2 * CHUNK_SAMPLES)
    told = [e.position for e in events if isinstance(e, Progress)]
    assert told[-1] >= 59 * SAMPLE_RATE


def test_an_utterance_keeps_no_more_than_itself() -> None:
    recogniser = Recogniser(Model(), Detector(), rules=RULES)
    for chunk in even(words(0, 60)):
        list(recogniser.take(chunk))
        assert len(recogniser._sound) <= 2 * (RULES.longest * SAMPLE_RATE + 2 * CHUNK_SAMPLES)


# Any sound, cut in any way.

type Piece = tuple[str, int]
"""Kind, and how many words or tenths of a second."""

PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("words"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["hiss", "pause"]), st.integers(1, 15)),
        st.tuples(st.just("hole"), st.integers(1, 30)),
    ),
    max_size=7,
)
SIZES = st.lists(st.sampled_from([1, 37, 512, 1280, 5000, 100_000]), min_size=1, max_size=4).filter(
    lambda sizes: sum(sizes) > 300 * len(sizes)
)


def stretches(pieces: Sequence[Piece]) -> tuple[list[tuple[int, bytes]], str]:
    """Sound without holes, each with its position, and all that is said in it."""
    found: list[tuple[int, bytes]] = [(0, b"")]
    count = 0
    for kind, size in pieces:
        start, sound = found[-1]
        match kind:
            case "words":
                found[-1] = (start, sound + words(count, count + size - 1))
                count += size
            case "hiss":
                found[-1] = (start, sound + hiss(size / 10))
            case "pause":
                found[-1] = (start, sound + pause(size / 10))
            case _:
                found.append((start + len(sound) // 2 + size * SAMPLE_RATE // 10, b""))
    return found, script(0, count - 1)


def cut(found: Sequence[tuple[int, bytes]], sizes: Sequence[int]) -> list[Chunk]:
    return [chunk for start, sound in found for chunk in chunks(sound, sizes, start=start)]


@quick
@given(PIECES, SIZES)
def test_any_cutting_gives_the_same_utterances(pieces: list[Piece], sizes: list[int]) -> None:
    found, text = stretches(pieces)
    one = finals(heard(cut(found, [CHUNK_SAMPLES])))
    other = finals(heard(cut(found, sizes)))
    assert one == other
    assert " ".join(final.text for final in one if final.text) == text


@quick
@given(PIECES, SIZES)
def test_every_sample_is_accounted_for(pieces: list[Piece], sizes: list[int]) -> None:
    """Words are in a final before progress passes them, and utterances are apart and in order."""
    found, _ = stretches(pieces)
    sound = cut(found, sizes)
    events = heard(sound)
    spoken = {
        chunk.start + at
        for chunk in sound
        for at in range(0, chunk.samples, 160)
        if int.from_bytes(chunk.pcm[2 * at : 2 * at + 2], "little") >= FIRST_WORD
    }
    done, ended, number = -1, 0, 0
    for event in events:
        match event:
            case Progress(position=position):
                assert position >= done
                done = position
                assert not [place for place in spoken if place < position]
            case Partial(start=start, end=end, utterance=utterance):
                assert max(done, ended) <= start < end
                assert utterance == number + 1
            case Final(start=start, end=end, utterance=utterance):
                assert max(done, ended) <= start < end
                assert utterance == number + 1
                ended, number = end, utterance
                spoken = {place for place in spoken if not start <= place < end}
            case Voice(start=start, end=end):
                assert start < end
    assert done == (sound[-1].end if sound else -1)


def test_a_comma_is_said_once() -> None:
    model = Model(says={1: "short,,"})
    [text] = said(heard(even(hiss(1) + words(0, 4) + hiss(2)), model))
    assert text.split()[1] == "short,"


def test_a_breath_that_is_taken_for_a_filler_is_none() -> None:
    model = Model(says={0: "you"})
    assert said(heard(even(hiss(1) + words(0, 0) + hiss(2)), model)) == [""]
    assert said(heard(even(hiss(1) + words(1, 1) + hiss(2)), model)) == [script(1, 1)]
