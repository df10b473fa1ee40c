"""One client of the Realtime server, and the engine that hears for it."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Protocol

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from surtitle.core.audio import Chunk
from surtitle.core.errors import SurtitleError
from surtitle.core.realtime_server import (
    Answer,
    Begin,
    Close,
    Drop,
    End,
    Hear,
    ServerAction,
    ServerSession,
)
from surtitle.core.speech import EngineEvent

__all__ = ["RealtimeConnection", "SpeechEngine"]

_NO_LEVEL = -120.0
"""Engines do not ask how loud a chunk is."""

_log = logging.getLogger(__name__)


class SpeechEngine(Protocol):
    """What hears for one generation, as `surtitle.captioner.Engine` does."""

    async def start(self) -> None:
        """Become ready. Raises EngineError, also when it takes too long."""

    async def feed(self, chunk: Chunk) -> None:
        """Take a chunk; waits while too much is unheard. Raises EngineError."""

    async def finish(self) -> None:
        """Say that no more sound comes."""

    def events(self) -> AsyncIterator[EngineEvent]:
        """Tell the text as it comes. Raises EngineError when the engine breaks."""

    async def stop(self) -> None:
        """Let go of everything at once; at most 2 s."""


class _Hearing:
    """An engine at work for one generation, from the wait for a slot to its end."""

    def __init__(self, connection: "RealtimeConnection") -> None:
        self._connection = connection
        self._sound: asyncio.Queue[Chunk | None] = asyncio.Queue()  # bounded by the session
        self.task = asyncio.create_task(self._run(), name="realtime-hearing")

    def hear(self, chunk: Chunk | None) -> None:
        """Have a chunk heard; None is the end."""
        self._sound.put_nowait(chunk)

    async def _run(self) -> None:
        connection = self._connection
        async with connection.slots:
            try:
                engine = connection.make_engine()
            except SurtitleError as error:
                await self._failed(error)
                return
            feeder: asyncio.Task[None] | None = None
            try:
                await engine.start()
                feeder = asyncio.create_task(self._feed(engine), name="realtime-feeder")
                await self._listen(engine)
            except SurtitleError as error:
                await self._failed(error)
            finally:
                if feeder is not None:
                    feeder.cancel()
                    await asyncio.wait([feeder])
                await engine.stop()

    async def _feed(self, engine: SpeechEngine) -> None:
        try:
            while (chunk := await self._sound.get()) is not None:
                await engine.feed(chunk)
            await engine.finish()
        except SurtitleError as error:
            await self._failed(error)

    async def _listen(self, engine: SpeechEngine) -> None:
        async for event in engine.events():
            if not await self._connection.told(self, event):
                return  # nobody listens any more
        await self._connection.told(self, None)

    async def _failed(self, error: SurtitleError) -> None:
        await self._connection.engine_failed(self, error)


class RealtimeConnection:
    """One client: its frames and its engine's events, one at a time, in order.

    Args:
        socket: The connection, just opened.
        session: Decides what is said.
        make_engine: Makes the engine for a generation.
        slots: One is held as long as an engine is.
    """

    def __init__(
        self,
        socket: ServerConnection,
        session: ServerSession,
        *,
        make_engine: Callable[[], SpeechEngine],
        slots: asyncio.Semaphore,
    ) -> None:
        self.make_engine = make_engine
        self.slots = slots
        self._socket = socket
        self._session = session
        self._hearing: _Hearing | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """Of the hearing, and of earlier ones that still let go of their engines."""
        self._turn = asyncio.Lock()
        self._broken_off = False
        self.frames_in = 0
        """From the client."""
        self.frames_out = 0
        """To the client."""

    @property
    def ended(self) -> str:
        """Who ended the connection and with which code, once it is over."""
        state = self._socket.protocol
        if self._broken_off:
            return "refused binary frame"
        if state.close_rcvd is not None and state.close_rcvd_then_sent is not False:
            return f"client {state.close_rcvd.code}"
        return f"server {state.close_sent.code}" if state.close_sent is not None else "client lost"

    async def run(self) -> None:
        """Serve until the connection ends."""
        try:
            async with self._turn:
                identity = f"sess-{secrets.token_hex(8)}"
                await self._do(self._session.opened(identity=identity, created=int(time.time())))
            async for frame in self._socket:
                self.frames_in += 1
                if isinstance(frame, bytes):
                    # As vLLM does, which dies of it: no close frame, no word.
                    self._broken_off = True
                    self._socket.transport.abort()
                    break
                async with self._turn:
                    await self._do(self._session.heard(frame))
        except ConnectionClosed:
            pass  # how the client left is its own business
        finally:
            await self.let_go()

    async def let_go(self) -> None:
        """End what hears for this client."""
        self._drop()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def told(self, hearing: _Hearing, event: EngineEvent | None) -> bool:
        """Pass on what an engine says, None that it has said all; False if nobody wants it."""
        with suppress(ConnectionClosed):
            async with self._turn:
                if self._hearing is hearing:
                    session = self._session
                    told = session.engine_ended() if event is None else session.spoke(event)
                    await self._do(told)
        return self._hearing is hearing

    async def engine_failed(self, hearing: _Hearing, error: SurtitleError) -> None:
        """Tell the client that its engine failed; why is for the log."""
        with suppress(ConnectionClosed):
            async with self._turn:
                if self._hearing is hearing:
                    _log.warning("The engine of a session failed: %s", error)
                    await self._do(self._session.engine_failed())

    async def _do(self, actions: list[ServerAction]) -> None:
        for action in actions:
            match action:
                case Answer(frame=frame):
                    await self._socket.send(frame)
                    self.frames_out += 1
                case Begin():
                    self._hearing = _Hearing(self)
                    self._tasks.add(self._hearing.task)
                    self._hearing.task.add_done_callback(self._ended)
                case Hear(start=start, pcm=pcm):
                    self._hear(Chunk(start=start, pcm=pcm, level=_NO_LEVEL))
                case End():
                    self._hear(None)
                case Drop():
                    self._drop()
                case Close(code=code, reason=reason):
                    self._drop()
                    await self._socket.close(code, reason)

    def _hear(self, chunk: Chunk | None) -> None:
        if self._hearing is not None:
            self._hearing.hear(chunk)

    def _drop(self) -> None:
        hearing, self._hearing = self._hearing, None
        # A hearing that is told so in its own turn ends by itself.
        if hearing is not None and hearing.task is not asyncio.current_task():
            hearing.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("The hearing of a session broke: %s", type(error).__name__)
