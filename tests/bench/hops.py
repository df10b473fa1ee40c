"""What each hop to a speech service costs, and what Surtitle itself adds.

The service is our own server with an engine that hears at once, so that nothing but the
way is measured: from the chunk of sound that makes a delta due, to that delta.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from bench.corpus import recordings
from bench.live import to_wav
from fakes.pulse import SINK, private_pulse
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Chunk
from surtitle.core.realtime_actions import Action, Send
from surtitle.core.realtime_client import Client
from surtitle.core.realtime_generation import due_deltas
from surtitle.core.realtime_messages import Append, Delta, decode_client, decode_server
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.core.server_address import parse_server_address
from surtitle.core.speech import EngineEvent, Final, Partial, Progress
from surtitle.engines.aws_credentials import Credentials
from surtitle.engines.sagemaker import SageMakerTransport
from surtitle.engines.transport import Transport
from surtitle.engines.websocket import WebSocketTransport
from surtitle.server.realtime import RealtimeServer
from surtitle.server.sagemaker import STANDIN_CREDENTIALS, Standin

_SECONDS = 20.0


class Instant:
    """An engine that hears at once, and a word in every 240 ms."""

    name, place = "Instant", "here"

    def __init__(self) -> None:
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._text: list[str] = []

    async def start(self) -> None:
        pass

    async def feed(self, chunk: Chunk) -> None:
        if chunk.end // CHUNK_SAMPLES % 3 == 0:
            self._text.append(f"word{len(self._text)}")
            text = " ".join(self._text)
            self._events.put_nowait(
                Partial(utterance=1, text=text, stable_until=len(text), start=0, end=chunk.end)
            )
        self._events.put_nowait(Progress(position=chunk.end))

    async def finish(self) -> None:
        self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[EngineEvent]:
        while (event := await self._events.get()) is not None:
            yield event
        yield Final(utterance=1, text=" ".join(self._text), start=0, end=0)

    async def stop(self) -> None:
        pass


class _Line:
    """A client on a transport, which notes how long each delta takes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._client = Client(model="")
        self._ready = asyncio.Event()
        self._sent: list[float] = []
        self.trips: list[float] = []
        """Seconds from sending the chunk that makes a delta due until it is here."""

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        await self._transport.open()
        receiver = asyncio.create_task(self._receive())
        try:
            await self._act(self._client.opened(loop.time()))
            await self._ready.wait()
            began = loop.time()
            for number in range(int(_SECONDS * SAMPLE_RATE / CHUNK_SAMPLES)):
                await asyncio.sleep(max(0.0, began + number * 0.08 - loop.time()))
                self._sent.append(loop.time())
                pcm = bytes(2 * CHUNK_SAMPLES)
                await self._act(self._client.append(number * CHUNK_SAMPLES, pcm, loop.time()))
            await asyncio.sleep(0.5)
        finally:
            receiver.cancel()
            await asyncio.gather(receiver, return_exceptions=True)
            await self._transport.close()

    async def _receive(self) -> None:
        while True:
            frame = await self._transport.receive()
            now = asyncio.get_running_loop().time()
            await self._act(self._client.heard(frame, now))
            if self._client.ready:
                self._ready.set()
            if isinstance(decode_server(frame), Delta):
                self.trips.append(now - self._sent[self._due_since() - 1])

    def _due_since(self) -> int:
        """Which chunk made the next delta due."""
        deltas = len(self.trips) + 1
        return next(n for n in range(1, 9999) if due_deltas(n * CHUNK_SAMPLES) >= deltas)

    async def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                await self._transport.send(action.frame)


class _Fixed:
    async def resolve(self) -> Credentials:
        return Credentials(
            access_key=STANDIN_CREDENTIALS.access_key,
            secret_key=STANDIN_CREDENTIALS.secret,
        )


async def hops() -> dict[str, object]:
    """Round trips over the WebSocket, and over SDK, HTTP/2 and the WebSocket behind it."""
    result: dict[str, object] = {}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            RealtimeServer(Instant, host="127.0.0.1", port=0, model="m")
        )
        standin = await stack.enter_async_context(Standin(server.url))
        target = SageMakerTarget(
            endpoint="bench",
            region="us-east-1",
            endpoint_url=standin.url,
            ca_bundle=str(standin.ca_path),
        )
        ways: dict[str, Callable[[], Transport]] = {
            "WebSocket": lambda: WebSocketTransport(parse_server_address(server.url)),
            "SageMaker stand-in": lambda: SageMakerTransport(target, credentials=_Fixed()),
        }
        for name, make in ways.items():
            line = _Line(make())
            await line.run()
            trips = 1000 * np.array(line.trips[10:])
            result[name] = {
                "deltas": len(trips),
                "chunk sent to delta here, ms p50 / p95": np.percentile(trips, [50, 95])
                .round(2)
                .tolist(),
            }
    return result


