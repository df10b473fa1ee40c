"""A Realtime service in memory, on the loop's clock, that does as vLLM with Voxtral was seen to do.

Every 80 ms of sound give one delta, and a word stands in that of the frame in which it
ends, half a second of sound later. The service understands a word only if it hears the
whole of it. Sound between a final commit and its done is thrown away.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from fakes.coded_sound import Speech, place_of
from fakes.voxtral import PROMPT, Generation
from surtitle.core.errors import Decision, EngineError
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    Sendable,
    SessionCreated,
    SessionUpdate,
    Usage,
    decode_client,
    encode,
)

__all__ = ["AtEnd", "AtOpening", "AtSound", "Connection", "Opening", "Planned", "Service"]

_LATENCY = 0.05
_DELTA_TAKES = 0.004
_A_HAIR = 1e-6
"""Seconds by which a timer may come too early."""
_SENDING = 5.0
"""Seconds after which a transport gives up a send."""

type Mistake = Callable[[], EngineError]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What becomes of an attempt to connect."""

    takes: float = 0.05
    error: Mistake | None = None
    mute: bool = False
    """No session.created comes."""
    no_model: bool = False
    """No name of a model is known."""


@dataclass(frozen=True, slots=True)
class AtSound:
    """When the sound at this position comes, on the connection of this number."""

    position: int
    connection: int | None = None
    samples: int = 1


@dataclass(frozen=True, slots=True)
class AtOpening:
    """When the connection of this number is about to be opened."""

    connection: int


@dataclass(frozen=True, slots=True)
class AtEnd:
    """When the silence comes with which a client ends a generation."""


type Moment = AtSound | AtOpening | AtEnd


@dataclass(slots=True)
class Planned:
    """Something to happen once; it is given the connection that serves at that moment."""

    when: Moment
    what: "Callable[[Connection], None]"


class Service:
    """Opens connections; what is to go wrong is in `plans` and `openings`.

    Args:
        speech: What is said, and where.
        context: Tokens after which a generation is ended.
        session_limit: Seconds after which a connection is ended, with `limit_error`.
    """

    def __init__(
        self,
        speech: Speech,
        *,
        context: int | None = None,
        session_limit: float = inf,
        limit_error: Mistake | None = None,
    ) -> None:
        self.speech = speech
        self.context = context
        self.session_limit = session_limit
        self.limit_error = limit_error or _broken
        self.plans: list[Planned] = []
        self.openings: deque[Opening] = deque()
        self.connections: list[Connection] = []
        self.refuses_until = 0.0
        self.busy_until = 0.0
        """No generation starts before."""
        self.cleared = 0.0
        """When the last thing that was wrong was over."""
        self.thrown_away = 0
        """Samples."""

    def __call__(self) -> "Connection":
        connection = Connection(self, len(self.connections))
        self.connections.append(connection)
        return connection

    @property
    def serving(self) -> "list[Connection]":
        """The connections that are open."""
        return [c for c in self.connections if c.is_open]

    def clear(self, after: float = 0.0) -> None:
        """What was wrong is over now, or will be."""
        self.cleared = max(self.cleared, asyncio.get_running_loop().time() + after)

    def busy_for(self, seconds: float) -> None:
        """All its slots are taken for so long."""
        self.busy_until = asyncio.get_running_loop().time() + seconds
        self.clear(seconds)

    def happen(self, moment: Moment, connection: "Connection") -> None:
        """Do what is planned for now."""
        for plan in list(self.plans):
            if _fits(plan.when, moment) and plan in self.plans:
                self.plans.remove(plan)
                plan.what(connection)


