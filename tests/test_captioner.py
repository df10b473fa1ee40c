"""Sound in, text out: the order of things while the engine and the user behave."""

import asyncio
from collections.abc import Callable

import pytest

from fakes.captioning import LENGTH, SPEECH, TEXT, Session, caption, device, file_of
from fakes.engine import Plan, broken
from fakes.source import MONO, ScriptedSource, block, sound
from fakes.speech import Spoken, Word, numbered, say, seconds
from surtitle.core.audio import CHUNK_SAMPLES, Format, Gap, Lost, Moved, Notice, Silent, Started
from surtitle.core.errors import SourceError
from surtitle.core.health import State


@pytest.mark.parametrize("source", [file_of, device])
def test_all_words_come_in_order(source: Callable[[], ScriptedSource]) -> None:
    session = caption(source())
    assert session.error is None
    assert session.audience.lines == TEXT
    assert len(session.engines.made) == 1


@pytest.mark.parametrize("origin", [0, 123_456_789])
def test_sound_keeps_its_place(origin: int) -> None:
    speech = [
        Spoken(words=tuple(
            Word(text=w.text, start=w.start + origin, end=w.end + origin) for w in s.words
        ))
        for s in SPEECH
    ]  # fmt: skip
    session = caption(file_of(), speech=speech, origin=origin)
    passages = list(session.audience.passages.values())
    assert [(p.start, p.settled) for p in passages] == [(s.start, s.text) for s in speech]
    assert session.captioner.position == origin + seconds(LENGTH)


def test_a_file_is_read_no_further_than_its_bound_ahead() -> None:
    length, ahead = 120.0, []

    async def watch(session: Session) -> None:
        for _ in range(200):
            await asyncio.sleep(0.5)
            heard = session.engines.made[0].fed
            ahead.append(session.captioner.position - (heard[-1].end if heard else 0))

    speech = numbered([8] * 30)
    session = caption(file_of(length), Plan(speed=2.0), speech=speech, meanwhile=watch)
    assert max(ahead) <= seconds(20.5)
    assert session.engines.made[0].most_unheard <= seconds(10) + CHUNK_SAMPLES
    assert session.audience.words == " ".join(spoken.text for spoken in speech).split()


@pytest.mark.parametrize("live", [True, False])
def test_speech_from_before_the_engine_is_ready_is_kept(*, live: bool) -> None:
    session = caption(device() if live else file_of(60), Plan(start_takes=8.0))
    assert session.audience.lines == TEXT
    assert session.audience.states[0] is State.STARTING
    assert State.NO_SOUND not in session.audience.states, "a file that waits is not silent"


def test_no_sound_is_told_while_a_device_gives_none() -> None:
    script = [*sound(1.0, live=True), (9.0, block())]
    session = caption(ScriptedSource(script, live=True))
    assert State.NO_SOUND in session.audience.states
    assert session.audience.states[-1] is State.ENDED


def test_no_sound_is_not_told_while_the_last_words_are_waited_for() -> None:
    session = caption(device(5), Plan(speed=0.5))
    assert State.NO_SOUND not in session.audience.states


def test_notices_and_moves_are_told() -> None:
    script = [
        *sound(1.0, live=True),
        (1.1, Notice(text="The cable is loose.")),
        (1.2, Silent(seconds=2.0)),
        (1.3, Moved(name="Headset")),
    ]
    session = caption(ScriptedSource(script, live=True))
    assert session.audience.notices == ["The cable is loose.", "Now listening to Headset."]
    assert session.audience.statuses[-1].source == "Headset"


def test_a_source_with_nothing_in_it() -> None:
    assert caption(ScriptedSource([])).audience.lines == []
    assert caption(ScriptedSource([(0.0, Started(format=MONO, name="Empty"))])).error is None


# The source.


