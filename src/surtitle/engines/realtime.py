"""An engine behind vLLM's Realtime API, over whatever transport leads there."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

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
from surtitle.core.segmentation import Segmenter
from surtitle.core.speech import EngineEvent, Voice
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
_LOOK_EVERY = 0.1
"""Seconds until the voice detector's news are told if no frame comes."""
_MUTE = 15.0
"""Seconds of speech without a word after which the service is in a rut."""
_MUTE_AT_MOST = 240.0


class Doubts:
    """What the sessions of one engine have to know of each other: sound that gave no words.

    A second session that hears nothing in it either is right: it was no speech. So music
    that the voice detector takes for speech is asked about less and less often.
    """

    def __init__(self) -> None:
        self._doubted_until = -1
        """Sound before this position has been sent to a session that gave no words."""
        self._patience = _MUTE

    def words(self) -> None:
        """Words have come."""
        self._patience = _MUTE

    def arise(self, unanswered: float, *, settled: int, sent: int) -> bool | None:
        """Judge so many seconds of speech without a word.

        Returns:
            Whether to have it heard again; None if there is nothing to judge yet.
        """
        if unanswered <= self._patience:
            return None
        self._patience = min(2 * self._patience, _MUTE_AT_MOST)
        if settled < self._doubted_until:
            return False
        self._doubted_until = sent
        return True


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
        await self._do(self._client.append(chunk.start, chunk.pcm, self._now()))
        await self._tend(segmenter)

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
        client = self._client
        ahead = client.sent - client.position if client.counted else 0
        return ahead + client.held > _AHEAD

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
            await asyncio.sleep(0)  # a window takes the detector a millisecond
        if self._scored > start:
            self._told.append(Voice(start=start, end=self._scored, probability=likely))

    async def _tend(self, segmenter: Segmenter) -> None:
        """See to it that the generation does not grow too old, and that it gives words."""
        client = self._client
        # A service whose deltas are no clock has said all words of an utterance only
        # when its generation is over.
        unclear = segmenter.waiting and not client.counted
        if unclear or (client.wants_renewal and segmenter.pausing):
            await self._do(client.renew(self._now()))
        again = self._doubts.arise(segmenter.unanswered, settled=segmenter.settled, sent=self._end)
        if again:
            self._fail(
                EngineError(
                    "Speech is heard, but the service gives no words for it.",
                    decision=Decision.RETRY,
                )
            )
        elif again is False:
            segmenter.forgive()

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
            actions = self._client.tick(self._now())
        except EngineError as error:
            self._fail(error)
        else:
            actions = self._client.heard(frame, self._now())
        await self._do(actions)

    async def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame):
                    self._outbox.append(frame)
                case Words(text, position) if self._segmenter is not None:
                    self._doubts.words()
                    exact = self._client.counted
                    self._told += self._segmenter.words(text, position, exact=exact)
                case Beat(position) if self._segmenter is not None:
                    self._told += self._segmenter.beat(position)
                case Restarted(position) if self._segmenter is not None:
                    self._segmenter.restarted(position)
                case Finished(position=position):
                    if self._segmenter is not None:
                        self._told += self._segmenter.finished(position)
                    self._over = True
                case Fault(error):
                    self._fail(error)
                case _:
                    pass  # text for no sound
        if self._segmenter is not None:
            self._client.keep_from(self._segmenter.settled)
        self._room.set()
        await self._flush()

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
