"""The engine's own side, against stand-ins for its process. Real threads, real processes."""

import asyncio
import gc
import itertools
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from surtitle.core.audio import CHUNK_SAMPLES, Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.engines.models import PACKAGED
from surtitle.engines.on_device import OnDeviceEngine

PROGRAM = Path(__file__).parent.parent / "fakes" / "programs" / "engine_worker.py"
LIMIT = 30.0
"""Seconds after which a test that waits has failed."""


def engine(
    *behaviour: str, ready_within: float = LIMIT, answer_within: float = LIMIT
) -> OnDeviceEngine:
    return OnDeviceEngine(
        command=[sys.executable, str(PROGRAM), *behaviour],
        ready_within=ready_within,
        answer_within=answer_within,
    )


def chunk(number: int) -> Chunk:
    start = number * CHUNK_SAMPLES
    return Chunk(start=start, pcm=bytes(2 * CHUNK_SAMPLES), level=-120.0)


def child(running: OnDeviceEngine) -> int:
    assert running._process is not None
    return running._process.pid


def gone(pid: int) -> bool:
    """Whether the process has ended and been seen off."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def ended(pid: int) -> None:
    while not gone(pid):  # noqa: ASYNC110 - nothing tells the end of a process that is not ours
        await asyncio.sleep(0.01)


def with_engine(
    use: Callable[[OnDeviceEngine], Awaitable[None]],
    *behaviour: str,
    answer_within: float = LIMIT,
) -> None:
    """Start a stand-in, use it, stop it, and see that nothing is left."""

    async def main() -> None:
        threads = set(threading.enumerate())
        running = engine(*behaviour, answer_within=answer_within)
        async with asyncio.timeout(LIMIT):
            try:
                await running.start()
                pid = child(running)
                await use(running)
            finally:
                await running.stop()
        assert gone(pid)
        assert set(threading.enumerate()) == threads

    asyncio.run(main())
    gc.collect()  # a pipe or a process left open warns now, in this test


async def everything(running: OnDeviceEngine) -> list[EngineEvent]:
    return [event async for event in running.events()]


def test_it_says_what_the_process_says() -> None:
    async def use(running: OnDeviceEngine) -> None:
        assert running.name == PACKAGED.label
        assert running.place == "on this computer"
        await running.feed(chunk(0))
        await running.feed(chunk(1))
        await running.finish()
        first, second = CHUNK_SAMPLES, 2 * CHUNK_SAMPLES
        assert await everything(running) == [
            Partial(utterance=1, text="hello", start=0, end=first),
            Voice(start=0, end=first, probability=0.5),
            Progress(position=0),
            Partial(utterance=1, text="hello", start=0, end=second),
            Voice(start=first, end=second, probability=0.5),
            Progress(position=0),
            Final(utterance=1, text="hello there", start=0, end=0),
        ]

    with_engine(use, "talks")


def test_sound_need_not_begin_at_zero() -> None:
    async def use(running: OnDeviceEngine) -> None:
        begin = 10**6
        await running.feed(chunk(begin))
        await running.feed(chunk(begin + 1))
        await running.finish()
        heard = [event for event in await everything(running) if isinstance(event, Voice)]
        assert heard[0].start == begin * CHUNK_SAMPLES

    with_engine(use, "talks")


def test_a_chunk_without_sound_is_not_the_end() -> None:
    async def use(running: OnDeviceEngine) -> None:
        await running.feed(Chunk(start=0, pcm=b"", level=-120.0))
        await running.feed(chunk(0))
        await running.finish()
        assert len(await everything(running)) == 4

    with_engine(use, "talks")


@pytest.mark.parametrize("behaviour", ["exits", "cannot-load", "garbage-first", "never-ready"])
def test_a_process_that_does_not_become_ready(behaviour: str) -> None:
    async def main() -> None:
        within = 0.3 if behaviour == "never-ready" else LIMIT
        running = engine(behaviour, ready_within=within)
        async with asyncio.timeout(LIMIT):
            with pytest.raises(EngineError) as caught:
                await running.start()
            pid = child(running)
            await running.stop()
        assert caught.value.decision is Decision.RETRY
        assert caught.value.remedy
        assert gone(pid)

    asyncio.run(main())


def test_a_program_that_is_not_there() -> None:
    async def main() -> None:
        running = OnDeviceEngine(command=["/no/such/program"])
        with pytest.raises(EngineError, match="cannot be started"):
            await running.start()
        await running.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("killed", "ended by itself"),
        ("garbage", "cannot be understood"),
        ("nested", "cannot be understood"),
        ("endless-line", "cannot be understood"),
        ("other", "cannot be understood"),
        ("null", "cannot be understood"),
        ("fails", r"reported a fault \(ValueError\)"),
        ("hangs", "does not answer"),
    ],
)
def test_a_process_that_breaks_is_an_error_on_both_sides(behaviour: str, words: str) -> None:
    async def use(running: OnDeviceEngine) -> None:
        async def feed() -> None:
            for number in range(1000):
                await running.feed(chunk(number))

        feeding = asyncio.create_task(feed())
        with pytest.raises(EngineError, match=words):
            await everything(running)
        with pytest.raises(EngineError, match=words):
            await feeding

    with_engine(use, behaviour, answer_within=0.3 if words == "does not answer" else LIMIT)


def test_a_process_that_is_killed_is_missed_at_once() -> None:
    async def use(running: OnDeviceEngine) -> None:
        await running.feed(chunk(0))
        events = running.events()
        await anext(events)
        os.kill(child(running), 9)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(EngineError, match="ended by itself"):
            async for _ in events:
                pass
        # Not after the 12 seconds that an answer may take.
        assert loop.time() - began < 5

    with_engine(use, "talks")


def test_a_process_that_never_says_done_is_an_error() -> None:
    async def use(running: OnDeviceEngine) -> None:
        await running.feed(chunk(0))
        await running.finish()
        with pytest.raises(EngineError, match="does not answer"):
            await everything(running)

    with_engine(use, "never-done", answer_within=0.3)


def test_a_process_that_has_nothing_to_hear_may_be_silent() -> None:
    async def use(running: OnDeviceEngine) -> None:
        events = running.events()
        next_event = asyncio.ensure_future(anext(events))
        # Several times as long as an answer may take.
        done, _ = await asyncio.wait([next_event], timeout=0.4)
        assert not done
        running._answer_within = LIMIT  # from now on it has something to say
        await running.feed(chunk(0))
        assert isinstance(await next_event, Partial)

    with_engine(use, "talks", answer_within=0.1)


def test_feeding_waits_while_ten_seconds_are_unheard(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def use(running: OnDeviceEngine) -> None:
        fed = 0
        full = asyncio.Event()

        async def feed() -> None:
            nonlocal fed
            for number in range(250):
                if number * 0.08 > 10.0:
                    full.set()
                await running.feed(chunk(number))
                fed += 1
            await running.finish()

        feeding = asyncio.create_task(feed())
        listening = asyncio.create_task(everything(running))
        await full.wait()
        await asyncio.wait([feeding], timeout=0.2)
        assert fed == 126, "10 s, and the chunk that goes beyond"
        gate.touch()
        await feeding
        assert len([e for e in await listening if isinstance(e, Voice)]) == 250

    with_engine(use, "gated", str(gate))


def test_a_process_that_floods_is_held_back() -> None:
    async def use(running: OnDeviceEngine) -> None:
        await running.feed(chunk(0))
        await asyncio.sleep(0.3)
        assert running._incoming.qsize() <= 1000
        events = running.events()
        for _ in range(3000):
            await anext(events)

    with_engine(use, "floods")


def test_stopping_before_starting_and_twice() -> None:
    async def main() -> None:
        await engine("talks").stop()
        running = engine("talks")
        await running.start()
        pid = child(running)
        await asyncio.gather(running.stop(), running.stop())
        await running.stop()
        assert gone(pid)
        with pytest.raises(EngineError, match="stopped"):
            await running.feed(chunk(0))

    asyncio.run(main())


@pytest.mark.parametrize("behaviour", ["talks", "floods", "stubborn"])
def test_stopping_lets_go_of_whoever_waits(behaviour: str) -> None:
    async def use(running: OnDeviceEngine) -> None:
        async def feed() -> None:
            for number in itertools.count():
                await running.feed(chunk(number))

        waiting = [asyncio.create_task(feed()), asyncio.create_task(everything(running))]
        await asyncio.wait(waiting, timeout=0.3)
        await running.stop()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, EngineError) for result in results)

    with_engine(use, behaviour)


def test_a_stop_that_is_cancelled_still_ends_the_process() -> None:
    async def main() -> None:
        running = engine("stubborn")
        await running.start()
        for number in range(5):
            await running.feed(chunk(number))
        pid = child(running)
        stopping = asyncio.create_task(running.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        async with asyncio.timeout(LIMIT):
            await ended(pid)

    asyncio.run(main())


def test_the_process_ends_when_the_program_is_gone() -> None:
    async def use(running: OnDeviceEngine) -> None:
        pid = child(running)
        running._outgoing.put(None)  # its standard input closes, as it would then
        await ended(pid)

    with_engine(use, "talks")
