"""What the doctor says of the engine."""

import asyncio
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from surtitle.checks.engine import one_second, speed, try_engine
from surtitle.checks.finding import Finding, Level
from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.errors import EngineError
from surtitle.core.speech import EngineEvent, Final, Progress


@pytest.mark.parametrize(
    ("took", "words", "level"),
    [
        (0.12, True, Level.OK),
        (0.69, True, Level.OK),
        (0.70, True, Level.WARN),
        (3.0, True, Level.WARN),
        (0.12, False, Level.WARN),
    ],
)
def test_the_table_of_speeds(took: float, *, words: bool, level: Level) -> None:
    found = speed("Moonshine Tiny", took, words=words)
    assert found.level is level
    assert f"1 s of sound takes {took:.2f} s" in found.text


class FakeEngine:
    """An engine that says one thing, and breaks where it is told to."""

    name = "Fake"
    place = "nowhere"

    def __init__(self, *, text: str = "words", breaks: str = "") -> None:
        self._text, self._breaks = text, breaks
        self.heard: list[Chunk] = []
        self.stopped = False

    def _step(self, name: str) -> None:
        if name == self._breaks:
            raise EngineError(f"The engine broke in {name}.")

    async def start(self) -> None:
        self._step("start")

    async def feed(self, chunk: Chunk) -> None:
        self._step("feed")
        self.heard.append(chunk)

    async def finish(self) -> None:
        self._step("finish")

    async def events(self) -> AsyncIterator[EngineEvent]:
        end = self.heard[-1].end
        yield Final(utterance=1, text=self._text, start=0, end=end)
        self._step("events")
        yield Progress(position=end)

    async def stop(self) -> None:
        self.stopped = True


CHUNKS = [Chunk(start=0, pcm=bytes(2560), level=-120.0)]


def attempt(engine: FakeEngine) -> Finding:
    found = asyncio.run(try_engine(lambda: engine, CHUNKS))
    assert engine.stopped
    return found


def test_an_engine_that_works() -> None:
    engine = FakeEngine()
    assert attempt(engine).level is Level.OK
    assert engine.heard == CHUNKS
    assert attempt(FakeEngine(text="")).level is Level.WARN


@pytest.mark.parametrize("where", ["start", "feed", "finish", "events"])
def test_an_engine_that_breaks(where: str) -> None:
    found = attempt(FakeEngine(breaks=where))
    assert (found.level, found.text) == (Level.FAIL, f"The engine broke in {where}")
    assert found.remedy


@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (48_000, 2)])
def test_one_second_is_read_whatever_its_rate(tmp_path: Path, rate: int, channels: int) -> None:
    path = tmp_path / "speech.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\x10\x20" * channels * rate * 3)
    chunks = one_second(path)
    assert chunks[0].start == 0
    assert chunks[-1].end == pytest.approx(SAMPLE_RATE, abs=2)


@pytest.mark.parametrize("content", [None, b"", b"RIFF", b"no sound at all, that is sure"])
def test_a_recording_that_is_damaged(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "speech.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EngineError, match="missing or damaged"):
        one_second(path)
