"""A stand-in for a sound server, with the behaviour of the real ones."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace

from fakes.sound_device import FakeStream
from surtitle.audio.sound_server import Endpoint, Kind, Recording, SoundServer, Survey
from surtitle.core.errors import SourceError

__all__ = ["FakeSoundServer", "microphone", "output"]


def output(name: str, description: str, *, rate: int = 48_000, channels: int = 2) -> Endpoint:
    """Return an output of a sound server."""
    return Endpoint(
        kind=Kind.SYSTEM,
        name=name,
        description=description,
        source=f"{name}.monitor",
        rate=rate,
        channels=channels,
    )


def microphone(name: str, description: str, *, rate: int = 48_000, channels: int = 1) -> Endpoint:
    """Return an input of a sound server."""
    return Endpoint(
        kind=Kind.MIC,
        name=name,
        description=description,
        source=name,
        rate=rate,
        channels=channels,
    )


class FakeSoundServer:
    """As a sound server: it moves the streams of a vanished source to another one, silently."""

    def __init__(self, *endpoints: Endpoint, server: str = "pulseaudio") -> None:
        self.state = Survey(
            server=server,
            endpoints=endpoints,
            defaults={e.kind: e.name for e in reversed(endpoints)},
        )
        self.moves: list[tuple[int, str]] = []
        self.stubborn = False
        """Whether it refuses to move streams."""
        self.misconnects_to = ""
        """A source that new streams are connected to, whatever they ask for."""
        self.open_connections = 0
        self._alive = True
        self._news: set[asyncio.Event] = set()
        self._streams: dict[int, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def connect(self) -> SoundServer | None:
        self._loop = asyncio.get_running_loop()
        if not self._alive:
            return None
        self.open_connections += 1
        return _Connection(self)

    # What happens to it.

    def add(self, endpoint: Endpoint) -> None:
        self._change(replace(self.state, endpoints=(*self.state.endpoints, endpoint)))

    def make_default(self, endpoint: Endpoint) -> None:
        defaults = {**self.state.defaults, endpoint.kind: endpoint.name}
        self._change(replace(self.state, defaults=defaults))

    def remove(self, endpoint: Endpoint) -> None:
        left = tuple(e for e in self.state.endpoints if e != endpoint)
        defaults = dict(self.state.defaults)
        if defaults.get(endpoint.kind) == endpoint.name:
            defaults[endpoint.kind] = next((e.name for e in left if e.kind is endpoint.kind), "")
        elsewhere = left[0].source if left else ""
        recordings = tuple(
            replace(r, source=elsewhere) if r.source == endpoint.source else r
            for r in self.state.recordings
        )
        self._change(Survey(
            server=self.state.server, endpoints=left, defaults=defaults, recordings=recordings
        ))  # fmt: skip

    def die(self) -> None:
        self._alive = False
        self._tell()

    def connect_stream(self, stream: FakeStream) -> None:
        """Be asked by ALSA for a recording, as the environment says. On any thread."""
        index = len(self._streams) + 1
        self._streams[id(stream)] = index
        properties = dict([stream.environment["PULSE_PROP"].split("=", 1)])
        recording = Recording(
            index=index,
            source=self.misconnects_to or stream.environment["PULSE_SOURCE"],
            properties={**properties, "application.process.id": str(os.getpid())},
        )
        self._change(replace(self.state, recordings=(*self.state.recordings, recording)))

    def disconnect_stream(self, stream: FakeStream) -> None:
        index = self._streams[id(stream)]
        left = tuple(r for r in self.state.recordings if r.index != index)
        self._change(replace(self.state, recordings=left))

    def reconnect(self, recording: int, source: str) -> None:
        """Connect a stream to another source, as some other program may."""
        self._change(replace(self.state, recordings=tuple(
            replace(r, source=source) if r.index == recording else r
            for r in self.state.recordings
        )))  # fmt: skip

    def _change(self, state: Survey) -> None:
        self.state = state
        self._tell()

    def _tell(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            for news in tuple(self._news):  # streams come and go on another thread
                self._loop.call_soon_threadsafe(news.set)

    def check_alive(self) -> None:
        if not self._alive:
            raise SourceError("The sound server has ended.")

    def subscribe(self, news: asyncio.Event) -> None:
        self._news.add(news)

    def unsubscribe(self, news: asyncio.Event) -> None:
        self._news.discard(news)


class _Connection:
    def __init__(self, server: FakeSoundServer) -> None:
        self._server = server
        self._closed = False
        self._news = asyncio.Event()
        server.subscribe(self._news)

    async def survey(self) -> Survey:
        self._server.check_alive()
        return self._server.state

    async def move(self, recording: int, source: str) -> bool:
        self._server.check_alive()
        self._server.moves.append((recording, source))
        if self._server.stubborn:
            return False
        if source not in {e.source for e in self._server.state.endpoints}:
            return False
        self._server.reconnect(recording, source)
        return True

    async def changes(self, *, at_least_every: float) -> AsyncGenerator[None]:
        del at_least_every  # every change is told here
        while True:
            await self._news.wait()
            self._news.clear()
            if self._closed:
                raise SourceError("Closed.")
            self._server.check_alive()
            yield

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._server.open_connections -= 1
            self._news.set()
            self._server.unsubscribe(self._news)
