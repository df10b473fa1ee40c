"""Any faults at any moments: no word is lost or doubled without a mark, and no wait is endless."""

from dataclasses import dataclass
from math import inf

from hypothesis import example, given, settings

from fakes.choices import Choices, made
from fakes.coded_sound import Speech, talk
from fakes.realtime_service import AtOpening, AtSound, Moment, Planned, Service
from fakes.service_faults import FAULTS, ended
from fakes.service_runs import Outcome, run
from fakes.speech import seconds
from surtitle.core.realtime_actions import Limits

_PASSING = [fault for fault in FAULTS if not (fault.for_user or fault.mute)]
# A rut shows only after more than a second of speech without words: not at any moment.
_FOR_USER = [fault for fault in FAULTS if fault.for_user]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A conversation, and what goes wrong during it."""

    utterances: tuple[tuple[float, int], ...]
    faults: tuple[tuple[str, Moment], ...]
    stop: float | None
    stand_in: bool
    renew_after: float | None
    generation: float | None
    context: int | None
    session_limit: float


def _schedule(choose: Choices) -> Schedule:
    at, utterances = 0.0, []
    for _ in range(choose.between(1, 5)):
        at += choose.of((0.6, 1.0, 1.5, 2.5, 5.0))
        count = choose.between(1, 14)
        utterances.append((at, count))
        at += 0.3 * count
    names = [fault.name for fault in _PASSING]
    if choose.seldom(4):
        names += [fault.name for fault in _FOR_USER]
    faults = tuple((choose.of(names), _moment(choose, at)) for _ in range(choose.between(0, 4)))
    return Schedule(
        utterances=tuple(utterances),
        faults=faults,
        stop=at * choose.between(1, 100) / 100 if choose.seldom(4) else None,
        stand_in=choose.seldom(3),
        renew_after=choose.of((None, None, 3.0, 8.0)),
        generation=choose.of((None, None, 2.0, 6.0)),
        context=choose.of((None, None, 400)),  # time for a pause before its end, see test_faults
        session_limit=choose.of((inf, inf, 9.0, 5.0)),
    )


def _moment(choose: Choices, length: float) -> Moment:
    if choose.seldom(4):
        return AtOpening(choose.between(0, 3))
    number = choose.of((None, None, 0, 1, 2))
    return AtSound(seconds(length * choose.between(0, 255) / 255), number)


def perform(schedule: Schedule) -> Outcome:
    speech: Speech = talk(*schedule.utterances)
    service = Service(
        speech,
        context=schedule.context,
        session_limit=schedule.session_limit,
        limit_error=ended,
    )
    faults = {fault.name: fault for fault in FAULTS}
    for name, moment in schedule.faults:
        fault = faults[name]
        opening = isinstance(moment, AtOpening)
        if opening and not fault.openings:
            continue
        service.plans.append(Planned(moment, fault.prepare if opening else fault.strike))
    return run(
        service,
        speech.length + 0.7,
        stop=schedule.stop,
        stand_in=schedule.stand_in,
        renew_after=schedule.renew_after,
        limits=Limits(renew_after=_samples(schedule.generation)),
    )


def _samples(time: float | None) -> int | None:
    return None if time is None else seconds(time)


@example(  # a generation was ended where a word began that no detector had scored yet
    Schedule(
        utterances=((1.5, 2), (3.6, 10), (7.2, 3), (9.1, 1)),
        faults=(("refuse", AtSound(70_776)),),
        stop=None,
        stand_in=False,
        renew_after=None,
        generation=6.0,
        context=None,
        session_limit=inf,
    )
)
@settings(max_examples=4 * settings().max_examples)
@given(made(_schedule, 64))
def test_no_word_is_lost_or_doubled_without_a_mark(schedule: Schedule) -> None:
    outcome = perform(schedule)
    outcome.check()
    if outcome.error is None and not outcome.audience.gaps:
        assert outcome.words == outcome.expected
