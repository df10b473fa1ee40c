"""Word error rate of the live pipeline beside the same model given whole recordings."""

import asyncio
import time
from collections import Counter

import numpy as np

from bench.corpus import Recording, errors, recordings, words
from bench.pipeline import Watcher, listen
from surtitle.audio.files import MediaFile
from surtitle.core.audio import SAMPLE_RATE, Block, Started
from surtitle.core.intake import Intake
from surtitle.engines.models import PACKAGED, locate

_WHOLE = 30.0
"""Longer recordings are cut by the library's own detector: the model knows no longer ones."""


async def _samples(recording: Recording) -> list[float]:
    intake: Intake | None = None
    pcm = b""
    async for event in MediaFile(recording.path).events():
        if isinstance(event, Started):
            intake = Intake(event.format)
        elif isinstance(event, Block) and intake is not None:
            pcm += b"".join(chunk.pcm for chunk in intake.push(event.pcm))
    if intake is not None:
        pcm += b"".join(chunk.pcm for chunk in intake.flush())
    samples: list[float] = (np.frombuffer(pcm, "<i2").astype(np.float32) / 32768).tolist()
    return samples


def _offline() -> tuple[object, object]:
    from moonshine_voice.moonshine_api import ModelArch
    from moonshine_voice.transcriber import Transcriber

    folder, architecture = str(locate(PACKAGED)), ModelArch(PACKAGED.architecture)
    whole = Transcriber(folder, architecture, options={"vad_threshold": "0"})
    return whole, Transcriber(folder, architecture)


async def measure(conditions: list[str], schedules: list[str]) -> dict[str, object]:
    """Errors by condition for offline and each schedule."""
    whole, cut = _offline()
    counts: Counter[str] = Counter()
    wrong = {name: Counter[str]() for name in ("offline", *schedules)}
    unstable: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    spent = dict.fromkeys(schedules, 0.0)
    seconds = 0.0
    for recording in recordings("en", "hard", "long"):
        if conditions and recording.condition not in conditions:
            continue
        reference = words(recording.text)
        counts[recording.condition] += len(reference)
        seconds += recording.seconds
        model = whole if recording.seconds <= _WHOLE else cut
        result = model.transcribe_without_streaming(await _samples(recording), SAMPLE_RATE)  # type: ignore[attr-defined]
        heard = words(" ".join(line.text for line in result.lines))
        wrong["offline"][recording.condition] += errors(reference, heard)
        for schedule in schedules:
            watcher = Watcher()
            began = time.perf_counter()
            await listen(MediaFile(recording.path), watcher, live_schedule=schedule == "live")
            spent[schedule] += time.perf_counter() - began
            wrong[schedule][recording.condition] += errors(reference, words(watcher.text))
            for shown in watcher.passages.values():
                unstable[schedule] += shown.changed
                moved[schedule] += shown.moved
    total = sum(counts.values())
    return {
        "words": dict(counts),
        "word error rate, %": {
            name: {c: round(100 * wrong[name][c] / counts[c], 2) for c in sorted(counts)}
            | {"all": round(100 * sum(wrong[name].values()) / total, 2)}
            for name in wrong
        },
        "unstable words, %": {s: round(100 * unstable[s] / total, 2) for s in schedules},
        "settled words changed": {s: moved[s] for s in schedules},
        "times real time": {s: round(seconds / spent[s], 1) for s in schedules},
    }


def run(conditions: list[str], schedules: list[str]) -> dict[str, object]:
    return asyncio.run(measure(conditions, schedules))
