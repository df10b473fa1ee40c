"""Every fault of a speech service in every situation: the text is that of a run without it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum, auto
from statistics import quantiles

import pytest

from fakes.coded_sound import Speech, talk
from fakes.realtime_service import AtEnd, AtOpening, AtSound, Connection, Planned, Service
from fakes.service_faults import FAULTS, Fault, ended
from fakes.service_runs import Outcome, run
from fakes.speech import seconds
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.errors import Decision
from surtitle.core.health import State
from surtitle.core.realtime_actions import Limits

BEGINNING = ((0.8, 5), (3.3, 9), (7.0, 5))
SHORT = talk(*BEGINNING, (11.2, 4))
LONG = talk(*BEGINNING, (11.2, 12), (15.8, 12), (20.4, 10))
TALKATIVE = talk(*BEGINNING, (11.2, 20), (18.0, 20), (25.0, 20), (32.0, 20))


class Situation(StrEnum):
    """When it happens."""

    IDLE = auto()
    IN_WORD = auto()
    PAUSE = auto()
    REPLAYING = auto()
    ROTATING = auto()
    """While the next session is being opened."""
    ROTATED = auto()
    """To that session, at its first sound."""
    QUITTING = auto()


_PLACES = {
    Situation.IDLE: seconds(10.0),
    Situation.IN_WORD: seconds(4.9),
    # The last word is over, and its text is not out.
    Situation.PAUSE: seconds(6.1),
}
_ROTATES_AFTER = 4.0
_STOP = 4.9


@dataclass(slots=True)
class Ledger:
    """What the whole matrix shows."""

    cases: int = 0
    lost: int = 0
    doubled: int = 0
    marked: int = 0
    """Cases with a gap mark, or an error in the end."""
    dead: list[tuple[float, str]] = field(default_factory=list)
    recoveries: list[tuple[float, str]] = field(default_factory=list)

    def note(self, outcome: Outcome, name: str) -> None:
        """Add a case."""
        self.cases += 1
        self.lost += len(outcome.lost)
        self.doubled += len(outcome.doubled)
        self.marked += bool(outcome.audience.gaps)
        self.dead.append((outcome.dead, name))
        if (recovery := outcome.recovery) is not None:
            self.recoveries.append((recovery, name))


LEDGER = Ledger()
ALL = len(Situation) * sum(2 if fault.for_user else 1 for fault in FAULTS)


def perform(fault: Fault, situation: Situation, *, stand_in: bool = False) -> Outcome:
    speech, length = _speech(fault)
    service = Service(speech)
    service.plans += _plans(service, fault, situation)
    rotates = situation in (Situation.ROTATING, Situation.ROTATED)
    outcome = run(
        service,
        length,
        stop=_STOP if situation is Situation.QUITTING else None,
        stand_in=stand_in,
        renew_after=_ROTATES_AFTER if rotates else None,
        limits=Limits(renew_after=seconds(2.0)) if fault.name.endswith("-done") else None,
    )
    assert not service.plans, "it did not happen"
    outcome.check()
    return outcome


def _speech(fault: Fault) -> tuple[Speech, float]:
    if fault.mute:
        return TALKATIVE, 38.5
    return (LONG, 24.0) if fault.hidden else (SHORT, 13.1)


def _plans(service: Service, fault: Fault, situation: Situation) -> list[Planned]:  # noqa: PLR0911 - one for each
    match situation:
        case Situation.REPLAYING:
            return [
                Planned(AtSound(_PLACES[Situation.IN_WORD], 0), Connection.reset),
                Planned(AtSound(seconds(3.8), 1), fault.strike),
            ]
        case Situation.ROTATING if fault.openings:
            return [Planned(AtOpening(1), fault.prepare)]
        case Situation.ROTATING:
            return [Planned(AtOpening(1), lambda _: fault.strike(service.connections[0]))]
        case Situation.ROTATED:
            return [Planned(AtSound(0, 1), fault.strike)]
        case Situation.QUITTING if fault.mute:
            # A rut that has just begun cannot be told from a cough.
            return [Planned(AtSound(seconds(3.2), 0), fault.strike)]
        case Situation.QUITTING:
            return [Planned(AtEnd(), fault.strike)]
        case Situation.PAUSE if fault.mute:
            # Nor can one in which a single word is lost.
            return [Planned(AtSound(seconds(6.6), 0), fault.strike)]
    return [Planned(AtSound(_PLACES[situation], 0), fault.strike)]


def named(fault: Fault) -> str:
    return fault.name


@pytest.mark.parametrize("situation", Situation)
@pytest.mark.parametrize("fault", [f for f in FAULTS if not f.for_user], ids=named)
def test_the_text_is_that_of_a_run_without_the_fault(fault: Fault, situation: Situation) -> None:
    outcome = perform(fault, situation)
    LEDGER.note(outcome, f"{fault.name}/{situation}")
    if outcome.error is not None:
        # After `stop` one more try is made, not two: then what is missing has its mark.
        assert situation is Situation.QUITTING
        assert fault.openings or fault.name == "busy-for-long"
        assert marked_to_the_end(outcome)
    else:
        assert outcome.words == outcome.expected
        assert outcome.audience.gaps == []


@pytest.mark.parametrize("situation", Situation)
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.for_user], ids=named)
def test_what_only_the_user_can_put_right_ends_it_with_the_sentence(
    fault: Fault, situation: Situation
) -> None:
    outcome = perform(fault, situation)
    LEDGER.note(outcome, f"{fault.name}/{situation}/alone")
    if situation is Situation.ROTATING and fault.openings and not fault.openings[0].no_model:
        # The old session still works. (That there is no such model shows only afterwards.)
        assert outcome.error is None
        assert outcome.words == outcome.expected
        assert len(outcome.audience.notices) == 1
        return
    assert outcome.error is not None
    assert outcome.error.decision is Decision.RECONFIGURE
    assert outcome.error.remedy
    assert marked_to_the_end(outcome)


@pytest.mark.parametrize("situation", Situation)
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.for_user], ids=named)
def test_another_engine_goes_on_where_only_the_user_can_put_it_right(
    fault: Fault, situation: Situation
) -> None:
    outcome = perform(fault, situation, stand_in=True)
    LEDGER.note(outcome, f"{fault.name}/{situation}/stand-in")
    assert outcome.error is None
    assert outcome.words == outcome.expected
    assert outcome.audience.gaps == []


def marked_to_the_end(outcome: Outcome) -> bool:
    """Whether one mark stands for all that follows the last word, and for nothing else."""
    ((start, end),) = outcome.audience.gaps
    last = max((w.end for w in outcome.speech.words if w.text in set(outcome.words)), default=0)
    under = [w for w in outcome.speech.words if w.end <= outcome.position and w.end > last]
    return end == outcome.position and start <= (under[0].start if under else end)


def test_the_matrix_as_a_whole() -> None:
    if LEDGER.cases < ALL:
        pytest.skip("only with all cases in the same run")
    dead, recoveries = sorted(LEDGER.dead), sorted(LEDGER.recoveries)
    recovery = quantiles([time for time, _ in recoveries], n=20)[-1]
    print(  # noqa: T201 - wanted with -s
        f"\n{LEDGER.cases} cases, {LEDGER.lost} words lost, {LEDGER.doubled} doubled,"
        f" {LEDGER.marked} cases with a gap mark;"
        f" longest unannounced dead time {dead[-1][0]:.2f} s ({dead[-1][1]});"
        f" recovery p95 {recovery:.2f} s of {len(recoveries)}, worst {recoveries[-1]}"
    )
    assert LEDGER.lost == LEDGER.doubled == 0
    assert dead[-1][0] <= 5.0
    assert recovery <= 3.0


# Longer stories than one fault.


def test_the_other_engine_goes_on_while_the_service_is_away_and_it_takes_over_again() -> None:
    speech = talk(*((1.0 + 4.2 * i, 10) for i in range(12)))
    service = Service(speech)

    def away(connection: Connection) -> None:
        service.refuses_until = 25.0
        connection.reset()

    service.plans.append(Planned(AtSound(seconds(10.0)), away))
    outcome = run(service, 52.0, stand_in=True)
    outcome.check()
    assert outcome.error is None
    assert outcome.words == outcome.expected
    assert outcome.audience.gaps == []
    assert len(outcome.stand_ins) == 1
    assert [text for text in outcome.audience.notices if "meanwhile" in text or "back" in text] == [
        "Voxtral is away; Scripted goes on meanwhile.",
        "Voxtral is back.",
    ]
    assert outcome.dead <= 5.0


def test_a_service_that_is_away_for_two_minutes_costs_what_is_said_but_marks_it() -> None:
    speech = talk(*((1.0 + 4.2 * i, 10) for i in range(40)))
    service = Service(speech)

    def away(connection: Connection) -> None:
        service.refuses_until = 130.0
        connection.reset()

    service.plans.append(Planned(AtSound(seconds(10.0)), away))
    outcome = run(service, 170.0)
    outcome.check()
    assert outcome.error is None
    ((start, end),) = outcome.audience.gaps
    missing = [w for w in speech.words if w.text not in set(outcome.words)]
    assert start <= missing[0].start
    assert missing[-1].end <= end
    # What is live counts for more: the newest quarter of a minute is heard.
    assert end <= seconds(130.0)
    assert outcome.dead <= 5.0


HOURS = float(os.environ.get("SURTITLE_HAUL_HOURS", "0.25"))
"""How long the long haul is; 3 is what it must stand."""


def test_the_long_haul_loses_no_word_and_keeps_nothing() -> None:
    speech = talk(*_for_hours(HOURS))
    service = Service(speech, context=39 + 3_750, session_limit=120.0, limit_error=ended)
    outcome = run(service, speech.length + 2.0, renew_after=90.0, watched=True)
    outcome.check()
    print(  # noqa: T201 - wanted with -s
        f"\n{HOURS} h, {len(outcome.words)} words, {len(service.connections)} connections,"
        f" at most {outcome.open} at once; kept at most {outcome.buffered / SAMPLE_RATE:.1f} s"
        f" for replay, {outcome.shelved / SAMPLE_RATE:.1f} s in a client, {outcome.told} events;"
        f" longest unannounced dead time {outcome.dead:.2f} s"
    )
    assert outcome.error is None
    assert outcome.words == outcome.expected
    assert outcome.audience.gaps == []
    assert State.RECOVERING not in outcome.audience.states, "each session is replaced in time"
    assert outcome.open <= 2
    assert outcome.buffered <= 15 * SAMPLE_RATE
    assert outcome.shelved <= 15 * SAMPLE_RATE
    assert outcome.told <= 20
    assert outcome.dead <= 5.0


def test_a_context_of_a_quarter_of_a_minute_and_no_pauses_for_long() -> None:
    speech = talk((1.0, 30), (11.2, 60), (30.5, 10), (34.6, 45))
    service = Service(speech, context=39 + 190)
    outcome = run(service, speech.length + 2.0)
    outcome.check()
    assert outcome.error is None
    assert outcome.words == outcome.expected
    assert outcome.audience.gaps == []


def _for_hours(hours: float) -> Iterator[tuple[float, int]]:
    at, number = 0.0, 0
    while at < hours * 3_600:
        count = 3 + number * 7 % 19
        yield at + 1.0, count
        at += 0.3 * count + (1.2, 2.0, 1.4, 6.0)[number % 4]
        number += 1
