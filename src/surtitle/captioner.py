"""The conductor: sound in; captions, status and transcript entries out. Asyncio only.

Sound flows from the source through the intake into the replay buffer, and from
there to whatever engine session is alive. When a session breaks, the next one is
given everything that has no settled text yet. One `Captioner` listens to one
source once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from surtitle.core.audio import (
    SAMPLE_RATE,
    Block,
    Chunk,
    Gap,
    Lost,
    Moved,
    Notice,
    SourceEvent,
    Started,
)
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.errors import EngineError, SurtitleError
from surtitle.core.health import Health, Status
from surtitle.core.intake import Intake
from surtitle.core.recovery import GiveUp, Judge, PassOver
from surtitle.core.replay import ReplayBuffer
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.transcript import Entry

__all__ = ["Audience", "Captioner", "Engine", "Keeper", "Source"]

_FILE_AHEAD = 20 * SAMPLE_RATE
"""A file is read no further ahead of the engine than this."""
_STATUS_EVERY = 0.25
"""Seconds between two looks at the state of things."""
_DRAIN_WITHIN = 10.0
"""Seconds that the last words may take after the sound has ended."""


class Source(Protocol):
    """Something that can be listened to: a device, the system's sound, a file."""

    @property
    def name(self) -> str:
        """What a person recognises."""

    @property
    def live(self) -> bool:
        """Whether sound that is not taken in time is lost (a device) or waits (a file)."""

    def events(self) -> AsyncIterator[SourceEvent]:
        """Open the source and tell what comes, `Started` first; ends when the sound ends.

        Failing to open is told as `Lost`. May be called once.
        """

    async def close(self) -> None:
        """Stop and let go of the device. Safe in every state, more than once; at most 2 s."""


class Engine(Protocol):
    """One session of something that turns sound into text."""

    @property
    def name(self) -> str:
        """What a person recognises, such as `Moonshine Tiny`."""

    @property
    def place(self) -> str:
        """Where the sound goes, such as `on this computer`."""

    async def start(self) -> None:
        """Become ready. Raises EngineError, also when it takes too long."""

    async def feed(self, chunk: Chunk) -> None:
        """Take a chunk; waits while the engine has too much unheard. Raises EngineError."""

    async def finish(self) -> None:
        """Say that no more sound comes; `events` ends when all its text is out."""

    def events(self) -> AsyncIterator[EngineEvent]:
        """Tell the text as it comes. Raises EngineError when the engine breaks."""

    async def stop(self) -> None:
        """Let go of everything at once. Safe in every state, more than once; at most 2 s."""


class Keeper(Protocol):
    """Something that keeps the transcript."""

    def keep(self, entry: Entry) -> None:
        """Store an entry, in place of the one with the same key. Never blocks, never raises."""


class Audience(Protocol):
    """Whoever wants to know. Called on the loop; returns at once, never raises."""

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        """The text has changed."""

    def status(self, status: Status) -> None:
        """The state of things, several times a second."""

    def notice(self, text: str) -> None:
        """Something to know that stops nothing."""


