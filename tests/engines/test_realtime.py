"""One session behind the Realtime API: what is sent when, what is told, and how it fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fakes.coded_sound import Speech, coded, talk
from fakes.realtime_service import Connection, Opening, Service
from fakes.speech import say, seconds
from fakes.virtual_time import run_virtual
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.realtime_actions import Limits
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.engines.realtime import Doubts, RealtimeEngine

SPEECH = talk((1.0, 6), (4.0, 5))
LENGTH = 7.04


class Session:
    """An engine with a listener at its events."""

    def __init__(
        self,
        service: Service,
        *,
        doubts: Doubts | None = None,
        limits: Limits | None = None,
        score: Callable[[bytes], float] | None = None,
    ) -> None:
        self.service = service
        self.events: list[EngineEvent] = []
        self.times: list[float] = []
        self.engine = RealtimeEngine(
            service(),
            lambda: score or service.speech.score,
            model="voxtral",
            name="Voxtral",
            doubts=doubts,
            limits=limits,
        )

    @property
    def connection(self) -> Connection:
        return self.service.connections[0]

    @property
    def words(self) -> list[str]:
        return " ".join(event.text for event in self.of(Final)).split()

    def of[T: EngineEvent](self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    async def listen(self) -> None:
        async for event in self.engine.events():
            self.events.append(event)
            self.times.append(asyncio.get_running_loop().time())

    async def feed(self, start: float, end: float, *, live: bool = False) -> None:
        """Feed the sound between two times; as fast as it is taken, or as it sounds."""
        for at in range(seconds(start), seconds(end), CHUNK_SAMPLES):
            if live:
                await asyncio.sleep(CHUNK_SAMPLES / SAMPLE_RATE)
            await self.engine.feed(Chunk(start=at, pcm=coded(at, CHUNK_SAMPLES), level=-20.0))


@asynccontextmanager
async def started(session: Session) -> AsyncIterator[asyncio.Task[None]]:
    """Start it and listen; what is left at the end is let go."""
    await session.engine.start()
    listener = asyncio.create_task(session.listen())
    try:
        yield listener
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)
        await session.engine.stop()


def perform(
    session: Callable[[], Session], what: Callable[[Session], Awaitable[None]] | None = None
) -> Session:
    """Feed everything, or do `what`, and listen to the end."""

    async def main() -> Session:
        made = session()
        async with started(made) as listener:
            if what is None:
                await made.feed(0.0, LENGTH)
                await made.engine.finish()
            else:
                await what(made)
            await listener
        return made

    return run_virtual(main(), limit=600)


def well(speech: Speech = SPEECH) -> Session:
    return Session(Service(speech))


def expected(speech: Speech = SPEECH) -> list[str]:
    return [word.text for word in speech.words]


def test_every_word_is_told_once_and_everything_is_done_with_at_the_end() -> None:
    session = perform(well)
    assert session.words == expected()
    assert session.of(Progress)[-1] == Progress(position=seconds(LENGTH))
    assert session.of(Voice)[-1].end > seconds(LENGTH) - 512
    assert [f.text for f in session.of(Final)] == [spoken.text for spoken in SPEECH.spoken]


def test_what_lies_before_an_utterance_is_done_with_before_it_is_told_of() -> None:
    session = perform(well)
    for number, event in enumerate(session.events):
        if isinstance(event, Partial):
            before = [p.position for p in session.events[:number] if isinstance(p, Progress)]
            assert max(before) >= event.start


def test_a_word_is_told_with_its_place() -> None:
    session = perform(well)
    for partial in session.of(Partial):
        last = next(w for w in SPEECH.words if w.text == partial.text.split()[-1])
        assert last.end <= partial.end
        if last.start > seconds(3.0):  # before, its deltas are not known to be a clock
            assert partial.end <= last.end + CHUNK_SAMPLES
        assert partial.stable_until == len(partial.text)


def test_sound_goes_out_no_faster_than_four_times_as_it_sounded() -> None:
    async def feed(session: Session) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await session.feed(0.0, LENGTH)
        assert (LENGTH - 1.0) / 4 <= loop.time() - began <= LENGTH / 4
        await session.engine.finish()

    assert perform(well, feed).words == expected()


def test_live_sound_is_not_held_up() -> None:
    async def feed(session: Session) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await session.feed(0.0, LENGTH, live=True)
        assert loop.time() - began == pytest.approx(LENGTH, abs=0.09)
        await session.engine.finish()

    assert perform(well, feed).words == expected()


def test_a_service_that_hears_nothing_is_given_no_more_than_it_may_lose() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 4.0)
        session.connection.silent = True
        feeder = asyncio.create_task(session.feed(4.0, 40.0))
        await asyncio.sleep(7.0)
        assert session.engine._client.sent <= seconds(4.0 + 8.0 + 0.16)
        with pytest.raises(EngineError, match="has not answered for 8 s"):
            await feeder

    with pytest.raises(EngineError, match="has not answered for 8 s"):
        perform(well, feed)


def test_sound_that_it_has_not_heard_is_not_told_as_heard() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 4.0, live=True)
        session.connection.silent = True
        await session.feed(4.0, 9.0, live=True)
        assert max(v.end for v in session.of(Voice)) <= seconds(4.0)
        session.connection.reset()

    with pytest.raises(EngineError):
        perform(well, feed)


def test_words_are_told_while_the_service_reads_slowly() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 4.0, live=True)
        session.connection.slow(3.0, 3.0, EngineError("slow"))
        told = len(session.events)
        feeder = asyncio.create_task(session.feed(4.0, 4.3, live=True))
        await asyncio.sleep(1.0)
        assert len(session.events) > told
        await feeder
        await session.feed(4.32, LENGTH)
        await session.engine.finish()

    perform(well, feed)


def test_a_hole_in_the_sound_ends_what_is_said() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 2.0)
        await session.feed(4.8, LENGTH)
        await session.engine.finish()

    session = perform(well, feed)
    whole = [w.text for w in SPEECH.words if w.end <= seconds(2.0) or w.start >= seconds(4.8)]
    assert session.words == whole
    assert session.of(Final)[0].text == "word0 word1 word2"


def test_the_end_of_the_context_costs_no_word() -> None:
    speech = talk(*((1.0 + 3.4 * i, 8) for i in range(8)))

    async def feed(session: Session) -> None:
        await session.feed(0.0, 29.0)
        await session.engine.finish()

    session = perform(lambda: Session(Service(speech, context=180)), feed)
    assert session.words == expected(speech)


def test_without_sound_it_is_over_at_once() -> None:
    async def nothing(session: Session) -> None:
        await session.engine.finish()

    assert perform(well, nothing).events == []


@pytest.mark.parametrize(
    ("opening", "decision", "field", "within"),
    [
        (Opening(mute=True), Decision.RETRY, "--url", 10.5),
        (Opening(error=lambda: EngineError("x", decision=Decision.RETRY)), Decision.RETRY, "", 1),
    ],
    ids=["mute", "refused"],
)
def test_a_start_that_fails_says_why(
    opening: Opening, decision: Decision, field: str, within: float
) -> None:
    async def main() -> None:
        service = Service(SPEECH)
        service.openings.append(opening)
        session = Session(service)
        try:
            with pytest.raises(EngineError) as caught:
                await session.engine.start()
        finally:
            await session.engine.stop()
        assert (caught.value.decision, caught.value.field) == (decision, field)
        assert asyncio.get_running_loop().time() <= within

    run_virtual(main(), limit=60)


def test_a_model_that_is_unknown_names_the_option() -> None:
    async def feed(session: Session) -> None:
        session.service.openings.clear()
        await session.feed(0.0, 20.0, live=True)

    def made() -> Session:
        service = Service(SPEECH)
        service.openings.append(Opening(no_model=True))
        return Session(service)

    with pytest.raises(EngineError, match="has no model") as caught:
        perform(made, feed)
    assert caught.value.decision is Decision.RECONFIGURE
    assert caught.value.field == "--model"


def test_a_break_is_told_to_whoever_feeds_and_whoever_listens() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 3.0)
        session.connection.reset(EngineError("The connection broke.", decision=Decision.RETRY))
        await asyncio.sleep(0.2)
        with pytest.raises(EngineError, match="broke"):
            await session.feed(3.0, 4.0)

    with pytest.raises(EngineError, match="broke"):
        perform(well, feed)


def test_a_break_before_the_last_words_is_no_end() -> None:
    """The service falls silent when it is told the end: what it had not heard is missing."""

    async def feed(session: Session) -> None:
        await session.feed(0.0, 5.4, live=True)
        session.connection.silent = True
        await session.engine.finish()

    with pytest.raises(EngineError, match="does not finish"):
        perform(well, feed)


def test_stop_lets_a_feeder_go() -> None:
    async def main() -> None:
        session = well()
        async with started(session):
            await session.feed(0.0, 3.0)
            session.connection.silent = True
            feeder = asyncio.create_task(session.feed(3.0, 60.0))
            await asyncio.sleep(4.0)
            await session.engine.stop()
            with pytest.raises(EngineError):
                await feeder
            await session.engine.stop()
        assert session.connection.closed

    run_virtual(main(), limit=60)


TALK = talk((1.0, 100))


def mute() -> Session:
    session = Session(Service(TALK))
    session.connection.blank = True
    return session


def test_speech_without_words_is_to_be_heard_again_from_its_beginning() -> None:
    told: list[int] = []

    async def feed(session: Session) -> None:
        try:
            await session.feed(0.0, 30.0, live=True)
        finally:
            told.extend(p.position for p in session.of(Progress))

    with pytest.raises(EngineError, match="gives no words"):
        perform(mute, feed)
    assert max(told) <= TALK.words[0].start


def test_a_second_session_that_hears_nothing_either_is_believed() -> None:
    doubts = Doubts()
    ends: list[int] = []

    async def feed(session: Session) -> None:
        await session.feed(0.0, 30.0)
        await session.engine.finish()

    def made() -> Session:
        session = Session(Service(TALK), doubts=doubts)
        session.connection.blank = True
        return session

    with pytest.raises(EngineError, match="gives no words"):
        perform(made, feed)
    ends.extend(p.position for p in perform(made, feed).of(Progress))
    assert max(ends) == seconds(30.0)


def test_speech_at_the_end_without_words_is_to_be_heard_again() -> None:
    async def feed(session: Session) -> None:
        await session.feed(0.0, 4.0)
        await session.engine.finish()

    with pytest.raises(EngineError, match="gives no words"):
        perform(mute, feed)


def test_a_cough_at_the_end_is_not() -> None:
    def made() -> Session:
        return Session(
            Service(SPEECH), score=lambda window: 0.9 if SPEECH.score(window) > 0.5 else 0.05
        )

    async def feed(session: Session) -> None:
        await session.feed(0.0, 4.2)
        session.connection.blank = True
        await session.feed(4.24, 4.8)
        await session.engine.finish()

    assert perform(made, feed).words[:6] == expected()[:6]


def test_the_voice_detector_s_silence_is_silence() -> None:
    session = perform(lambda: Session(Service(SPEECH), score=lambda _: 0.0))
    assert session.words == expected()
    assert {v.probability for v in session.of(Voice)} == {0.0}


def test_a_service_that_falls_silent_early_has_not_heard_all_either() -> None:
    """Its deltas are too few to be known as a clock, and what is missing is short."""
    speech = talk((0.6, 2))

    async def feed(session: Session) -> None:
        await session.feed(0.0, 0.64, live=True)
        session.connection.silent = True
        await session.feed(0.64, 1.6, live=True)
        await session.engine.finish()

    with pytest.raises(EngineError, match="does not finish"):
        perform(lambda: Session(Service(speech)), feed)


def test_a_model_that_repeats_itself_begins_anew_once() -> None:
    lost = Speech([say("go on go on go on go on go on go on go on then", at=1.0)])
    made: list[Session] = []

    async def follow(session: Session) -> None:
        made.append(session)
        await session.feed(0.0, 6.0, live=True)
        assert session.connection.finals == 1, "the generation has been ended"
        await session.engine.finish()

    session = perform(lambda: well(lost), follow)
    assert made == [session]
    assert session.words == ["go", "on", "then"]
    assert session.connection.finals == 2
