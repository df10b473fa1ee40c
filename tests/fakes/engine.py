"""An engine that knows what is said where in the sound, and fails as it is told."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from fakes.speech import Spoken, seconds
from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice

__all__ = ["WELL", "Plan", "ScriptedEngine", "ScriptedEngines", "broken"]

_UNHEARD = seconds(10)


def broken(message: str = "The engine broke.") -> EngineError:
    """A failure that may pass by itself."""
    return EngineError(message, decision=Decision.RETRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of a session. Positions are samples."""

    start_takes: float = 0.0
    refuses: EngineError | None = None
    speed: float = 50.0
    """Seconds of sound heard in a second."""
    stop_takes: float = 0.0
    breaks_at: int | None = None
    """The session breaks before this sample is heard; None: never."""
    breaks_after_finals: int | None = None
    """It breaks after so many finals, before it says that they are done with."""
    breaks_with: EngineError | None = None
    """What it breaks with."""
    feed_breaks_at: int | None = None
    ends_at: int | None = None
    """It ends as if all were well."""
    silent_progress: bool = False
    """It never says how far it has come, as some servers do not."""
    never_done: bool = False
    babbles: bool = False
    """When all is heard it repeats itself for ever."""


WELL = Plan()


class ScriptedEngine:
    """As `surtitle.captioner.Engine`."""

    place = "in this test"

    def __init__(self, speech: Sequence[Spoken], plan: Plan, *, name: str = "Scripted") -> None:
        self.name = name
        self.plan = plan
        self.started = False
        self.stopped = False
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        """Loop time."""
        self.settled: int | None = None
        """Sound up to which it has said that everything is done."""
        self.fed: list[Chunk] = []
        self.most_unheard = 0
        self._speech = speech
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._broken: EngineError | None = None
        self._first = 0
        self._heard: int | None = None
        self._done = 0
        """Up to here everything has its final, or is none of this session's business."""
        self._number = 1
        """Of the utterance that is going on."""
        self._finals = 0
        self._partials = 0

    async def start(self) -> None:
        assert not self.started, "one session is started once"
        self.started = True
        await asyncio.sleep(self.plan.start_takes)
        if self.plan.refuses is not None:
            raise self.plan.refuses
        self.ready_at = asyncio.get_running_loop().time()

    async def feed(self, chunk: Chunk) -> None:
        at = self.plan.feed_breaks_at
        if at is not None and chunk.end > at:
            raise broken("The engine takes no more.")
        while self._broken is None and self._unheard() > _UNHEARD:
            self._room.clear()
            await self._room.wait()
        if self._broken is not None:
            raise self._broken
        self.fed.append(chunk)
        self.most_unheard = max(self.most_unheard, self._unheard())
        self._queue.put_nowait(chunk)

    async def finish(self) -> None:
        self._queue.put_nowait(None)

    async def events(self) -> AsyncGenerator[EngineEvent]:
        plan = self.plan
        while (chunk := await self._queue.get()) is not None:
            await asyncio.sleep(chunk.samples / SAMPLE_RATE / plan.speed)
            if plan.breaks_at is not None and chunk.end > plan.breaks_at:
                raise self._break()
            if plan.ends_at is not None and chunk.end > plan.ends_at:
                return
            for event in self._hear(chunk):
                if plan.silent_progress and isinstance(event, Progress):
                    continue
                self._note(event)
                yield event
                self._finals += isinstance(event, Final)
                if self._finals == plan.breaks_after_finals:
                    raise self._break()
            self._room.set()
        for event in self._close():
            yield event
        while plan.babbles:
            await asyncio.sleep(1)
            yield Partial(utterance=self._number, text="la la", start=0, end=self._heard or 0)
        if plan.never_done:
            await asyncio.Event().wait()

    async def stop(self) -> None:
        self.stopped = True
        self._broken = self._broken or broken("The engine was stopped.")
        self._room.set()
        await asyncio.sleep(self.plan.stop_takes)
        self.stopped_at = asyncio.get_running_loop().time()

    def _note(self, event: EngineEvent) -> None:
        if isinstance(event, Final | Progress):
            done = event.position if isinstance(event, Progress) else event.end
            self.settled = max(self.settled or 0, done)

    def _break(self) -> EngineError:
        self._broken = self.plan.breaks_with or broken()
        self._room.set()
        return self._broken

    def _unheard(self) -> int:
        if not self.fed:
            return 0
        return self.fed[-1].end - (self.fed[0].start if self._heard is None else self._heard)

    def _hear(self, chunk: Chunk) -> list[EngineEvent]:
        events: list[EngineEvent] = []
        if chunk.start != self._heard:
            events += self._close()
            self._first = self._done = chunk.start
            events.append(Progress(position=chunk.start))
        self._heard = chunk.end
        speaking = self._speaking(chunk.end)
        voice = 0.9 if speaking is not None else 0.1
        events.append(Voice(start=chunk.start, end=chunk.end, probability=voice))
        while (spoken := self._next()) is not None and spoken.end <= chunk.end:
            events += self._final(spoken, spoken.end)
        if speaking is not None:
            events += self._partial(speaking, chunk.end)
        settled = chunk.end if speaking is None else max(speaking.start, self._first)
        events.append(Progress(position=settled))
        return events

    def _close(self) -> list[EngineEvent]:
        """End what is going on."""
        if self._heard is None:
            return []
        events: list[EngineEvent] = []
        if (speaking := self._speaking(self._heard)) is not None:
            events += self._final(speaking, self._heard)
        return [*events, Progress(position=self._heard)]

    def _next(self) -> Spoken | None:
        return next((s for s in self._speech if s.end > self._done), None)

    def _speaking(self, position: int) -> Spoken | None:
        return next((s for s in self._speech if s.start < position < s.end), None)

    def _words(self, spoken: Spoken, until: int) -> list[str]:
        return [w.text for w in spoken.words if self._first <= w.start and w.end <= until]

    def _partial(self, spoken: Spoken, end: int) -> list[EngineEvent]:
        words = self._words(spoken, end)
        if not words:
            return []
        self._partials += 1
        if self._partials % 2:
            words[-1] = "um"  # the newest word is the unsure one
        return [
            Partial(
                utterance=self._number,
                text=" ".join(words),
                start=max(spoken.start, self._first),
                end=end,
            )
        ]

    def _final(self, spoken: Spoken, end: int) -> list[EngineEvent]:
        self._done = end
        start = max(spoken.start, self._first)
        text = " ".join(self._words(spoken, end))
        number, self._number = self._number, self._number + 1
        return [Final(utterance=number, text=text, start=start, end=end)]


class ScriptedEngines:
    """Makes sessions: one for each plan, then well ones, or as the last plan says."""

    def __init__(
        self,
        speech: Sequence[Spoken] = (),
        *plans: Plan,
        then: Plan = WELL,
        name: str = "Scripted",
    ) -> None:
        self.name = name
        self.made: list[ScriptedEngine] = []
        self._speech = speech
        self._plans = plans
        self._then = then

    def __call__(self) -> ScriptedEngine:
        number = len(self.made)
        plan = self._plans[number] if number < len(self._plans) else self._then
        self.made.append(ScriptedEngine(self._speech, plan, name=self.name))
        return self.made[-1]
