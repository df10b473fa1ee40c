"""The server fails under a session. The last file of all: the real servers do not survive it."""

import asyncio
import signal
from collections.abc import Callable

import pytest

from conformance.counting import CountingEngine
from conformance.hearing import Hearing
from conformance.servers import BOTH, MODEL, REAL, Kind, serving
from conformance.sound import bursts
from conformance.talking import Seen, talking, within_limit
from surtitle.core.audio import Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.realtime_actions import Limits

type Note = Callable[[str, str], None]

_SPOKEN = 5.0
"""Seconds after which the server fails, in the second burst."""


class _Dying(CountingEngine):
    async def feed(self, chunk: Chunk) -> None:
        if chunk.end > _SPOKEN * 16_000:
            raise EngineError("The engine died.", decision=Decision.RETRY)
        await super().feed(chunk)


@REAL
def test_a_worker_that_stands_still_for_7_seconds(kind: Kind, note: Note) -> None:
    sound = bursts(5)

    async def main() -> tuple[Seen, Seen, Hearing]:
        async with (
            serving(kind) as server,
            talking(server.url, sound, model=MODEL) as patient,
            talking(server.url, sound, model=MODEL, limits=Limits(delta_within=3.0)) as impatient,
        ):
            hearing = Hearing(server, sound)
            said = asyncio.gather(patient.say(speed=1.0), impatient.say(speed=1.0), hearing.run())
            await asyncio.sleep(_SPOKEN)
            server.signal_engine(signal.SIGSTOP)
            try:
                await asyncio.sleep(7.0)
            finally:
                server.signal_engine(signal.SIGCONT)
            await said
            await patient.finish()
        return patient.seen, impatient.seen, hearing

    patient, impatient, hearing = within_limit(main())
    note("waits 8 s: nothing lost, no reconnect", patient.described(sound))
    note("waits 3 s: says that the server does not answer", impatient.described(sound))
    note("the engine: nothing lost, no reconnect", hearing.described())
    assert (patient.text, patient.error) == (sound.text, None)
    assert patient.longest_silence > 6.0, "it did not stand still"
    assert impatient.error is not None
    assert impatient.error.decision is Decision.RETRY
    assert "has not answered for 3 s" in impatient.error.message
    assert (hearing.text, hearing.error) == (sound.text, None)


@pytest.mark.parametrize(
    "kind",
    [pytest.param("ours", marks=pytest.mark.logs("The engine of a session failed")), "vLLM"],
)
def test_the_engine_of_the_server_dies(kind: Kind, note: Note) -> None:
    sound = bursts(3)

    async def main() -> Seen:
        async with (
            serving(kind, "SHORT", make_engine=_Dying) as server,
            talking(server.url, sound, model=MODEL) as talk,
        ):
            await talk.say(until=_SPOKEN, speed=2.0)
            if kind == "vLLM":
                server.signal_engine(signal.SIGKILL)
            await talk.say(speed=2.0)
            await talk.until_over()
        return talk.seen

    seen = within_limit(main())
    note("processing_error: to be tried again", seen.described(sound))
    assert seen.error is not None
    assert seen.error.decision is Decision.RETRY
    assert "(processing_error)" in seen.error.message
    assert sound.text.startswith(seen.text)
    assert len(seen.text.split()) >= 10


@BOTH
def test_the_server_is_told_to_end(kind: Kind, note: Note) -> None:
    sound = bursts(4)

    async def main() -> tuple[Seen, Hearing]:
        async with serving(kind) as server, talking(server.url, sound, model=MODEL) as talk:
            hearing = Hearing(server, sound)
            said = asyncio.gather(talk.say(speed=1.0), hearing.run())
            await asyncio.sleep(_SPOKEN)
            await server.terminate()
            await said
            await talk.until_over()
        return talk.seen, hearing

    seen, hearing = within_limit(main())
    note("1012: to be tried again after 3 s", seen.described(sound))
    note("the same from the engine", hearing.described())
    for error in (seen.error, hearing.error):
        assert error is not None
        assert (error.decision, error.retry_after) == (Decision.RETRY, 3.0)
        assert "code 1012" in error.message
    assert sound.text.startswith(seen.text)
    assert sound.text.startswith(hearing.standing)


@REAL
def test_nobody_is_there_any_more(kind: Kind, note: Note) -> None:
    async def main() -> EngineError:
        async with serving(kind) as server:
            for _ in range(150):
                try:
                    async with talking(server.url, bursts(1), model=MODEL) as talk:
                        await talk.until_over()
                except EngineError as error:
                    if "refuses connections" in error.message:
                        return error
                await asyncio.sleep(0.1)
        raise AssertionError("it is still there")

    error = within_limit(main())
    note("connection refused: to be tried again, --url", str(error))
    assert (error.decision, error.field) == (Decision.RETRY, "--url")
