"""Which engine session is next: the first, one after a failure, one that takes over.

A session that is to take over is started while the old one still works (make before
break): before a service's own limit, or because the chosen engine is back after another
has stood in for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from surtitle.core.errors import Decision, SurtitleError
from surtitle.core.recovery import backoff

__all__ = ["Engines", "Relay", "Session"]

_LEAVE_WITHIN = 3.0
"""Seconds in which sessions that are over must have let go."""
_YIELD_WITHIN = 1.0
"""Seconds for one that has not, once it is told to give that up."""


class Session(Protocol):
    """What is needed of an engine session here; the rest is the conductor's business."""

    @property
    def name(self) -> str:
        """What a person recognises."""

    async def start(self) -> None:
        """Become ready. Raises SurtitleError."""

    async def stop(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines[S: Session]:
    """What makes sessions, and when another one is to take over."""

    chosen: Callable[[], S]
    """Makes a session of the engine that the user wants."""
    stand_in: Callable[[], S] | None = None
    """Makes one of the engine that goes on while the chosen one is away, if the user allows it."""
    away: float = 4.0
    """Seconds without the chosen engine after which the other one stands in."""
    renew_after: float | None = None
    """Seconds after which a session of the chosen engine is replaced, at the next pause."""


class Relay[S: Session]:
    """Brings sessions.

    Args:
        engines: What makes them.
        chance: Random numbers from 0 to 1.
        tell: Is told, in a sentence, when another engine goes on.
    """

    def __init__(
        self, engines: Engines[S], *, chance: Callable[[], float], tell: Callable[[str], None]
    ) -> None:
        self._engines = engines
        self._stand_in = engines.stand_in
        self._chance = chance
        self._tell = tell
        self._made: S | None = None
        """The chosen engine's next session, if it has been made and not started."""
        self._name = ""
        """The chosen engine's."""
        self._relief: asyncio.Task[S | None] | None = None
        self._planned = False
        """The relief only waits for its time: nothing is wrong."""
        self._away_since: float | None = None
        self._tries = 0
        """Sessions of the chosen engine that were sought since it last did its work."""
        self._refused = False
        """The chosen engine needs the user first."""
        self._standing_in = False
        self._told_away = False
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def standing_in(self) -> bool:
        """Whether the latest session is of the engine that stands in."""
        return self._standing_in

    @property
    def can_stand_in(self) -> bool:
        """Whether another engine can go on where the chosen one fails."""
        return self._stand_in is not None and not self._standing_in

    @property
    def relief(self) -> "asyncio.Task[S | None] | None":
        """Ends with a session that is ready to take over, or with None if there will be none."""
        return self._relief

    @property
    def ready(self) -> bool:
        """Whether a session is ready to take over; `taking_over` gives it."""
        relief = self._relief
        if relief is None or not relief.done() or relief.cancelled():
            return False
        return relief.exception() is not None or relief.result() is not None

    @property
    def next(self) -> S:
        """The chosen engine's next session, not started."""
        if self._made is None:
            self._made = self._engines.chosen()
            self._name = self._made.name
        return self._made

    async def begin(self) -> S:
        """Bring the next session, started.

        Raises:
            SurtitleError: It cannot be started.
        """
        if (session := self.taking_over()) is not None:
            return session
        if self._planned or self._stand_in is None:
            self._dismiss()
        if self._stand_in is None:
            # Whoever asks counts the failures, and knows when they are too many.
            return await self._started(self._take())
        loop = asyncio.get_running_loop()
        if self._away_since is None:
            self._away_since = loop.time()
        if self._relief is None and not self._refused:
            self._seek(after=0.0)
        if self._relief is not None:
            left = self._away_since + self._engines.away - loop.time()
            await asyncio.wait([self._relief], timeout=max(0.0, left))
            if (session := self.taking_over()) is not None:
                return session
        session = self._stand_in()
        self._standing_in = True
        if not self._told_away:
            self._told_away = True
            away = f"{session.name} goes on instead."
            if not self._refused:
                away = f"{self._name} is away; {session.name} goes on meanwhile."
            self._tell(away)
        return await self._started(session)

    def taking_over(self) -> S | None:
        """Take the session that is ready to take over, if there is one."""
        if not self.ready or self._relief is None:
            return None
        relief, self._relief = self._relief, None
        self._standing_in = False
        return relief.result()

    def works(self) -> None:
        """The present session has brought text, or found sound to hold none."""
        if self._standing_in:
            return
        self._away_since = None
        if self._relief is None or self._planned:
            self._tries = 0  # otherwise they count the attempts at the next session
        if self._told_away:
            self._told_away = False
            self._tell(f"{self._name} is back.")

    def plan(self) -> None:
        """A session of the chosen engine has begun: have another one ready when it grows old."""
        if self._engines.renew_after is not None and not self._standing_in and not self._relief:
            self._seek(after=self._engines.renew_after)
            self._planned = True

    def give_up(self, error: SurtitleError) -> bool:
        """Do without the engine of the latest session. Tells whether another one can go on."""
        if self._standing_in:
            if self._refused:
                return False
            self._tell(str(error))
            self._stand_in = None
            self._standing_in = False
            return True
        if self._stand_in is None:
            return False
        self._refuse(error)
        return True

    def leave(self, session: S) -> None:
        """Let a session go, without waiting for it."""
        self._let_go(session.stop())

    async def close(self) -> None:
        """Let everything go. Within a few seconds; safe more than once."""
        self._dismiss()
        if self._made is not None:
            self.leave(self._take())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LEAVE_WITHIN
        # One that is dismissed while it starts is only then let go.
        while self._leaving and loop.time() < deadline:
            await asyncio.wait(self._leaving, timeout=deadline - loop.time())
        if late := set(self._leaving):
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=_YIELD_WITHIN)

    def _dismiss(self) -> None:
        relief, self._relief = self._relief, None
        self._planned = False
        if relief is not None:
            relief.cancel()
            self._let_go(self._see_off(relief))

    async def _see_off(self, relief: asyncio.Task[S | None]) -> None:
        await asyncio.wait([relief], timeout=_LEAVE_WITHIN)
        if relief.done() and not relief.cancelled() and (session := relief.result()) is not None:
            await session.stop()

    def _let_go(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work, name="leaving engine")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _refuse(self, error: SurtitleError) -> None:
        """Do without the chosen engine: only the user can put it right."""
        self._refused = True
        self._dismiss()
        self._tell(str(error))

    def _take(self) -> S:
        session, self._made = self.next, None
        return session

    def _seek(self, *, after: float) -> None:
        self._planned = False
        self._relief = asyncio.create_task(self._find(after), name="relief")

    async def _find(self, after: float) -> S | None:
        """Try until the chosen engine can be had, or will not be without the user."""
        await asyncio.sleep(after)
        self._planned = False
        while True:
            await asyncio.sleep(backoff(self._tries, self._chance()))
            self._tries += 1
            try:
                return await self._started(self._take())
            except SurtitleError as error:
                if error.decision is not Decision.RETRY:
                    self._refused = True
                    self._tell(str(error))
                    return None
                await asyncio.sleep(error.retry_after or 0.0)

    async def _started(self, session: S) -> S:
        try:
            await session.start()
        except BaseException:
            self.leave(session)  # not here: whoever waits for it may be cancelled
            raise
        return session
