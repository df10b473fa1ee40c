"""The engine breaks: no word is lost, doubled or out of order without a mark."""

from collections.abc import AsyncGenerator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.audience import RememberingAudience
from fakes.captioning import LENGTH, SPEECH, TEXT, caption, device, file_of, stop_at
from fakes.engine import WELL, Plan, ScriptedEngine, broken
from fakes.source import MONO, ScriptedSource, sound
from fakes.speech import numbered, say, seconds
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.audio import Gap, Started
from surtitle.core.captions import Captions
from surtitle.core.errors import Decision, EngineError
from surtitle.core.health import State
from surtitle.core.speech import EngineEvent
from surtitle.core.stability import Stability

RECONFIGURE = EngineError(
    "There is no such model.", remedy="Choose another.", decision=Decision.RECONFIGURE
)


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("at", [0.0, 0.9, 1.6, 2.5, 3.1, 4.0, 5.7, 6.3, 9.9])
@pytest.mark.parametrize("way", ["events", "feed"])
def test_a_crash_changes_no_word(at: float, way: str, *, live: bool) -> None:
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


def test_sound_that_no_session_took_is_not_passed_over() -> None:
    session = caption(device(), *[Plan(feed_breaks_at=0)] * 5)
    assert session.audience.lines == TEXT
    assert session.audience.gaps == []


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
def test_an_engine_that_needs_the_user_ends_it(plan: Plan, *, live: bool) -> None:
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
            async for event in super().events():
                yield event
                raise ZeroDivisionError

    async def main() -> None:
        await Captioner(
            device(endless=True),
            lambda: Faulty((), WELL),
            Captions(Stability.of(0.5)),
            RememberingAudience(),
            chance=lambda: 0.0,
        ).run()

    with pytest.raises(ZeroDivisionError):
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
    *,
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
    assert all(a < b <= c for (a, b), (c, _) in pairwise(marks))
    for word in (word for spoken in speech for word in spoken.words):
        count = words.count(word.text)
        marked = any(start < word.end and word.start < end for start, end in marks)
        if word.end <= wanted and not marked:
            assert count == 1, word
        assert count <= 1, word
    order = [int(word.removeprefix("word")) for word in words]
    assert order == sorted(order)
