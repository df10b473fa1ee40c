"""The on-device engine: does it run, and can it keep up?"""

import asyncio
import wave
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from surtitle.captioner import Engine
from surtitle.checks.finding import Finding, Report, fail, ok, warn
from surtitle.core.audio import Chunk, Format
from surtitle.core.errors import EngineError
from surtitle.core.intake import Intake
from surtitle.core.speech import Final
from surtitle.engines.models import PACKAGED, locate
from surtitle.engines.on_device import OnDeviceEngine

__all__ = ["check_engine", "one_second", "speed", "try_engine"]

_RECORDING = "two_cities.wav"
_FROM = 1.0
"""Where in the recording the sound begins, in seconds: in the middle of a sentence."""
_KEEPS_UP = 0.7
"""Share of the time that the engine may take and still leave some to everything else."""


def speed(name: str, took: float, *, words: bool) -> Finding:
    """Judge an engine by the seconds that one second of speech took, and what came of it."""
    text = f"On-device engine {name}: 1 s of sound takes {took:.2f} s"
    if not words:
        return warn(f"{text}, but no words come of it", "See whether they do in: surtitle demo.")
    if took >= _KEEPS_UP:
        return warn(
            f"{text}, captions may fall behind",
            "Close other programs; captions will be late while they need the processor.",
        )
    return ok(text)


async def check_engine(report: Report) -> None:
    """Have the engine hear a second of the recording that comes with it.

    Says nothing where the engine is not installed: that is said of its library.
    """
    if find_spec("moonshine_voice") is None:
        return
    try:
        chunks = one_second(locate(PACKAGED).parent / _RECORDING)
    except EngineError as error:
        report(fail(f"On-device engine: {error.message.rstrip('.')}", error.remedy))
        return
    report(await try_engine(OnDeviceEngine, chunks))


async def try_engine(make: Callable[[], Engine], chunks: list[Chunk]) -> Finding:
    """Time an engine from the first chunk to its last word, not counting its start."""
    engine = make()
    loop = asyncio.get_running_loop()
    words = False
    try:
        await engine.start()
        begun = loop.time()
        for chunk in chunks:
            await engine.feed(chunk)
        await engine.finish()
        async for event in engine.events():
            words = words or (isinstance(event, Final) and bool(event.text))
        took = loop.time() - begun
    except EngineError as error:
        return fail(error.message.rstrip("."), "Restart the computer; then install Surtitle again.")
    finally:
        await engine.stop()
    return speed(engine.name, took, words=words)


def one_second(recording: Path) -> list[Chunk]:
    """Read a second of a 16-bit WAV file. Raises EngineError when that is impossible."""
    try:
        with wave.open(str(recording), "rb") as file:
            rate, channels = file.getframerate(), file.getnchannels()
            file.setpos(round(_FROM * rate))
            pcm = file.readframes(rate)
    except (OSError, EOFError, wave.Error) as error:
        raise EngineError(
            "Its recording of a voice is missing or damaged.", remedy="Install Surtitle again."
        ) from error
    intake = Intake(Format(rate=rate, channels=channels))
    return intake.push(pcm) + intake.flush()