class Connection:
    """As `surtitle.engines.transport.Transport`."""

    place = "to gpu.test"

    def __init__(self, service: Service, number: int) -> None:
        self.number = number
        self.is_open = False
        self.closed = False
        self.faulty = False
        """Something is wrong with it that its client must find out."""
        self.silent = False
        """Nothing comes out of it any more."""
        self.blank = False
        """Its deltas hold no text."""
        self.done_after = 0.0
        self.finals = 0
        self.most_waiting = 0
        self.service = service
        self._opening = Opening()
        self._error: EngineError | None = None
        self._inbox: deque[tuple[float, str]] = deque()
        self._news = asyncio.Event()
        self._validated = False
        self._queue: deque[bytes | None] = deque()
        """Sound, and None for the end, that no generation has taken."""
        self._generation: Generation | None = None
        self._works_until = 0.0
        self._ends_at = 0.0
        """When done goes out: until then what comes is thrown away."""
        self._timers: list[asyncio.TimerHandle] = []
        self._send_takes = 0.0
        self._slow_until = 0.0
        self._stuck = _broken()

    # -- as a transport --------------------------------------------------------------

    async def open(self) -> None:
        service, loop = self.service, asyncio.get_running_loop()
        service.happen(AtOpening(self.number), self)
        opening = service.openings.popleft() if service.openings else Opening()
        self._opening = opening
        await asyncio.sleep(opening.takes)
        if (mistake := opening.error) is not None or loop.time() < service.refuses_until:
            error = (mistake or _broken)()
            service.clear(error.retry_after or 0.0)
            raise error
        self.is_open = True
        self.faulty = opening.mute
        if service.session_limit < inf:
            self.later(service.session_limit, lambda: self.end(service.limit_error()))
        if not opening.mute:
            self._tell(SessionCreated(id="sess-1"))

    async def send(self, frame: str) -> None:
        now = asyncio.get_running_loop().time()
        self._raise()
        if self._send_takes and now < self._slow_until:
            await asyncio.sleep(min(self._send_takes, _SENDING))
            if self._send_takes >= _SENDING:
                self.reset(self._stuck)
            self._raise()
        self._hear(frame)

    async def receive(self) -> str:
        loop = asyncio.get_running_loop()
        while True:
            if self._inbox and self._inbox[0][0] <= loop.time() + _A_HAIR:
                return self._inbox.popleft()[1]
            if self._inbox:
                await asyncio.sleep(self._inbox[0][0] - loop.time())
                continue
            self._raise()
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        if self.faulty and not self.closed:
            self.service.clear()
        self.is_open = False
        self.closed = True
        for timer in self._timers:
            timer.cancel()
        await asyncio.sleep(0.01)

    # -- what goes wrong -------------------------------------------------------------

    def reset(self, error: EngineError | None = None) -> None:
        """The connection breaks; what was on its way is gone."""
        self._inbox.clear()
        self.end(error)

    def end(self, error: EngineError | None = None) -> None:
        """It is closed, after what was on its way."""
        if self._error is None:
            self._error = error or _broken()
            self.is_open = False
            self._news.set()
            self.service.clear(self._error.retry_after or 0.0)

    def end_generation(self) -> None:
        """A done that nobody asked for; whatever was not heard is thrown away."""
        if (generation := self._generation) is not None:
            self._tell(generation.done())
            self._generation = None
            self._throw_away()

    def fail(self) -> None:
        """An error in place of a done."""
        if self._generation is not None:
            self._tell(Failure(error="EngineCore encountered an issue.", code="processing_error"))
            self._generation = None
            self._throw_away()
            self.service.clear()

    def slow(self, takes: float, lasts: float, error: EngineError) -> None:
        """Sending takes so long for a while; what takes too long fails with this."""
        self._send_takes, self._stuck = takes, error
        self._slow_until = asyncio.get_running_loop().time() + lasts
        if lasts < inf:
            self.service.clear(lasts)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Do something unless it is closed before."""
        self._timers.append(asyncio.get_running_loop().call_later(seconds, what))

    @property
    def tokens(self) -> int:
        """Place in the context that its generation has come to."""
        return PROMPT + (self._generation.deltas if self._generation is not None else 0)

    # -- the protocol ----------------------------------------------------------------

    def _raise(self) -> None:
        if self.closed:
            raise EngineError("It was closed here.", decision=Decision.RETRY)
        if self._error is not None:
            raise self._error

    def _hear(self, frame: str) -> None:
        now = asyncio.get_running_loop().time()
        match decode_client(frame):
            case SessionUpdate() if self._opening.no_model:
                self._tell(Failure(error="The model does not exist.", code="model_not_found"))
            case SessionUpdate():
                self._validated = True
            case Append(audio=pcm):
                at = place_of(pcm)
                if at is None:
                    self.service.happen(AtEnd(), self)
                    self._raise()
                self._put(pcm, now)
                if at is not None:
                    self.service.happen(AtSound(at, self.number, len(pcm) // 2), self)
            case Commit() if not self._validated:
                self._tell(Failure(error="Model not validated.", code="model_not_validated"))
            case Commit(final=True):
                self.finals += 1
                self._put(None, now)
            case Commit() if self._generation is None and now >= self._ends_at:
                self._begin(now)
            case _:
                pass

    def _begin(self, now: float) -> None:
        if self._queue and self._queue[0] is None:
            self._tell(Done(usage=Usage()))
            self._throw_away()
            return
        self._generation = Generation(self.service.speech)
        if (free := self.service.busy_until) > now + _A_HAIR:
            self.later(free - now, self._drain)
        self._drain()

    def _put(self, item: bytes | None, now: float) -> None:
        if now < self._ends_at:
            self.service.thrown_away += len(item or b"") // 2
            return
        self._queue.append(item)
        self.most_waiting = max(self.most_waiting, len(self._queue))
        self._drain()

    def _drain(self) -> None:
        """Let the generation take what waits."""
        now = asyncio.get_running_loop().time()
        if now + _A_HAIR < self.service.busy_until or self._error is not None:
            return
        while self._queue and (generation := self._generation) is not None:
            item = self._queue.popleft()
            if item is not None:
                generation.hear(item)
                self._deltas(generation, generation.due)
            elif not generation.samples:
                self._tell(Done(usage=Usage()))
                self._generation = None
                self._throw_away()
            else:
                self._close(generation)

    def _close(self, generation: Generation) -> None:
        self._deltas(generation, generation.total)
        if self._generation is None:
            return
        self._generation = None
        self._throw_away()
        self._works_until += self.done_after
        self._ends_at = self._works_until
        self.done_after = 0.0
        if self._ends_at < inf:
            self._tell(generation.done())

    def _deltas(self, generation: Generation, due: int) -> None:
        context = self.service.context
        now = asyncio.get_running_loop().time()
        while generation.deltas < due:
            self._works_until = max(self._works_until, now) + _DELTA_TAKES
            self._tell(Delta(delta=generation.next(blank=self.blank)))
            if context is not None and PROMPT + generation.deltas >= context:
                self.end_generation()
                return

    def _throw_away(self) -> None:
        self.service.thrown_away += sum(len(item or b"") // 2 for item in self._queue)
        self._queue.clear()

    def _tell(self, message: Sendable) -> None:
        if self.silent or self._error is not None:
            return
        now = asyncio.get_running_loop().time()
        self._inbox.append((max(now, self._works_until) + _LATENCY, encode(message)))
        self._news.set()


def _fits(plan: Moment, now: Moment) -> bool:
    match plan, now:
        case AtSound(position=wanted, connection=number), AtSound() as sound:
            return wanted < sound.position + sound.samples and number in (None, sound.connection)
        case _:
            return plan == now


def _broken() -> EngineError:
    return EngineError("The connection broke.", decision=Decision.RETRY)