def test_a_lost_source_leaves_what_it_had_said() -> None:
    lost = SourceError("The headset is gone.", remedy="Plug it in.")
    # Not a whole number of chunks: the rest counts too.
    script = [*sound(5.0, live=True), (5.0, block(700)), (5.1, Lost(error=lost))]
    session = caption(ScriptedSource(script, live=True))
    assert session.error is lost
    assert session.audience.lines == [TEXT[0], "it was the"]
    assert session.audience.gaps == []
    assert session.captioner.position == seconds(5.0) + 700
    assert session.engines.made[0].fed[-1].end == session.captioner.position
    assert session.audience.statuses[-1].state is State.FAILED
    assert session.audience.statuses[-1].message == "The headset is gone."


def test_a_source_that_cannot_be_opened() -> None:
    lost = SourceError("No such device.")
    session = caption(ScriptedSource([(0.0, Lost(error=lost))], live=True))
    assert session.error is lost


def test_a_source_in_an_impossible_format() -> None:
    script = [(0.0, Started(format=Format(rate=8, channels=1), name="Odd.wav"))]
    session = caption(ScriptedSource(script))
    assert isinstance(session.error, SourceError)
    assert "Odd.wav" in session.error.message


def test_gaps_have_their_place_with_an_engine_that_does_not_tell_its_own() -> None:
    origin = seconds(100)
    script = [
        *sound(3.2, live=True),
        (3.2, Gap(frames=seconds(2.0), reason="lost")),
        *sound(3.2, live=True, after=5.2, started=False),
    ]
    speech = [say("one two", at=101.0), say("three four", at=106.0)]
    source = ScriptedSource(script, live=True)
    session = caption(source, Plan(silent_progress=True), speech=speech, origin=origin)
    assert session.audience.lines == ["one two", "[2 s missing]", "three four"]
    assert session.audience.gaps == [(origin + seconds(3.2), origin + seconds(5.2))]


@pytest.mark.parametrize("way", ["events", "feed"])
@pytest.mark.parametrize("crash", [None, 0.5, 3.3, 6.0, 8.0])
def test_gaps_stand_between_the_right_words(crash: float | None, way: str) -> None:
    at = None if crash is None else seconds(crash)
    plan = Plan(breaks_at=at) if way == "events" else Plan(feed_breaks_at=at)
    script = [
        *sound(3.2, live=True),
        (3.2, Gap(frames=seconds(2.0), reason="lost")),
        *sound(3.2, live=True, after=5.2, started=False),
        (8.4, Gap(frames=seconds(0.5), reason="lost")),
        (8.4, Gap(frames=seconds(0.5), reason="lost")),
    ]
    speech = [say("one two", at=1.0), say("lost words", at=3.5), say("three four", at=6.0)]
    session = caption(ScriptedSource(script, live=True), plan, speech=speech)
    assert session.error is None
    assert session.audience.lines == ["one two", "[2 s missing]", "three four", "[1 s missing]"]
    assert session.audience.gaps == [
        (seconds(3.2), seconds(5.2)),
        (seconds(8.4), seconds(9.4)),
    ]
    assert session.captioner.position == seconds(9.4)


def test_a_gap_within_an_utterance_divides_it() -> None:
    script = [
        *sound(1.6, live=True),
        (1.6, Gap(frames=seconds(0.6), reason="lost")),
        *sound(3.0, live=True, after=2.2, started=False),
    ]
    speech = [say("one two three four five six", at=1.0)]
    session = caption(ScriptedSource(script, live=True), speech=speech)
    assert session.audience.lines == ["one two", "[0.6 s missing]", "five six"]


def test_the_buffer_is_bounded_and_what_leaves_it_is_marked() -> None:
    plans = [Plan(refuses=broken(), start_takes=15.0)] * 2
    speech = numbered([5] * 20)
    session = caption(device(50), *plans, speech=speech, buffer=20)
    ((start, end),) = session.audience.gaps
    assert start == 0
    assert 8.0 < end / 16_000 < 15.0
    after = [w.text for s in speech for w in s.words if w.start >= end and w.end <= seconds(50)]
    assert session.audience.words == after
    assert session.audience.lines[0].endswith("missing]")
