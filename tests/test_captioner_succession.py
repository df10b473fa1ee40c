"""One engine session takes over from another: every word once, and nothing left behind."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fakes.captioning import Meanwhile, Session, device, file_of, stop_at
from fakes.engine import WELL, Plan, ScriptedEngine, ScriptedEngines, broken
from fakes.source import ScriptedSource, sound
from fakes.speech import Spoken, numbered, say, seconds
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.captions import Captions
from surtitle.core.errors import Decision, EngineError
from surtitle.core.health import State
from surtitle.core.stability import Stability
from surtitle.relay import Engines

REFUSED = EngineError(
    "The key is refused.", remedy="Check the key.", decision=Decision.RECONFIGURE, field="--url"
)
TALK = numbered([8] * 70)
"""Four minutes of speech: 2.4 s, a pause of 1 s, and so on."""
AWAY, GOES_ON, BACK = (
    "Chosen is away; Other goes on meanwhile.",
    "Other goes on instead.",
    "Chosen is back.",
)


class Succession(Session):
    """A captioner whose engines are `Chosen` and, if it may be, `Other`."""

    def __init__(
        self,
        source: ScriptedSource,
        chosen: ScriptedEngines,
        other: ScriptedEngines | None,
        *,
        renew_after: float | None = None,
        patience: int | None = None,
    ) -> None:
        super().__init__(source, chosen)
        self.chosen = chosen
        self.other = other
        self.captioner = Captioner(
            source,
            Engines(chosen=chosen, stand_in=other, away=4.0, renew_after=renew_after),
            Captions(Stability.of(0.5), keep=10_000),
            self.audience,
            chance=lambda: 0.0,
            keeper=self.keeper,
            patience=patience,
        )

    def check(self) -> None:
        super().check()
        assert all(engine.stopped_at is not None for engine in self.sessions if engine.started)

    @property
    def sessions(self) -> list[ScriptedEngine]:
        return [*self.chosen.made, *(self.other.made if self.other else [])]

    @property
    def served(self) -> list[ScriptedEngine]:
        """The sessions that were given sound, in turn."""
        served = [engine for engine in self.sessions if engine.fed]
        return sorted(served, key=lambda engine: engine.ready_at or 0.0)

    @property
    def named(self) -> list[str]:
        """The engines that the status names, each once where it goes on."""
        names = [status.engine for status in self.audience.statuses]
        return [n for i, n in enumerate(names) if i == 0 or names[i - 1] != n]


def succeed(
    source: ScriptedSource,
    *plans: Plan,
    then: Plan = WELL,
    other: Sequence[Plan] | None = (WELL,),
    speech: Sequence[Spoken] = TALK,
    meanwhile: Meanwhile | None = None,
    renew_after: float | None = None,
    patience: int | None = None,
) -> Succession:
    """Caption with sessions of `Chosen` as planned and, unless it is None, of `Other`.

    Of the other one's plans the last goes on.
    """

    async def main() -> Succession:
        standing_in = None
        if other is not None:
            standing_in = ScriptedEngines(speech, *other[:-1], then=other[-1], name="Other")
        session = Succession(
            source,
            ScriptedEngines(speech, *plans, then=then, name="Chosen"),
            standing_in,
            renew_after=renew_after,
            patience=patience,
        )
        running = asyncio.create_task(session.run())
        if meanwhile is not None:
            await meanwhile(session)
        await asyncio.gather(running, return_exceptions=True)
        if not running.cancelled():
            running.result()
        return session

    return run_virtual(main())


def said(speech: Sequence[Spoken], length: float) -> list[str]:
    return [w.text for s in speech for w in s.words if w.end <= seconds(length)]


def whole(session: Succession, length: float, *, speech: Sequence[Spoken] = TALK) -> None:
    """Every word has come, once, and nothing is lost."""
    assert session.error is None
    assert session.audience.words == said(speech, length)
    assert session.audience.gaps == []
    assert session.audience.statuses[-1].lost == 0


def once_or_marked(session: Succession, speech: Sequence[Spoken], until: int) -> None:
    """No word of the sound before `until` is lost without a mark, doubled or out of order."""
    words = session.audience.words
    marks = session.audience.gaps
    assert all(a < b <= c for (a, b), (c, _) in pairwise(marks))
    for word in (word for spoken in speech for word in spoken.words):
        count = words.count(word.text)
        marked = any(start < word.end and word.start < end for start, end in marks)
        if word.end <= until and not marked:
            assert count == 1, word
        assert count <= 1, word
    order = [int(word.removeprefix("word")) for word in words]
    assert order == sorted(order)


# Another engine stands in.


@pytest.mark.parametrize("live", [True, False])
def test_another_engine_speaks_when_the_chosen_one_does_not_start(*, live: bool) -> None:
    source = device(20) if live else file_of(20)
    session = succeed(source, Plan(start_takes=60), speech=TALK[:5])
    whole(session, 20, speech=TALK[:5])
    assert session.other is not None
    (other,) = session.other.made
    assert other.ready_at == pytest.approx(4.0)
    assert session.audience.notices == [AWAY]
    assert session.named == ["Chosen", "Other"]
    assert session.took < 25


def test_the_chosen_one_takes_over_when_it_is_back() -> None:
    session = succeed(device(60), Plan(start_takes=21.0))
    whole(session, 60)
    assert [engine.name for engine in session.served] == ["Other", "Chosen"]
    assert session.named == ["Chosen", "Other", "Chosen"]
    assert session.audience.notices == [AWAY, BACK]
    other, chosen = session.served
    assert chosen.fed[0].start == other.settled, "from where the other one was done"
    assert any(abs(chosen.fed[0].start - spoken.end) < seconds(3.5) for spoken in TALK)


def test_nobody_is_told_of_an_engine_that_is_away_for_a_moment() -> None:
    session = succeed(device(60), Plan(breaks_at=seconds(20)), *[Plan(refuses=broken())] * 3)
    whole(session, 60)
    assert session.audience.notices == []
    assert session.audience.statuses[-1].breaks == 1


@pytest.mark.parametrize(
    "flap",
    [Plan(breaks_at=0), Plan(feed_breaks_at=0), Plan(ends_at=0), Plan(refuses=broken())],
)
@pytest.mark.parametrize("first", [WELL, Plan(breaks_at=seconds(20))])
def test_an_engine_that_comes_and_goes_is_no_storm(flap: Plan, first: Plan) -> None:
    session = succeed(device(100), *([first] if first is not WELL else []), then=flap)
    whole(session, 100)
    starts = sorted(engine.ready_at for engine in session.chosen.made if engine.ready_at)
    for begin in starts:
        assert sum(begin <= start < begin + 60 for start in starts) <= 13
    assert len(session.chosen.made) <= 20
    assert session.audience.notices == [AWAY], "not each time"


@pytest.mark.parametrize("other", [None, (WELL,)])
@pytest.mark.parametrize(
    "plans",
    [
        [Plan(breaks_at=0), WELL, Plan(feed_breaks_at=0)],
        # That it was given no sound speaks for the sound, which two others break on.
        [Plan(feed_breaks_at=0), Plan(breaks_at=0), Plan(breaks_at=0)],
    ],
)
def test_a_successor_that_breaks_at_once(
    plans: Sequence[Plan], other: Sequence[Plan] | None
) -> None:
    session = succeed(device(60), WELL, *plans, other=other, renew_after=12)
    whole(session, 60)
    assert session.audience.notices == []


@pytest.mark.parametrize(
    ("plan", "live"),
    [
        (Plan(refuses=REFUSED), True),
        (Plan(refuses=REFUSED), False),
        (Plan(refuses=REFUSED, start_takes=2), True),
        (Plan(refuses=REFUSED, start_takes=7), True),
        (Plan(breaks_at=seconds(30), breaks_with=REFUSED), True),
        (Plan(breaks_at=seconds(30), breaks_with=REFUSED), False),
    ],
)
def test_what_needs_the_user_is_told_once_and_the_other_engine_goes_on(
    plan: Plan, *, live: bool
) -> None:
    session = succeed(device(60) if live else file_of(60), plan)
    whole(session, 60)
    assert session.audience.notices.count(str(REFUSED)) == 1
    assert len(session.audience.notices) == 2
    assert sum(engine.started for engine in session.chosen.made) == 1
    assert session.named[-1] == "Other"


def test_what_needs_the_user_ends_it_where_no_other_engine_may_go_on() -> None:
    session = succeed(device(60), Plan(breaks_at=seconds(30), breaks_with=REFUSED), other=None)
    assert session.error is REFUSED
    assert session.audience.statuses[-1].state is State.FAILED
    assert session.audience.statuses[-1].remedy == "Check the key."
    assert session.audience.notices == []


def test_sound_that_breaks_the_chosen_one_is_heard_by_the_other() -> None:
    poison = Plan(breaks_at=seconds(30))
    session = succeed(device(60), *[poison] * 6)
    whole(session, 60)


def test_sound_that_breaks_both_is_passed_over() -> None:
    poison = Plan(breaks_at=seconds(30))
    session = succeed(device(90), *[poison] * 8, other=[*[poison] * 3, WELL])
    assert session.error is None
    ((start, end),) = session.audience.gaps
    assert start < seconds(30) < end < start + seconds(20)
    once_or_marked(session, TALK, seconds(90))


@pytest.mark.parametrize("other", [Plan(refuses=REFUSED), Plan(breaks_at=0, breaks_with=REFUSED)])
def test_another_engine_that_cannot_go_on_leaves_it_to_the_chosen_one(other: Plan) -> None:
    session = succeed(device(60), *[Plan(refuses=broken())] * 7, other=[other])
    whole(session, 60)
    assert session.audience.notices == [AWAY, str(REFUSED), BACK]
    assert session.named[-1] == "Chosen"


def test_both_refused() -> None:
    session = succeed(
        device(60),
        Plan(refuses=broken()),
        then=Plan(refuses=REFUSED),
        other=[Plan(refuses=REFUSED)],
    )
    assert session.error is REFUSED
    assert session.audience.gaps[-1][1] == session.captioner.position


@pytest.mark.parametrize("stop", [5, 33, 90])
@pytest.mark.parametrize("takes", [0, 3])
def test_both_away_until_the_user_stops(stop: float, takes: float) -> None:
    dead = Plan(refuses=broken(), start_takes=takes)
    session = succeed(device(100), then=dead, other=[dead], meanwhile=stop_at(stop))
    assert session.error is not None
    assert session.took <= stop + 2 * takes + 0.5
    assert session.audience.gaps == [(0, session.captioner.position)]
    assert sum(engine.started for engine in session.sessions) < 12 + stop / 2


def test_both_away_after_the_sound_has_ended() -> None:
    dead = Plan(refuses=broken())
    session = succeed(device(10), then=dead, other=[dead])
    assert session.error is not None
    assert session.took < 60
    assert session.audience.gaps == [(0, seconds(10))]


@pytest.mark.parametrize("patience", [0, 3])
def test_whoever_has_no_patience_has_the_other_engine_all_the_same(patience: int) -> None:
    session = succeed(file_of(60), Plan(breaks_at=seconds(20)), then=Plan(breaks_at=0),
                      patience=patience)  # fmt: skip
    whole(session, 60)
    assert session.named[-1] == "Other"


def test_failures_of_the_one_do_not_speak_against_the_other() -> None:
    session = succeed(
        device(30),
        *[Plan(breaks_at=0)] * 3,
        then=Plan(start_takes=600),
        other=[*[Plan(breaks_at=0)] * 2, WELL],
        patience=3,
    )
    whole(session, 30)
    assert session.audience.notices == [AWAY]


def test_the_sound_ends_while_the_chosen_one_is_sought() -> None:
    session = succeed(device(30), Plan(breaks_at=seconds(20)), then=Plan(start_takes=600))
    whole(session, 30)
    assert session.took < 36


def test_flapping_after_the_end_comes_to_an_end() -> None:
    """However slowly the other one gets on, the chosen one does not take over for ever."""
    session = succeed(
        device(60), Plan(breaks_at=seconds(58)), then=Plan(breaks_at=0), other=[Plan(speed=0.1)]
    )
    whole(session, 60)
    assert session.took < 400


# One is there before the other goes.


def alive_at_once(engines: Sequence[ScriptedEngine]) -> int:
    times = [(e.ready_at, 1) for e in engines if e.ready_at is not None]
    times += [(e.stopped_at, -1) for e in engines if e.ready_at is not None and e.stopped_at]
    count = most = 0
    for _, change in sorted(times):
        count += change
        most = max(most, count)
    return most


@pytest.mark.parametrize(
    ("plan", "other"),
    [(WELL, None), (Plan(stop_takes=2.0), (WELL,)), (Plan(start_takes=1.5, speed=1.5), None)],
)
def test_twenty_sessions_in_turn_and_every_word_once(
    plan: Plan, other: Sequence[Plan] | None
) -> None:
    session = succeed(device(100), then=plan, other=other, renew_after=1.0)
    whole(session, 100)
    assert len(session.served) > 20
    assert session.audience.notices == []
    assert State.RECOVERING not in session.audience.states
    assert session.audience.statuses[-1].breaks == 0
    assert all(engine.name == "Chosen" for engine in session.served)
    for one, following in pairwise(session.served):
        assert following.fed[0].start == one.settled, "no settled sound is heard twice"
        assert one.stopped_at is not None
        assert following.ready_at is not None
        # At the next pause: an utterance takes 2.4 s, a pause 1 s.
        assert one.stopped_at - following.ready_at <= 4.5 + plan.stop_takes
    assert alive_at_once(session.sessions) <= 2 + (plan.stop_takes > 0)


def test_a_session_is_renewed_while_nobody_speaks() -> None:
    session = succeed(device(100), speech=(), other=None, renew_after=10)
    assert session.error is None
    assert len(session.served) == 10


@pytest.mark.parametrize("plan", [WELL, Plan(silent_progress=True)])
def test_a_session_is_renewed_between_two_utterances_only(plan: Plan) -> None:
    speech = [say(" ".join(f"word{n}" for n in range(130)), at=1.0),
              say(" ".join(f"word{n}" for n in range(130, 150)), at=43.0)]  # fmt: skip
    session = succeed(device(60), then=plan, speech=speech, other=None, renew_after=10)
    whole(session, 60, speech=speech)
    assert session.audience.lines == [spoken.text for spoken in speech]
    assert session.served[1].fed[0].start >= speech[0].end


@pytest.mark.parametrize("other", [None, (WELL,)])
@pytest.mark.parametrize("late", [[Plan(start_takes=600)], [Plan(refuses=broken())] * 5])
def test_a_service_s_own_limit_comes_before_the_successor(
    late: Sequence[Plan], other: Sequence[Plan] | None
) -> None:
    session = succeed(device(60), Plan(breaks_at=seconds(30)), *late, other=other, renew_after=27)
    whole(session, 60)
    assert session.audience.statuses[-1].breaks >= 1
    assert session.took < 65


def test_a_successor_that_is_ready_is_there_when_the_session_breaks() -> None:
    speech = [say(" ".join(f"word{n}" for n in range(150)), at=1.0)]
    session = succeed(
        device(60), Plan(breaks_at=seconds(30)), Plan(start_takes=5), speech=speech, renew_after=10
    )
    whole(session, 60, speech=speech)
    assert session.chosen.made[1] is session.served[1]
    assert session.served[1].ready_at == pytest.approx(15)
    assert session.audience.statuses[-1].breaks == 1
    assert session.audience.notices == []


def test_a_successor_that_is_refused_changes_nothing_until_it_is_needed() -> None:
    session = succeed(device(60), WELL, then=Plan(refuses=REFUSED), other=None, renew_after=20)
    whole(session, 60)
    assert session.audience.notices == [str(REFUSED)]


def test_the_sound_ends_while_a_successor_is_ready() -> None:
    speech = [say(" ".join(f"word{n}" for n in range(60)), at=1.0)]
    session = succeed(device(15), speech=speech, other=None, renew_after=10)
    assert session.error is None
    assert session.audience.words == said(speech, 15)
    assert len(session.chosen.made) == 2
    assert len(session.served) == 1


# The user ends it.


def cancel_at(time: float) -> Meanwhile:
    async def cancel(_: Session) -> None:
        await asyncio.sleep(time)
        (running,) = (t for t in asyncio.all_tasks() if "Session.run" in str(t.get_coro()))
        running.cancel()
        await asyncio.wait([running], timeout=60)
        assert running.done()

    return cancel


PHASES = {
    "the first session starts": ([Plan(start_takes=60)], 2.0),
    "the other one starts": ([Plan(start_takes=60)], 4.5),
    "the other one speaks": ([Plan(start_takes=60)], 9.0),
    "the chosen one is sought again": ([Plan(breaks_at=seconds(5)), Plan(start_takes=60)], 7.0),
    "between two attempts": ([Plan(breaks_at=seconds(5)), *[Plan(refuses=broken())] * 9], 14.0),
    "the chosen one waits for a pause": ([Plan(start_takes=8.0)], 8.3),
    "a successor starts": ([WELL, Plan(start_takes=5)], 12.0),
    "a successor waits for a pause": ([WELL, WELL], 10.5),
    "a successor has taken over": ([WELL, WELL], 14.0),
    "the old one is on its way out": ([Plan(stop_takes=1.5), WELL], 12.5),
    "everything has broken": ([Plan(breaks_at=seconds(3)), Plan(breaks_at=0)], 3.5),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("off", [-0.3, 0.0, 0.6])
@pytest.mark.parametrize("slow", [0.0, 1.5])
def test_stopping_in_every_phase(phase: str, off: float, slow: float) -> None:
    plans, time = PHASES[phase]
    session = succeed(
        device(16, endless=True),
        *plans,
        other=[Plan(start_takes=slow, stop_takes=slow)],
        renew_after=10,
        meanwhile=stop_at(time + off),
    )
    assert session.error is None
    assert session.took <= time + off + 4 + 3 * slow + 3
    assert session.audience.words == said(TALK, session.captioner.position / 16_000)
    assert session.audience.gaps == []


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("off", [-0.3, 0.0, 0.6])
@pytest.mark.parametrize("slow", [0.0, 1.5])
def test_cancelling_in_every_phase(phase: str, off: float, slow: float) -> None:
    plans, time = PHASES[phase]
    session = succeed(
        device(16, endless=True),
        *plans,
        other=[Plan(start_takes=slow, stop_takes=slow)],
        renew_after=10,
        meanwhile=cancel_at(time + off),
    )
    assert session.took <= time + off + slow + 2
    position = session.captioner.position
    settled = position if not session.audience.gaps else session.audience.gaps[0][0]
    assert session.audience.words[: len(said(TALK, settled / 16_000))] == said(
        TALK, settled / 16_000
    )
    assert not session.audience.gaps or session.audience.gaps[-1][1] == position


# What is live counts for more.


def test_an_engine_that_is_too_slow_skips_to_what_is_live() -> None:
    session = succeed(device(300), then=Plan(speed=0.3), other=None, speech=TALK)
    assert session.error is None
    gaps = session.audience.gaps
    assert len(gaps) >= 3
    assert all(seconds(40) < end - start < seconds(50) for start, end in gaps)
    once_or_marked(session, TALK, seconds(300))
    assert max(status.behind for status in session.audience.statuses) < 75
    lost = session.audience.statuses[-1].lost
    assert lost == pytest.approx(sum(end - start for start, end in gaps) / 16_000)


def test_a_file_is_never_short_of_sound() -> None:
    session = succeed(file_of(150), then=Plan(speed=0.3), other=None)
    whole(session, 150)


def test_what_was_live_when_it_ended_is_heard_to_the_end() -> None:
    """Nothing more comes, so there is nothing to catch up with."""
    session = succeed(device(70), then=Plan(start_takes=90), other=None)
    whole(session, 70)


def test_a_chosen_engine_that_was_away_too_long_hears_what_is_live() -> None:
    session = succeed(device(150), Plan(start_takes=100), other=None)
    assert session.error is None
    ((start, end),) = session.audience.gaps
    assert start == 0
    assert end == pytest.approx(seconds(85), abs=seconds(0.2))
    words = [w.text for s in TALK for w in s.words if end <= w.start and w.end <= seconds(150)]
    assert session.audience.words == words


# Anything may happen.

_PLANS = st.builds(
    Plan,
    start_takes=st.sampled_from([0.0, 0.0, 0.7, 3.0, 6.0, 60.0]),
    stop_takes=st.sampled_from([0.0, 0.0, 1.5]),
    refuses=st.sampled_from([None, None, None, broken(), REFUSED]),
    speed=st.sampled_from([0.9, 3.0, 50.0]),
    breaks_at=st.none() | st.integers(0, seconds(60)),
    breaks_with=st.sampled_from([None, None, None, REFUSED]),
    breaks_after_finals=st.none() | st.integers(1, 4),
    feed_breaks_at=st.none() | st.integers(0, seconds(60)),
    silent_progress=st.booleans(),
)


@example(
    lengths=[1, 1, 3, 1, 1, 3, 20],
    pause=0.5,
    chosen=[
        Plan(speed=0.9, feed_breaks_at=212_480, silent_progress=True),
        Plan(speed=0.9, refuses=REFUSED),
    ],
    other=None,
    renew_after=None,
    patience=None,
    live=False,
    stop=None,
)
@settings(max_examples=4 * settings().max_examples, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=10),
    pause=st.sampled_from([0.5, 1.0, 2.5]),
    chosen=st.lists(_PLANS, max_size=8),
    other=st.none() | st.lists(_PLANS, min_size=1, max_size=5),
    renew_after=st.none() | st.sampled_from([2.0, 7.0]),
    patience=st.none() | st.integers(0, 4),
    live=st.booleans(),
    stop=st.none() | st.floats(0, 40),
)
def test_no_word_is_lost_or_doubled_without_a_mark(
    *,
    lengths: list[int],
    pause: float,
    chosen: list[Plan],
    other: list[Plan] | None,
    renew_after: float | None,
    patience: int | None,
    live: bool,
    stop: float | None,
) -> None:
    speech = numbered(lengths, pause=pause)
    script = list(sound(speech[-1].end / 16_000 + 0.5, live=live))
    session = succeed(
        ScriptedSource(script, live=live),
        *chosen,
        other=None if other is None else [*other, WELL],
        speech=speech,
        renew_after=renew_after,
        patience=patience,
        meanwhile=None if stop is None else stop_at(stop),
    )
    wanted = session.captioner.position
    if stop is not None and not live:
        wanted = max((c.end for engine in session.sessions for c in engine.fed), default=0)
    once_or_marked(session, speech, wanted)
    assert len(session.audience.notices) <= 12
    assert session.took < 1000
