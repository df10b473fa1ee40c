"""An engine behind vLLM's Realtime API, over whatever transport leads there."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from surtitle.core import realtime_faults as faults
from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.realtime_actions import (
    Action,
    Beat,
    Fault,
    Finished,
    Limits,
    Restarted,
    Send,
    Words,
)
from surtitle.core.realtime_client import Client
from surtitle.core.segmentation import RULES, Segmenter
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.unanswered import Doubts, Unanswered
from surtitle.engines.recogniser import without_loops
from surtitle.engines.transport import Transport

__all__ = ["Doubts", "RealtimeEngine"]

_WINDOW = 512
"""Samples that the voice detector scores at a time."""
_FASTEST = 4.0
"""Times real time: a service must not be flooded, and what is signed must not grow old."""
_BURST = 1.0
"""Seconds of sound that may go out at once."""
_AHEAD = 8 * SAMPLE_RATE
"""Sound that the service may have unanswered; more stays with whoever feeds.

It throws away what it has not heard when it ends a generation by itself.
"""
_DELAY = 9_600
"""Samples that a service has to hear beyond those of which it tells the words."""
_LOOK_EVERY = 0.1
"""Seconds until the voice detector's news are told if no frame comes."""


class RealtimeEngine:
    """An engine as `surtitle.captioner` wants it; one session, not to be started twice.

    Args:
        transport: Leads to the service.
        detector: Loads a voice detector, which gives the probability of speech in the next
            512 samples.
        model: Name of the model as the service has it; empty for whichever it has.
        name: What a person recognises.
        doubts: Shared by the sessions that follow each other.
        limits: How long to wait for the service, and how much to keep.
    """

    def __init__(
        self,
        transport: Transport,
        detector: Callable[[], Callable[[bytes], float]],
        *,
        model: str,
        name: str,
        doubts: Doubts | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._transport = transport
        self._detector = detector
        self._score: Callable[[bytes], float] | None = None
        self._name = name
        self._doubts = doubts or Doubts()
        self._client = Client(model=model, limits=limits)
        self._segmenter: Segmenter | None = None
        self._window = bytearray()
        self._scored = 0
        self._end = 0
        """One past the newest sample that was fed."""
        self._unanswered = Unanswered()
        self._voices: deque[Voice] = deque()
        """Of sound that the service has not heard yet, by its own account."""
        self._waited = False
        """The client has come to the end of its patience."""
        self._utterance = 0
        """The newest one that has been told of."""
        self._looped = 0
        """The newest one in which the model repeated itself."""
        self._told: deque[EngineEvent] = deque()
        self._outbox: deque[str] = deque()
        self._sending = asyncio.Lock()
        self._room = asyncio.Event()
        self._may_send = 0.0
        self._broken: EngineError | None = None
        self._over = False

    @property
    def name(self) -> str:
        """What a person recognises."""
        return self._name

    @property
    def place(self) -> str:
        """Where the sound goes."""
        return self._transport.place

    async def start(self) -> None:
        """Connect and wait until the service has opened a session.

        Raises:
            EngineError: It cannot be reached, or is no such service.
            UsageError: It cannot be meant.
        """
        # It takes a tenth of a second, and the loop must not wait that long.
        self._score = await asyncio.to_thread(self._detector)
        await self._transport.open()
        await self._do(self._client.opened(self._now()))
        while not self._client.ready:
            await self._hear_frame()
            if self._broken is not None:
                raise self._broken

    async def feed(self, chunk: Chunk) -> None:
        """Send a chunk; waits while the service is too far behind, and to keep the pace.

        Raises:
            EngineError: The session has failed.
        """
        await self._keep_pace(chunk.samples)
        while self._broken is None and not self._over and self._full:
            self._room.clear()
            await self._room.wait()
        if self._broken is not None:
            raise self._broken
        segmenter = self._segmenter_at(chunk)
        await self._listen(chunk, segmenter)
        # Before the chunk goes out: its end has not been scored, and may be within a word.
        await self._tend(segmenter)
        await self._do(self._client.append(chunk.start, chunk.pcm, self._now()))

    async def finish(self) -> None:
        """Say that no more sound comes; `events` ends when all its text is out."""
        await self._do(self._client.finish(self._now()))

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Tell the text as it comes. Raises EngineError when the session fails."""
        while True:
            while self._told:
                yield self._told.popleft()
            if self._broken is not None:
                raise self._broken
            if self._over:
                return
            await self._hear_frame()

    async def stop(self) -> None:
        """Let go of the connection."""
        if self._broken is None:
            self._broken = EngineError("The session was ended.", decision=Decision.RETRY)
        self._room.set()
        await self._transport.close()

    # -- out -----------------------------------------------------------------------

    @property
    def _full(self) -> bool:
        """Whether the service must get on before it is given more."""
        return self._client.unanswered + self._client.held > _AHEAD

    async def _keep_pace(self, samples: int) -> None:
        now = self._now()
        self._may_send = max(self._may_send, now - _BURST / _FASTEST)
        self._may_send += samples / SAMPLE_RATE / _FASTEST
        if self._may_send > now:
            await asyncio.sleep(self._may_send - now)

    def _segmenter_at(self, chunk: Chunk) -> Segmenter:
        if self._segmenter is None:
            self._segmenter = Segmenter(position=chunk.start, clean=without_loops)
            self._scored = self._end = chunk.start
        elif chunk.start != self._end:
            self._segmenter.hole(chunk.start)
            self._window.clear()
            self._scored = chunk.start
        self._end = chunk.end
        return self._segmenter

    async def _listen(self, chunk: Chunk, segmenter: Segmenter) -> None:
        assert self._score is not None  # noqa: S101 - it was started
        self._window += chunk.pcm
        start, likely = self._scored, 0.0
        while len(self._window) >= 2 * _WINDOW:
            window = bytes(self._window[: 2 * _WINDOW])
            del self._window[: 2 * _WINDOW]
            probability = self._score(window) if any(window) else 0.0
            segmenter.voice(self._scored, self._scored + _WINDOW, probability)
            likely = max(likely, probability)
            self._scored += _WINDOW
            if probability >= RULES.speech:
                self._unanswered.voice(self._scored - _WINDOW, self._scored)
            await asyncio.sleep(0)  # a window takes the detector a millisecond
        if self._scored > start:
            self._voices.append(Voice(start=start, end=self._scored, probability=likely))

    async def _tend(self, segmenter: Segmenter) -> None:
        """See to it that the generation does not grow too old, and that it gives words."""
        client = self._client
        # A service whose deltas are no clock has said all words of an utterance only
        # when its generation is over.
        unclear = segmenter.waiting and not client.counted
        # A model that has lost the thread repeats itself until it begins anew.
        looping = segmenter.looping and self._looped != self._utterance
        if looping:
            self._looped = self._utterance
        if unclear or looping or (client.wants_renewal and segmenter.pausing):
            await self._do(client.renew(self._now()))
        self._doubt(segmenter)

    def _doubt(self, segmenter: Segmenter, *, ended: bool = False) -> None:
        again = self._doubts.arise(
            self._unanswered.seconds,
            settled=self._unanswered.held(segmenter.settled),
            sent=self._end,
            ended=ended,
        )
        if again:
            self._fail(_mute())
        elif again is False:
            self._unanswered.forgive()

    # -- in ------------------------------------------------------------------------

    async def _hear_frame(self) -> None:
        """Wait for the next frame, but not past the client's deadline."""
        now = self._now()
        deadline = self._client.deadline
        until = now + _LOOK_EVERY if deadline is None else min(deadline, now + _LOOK_EVERY)
        actions: list[Action] = []
        try:
            async with asyncio.timeout_at(until):
                frame = await self._transport.receive()
        except TimeoutError:
            pass
        except EngineError as error:
            self._fail(error)
        else:
            actions = self._client.heard(frame, self._now())
            until = now
        # Also after a frame: a service that only ever babbles must come to its end. And a
        # timer may go off a hair before its time, which would not be the deadline yet.
        late = self._client.tick(max(until, self._now()))
        self._waited = bool(late)
        await self._do(actions + late)

    async def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame):
                    self._outbox.append(frame)
                case Words(text, position) if self._segmenter is not None:
                    self._doubts.words()
                    self._unanswered.words(position)
                    exact = self._client.counted
                    self._tell(self._segmenter.words(text, position, exact=exact))
                case Beat(position) if self._segmenter is not None:
                    self._tell(self._segmenter.beat(position))
                case Restarted(position) if self._segmenter is not None:
                    self._restarted(position, self._segmenter)
                case Finished(position=position):
                    self._finished(position)
                case Fault(error):
                    self._fail(error)
                case _:
                    pass  # text for no sound
        if self._segmenter is not None:
            self._client.keep_from(self._segmenter.settled)
            self._tell_voices()
        self._room.set()
        if self._outbox:
            await self._flush()

    def _restarted(self, position: int, segmenter: Segmenter) -> None:
        if self._unanswered.held(position) < position:
            self._fail(_mute())  # it begins behind what another session has to hear
        segmenter.restarted(position)

    def _finished(self, position: int) -> None:
        segmenter = self._segmenter
        unheard = position < self._end or (self._waited and self._unanswered.seconds > 0)
        if segmenter is not None and unheard:
            self._fail(faults.not_done())  # nothing more comes, but not all has been heard
        elif segmenter is not None:
            self._doubt(segmenter, ended=True)
            if self._broken is None:
                self._unanswered.forgive()
                self._tell(segmenter.finished(position))
                self._tell_voices()
        self._over = True

    def _tell(self, events: list[EngineEvent]) -> None:
        for event in events:
            match event:
                case Progress(position=position):
                    self._told.append(Progress(position=self._unanswered.held(position)))
                case Partial(utterance=utterance, start=start) if utterance != self._utterance:
                    # Everything before it is done with: if it is the last one, a mark for
                    # all that is lost must not begin before it.
                    self._utterance = utterance
                    self._told += [Progress(position=start), event]
                case Final(start=start, end=end):
                    self._told.append(replace(event, end=self._unanswered.final(start, end)))
                case _:
                    self._told.append(event)

    def _tell_voices(self) -> None:
        """Tell who spoke, as far as the service has heard: so its delay is seen."""
        all_of_them = self._over or (self._client.answered and not self._client.counted)
        heard = self._client.position + _DELAY
        while self._voices and (all_of_them or self._voices[0].end <= heard):
            self._told.append(self._voices.popleft())

    async def _flush(self) -> None:
        """Send what is to be sent, in order, whichever task asked for it."""
        async with self._sending:
            while self._outbox and self._broken is None:
                try:
                    await self._transport.send(self._outbox.popleft())
                except EngineError as error:
                    self._fail(error)

    def _fail(self, error: EngineError) -> None:
        if self._broken is None:
            self._broken = error
        self._room.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _mute() -> EngineError:
    return EngineError(
        "Speech is heard, but the service gives no words for it.",
        remedy="If this happens again, look into the service's log.",
        decision=Decision.RETRY,
    )
