"""Our engine as the captioner uses it: chunks in; finals out, each word once."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from conformance.servers import MODEL, Served
from conformance.sound import Sound
from conformance.talking import compared
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Chunk
from surtitle.core.errors import EngineError
from surtitle.core.realtime_actions import Limits
from surtitle.core.server_address import parse_server_address
from surtitle.core.speech import Final, Partial, Progress
from surtitle.engines.realtime import RealtimeEngine
from surtitle.engines.websocket import WebSocketTransport

__all__ = ["Hearing", "overlaps"]

_LOUD = 1_000


class Hearing:
    """One session of the engine."""

    def __init__(self, server: Served, sound: Sound, *, limits: Limits | None = None) -> None:
        transport = WebSocketTransport(parse_server_address(server.url), key=server.key)
        self.engine = RealtimeEngine(
            transport, lambda: _loudness, model=MODEL, name="Conformance", limits=limits
        )
        self.sound = sound
        self.finals: list[Final] = []
        self.progress = 0
        self.error: EngineError | None = None
        self._partial: Partial | None = None

    @property
    def text(self) -> str:
        return " ".join(" ".join(final.text for final in self.finals).split())

    @property
    def standing(self) -> str:
        """The text that was told last, settled or not."""
        return f"{self.text} {self._partial.text if self._partial else ''}".strip()

    def described(self) -> str:
        same = compared(self.standing, self.sound.text)
        ended = f"; ended: {self.error}" if self.error is not None else ""
        return (
            f"{len(self.standing.split())} of {len(self.sound.text.split())} words, {same}; "
            f"{len(self.finals)} finals, done with {self.progress / SAMPLE_RATE:.2f} of "
            f"{self.sound.seconds:.2f} s{ended}"
        )

    async def run(self, *, speed: float = 1.0) -> None:
        """Say all of the sound and hear all of the text, or note the error."""
        await self.engine.start()
        listener = asyncio.create_task(self._listen(), name="conformance listener")
        try:
            await self._say(speed)
            if self.error is None:
                await self.engine.finish()
            await listener
        except EngineError as error:
            self.error = self.error or error
        finally:
            listener.cancel()
            await asyncio.wait([listener])
            await self.engine.stop()

    async def _say(self, speed: float) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        for start, pcm in self.sound.pieces(CHUNK_SAMPLES):
            due = began + (start + len(pcm) // 2) / SAMPLE_RATE / speed
            await asyncio.sleep(max(0.0, due - clock()))
            await self.engine.feed(Chunk(start=start, pcm=pcm, level=-20.0))

    async def _listen(self) -> None:
        try:
            async for event in self.engine.events():
                match event:
                    case Final():
                        self.finals.append(event)
                        self._partial = None
                    case Partial():
                        self._partial = event
                    case Progress(position=position):
                        self.progress = position
                    case _:
                        pass
        except EngineError as error:
            self.error = error


def overlaps(finals: Sequence[Final]) -> list[tuple[int, int]]:
    """Neighbours whose places in the sound overlap or are out of order."""
    return [
        (before.end, after.start) for before, after in pairwise(finals) if after.start < before.end
    ]


def _loudness(window: bytes) -> float:
    """As a voice detector that takes the noise for speech."""
    samples = memoryview(window).cast("h")
    return 0.95 if max(map(abs, samples)) > _LOUD else 0.02
