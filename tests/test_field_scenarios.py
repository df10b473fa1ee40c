"""What other programs were reported to do wrong with a speech service: ours in their place."""

import asyncio
from collections import deque
from itertools import pairwise

import pytest

from fakes.coded_sound import CodedSound, Speech, talk
from fakes.keeper import RememberingKeeper
from fakes.realtime_service import (
    AtOpening,
    AtSound,
    Connection,
    Moment,
    Opening,
    Planned,
    Service,
)
from fakes.service_faults import ended, unreachable
from fakes.service_runs import Outcome, TimedAudience, run
from fakes.source import ScriptedSource
from fakes.speech import seconds
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.audio import SAMPLE_RATE, Block, Gap, Lost, SourceEvent
from surtitle.core.captions import Captions
from surtitle.core.errors import SourceError
from surtitle.core.health import State
from surtitle.core.realtime_actions import Limits
from surtitle.core.realtime_messages import Append, Delta, Failure, Sendable, decode_client
from surtitle.core.stability import Stability
from surtitle.engines.realtime import RealtimeEngine

TALK = talk((1.5, 6), (4.5, 10), (8.7, 8), (14.1, 12), (19.0, 15), (25.0, 20))
LENGTH = 32.0
TOLD = {State.DELAYED, State.RECOVERING, State.NO_SOUND, State.FAILED}


