"""The conductor: sound in; captions, status and transcript entries out. Asyncio only.

Sound flows from the source through the intake into the replay buffer, and from
there to whatever engine session is alive. When a session breaks, the next one is
given everything that has no settled text yet. One `Captioner` listens to one
source once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

from surtitle.core.audio import (
    CHUNK_SAMPLES,
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
from surtitle.core.backlog import Backlog
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.errors import Decision, EngineError, SourceError, SurtitleError
from surtitle.core.health import Health, Status
from surtitle.core.intake import SILENCE, Intake
from surtitle.core.recovery import GiveUp, Judge, PassOver
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.transcript import Entry
from surtitle.relay import Engines, Relay

__all__ = ["Audience", "Captioner", "Engine", "Keeper", "Source"]

_FILE_AHEAD = 20 * SAMPLE_RATE
"""A file is read no further ahead of the engine than this."""
_STATUS_EVERY = 0.25
"""Seconds between two looks at the state of things."""
_DRAIN_WITHIN = 10.0
"""Seconds that the last words may keep us waiting, once the engine has been given everything."""
_LAST_TRIES = 5
"""Sessions that may fail in a row after the sound has ended."""
_LIVE = 60 * SAMPLE_RATE
"""Sound that may wait before what is live counts for more."""
_CATCH_UP = 15 * SAMPLE_RATE
"""What then still is heard of it."""


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
        engine: Makes an engine session; called again after each failure. Or several engines.
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
        engine: Callable[[], Engine] | Engines[Engine],
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
        engines = engine if isinstance(engine, Engines) else Engines(chosen=engine)
        self._relay = Relay(engines, chance=chance, tell=audience.notice)
        self._captions = captions
        self._audience = audience
        self._chance = chance
        self._keeper = keeper
        self._origin = origin
        self._judges = {False: Judge(patience=patience), True: Judge(patience=patience)}
        """Of the chosen engine and of the one that stands in: each has its own failures."""
        self._microphone = microphone
        self._backlog = Backlog(origin=origin, bound=buffer)
        self._progressed = origin
        """Up to here sessions have done their work, and have been believed to work."""
        self._intake: Intake | None = None
        self._level = SILENCE
        self._fed = False
        """The engine session has been given sound."""
        self._finishing = False
        """The engine session has been told that no more sound comes."""
        self._source_ended = False
        self._stopping = asyncio.Event()
        self._lost: SurtitleError | None = None
        self._between = asyncio.Event()
        """No utterance is going on as far as the session has come: a place to change."""
        self._changed = asyncio.Event()
        """Sound has been put into the buffer or taken out of it, or the source has ended."""

    @property
    def position(self) -> int:
        """One past the newest sample that has come in, or is known to be lost."""
        return self._origin + (self._intake.position if self._intake is not None else 0)

    async def run(self) -> None:
        """Caption until the sound ends.

        Raises:
            SurtitleError: The source or the engine failed for good. What had been
                recognised until then has been told and kept; the rest is a gap.
        """
        engine = self._relay.next
        health = Health(
            asyncio.get_running_loop().time(),
            source=self._source.name,
            engine=engine.name,
            place=engine.place,
            live=self._source.live,
            microphone=self._microphone,
        )
        intake = asyncio.create_task(self._take_in(health), name="intake")
        ticker = asyncio.create_task(self._tell_status(health), name="status")
        complete = False
        try:
            await self._conduct(health)
            complete = True
        except SurtitleError as error:
            health.failed(error)
            raise
        finally:
            ticker.cancel()
            intake.cancel()  # it has ended, unless something is wrong or nobody wants more
            try:
                await self._source.close()
                await self._relay.close()
                await asyncio.gather(intake, ticker, return_exceptions=True)
            finally:
                self._wind_up(health, complete=complete)
        if not intake.cancelled() and (fault := intake.exception()) is not None:
            raise fault
        if self._lost is not None:
            raise self._lost

    async def stop(self) -> None:
        """End the sound; `run` then brings the last words and returns.

        What has been read of a file but not been handed to the engine is left out: the
        user does not want more of it. What a device has delivered is still captioned.
        """
        self._stopping.set()
        self._changed.set()
        await self._source.close()

    # -- sound in ------------------------------------------------------------------

    async def _take_in(self, health: Health) -> None:
        try:
            try:
                async with _closing(self._source.events()) as events:
                    async for event in events:
                        await self._take(event, health)
            except SurtitleError as error:
                self._lost = error
            if self._intake is not None:
                await self._store(self._intake.flush(), health)
        finally:
            self._source_ended = True
            self._changed.set()

    async def _take(self, event: SourceEvent, health: Health) -> None:
        match event:
            case Started(format=sound, name=name):
                health.source = name
                try:
                    self._intake = Intake(sound)
                except ValueError as error:
                    raise SourceError(
                        f"{name} has {sound.channels} channels of {sound.rate} Hz: "
                        "Surtitle cannot hear that."
                    ) from error
            case Block(pcm=pcm) if self._intake is not None:
                await self._store(self._intake.push(pcm), health)
            case Gap(frames=frames) if self._intake is not None:
                chunks, (start, end) = self._intake.skip(frames)
                # Noted first: whoever gives up meanwhile must know of it.
                self._backlog.lose(start + self._origin, end + self._origin)
                await self._store(chunks, health)
            case Moved(name=name):
                health.source = name
                self._audience.notice(f"Now listening to {name}.")
            case Notice(text=text):
                self._audience.notice(text)
            case Lost(error=error):
                raise error
            case _:
                pass  # Silent: the health machine sees it in the frames themselves

    async def _store(self, chunks: list[Chunk], health: Health) -> None:
        now = asyncio.get_running_loop().time()
        for chunk in chunks:
            self._level = chunk.level
            health.frames(now, level=chunk.level)
            placed = replace(chunk, start=chunk.start + self._origin) if self._origin else chunk
            self._backlog.put(placed)
            self._changed.set()
        while self._backlog.waiting > _FILE_AHEAD and not self._source.live:
            if self._stopping.is_set():
                break
            self._changed.clear()
            await self._changed.wait()

    # -- text out ------------------------------------------------------------------

    async def _conduct(self, health: Health) -> None:
        """Run engine sessions until the source has ended and everything is heard."""
        while True:
            self._fed = self._finishing = False
            try:
                engine = await self._relay.begin()
                self._serve(engine, health)
                await self._run(engine, health)
            except EngineError as error:
                self._captions.interrupted()
                delay = 0.0 if self._all_done else self._after(error, health)
            else:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            if self._all_done:
                return

    def _serve(self, engine: Engine, health: Health) -> None:
        health.served(engine=engine.name, place=engine.place)
        health.ready()
        self._relay.plan()

    async def _run(self, engine: Engine, health: Health) -> None:
        """Run this session, and those that take over from it, until everything is heard."""
        while True:
            try:
                gives_way = await self._session(engine, health)
            finally:
                self._relay.leave(engine)
            # Taken only now, and nothing waits until it is served: it cannot get lost.
            if not gives_way or (successor := self._relay.taking_over()) is None:
                return
            engine = successor
            self._fed = False
            self._captions.interrupted()
            self._backlog.rewind()
            self._serve(engine, health)

    @property
    def _enough(self) -> bool:
        """Whether only what an engine has had before is to be captioned: a file was stopped."""
        return self._stopping.is_set() and not self._source.live

    @property
    def _wanted_until(self) -> int:
        """How far the sound is to be captioned, as far as it has come in."""
        return self._backlog.handed if self._enough else self.position

    @property
    def _all_done(self) -> bool:
        """Whether no session is needed any more, even if the last one broke."""
        over = self._source_ended or self._enough
        return over and self._backlog.settled >= self._wanted_until

    @property
    def _judge(self) -> Judge:
        return self._judges[self._relay.standing_in]

    def _after(self, error: EngineError, health: Health) -> float:
        """Prepare for the next session. Gives the seconds to wait for it; raises if there is none.

        After `stop` one more try is made, at once; when the sound has ended by itself, a
        few. Only while sound still comes is an engine that stays away worth waiting for.
        """
        verdict = self._judge.failed(
            error,
            hearing=self._fed,
            chance=self._chance(),
            place=self._backlog.reached / SAMPLE_RATE,
        )
        tries = 1 if self._stopping.is_set() else _LAST_TRIES if self._source_ended else None
        tired = tries is not None and self._judge.failures > tries
        if tired and self._relay.standing_in:
            raise error  # the chosen engine has had as long
        given_up = tired or isinstance(verdict, GiveUp)
        if given_up and not self._relay.give_up(error):
            raise error
        health.broken(error)
        self._audience.status(health.status(asyncio.get_running_loop().time()))
        if isinstance(verdict, PassOver) and not self._relay.can_stand_in:
            self._backlog.pass_over()
        self._backlog.rewind()
        if given_up or isinstance(verdict, GiveUp) or self._relay.can_stand_in:
            return 0.0  # another engine goes on, or the relay does the waiting
        return verdict.delay

    async def _session(self, engine: Engine, health: Health) -> bool:
        """Run one session to its end. Tells whether it gives way to one that is ready."""
        feeder = asyncio.create_task(self._feed(engine), name="feed")
        listener = asyncio.create_task(self._listen(engine, health), name="listen")
        watcher = asyncio.create_task(self._wait_to_give_way(), name="successor")
        tasks = (feeder, listener, watcher)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not (feeder.done() or listener.done() or self._finishing):
                watcher.result()
                return True
            watcher.cancel()
            if not feeder.done() and not listener.done():
                await asyncio.wait((feeder, listener), return_when=asyncio.FIRST_COMPLETED)
            if feeder.done():
                feeder.result()
                await self._wait_for_last_words(listener)
            listener.result()
            if not self._finishing:
                raise EngineError("The speech engine ended by itself.", decision=Decision.RETRY)
            return False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_to_give_way(self) -> None:
        """Wait until another session is ready and nothing is under way in this one."""
        if (relief := self._relay.relief) is not None:
            await asyncio.wait([relief])
            if self._relay.ready:
                self._between.clear()
                await self._between.wait()
                return
        await asyncio.Event().wait()  # there will be none

    async def _feed(self, engine: Engine) -> None:
        while True:
            live = self._source.live and not self._source_ended
            if live and self._backlog.waiting > _LIVE:
                self._backlog.leave_out(self.position - _CATCH_UP)
            chunk = self._backlog.take(fresh=not self._enough)
            if chunk is not None:
                self._changed.set()  # a file may go on reading
                await engine.feed(chunk)
                self._fed = True
            elif self._source_ended or self._enough:
                self._finishing = True
                await engine.finish()
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    async def _listen(self, engine: Engine, health: Health) -> None:
        async with _closing(engine.events()) as events:
            async for event in events:
                self._hear(event, health)

    async def _wait_for_last_words(self, listener: asyncio.Task[None]) -> None:
        """The engine has been given everything: it may take its time only while it gets on."""
        before = -1
        while not listener.done():
            if self._backlog.reached == before:
                raise EngineError("The last words did not come in time.", decision=Decision.RETRY)
            before = self._backlog.reached
            await asyncio.wait((listener,), timeout=_DRAIN_WITHIN)

    def _hear(self, event: EngineEvent, health: Health) -> None:
        now = asyncio.get_running_loop().time()
        position = event.position if isinstance(event, Progress) else event.end
        self._backlog.reach(position)
        match event:
            case Partial() | Final():
                self._mark_gaps(event.start)
                changed = self._captions.apply(event)
                if changed:
                    self._judge.alive()
                    health.text(now)
                    self._publish(changed)
                if isinstance(event, Final):
                    # Its words stand. Were it heard again, they would be there twice.
                    self._settle(event.end, health)
            case Voice(probability=probability):
                health.voice(now, probability)
            case Progress():
                self._settle(position, health)

    def _settle(self, position: int, health: Health) -> None:
        """Everything before `position` is done with."""
        self._backlog.settle(position)
        # A session that says where it begins has done nothing yet, and the next may begin a
        # little further on: only what is new counts, and more than a crumb, or sound that
        # breaks the engine each time would be tried for ever.
        if self._backlog.settled - self._progressed >= CHUNK_SAMPLES:
            self._progressed = self._backlog.settled
            self._judge.progress()
            self._relay.works()
            health.progress()
        self._mark_gaps(position)
        if self._captions.between:
            self._between.set()

    def _mark_gaps(self, position: int | None) -> None:
        """Mark the gaps that the text has come to; all of them if it ends."""
        for start, end in self._backlog.due(position):
            self._publish(self._captions.gap(start, end))

    def _wind_up(self, health: Health, *, complete: bool) -> None:
        """Close what is open; what was not recognised is lost, and says so."""
        ended = self._captions.ended()
        if not complete:
            # Silence before words that were read is not missing, nor told behind them.
            begun = [passage.start for passage in ended if passage.settled]
            self._backlog.lose(max([self._backlog.settled, *begun]), self._wanted_until)
        self._publish(ended)
        self._mark_gaps(None)
        if self._lost is not None and complete:
            health.failed(self._lost)
        health.behind(
            0.0,
            heard=(self._backlog.reached - self._origin) / SAMPLE_RATE,
            lost=self._backlog.lost / SAMPLE_RATE,
        )
        health.ended()
        self._audience.status(health.status(asyncio.get_running_loop().time()))

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
            if self._source_ended:
                health.frames(loop.time(), level=self._level)  # nothing more is to come
            reached = self._backlog.reached
            health.behind(
                max(0, self.position - reached - self._backlog.unmarked) / SAMPLE_RATE,
                heard=(reached - self._origin) / SAMPLE_RATE,
                lost=self._backlog.lost / SAMPLE_RATE,
            )
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