class Captioner:
    """Listens to one source until it ends or until `stop`.

    Args:
        source: What to listen to.
        engine: Makes an engine session; called again after each failure.
        captions: Where the text goes; the same one may serve several captioners in turn.
        audience: Who is told.
        chance: Random numbers from 0 to 1.
        keeper: Keeps the transcript, if anybody does.
        origin: Position that the first sample gets: sound heard before, in samples.
        patience: Failures of the engine in a row before giving up; None: never.
        microphone: Whether exact zeros mean that something is wrong.
        buffer: Seconds of sound kept for replay.
    """

    def __init__(
        self,
        source: Source,
        engine: Callable[[], Engine],
        captions: Captions,
        audience: Audience,
        *,
        chance: Callable[[], float],
        keeper: Keeper | None = None,
        origin: int = 0,
        patience: int | None = None,
        microphone: bool = False,
        buffer: float = 600.0,
    ) -> None:
        self._source = source
        self._make_engine = engine
        self._captions = captions
        self._audience = audience
        self._chance = chance
        self._keeper = keeper
        self._origin = origin
        self._judge = Judge(patience=patience)
        self._microphone = microphone
        self._buffer = ReplayBuffer(bound=buffer)
        self._health: Health | None = None
        self._gaps: deque[tuple[int, int]] = deque()
        self._settled = origin
        self._heard = origin
        self._fed = False
        self._intake: Intake | None = None
        self._source_ended = False
        self._stopped = False
        self._lost: SurtitleError | None = None
        self._changed = asyncio.Event()
        """Sound has been put into the buffer or taken out of it, or the source has ended."""

    @property
    def position(self) -> int:
        """One past the newest sample that has come in."""
        return max(self._buffer.end, self._origin)

    async def run(self) -> None:
        """Caption until the sound ends.

        Raises:
            SurtitleError: The source or the engine failed for good. What had been
                recognised until then has been told and kept.
        """
        loop = asyncio.get_running_loop()
        engine = self._make_engine()
        self._health = Health(
            loop.time(),
            source=self._source.name,
            engine=engine.name,
            place=engine.place,
            live=self._source.live,
            microphone=self._microphone,
        )
        intake = asyncio.create_task(self._take_in(self._health), name="intake")
        ticker = asyncio.create_task(self._tell_status(self._health), name="status")
        try:
            await self._conduct(engine, self._health)
        except SurtitleError as error:
            self._health.failed(error)
            raise
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            ticker.cancel()
            await self._source.close()
            intake.cancel()
            await asyncio.gather(intake, ticker, return_exceptions=True)
            self._publish(self._captions.ended())
            self._flush_gaps(None)
            if self._lost is not None:
                self._health.failed(self._lost)
            self._health.ended()
            self._audience.status(self._health.status(loop.time()))
        if self._lost is not None:
            raise self._lost

    async def stop(self) -> None:
        """End the sound; `run` then brings the last words and returns.

        What has been read of a file but not been handed to the engine is left out: the
        user does not want more of it. What a device has delivered is still captioned.
        """
        self._stopped = True
        self._changed.set()
        await self._source.close()

    # -- sound in ------------------------------------------------------------------

    async def _take_in(self, health: Health) -> None:
        try:
            async with _closing(self._source.events()) as events:
                async for event in events:
                    if isinstance(event, Lost):
                        raise event.error
                    await self._take(event, health)
            if self._intake is not None:
                await self._store(self._intake.flush(), health)
        except SurtitleError as error:
            self._lost = error
        finally:
            self._source_ended = True
            self._changed.set()

    async def _take(self, event: SourceEvent, health: Health) -> None:
        match event:
            case Started(format=sound, name=name):
                self._intake = Intake(sound)
                health.source = name
            case Block(pcm=pcm) if self._intake is not None:
                await self._store(self._intake.push(pcm), health)
            case Gap(frames=frames) if self._intake is not None:
                chunks, (start, end) = self._intake.skip(frames)
                await self._store(chunks, health)
                self._lose(start + self._origin, end + self._origin)
            case Moved(name=name):
                health.source = name
                self._audience.notice(f"Now listening to {name}.")
            case Notice(text=text):
                self._audience.notice(text)
            case _:
                pass  # Silent: the health machine sees it in the frames themselves

    async def _store(self, chunks: list[Chunk], health: Health) -> None:
        now = asyncio.get_running_loop().time()
        for chunk in chunks:
            health.frames(now, level=chunk.level)
            placed = replace(chunk, start=chunk.start + self._origin) if self._origin else chunk
            if (lost := self._buffer.put(placed)) is not None:
                self._lose(*lost)
            self._changed.set()
        while not self._source.live and not self._stopped and self._buffer.waiting > _FILE_AHEAD:
            self._changed.clear()
            await self._changed.wait()

    def _lose(self, start: int, end: int) -> None:
        """Remember a gap until the text before it is out."""
        if self._gaps and self._gaps[-1][1] == start:
            self._gaps[-1] = (self._gaps[-1][0], end)
        else:
            self._gaps.append((start, end))

    # -- text out ------------------------------------------------------------------

    async def _conduct(self, engine: Engine, health: Health) -> None:
        """Run engine sessions until the source has ended and everything is heard."""
        while True:
            self._fed = False
            try:
                await self._session(engine, health)
            except EngineError as error:
                self._captions.interrupted()
                verdict = self._judge.failed(error, hearing=self._fed, chance=self._chance())
                if isinstance(verdict, GiveUp):
                    await self._source.close()
                    self._give_up()
                    raise verdict.error from error
                health.broken(error)
                self._audience.status(health.status(asyncio.get_running_loop().time()))
                if isinstance(verdict, PassOver) and (lost := self._buffer.skip()) is not None:
                    self._lose(*lost)
                    self._settled = lost[1]
                self._buffer.rewind(self._settled)
                self._heard = self._settled
                await asyncio.sleep(verdict.delay)
            else:
                return
            finally:
                await engine.stop()
            engine = self._make_engine()

    async def _session(self, engine: Engine, health: Health) -> None:
        await engine.start()
        health.ready()
        feeder = asyncio.create_task(self._feed(engine), name="feed")
        try:
            async with (
                asyncio.timeout(None) as limit,
                _closing(engine.events()) as events,
            ):
                feeder.add_done_callback(lambda _: self._limit_silence(limit))
                async for event in events:
                    self._hear(event, health)
                    if feeder.done():
                        self._limit_silence(limit)
        except TimeoutError as error:
            raise EngineError("The last words did not come in time.") from error
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)
        if not feeder.cancelled() and (trouble := feeder.exception()) is not None:
            raise trouble

    def _limit_silence(self, limit: asyncio.Timeout) -> None:
        """The engine has been given everything: now it may not be silent for long."""
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time() + _DRAIN_WITHIN)

    async def _feed(self, engine: Engine) -> None:
        while True:
            enough = self._stopped and not self._source.live
            chunk = None if enough else self._buffer.take()
            if chunk is not None:
                self._changed.set()  # a file may go on reading
                self._fed = True
                await engine.feed(chunk)
            elif self._source_ended or enough:
                await engine.finish()
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _hear(self, event: EngineEvent, health: Health) -> None:
        now = asyncio.get_running_loop().time()
        match event:
            case Partial() | Final():
                changed = self._captions.apply(event)
                if changed:
                    health.text(now)
                    self._publish(changed)
            case Voice(end=end, probability=probability):
                self._heard = end
                health.voice(now, probability)
            case Progress(position=position):
                self._settled = max(self._settled, position)
                self._buffer.release(position)
                self._judge.progress()
                health.progress()
                self._flush_gaps(position)

    def _flush_gaps(self, position: int | None) -> None:
        """Mark the gaps that the text has come to; all of them if it ends."""
        while self._gaps and (position is None or self._gaps[0][0] <= position):
            self._publish(self._captions.gap(*self._gaps.popleft()))

    def _give_up(self) -> None:
        """What was not recognised is lost, and says so."""
        while (lost := self._buffer.skip()) is not None:
            self._lose(*lost)

    def _publish(self, changed: list[Passage]) -> None:
        if not changed:
            return
        if self._keeper is not None:
            for passage in changed:
                if passage.settled:
                    self._keeper.keep(passage.entry)
        self._audience.captions(self._captions.snapshot(), changed)

    async def _tell_status(self, health: Health) -> None:
        loop = asyncio.get_running_loop()
        while True:
            health.behind(max(0, self.position - max(self._heard, self._settled)) / SAMPLE_RATE)
            self._audience.status(health.status(loop.time()))
            await asyncio.sleep(_STATUS_EVERY)


@asynccontextmanager
async def _closing[T](events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """See to it that an iterator that is left early is closed at once, not some time."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
