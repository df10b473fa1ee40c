import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.audience import RememberingAudience
from fakes.engine import WELL, Plan, ScriptedEngine, ScriptedEngines, broken
from fakes.keeper import RememberingKeeper
from fakes.source import MONO, ScriptedSource, block, sound
from fakes.speech import Spoken, numbered, say, seconds
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.audio import CHUNK_SAMPLES, Format, Gap, Lost, Moved, Notice, Silent, Started
from surtitle.core.captions import Captions
from surtitle.core.errors import Decision, EngineError, SourceError, SurtitleError
from surtitle.core.health import State
from surtitle.core.speech import EngineEvent
from surtitle.core.stability import Stability

SPEECH = (
    say("it was the best of times", at=1.0),
    say("it was the worst of times", at=4.0),
    say("it was the age of wisdom", at=7.0),
)
LENGTH = 10.0
TEXT = [spoken.text for spoken in SPEECH]

RECONFIGURE = EngineError(
    "There is no such model.", remedy="Choose another.", decision=Decision.RECONFIGURE
)


class Session:
    """A captioner with everything around it."""

    def __init__(
        self,
        source: ScriptedSource,
        engines: ScriptedEngines,
        *,
        patience: int | None = None,
        origin: int = 0,
        buffer: float = 600.0,
    ) -> None:
        self.source = source
        self.engines = engines
        self.audience = RememberingAudience()
        self.keeper = RememberingKeeper()
        self.error: SurtitleError | None = None
        self.took = 0.0
        self.captioner = Captioner(
            source,
            engines,
            Captions(Stability.of(0.5), keep=10_000),
            self.audience,
            chance=lambda: 0.0,
            keeper=self.keeper,
            origin=origin,
            patience=patience,
            buffer=buffer,
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self.captioner.run()
        except SurtitleError as error:
            self.error = error
        finally:
            self.took = loop.time() - began
            self.check()

    def check(self) -> None:
        """What holds however it ended."""
        assert not self.source.open
        assert all(engine.stopped for engine in self.engines.made)
        assert len(asyncio.all_tasks()) <= 3, "run, stop and the test itself"
        kept = [entry for entry in self.keeper.entries.values() if entry.text or entry.gap]
        assert [entry.text for entry in kept] == [
            "" if passage.gap else passage.settled
            for passage in self.audience.passages.values()
            if passage.settled
        ]
        assert all(entry.closed for entry in kept)
        starts = [p.start for p in self.audience.passages.values() if p.settled]
        assert starts == sorted(starts), "text and gaps are in the order of the sound"


def file_of(length: float = LENGTH) -> ScriptedSource:
    return ScriptedSource(list(sound(length, live=False)))


def device(length: float = LENGTH, *, endless: bool = False) -> ScriptedSource:
    return ScriptedSource(list(sound(length, live=True)), live=True, endless=endless)


type Meanwhile = Callable[[Session], Awaitable[None]]


def caption(
    source: ScriptedSource,
    *plans: Plan,
    speech: Sequence[Spoken] = SPEECH,
    then: Plan = WELL,
    meanwhile: Meanwhile | None = None,
    **options: int,
) -> Session:
    async def main() -> Session:
        session = Session(source, ScriptedEngines(speech, *plans, then=then), **options)
        running = asyncio.create_task(session.run())
        if meanwhile is not None:
            await meanwhile(session)
        await asyncio.gather(running, return_exceptions=True)
        if not running.cancelled():
            running.result()
        return session

    return run_virtual(main())


def stop_at(time: float) -> Meanwhile:
    async def stop(session: Session) -> None:
        await asyncio.sleep(time)
        await session.captioner.stop()

    return stop


def cancel_at(time: float, *, times: int = 1) -> Meanwhile:
    async def cancel(session: Session) -> None:
        await asyncio.sleep(time)
        (running,) = (t for t in asyncio.all_tasks() if "Session.run" in str(t.get_coro()))
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([running], timeout=60)
        assert running.done()
        assert session.captioner.position >= 0

    return cancel


# Nothing goes wrong.


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
            type(w)(text=w.text, start=w.start + origin, end=w.end + origin) for w in s.words
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
def test_speech_from_before_the_engine_is_ready_is_kept(live: bool) -> None:
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


# The engine breaks.


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("at", [0.0, 0.9, 1.6, 2.5, 3.1, 4.0, 5.7, 6.3, 9.9])
@pytest.mark.parametrize("way", ["events", "feed"])
def test_a_crash_changes_no_word(at: float, way: str, live: bool) -> None:
    events = Plan(breaks_at=seconds(at))
    crash = events if way == "events" else Plan(feed_breaks_at=seconds(at))
    session = caption(device() if live else file_of(), crash)
    assert session.error is None
    assert session.audience.lines == TEXT
    assert len(session.engines.made) == 2


def test_a_second_session_hears_from_the_settled_position_on() -> None:
    session = caption(file_of(), Plan(breaks_at=seconds(5.0)))
    assert session.engines.made[1].fed[0].start == SPEECH[1].start


@pytest.mark.parametrize("at", [0.0, 1.6, 3.1, 5.0, 9.9])
def test_an_end_that_nobody_asked_for_is_an_error_and_told(at: float) -> None:
    session = caption(device(), Plan(ends_at=seconds(at)))
    assert session.audience.lines == TEXT
    assert State.RECOVERING in session.audience.states
    assert "ended by itself" in next(
        s.message for s in session.audience.statuses if s.state is State.RECOVERING
    )


@pytest.mark.parametrize("finals", [1, 2, 3])
def test_words_that_were_final_are_not_heard_again(finals: int) -> None:
    session = caption(file_of(), Plan(breaks_after_finals=finals))
    assert session.audience.lines == TEXT
    assert len(session.engines.made) == 2 if finals < 3 else 1


def test_a_session_that_breaks_when_everything_is_out_is_not_missed() -> None:
    speech = [say("it was the best of times", at=1.0)]
    session = caption(file_of(speech[0].end / 16_000), Plan(breaks_after_finals=1), speech=speech)
    assert session.audience.lines == [speech[0].text]
    assert session.error is None
    assert len(session.engines.made) == 1


def test_sound_that_breaks_every_session_is_passed_over() -> None:
    poison = Plan(breaks_at=seconds(5.0))
    session = caption(device(20), poison, poison, poison, speech=[*SPEECH, say("at last", at=15)])
    ((start, end),) = session.audience.gaps
    # From where the text was settled, as far as sound had been handed over when it broke.
    assert start == SPEECH[1].start
    assert seconds(5.0) < end < seconds(9.0)
    assert session.audience.lines[0] == TEXT[0]
    assert session.audience.lines[-1] == "at last"
    assert session.engines.made[3].fed[0].start == end
    assert session.error is None


def test_an_engine_that_breaks_at_once_every_time_loses_nothing_unmarked() -> None:
    then = Plan(breaks_at=0)
    session = caption(device(30, endless=True), then=then, meanwhile=stop_at(40))
    assert session.error is not None
    assert session.audience.gaps[0][0] == 0
    assert session.audience.gaps[-1][1] == seconds(30)
    # Not as fast as it can.
    assert len(session.engines.made) < 30


@pytest.mark.parametrize("times", [1, 2, 5])
def test_an_engine_that_refuses_for_a_while_is_waited_for(times: int) -> None:
    session = caption(device(), *[Plan(refuses=broken())] * times)
    assert session.error is None
    assert session.audience.lines == TEXT
    assert len(session.engines.made) == times + 1
    assert State.RECOVERING in session.audience.states


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(
    "plan", [Plan(refuses=RECONFIGURE), Plan(refuses=RECONFIGURE, start_takes=5)]
)
def test_an_engine_that_needs_the_user_ends_it(plan: Plan, live: bool) -> None:
    source = device(endless=True) if live else file_of()
    session = caption(source, plan)
    assert session.error is RECONFIGURE
    assert session.audience.statuses[-1].state is State.FAILED
    assert session.audience.statuses[-1].remedy == "Choose another."
    heard = [(0, session.captioner.position)] if session.captioner.position else []
    assert session.audience.gaps == heard
    assert bool(heard) or not plan.start_takes


def test_patience_has_an_end() -> None:
    session = caption(device(60), then=Plan(refuses=broken()), patience=3)
    assert session.error is not None
    assert len(session.engines.made) == 4


def test_what_was_recognised_before_it_gave_up_is_kept() -> None:
    session = caption(file_of(), Plan(breaks_at=seconds(5.0)), then=Plan(refuses=RECONFIGURE))
    assert session.error is RECONFIGURE
    assert session.audience.lines[0] == TEXT[0]
    assert session.audience.gaps == [(SPEECH[1].start, seconds(LENGTH))]


@pytest.mark.parametrize("plan", [Plan(never_done=True), Plan(babbles=True)])
def test_an_engine_that_never_comes_to_an_end_is_not_waited_for(plan: Plan) -> None:
    session = caption(file_of(), then=plan)
    assert session.took < 60
    assert session.audience.lines == TEXT


def test_a_slow_engine_is_given_its_time_for_the_last_words() -> None:
    session = caption(device(), Plan(speed=0.2), speech=SPEECH)
    assert session.error is None
    assert session.took > 40
    assert session.audience.lines == TEXT
    assert len(session.engines.made) == 1


def test_a_fault_of_ours_is_not_swallowed() -> None:
    class Faulty(ScriptedSource):
        async def events(self) -> AsyncGenerator[Started]:
            yield Started(format=MONO, name="Faulty")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        caption(Faulty([]))


def test_a_fault_of_the_engine_s_own_is_not_swallowed() -> None:
    class Faulty(ScriptedEngine):
        async def events(self) -> AsyncGenerator[EngineEvent]:
            raise ZeroDivisionError
            yield

    async def main() -> None:
        audience = RememberingAudience()
        captioner = Captioner(
            device(endless=True),
            lambda: Faulty((), WELL),
            Captions(Stability.of(0.5)),
            audience,
            chance=lambda: 0.0,
        )
        await captioner.run()

    with pytest.raises(ZeroDivisionError):
        run_virtual(main())


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


# It is stopped.


def test_stopping_a_device_brings_what_it_had_delivered() -> None:
    session = caption(device(60, endless=True), Plan(speed=1.0), meanwhile=stop_at(5.5))
    assert session.error is None
    assert session.audience.lines == [TEXT[0], "it was the worst"]
    assert session.audience.gaps == []
    assert session.took < 8
    assert session.audience.statuses[-1].state is State.ENDED


def test_stopping_a_file_keeps_what_was_handed_over_and_reads_no_more() -> None:
    source = file_of(600)
    speech = numbered([5] * 100)
    session = caption(source, Plan(speed=2.0), speech=speech, meanwhile=stop_at(4.0))
    until = session.engines.made[0].fed[-1].end
    whole = [w.text for s in speech for w in s.words if w.end <= until]
    assert session.error is None
    assert session.audience.words == whole
    assert session.audience.gaps == []
    assert source.told < 600 / 0.08 / 2


@pytest.mark.parametrize("live", [True, False])
def test_a_crash_after_stopping_loses_nothing_that_was_handed_over(live: bool) -> None:
    crash = Plan(speed=1.0, breaks_at=seconds(5.2))
    source = device(60, endless=True) if live else file_of(60)
    session = caption(source, crash, meanwhile=stop_at(5.0 if live else 1.0))
    assert session.error is None
    until = max(chunk.end for chunk in session.engines.made[0].fed)
    whole = [w.text for s in SPEECH for w in s.words if w.end <= until]
    assert session.audience.words == whole
    assert session.audience.gaps == []


@pytest.mark.parametrize(
    "plan",
    [Plan(refuses=broken()), Plan(breaks_at=0), Plan(refuses=broken(), start_takes=20)],
)
def test_an_engine_that_stays_away_does_not_keep_the_user(plan: Plan) -> None:
    session = caption(device(60, endless=True), then=plan, meanwhile=stop_at(20.5))
    assert session.error is not None
    assert session.took < 20.5 + 2 * plan.start_takes + 1
    assert session.audience.gaps[0][0] == 0
    assert session.audience.gaps[-1][1] == session.captioner.position
    assert sum(b - a for a, b in session.audience.gaps) == session.captioner.position


def test_stopping_before_it_runs() -> None:
    async def main() -> None:
        source = file_of()
        session = Session(source, ScriptedEngines(SPEECH))
        await session.captioner.stop()
        await session.run()
        assert session.error is None
        assert session.audience.lines == []

    run_virtual(main())


def test_stopping_twice_and_after_the_end() -> None:
    async def stop(session: Session) -> None:
        await asyncio.sleep(2)
        await asyncio.gather(session.captioner.stop(), session.captioner.stop())
        await asyncio.sleep(30)
        await session.captioner.stop()

    assert caption(device(60, endless=True), meanwhile=stop).error is None


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("plan", [WELL, Plan(start_takes=20), Plan(refuses=broken())])
def test_cancelling_ends_everything_and_marks_what_is_missing(plan: Plan, times: int) -> None:
    session = caption(device(60, endless=True), then=plan, meanwhile=cancel_at(5.5, times=times))
    assert session.took == pytest.approx(5.5, abs=0.1)
    covered = session.audience.gaps[-1] if session.audience.gaps else (0, 0)
    assert covered[1] == session.captioner.position
    before = [w.text for s in SPEECH for w in s.words if w.end <= covered[0]]
    assert session.audience.words[: len(before)] == before


@pytest.mark.parametrize("live", [True, False])
def test_starting_and_stopping_again_and_again_leaves_nothing(live: bool) -> None:
    async def main() -> None:
        captions = Captions(Stability.of(0.5))
        audience = RememberingAudience()
        origin = 0
        for cycle in range(20):
            source = device(60, endless=True) if live else file_of(60)
            engines = ScriptedEngines((), Plan(breaks_at=seconds(0.5 + cycle)))
            captioner = Captioner(
                source, engines, captions, audience, chance=lambda: 0.0, origin=origin
            )
            running = asyncio.create_task(captioner.run())
            await asyncio.sleep(cycle / 10)
            await captioner.stop()
            await running
            origin = captioner.position
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert not source.open
            assert all(engine.stopped for engine in engines.made)

    run_virtual(main())


# Anything may happen.

_FAULTS = st.builds(
    Plan,
    start_takes=st.sampled_from([0.0, 0.0, 0.7, 3.0]),
    refuses=st.sampled_from([None, None, None, broken()]),
    speed=st.sampled_from([0.9, 3.0, 50.0]),
    breaks_at=st.none() | st.integers(0, seconds(40)),
    breaks_after_finals=st.none() | st.integers(1, 4),
    feed_breaks_at=st.none() | st.integers(0, seconds(40)),
)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    pause=st.sampled_from([0.5, 1.0, 2.5]),
    plans=st.lists(_FAULTS, max_size=8),
    live=st.booleans(),
    gaps=st.lists(st.tuples(st.floats(0, 30), st.floats(0.02, 3)), max_size=3),
    stop=st.none() | st.floats(0, 30),
)
def test_no_word_is_lost_or_doubled_without_a_mark(
    lengths: list[int],
    pause: float,
    plans: list[Plan],
    live: bool,
    gaps: list[tuple[float, float]],
    stop: float | None,
) -> None:
    speech = numbered(lengths, pause=pause)
    script = list(sound(speech[-1].end / 16_000 + 0.5, live=live))
    for at, length in gaps:
        place = next((i for i, (time, _) in enumerate(script[1:], 1) if time >= at), len(script))
        if live:
            script.insert(place, (script[place - 1][0], Gap(frames=seconds(length), reason="")))
    source = ScriptedSource(script, live=live)
    session = caption(
        source, *plans, speech=speech, meanwhile=None if stop is None else stop_at(stop)
    )
    wanted = session.captioner.position
    if stop is not None and not live:
        wanted = max((c.end for e in session.engines.made for c in e.fed), default=0)
    words = session.audience.words
    marks = session.audience.gaps
    assert all(a < b <= c for (a, b), (c, _) in zip(marks, marks[1:], strict=False))
    for word in (word for spoken in speech for word in spoken.words):
        count = words.count(word.text)
        marked = any(start < word.end and word.start < end for start, end in marks)
        if word.end <= wanted and not marked:
            assert count == 1, word
        assert count <= 1, word
    order = [int(word.removeprefix("word")) for word in words]
    assert order == sorted(order)