class _Stamps:
    """Notes times inside the running program."""

    def __init__(self) -> None:
        self.delivered: list[tuple[float, float]] = []
        """(seconds of sound since the stream began, when)"""
        self.sent: list[tuple[float, float]] = []
        self.samples = 0
        self.steady_from = 0.0
        """When all that was said before the service answered had gone out."""
        self.received: list[float] = []
        self.painted: list[float] = []

    def install(self) -> None:
        from surtitle.audio.inbox import Inbox
        from surtitle.ui.overlay import Overlay

        deliver, send, receive, paint = (
            Inbox.deliver,
            WebSocketTransport.send,
            WebSocketTransport.receive,
            Overlay.paintEvent,
        )
        stamps = self

        def delivered(self: Inbox, indata: object, frames: int, at: object, status: object) -> None:
            deliver(self, indata, frames, at, status)  # type: ignore[arg-type] # passed on
            before = stamps.delivered[-1][0] if stamps.delivered else 0.0
            rate = stamps.rate
            stamps.delivered.append((before + frames / rate, time.monotonic()))

        async def sent(self: WebSocketTransport, frame: str) -> None:
            await send(self, frame)
            message = decode_client(frame)
            if isinstance(message, Append):
                stamps.samples += len(message.audio) // 2
                stamps.sent.append((stamps.samples / SAMPLE_RATE, time.monotonic()))

        async def received(self: WebSocketTransport) -> str:
            frame = await receive(self)
            message = decode_server(frame)
            if isinstance(message, Delta) and message.delta:
                stamps.received.append(time.monotonic())
            return frame

        def painted(self: Overlay, event: object) -> None:
            paint(self, event)  # type: ignore[arg-type] # passed on
            stamps.painted.append(time.monotonic())

        Inbox.deliver = delivered  # type: ignore[assignment,method-assign] # measured from outside
        WebSocketTransport.send = sent  # type: ignore[method-assign] # same
        WebSocketTransport.receive = received  # type: ignore[method-assign] # same
        Overlay.paintEvent = painted  # type: ignore[method-assign,assignment] # same

    rate = 48_000

    def report(self) -> dict[str, object]:
        moments = np.array(self.delivered)
        to_wire = []
        for upto, at in self.sent:
            place = int(np.searchsorted(moments[:, 0], upto - 1e-6))
            if place < len(moments) and at >= self.steady_from:
                to_wire.append(1000 * (at - moments[place, 1]))
        paints = np.array(self.painted)
        to_paint = []
        for at in self.received:
            place = int(np.searchsorted(paints, at))
            if place < len(paints):
                to_paint.append(1000 * (paints[place] - at))
        return {
            "chunks": len(to_wire),
            "last block of a chunk to the wire, ms p50 / p95": np.percentile(to_wire, [50, 95])
            .round(2)
            .tolist(),
            "deltas with words": len(to_paint),
            "delta received to painted, ms p50 / p95": np.percentile(to_paint, [50, 95])
            .round(2)
            .tolist(),
        }


def app() -> dict[str, object]:
    """From the running program: a block to the wire, a delta to the screen."""
    from surtitle.app import Desktop
    from surtitle.qt_loop import ask_for_display, run_in_qt
    from surtitle.storage.places import Places

    stamps = _Stamps()
    stamps.install()
    window_system = ask_for_display()

    async def main() -> int:
        async with RealtimeServer(Instant, host="127.0.0.1", port=0, model="m") as server:
            places = Places.find(os.environ)
            places.settings.parent.mkdir(parents=True)
            places.settings.write_text(
                f'version = 1\n[engine]\nname = "vllm"\nurl = "{server.url}"\n', encoding="utf-8"
            )
            desktop = Desktop(window_system)
            running = asyncio.create_task(desktop.run())
            await asyncio.sleep(4)
            player = pulse.play(wav, sink=SINK)
            stamps.steady_from = time.monotonic() + 1.0
            await asyncio.sleep(_SECONDS)
            player.kill()
            desktop._over.set()
            return await running

    recording = next(r for r in recordings("long") if r.id == "long-two-cities")
    with private_pulse() as pulse, tempfile.TemporaryDirectory() as folder:
        os.environ["SURTITLE_HOME"] = folder
        wav = Path(folder) / "speech.wav"
        asyncio.run(to_wav(recording.path, wav, 0.0))
        run_in_qt(main)
    return stamps.report()


def run() -> dict[str, object]:
    return {"hops": asyncio.run(hops()), "program": app()}
