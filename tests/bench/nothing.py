"""Ten minutes of what holds no speech: words invented, memory grown."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from bench.corpus import recordings
from bench.pipeline import Watcher, listen
from surtitle.audio.files import MediaFile
from surtitle.core.audio import Block, Format, SourceEvent, Started


class Loop:
    """Recordings over and over, or made-up sound, for so many seconds. See `captioner.Source`."""

    live = False

    def __init__(self, name: str, blocks: list[bytes], form: Format, seconds: float) -> None:
        self.name = name
        self._blocks = blocks
        self._format = form
        self._frames = int(seconds * form.rate)
        self.memory: list[int] = []

    async def events(self) -> AsyncIterator[SourceEvent]:
        yield Started(format=self._format, name=self.name)
        given = count = 0
        while given < self._frames:
            block = self._blocks[count % len(self._blocks)]
            count += 1
            given += len(block) // (2 * self._format.channels)
            if count % 1000 == 0:
                self.memory.append(resident(Path("/proc/self/status")))
            yield Block(pcm=block)

    async def close(self) -> None:
        pass


def resident(status: Path) -> int:
    """Memory in use, KiB."""
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


async def _blocks(path: Path) -> tuple[Format, list[bytes]]:
    form, blocks = Format(rate=16_000, channels=1), []
    async for event in MediaFile(path).events():
        if isinstance(event, Started):
            form = event.format
        elif isinstance(event, Block):
            blocks.append(event.pcm)
    return form, blocks


async def measure(seconds: float) -> dict[str, object]:
    mono = Format(rate=16_000, channels=1)
    rng = np.random.default_rng(1)
    zeros = [bytes(3200)]
    sources = [Loop("digital silence", zeros, mono, seconds)]
    for db in (-60, -30):
        noise = rng.normal(0, 32768 * 10 ** (db / 20), 160_000).clip(-32768, 32767)
        data = noise.astype("<i2").tobytes()
        blocks = [data[i : i + 3200] for i in range(0, len(data), 3200)]
        sources.append(Loop(f"white noise {db} dBFS", blocks, mono, seconds))
    for recording in recordings("nospeech"):
        form, blocks = await _blocks(recording.path)
        sources.append(Loop(recording.id, blocks, form, seconds))
    result: dict[str, object] = {}
    for source in sources:
        watcher = Watcher()
        await listen(source, watcher, live_schedule=True)
        result[source.name] = {
            "words": len(watcher.text.split()),
            "said": watcher.text[:200],
            "memory, MB": [
                round(kib / 1024, 1) for kib in source.memory[:: max(1, len(source.memory) // 4)]
            ],
        }
        print(source.name, result[source.name], flush=True)
    return result


def run(seconds: float) -> dict[str, object]:
    return asyncio.run(measure(seconds))