class Meter(Connection):
    """Notes when it was opened and when which sound came."""

    opened_at: float | None = None

    def __init__(self, service: Service, number: int) -> None:
        super().__init__(service, number)
        self.came: list[tuple[float, int]] = []

    async def open(self) -> None:
        await super().open()
        self.opened_at = asyncio.get_running_loop().time()

    async def send(self, frame: str) -> None:
        await super().send(frame)
        message = decode_client(frame)
        assert not isinstance(message, Failure), "nothing that vLLM does not take"
        if isinstance(message, Append):
            self.came.append((asyncio.get_running_loop().time(), len(message.audio) // 2))


class Metered(Service):
    """Its connections are meters."""

    def __init__(self, speech: Speech) -> None:
        super().__init__(speech)
        self.meters: list[Meter] = []

    def __call__(self) -> Connection:
        meter = Meter(self, len(self.connections))
        self.connections.append(meter)
        self.meters.append(meter)
        return meter


class Poisoned(Service):
    """Whoever is sent the sound at `place` never says anything again."""

    def __init__(self, speech: Speech, place: int) -> None:
        super().__init__(speech)
        self.place = place
        self.swallowed = 0

    def happen(self, moment: Moment, connection: Connection) -> None:
        super().happen(moment, connection)
        if isinstance(moment, AtSound) and 0 <= self.place - moment.position < moment.samples:
            self.swallowed += 1
            connection.silent = connection.faulty = True


def whole(outcome: Outcome) -> None:
    outcome.check()
    assert outcome.error is None
    assert outcome.words == outcome.expected
    assert outcome.audience.gaps == []


class Grumbler(Connection):
    """Sends one error after the other as soon as it has heard enough."""

    grumbled = 0

    async def send(self, frame: str) -> None:
        await super().send(frame)
        if isinstance(decode_client(frame), Append) and self.tokens > 80:
            for _ in range(50):
                self._tell(Failure(error="Invalid audio data", code="invalid_audio"))
            self.grumbled += 50


class Grumbling(Service):
    """Its first connection grumbles."""

    @property
    def grumbled(self) -> int:
        return sum(c.grumbled for c in self.connections if isinstance(c, Grumbler))

    def __call__(self) -> Connection:
        if self.connections:
            return super().__call__()
        self.connections.append(Grumbler(self, 0))
        return self.connections[0]


class Lumpy(Connection):
    """Tells its words every 5 s, all at once, and at the end: its deltas are no clock."""

    def __init__(self, service: Service, number: int) -> None:
        super().__init__(service, number)
        self._lump: list[str] = []

    def _tell(self, message: Sendable) -> None:
        if isinstance(message, Delta):
            self._lump.append(message.delta)
            if len(self._lump) < 62:
                return
        if self._lump:
            super()._tell(Delta(delta="".join(self._lump)))
            self._lump = []
        if not isinstance(message, Delta):
            super()._tell(message)


class OfLumps(Service):
    """Its connections are lumpy."""

    def __call__(self) -> Connection:
        self.connections.append(Lumpy(self, len(self.connections)))
        return self.connections[-1]


# Section 6 of protocol.md; the numbers are its rows.


def test_1_silence_is_sent_like_anything_else() -> None:
    service = Metered(talk((1.5, 4), (75.0, 4)))
    whole(run(service, 80.0))
    (meter,) = service.meters
    times = [time for time, _ in meter.came]
    assert max(b - a for a, b in pairwise(times)) < 1.0
    assert sum(samples for _, samples in meter.came) >= seconds(80.0)


def listened(
    service: Service,
    events: list[tuple[float, SourceEvent]],
    *,
    engines: list[RealtimeEngine] | None = None,
    limits: Limits | None = None,
) -> TimedAudience:
    """Caption what a device tells when."""
    audience = TimedAudience()
    made = [] if engines is None else engines

    def engine() -> RealtimeEngine:
        score = service.speech.score
        made.append(
            RealtimeEngine(service(), lambda: score, model="voxtral", name="Voxtral", limits=limits)
        )
        return made[-1]

    async def main() -> None:
        captioner = Captioner(
            ScriptedSource(events, live=True),
            engine,
            Captions(Stability.of(0.5), keep=10_000),
            audience,
            chance=lambda: 0.0,
            keeper=RememberingKeeper(),
        )
        try:
            await captioner.run()
        except SourceError:
            assert isinstance(events[-1][1], Lost)

    run_virtual(main())
    return audience


def away(begin: float, end: float, length: float) -> list[tuple[float, SourceEvent]]:
    """A device that delivers nothing from `begin` to `end`, which then is a gap."""
    events = list(CodedSound(length))
    before = [event for event in events if event[0] <= begin]
    missing = len([event for event in events if begin < event[0] <= end])
    gap = Gap(frames=missing * len(_pcm(events[-1])) // 2, reason="away")
    return [*before, (end, gap), *(event for event in events if event[0] > end)]


def _pcm(event: tuple[float, SourceEvent]) -> bytes:
    assert isinstance(event[1], Block)
    return event[1].pcm


def test_1_a_service_that_went_deaf_while_no_sound_came_is_left_for_another() -> None:
    service = Service(talk((1.5, 6), (100.0, 30), (112.0, 10)))
    service.plans.append(Planned(AtSound(seconds(95.5), 0), lambda c: setattr(c, "silent", True)))
    audience = listened(service, away(5.0, 95.0, 120.0))
    assert audience.words == [word.text for word in service.speech.words]
    ((start, end),) = audience.gaps
    assert start / SAMPLE_RATE == pytest.approx(5.0, abs=0.1)
    assert end / SAMPLE_RATE == pytest.approx(95.0, abs=0.1)


def test_2_a_service_without_a_free_slot_is_never_taken_for_one_that_listens() -> None:
    service = Service(TALK)
    service.busy_until = 20.0
    outcome = run(service, LENGTH)
    whole(outcome)
    said = [state for time, state in outcome.audience.said if 5.0 <= time < 20.0]
    assert set(said) <= TOLD
    messages = {status.message for status in outcome.audience.statuses}
    assert any("may be full" in message for message in messages)


def test_9_sound_that_hangs_every_session_is_not_sent_again_for_ever() -> None:
    service = Poisoned(TALK, seconds(10.0))
    outcome = run(service, 60.0)
    outcome.check()
    assert outcome.error is None
    # Three sessions are given it, and some more as long as text is settled before it.
    assert 3 <= service.swallowed <= 6
    assert len(service.connections) == service.swallowed + 1
    ((start, end),) = outcome.audience.gaps
    assert start <= seconds(10.0) < end
    assert outcome.words[0] == "word0"
    assert outcome.words[-1] == outcome.expected[-1], "it goes on behind it"


def test_14_each_utterance_is_a_generation_where_deltas_are_no_clock() -> None:
    service = OfLumps(TALK)
    outcome = run(service, LENGTH)
    whole(outcome)
    assert sum(connection.finals for connection in service.connections) >= len(TALK.spoken)


@pytest.mark.parametrize("live", [True, False])
def test_28_sound_never_goes_out_faster_than_four_times_real_time(*, live: bool) -> None:
    service = Metered(TALK)
    if live:
        service.plans.append(Planned(AtSound(seconds(6.1), 0), Connection.reset))
        service.openings.extend([Opening(), *[Opening(takes=4.0, error=unreachable)] * 3])
    outcome = run(service, LENGTH, live=live)
    whole(outcome)
    meter = service.meters[-1]
    assert sum(samples for _, samples in meter.came) > seconds(20.0)
    ahead = 0.0
    for (before, _), (now, samples) in pairwise([(0.0, 0), *meter.came[:-2]]):
        ahead = max(0.0, ahead - 4 * (now - before)) + samples / SAMPLE_RATE
        assert ahead <= 2.0, "more than what may go at once"
    first, last = meter.came[0][0], meter.came[-3][0]
    assert last - first > 4.0, "there was much to send"


@pytest.mark.parametrize("waits", [1.0, 6.0])
def test_34_and_47_a_session_that_died_while_it_waited_for_its_turn(waits: float) -> None:
    # Nobody pauses for 9 s: so long the next session is ready and has nothing to do.
    speech = talk((1.5, 30), (12.0, 12), (18.0, 12), (24.0, 20))
    for dies in (Connection.reset, lambda c: setattr(c, "silent", True)):
        service = Service(speech)
        service.plans.append(Planned(AtOpening(1), lambda c, d=dies: c.later(waits, lambda: d(c))))  # type: ignore[misc] # bound per turn
        outcome = run(service, LENGTH, renew_after=3.0)
        whole(outcome)
        assert len(service.connections) > 2


@pytest.mark.parametrize("every", [5.0, 10.0])
def test_37_whoever_says_nothing_does_not_use_up_any_patience(every: float) -> None:
    service = Metered(talk((62.0, 6)))
    service.session_limit = every
    service.limit_error = ended
    outcome = run(service, 66.0)
    whole(outcome)
    opened = [meter.opened_at for meter in service.meters if meter.opened_at is not None]
    assert len(opened) >= 60 / every - 1
    gaps = [b - a for a, b in pairwise(opened)]
    assert max(gaps) < every + 0.3, "each time at once"


def test_43_what_was_said_before_a_device_fell_silent_comes_out() -> None:
    """Also its last word, when the device is given up."""
    speech = talk((1.5, 6), (4.5, 10))
    stop = speech.words[-1].end / SAMPLE_RATE
    events = [event for event in CodedSound(10.0) if event[0] <= stop + 0.1]
    lost = Lost(error=SourceError("It is gone."))
    audience = listened(Service(speech), [*events, (stop + 5.0, lost)])
    assert audience.words == [word.text for word in speech.words]
    assert State.NO_SOUND in audience.states


def test_43_a_device_that_comes_back_loses_no_word_that_was_whole() -> None:
    service = Service(TALK)
    audience = listened(service, away(6.1, 9.9, LENGTH))
    there = [w for w in TALK.words if w.end <= seconds(6.08) or w.start >= seconds(9.84)]
    assert audience.words == [word.text for word in there]
    assert len(audience.gaps) == 1


def test_44_a_service_that_is_away_is_one_state_and_no_storm() -> None:
    service = Metered(TALK)
    service.refuses_until = 20.0
    outcome = run(service, LENGTH)
    whole(outcome)
    assert outcome.audience.statuses[-1].breaks <= 9
    assert outcome.audience.notices == []
    assert outcome.audience.states.count(State.RECOVERING) == 1


def test_44_an_error_for_every_piece_of_sound_is_one_break() -> None:
    service = Grumbling(TALK)
    outcome = run(service, LENGTH)
    whole(outcome)
    assert service.grumbled >= 50
    assert outcome.audience.statuses[-1].breaks == 1


@pytest.mark.parametrize("pause", [0.5, 0.9, 1.5, 6.0, 40.0])
def test_48_the_first_words_after_a_pause_are_there(pause: float) -> None:
    # In the pause a generation ends and the next one begins.
    speech = talk((1.5, 8), (1.5 + 2.4 + pause, 6))
    service = Service(speech)
    outcome = run(service, 9.0 + pause, limits=Limits(renew_after=seconds(2.0)))
    whole(outcome)
    assert service.connections[0].finals > 1


@pytest.mark.parametrize("stop", [False, True])
def test_51_the_last_word_comes_though_the_sound_ends_with_it(*, stop: bool) -> None:
    speech = talk((1.0, 10))
    end = speech.length
    outcome = run(Service(speech), end + (10.0 if stop else 0.0), stop=end + 0.1 if stop else None)
    whole(outcome)
    assert outcome.words[-1] == "word9"


def test_53_a_session_grows_no_larger_the_longer_it_lasts() -> None:
    service = Service(talk(*((1.0 + 2.5 * turn, 5) for turn in range(140))))
    engines: list[RealtimeEngine] = []
    sizes: list[int] = []
    for turn in range(34):
        look = Planned(AtSound(seconds(10.0 * (turn + 1))), lambda _: sizes.append(things(engines)))
        service.plans.append(look)
    limits = Limits(renew_after=seconds(30.0))
    audience = listened(service, [*CodedSound(352.0)], engines=engines, limits=limits)
    assert audience.words == [word.text for word in service.speech.words]
    assert len(engines) == 1
    early, late = sizes[19:25], sizes[-6:]  # the last 64 pauses are remembered
    assert max(late) <= 1.1 * max(early), (early, late)


def things(engines: list[RealtimeEngine]) -> int:
    """How many objects belong to a session, however deep; the service is another's."""
    seen: set[int] = set()
    parts = vars(engines[0])
    left: list[object] = [v for k, v in parts.items() if k not in ("_transport", "_score")]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | int | float | str | bytes | None):
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list | tuple | set | deque):
            # Small values count too: a list of numbers that grows is a leak.
            seen |= {-id(each) - place for place in range(len(each))}
            left += each
        elif type(each).__module__.startswith("surtitle"):
            left += [getattr(each, name) for name in attributes(type(each)) if hasattr(each, name)]
            left += vars(each).values() if hasattr(each, "__dict__") else ()
    return len(seen)


def attributes(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
