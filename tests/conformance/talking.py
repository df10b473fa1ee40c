"""Our client's two halves on a server: the value machine and the WebSocket, and all they did."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from conformance.sound import Sound
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE
from surtitle.core.errors import EngineError
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
from surtitle.core.realtime_messages import Delta, Done, decode_server
from surtitle.core.server_address import parse_server_address
from surtitle.engines.websocket import WebSocketLimits, WebSocketTransport

__all__ = ["Seen", "Talk", "compared", "talking", "within_limit"]

_LIMIT = 150.0
"""Seconds that a scenario may take."""

_LOOK_EVERY = 0.05
"""Seconds between two looks at the client's deadline."""


def within_limit[T](main: Coroutine[Any, Any, T]) -> T:
    """Run a scenario, but not for ever."""

    async def limited() -> T:
        async with asyncio.timeout(_LIMIT):
            return await main

    return asyncio.run(limited())


def compared(heard: str, said: str) -> str:
    """How one text is to the other, for the report."""
    if heard == said:
        return "every word once"
    return "so far every word once" if said.startswith(heard) else "not the text that was said"


@dataclass(slots=True)
class Seen:
    """What a session did and was told."""

    words: list[tuple[str, int]] = field(default_factory=list)
    """Text that stands, each piece with the position it speaks of."""
    deltas: int = 0
    """As they came, with text or without."""
    dones: int = 0
    restarts: list[int] = field(default_factory=list)
    commits: int = 0
    finals: int = 0
    models: list[str] = field(default_factory=list)
    finished: Finished | None = None
    error: EngineError | None = None
    first_word: float | None = None
    """Seconds after the first sound."""
    longest_silence: float = 0.0
    """Seconds between one delta and the next."""

    @property
    def text(self) -> str:
        return " ".join("".join(text for text, _ in self.words).split())

    def described(self, sound: Sound) -> str:
        """What came of this sound, for the report."""
        same = compared(self.text, sound.text)
        ended = f"; ended: {self.error}" if self.error is not None else ""
        return (
            f"{len(self.text.split())} of {len(sound.text.split())} words, {same}; "
            f"{self.deltas} deltas, {self.dones} dones, {self.commits} commits, "
            f"{len(self.restarts)} restarts, longest silence {self.longest_silence:.2f} s{ended}"
        )


class Talk:
    """One session; use `talking`."""

    def __init__(self, client: Client, transport: WebSocketTransport, sound: Sound) -> None:
        self.client = client
        self.seen = Seen()
        self.sound = sound
        self._transport = transport
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self._now = asyncio.get_running_loop().time
        self._began: float | None = None
        self._last: float | None = None
        self.position = 0
        self.renewals = 0

    @property
    def over(self) -> bool:
        return self.seen.error is not None or self.client.done

    async def run(self) -> None:
        """Receive, and look at the clock, until the session is over."""
        while not self.over:
            self._news.set()
            try:
                async with asyncio.timeout(_LOOK_EVERY):
                    frame = await self._transport.receive()
            except TimeoutError:
                async with self._turn:
                    await self._do(self.client.tick(self._now()))
            except EngineError as error:
                self.seen.error = self.seen.error or error
            else:
                self._count(frame)
                async with self._turn:
                    await self._do(self.client.heard(frame, self._now()))
        self._news.set()

    async def say(
        self, *, until: float | None = None, speed: float | None = None, piece: int = CHUNK_SAMPLES
    ) -> None:
        """Send the sound on to second `until`, or all of it, at `speed` times real time.

        `piece` is how many samples are given at a time.

        In a pause the generation is renewed if the client wants that.
        """
        last = self.sound.samples if until is None else round(until * SAMPLE_RATE)
        started, first = self._now(), self.position
        self._began = self._began or started
        for at, pcm in self.sound.pieces(piece):
            if not first <= at < last or self.over:
                continue
            if speed is not None:
                due = started + (at + len(pcm) // 2 - first) / SAMPLE_RATE / speed
                await asyncio.sleep(max(0.0, due - self._now()))
            async with self._turn:
                if self.client.wants_renewal and self.sound.in_pause(at):
                    await self._renew()
                await self._do(self.client.append(at, pcm, self._now()))
            self.position = at + len(pcm) // 2

    async def renew(self) -> None:
        async with self._turn:
            await self._renew()

    async def finish(self) -> None:
        """Have the rest heard, and wait for it."""
        async with self._turn:
            await self._do(self.client.finish(self._now()))
        await self.until_over()

    async def until_over(self) -> None:
        await self._until(lambda: self.over)

    async def until_deltas(self, count: int) -> None:
        await self._until(lambda: self.seen.deltas >= count or self.over)

    async def _until(self, met: Callable[[], bool]) -> None:
        while not met():
            self._news.clear()
            await self._news.wait()

    async def _renew(self) -> None:
        self.renewals += 1
        await self._do(self.client.renew(self._now()))

    async def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame=frame):
                    self._note(frame)
                    try:
                        await self._transport.send(frame)
                    except EngineError as error:
                        self.seen.error = self.seen.error or error
                        return
                case Words(text=text, position=position):
                    self.seen.words.append((text, position))
                    self._settle()
                    if self.seen.first_word is None and self._began is not None:
                        self.seen.first_word = self._now() - self._began
                case Beat():
                    self._settle()
                case Restarted(position=position):
                    self.seen.restarts.append(position)
                    self.seen.words = [w for w in self.seen.words if w[1] <= position]
                case Finished():
                    self.seen.finished = action
                case Fault(error=error):
                    self.seen.error = self.seen.error or error

    def _settle(self) -> None:
        self.client.keep_from(self.sound.settled(self.client.position))

    def _count(self, frame: str) -> None:
        match decode_server(frame):
            case Delta():
                self.seen.deltas += 1
                now = self._now()
                if self._last is not None:
                    self.seen.longest_silence = max(self.seen.longest_silence, now - self._last)
                self._last = now
            case Done():
                self.seen.dones += 1
            case _:
                pass

    def _note(self, frame: str) -> None:
        message = json.loads(frame)
        match message["type"]:
            case "session.update":
                self.seen.models.append(message["model"])
            case "input_audio_buffer.commit":
                if message.get("final"):
                    self.seen.finals += 1
                else:
                    self.seen.commits += 1


@asynccontextmanager
async def talking(
    url: str,
    sound: Sound,
    *,
    key: str = "",
    model: str = "",
    limits: Limits | None = None,
    connection: WebSocketLimits | None = None,
) -> AsyncIterator[Talk]:
    """Open a session, and close it politely in the end. Raises EngineError."""
    transport = WebSocketTransport(parse_server_address(url), key=key, limits=connection)
    client = Client(model=model, limits=limits)
    running: asyncio.Task[None] | None = None
    try:
        await transport.open()
        talk = Talk(client, transport, sound)
        client.opened(asyncio.get_running_loop().time())
        running = asyncio.create_task(talk.run(), name="conformance session")
        yield talk
    finally:
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        await transport.close()
    if running is not None and not running.cancelled():
        running.result()  # an error of the client itself, none of a session
