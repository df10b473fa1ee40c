import asyncio
import contextlib
from collections.abc import AsyncGenerator

from fakes.virtual_time import run_virtual
from surtitle.audio.pacing import at_real_time
from surtitle.core.audio import Block, Format, Gap, Notice, SourceEvent, Started

FORM = Format(rate=44_100, channels=2)
TENTH = Block(pcm=bytes(4 * 4_410))


async def tell(*events: SourceEvent) -> AsyncGenerator[SourceEvent]:
    for event in events:
        yield event


def arrivals(*events: SourceEvent, dawdle: float = 0.0) -> list[float]:
    """Milliseconds after the start at which each event comes to a listener who takes his time."""

    async def hear() -> list[float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        times = []
        async for _ in at_real_time(tell(*events), closed=asyncio.Event()):
            times.append(round((loop.time() - start) * 1000, 6))
            await asyncio.sleep(dawdle)
        return times

    return run_virtual(hear())


STARTED = Started(format=FORM, name="x")


def test_a_block_comes_when_its_last_frame_has_sounded() -> None:
    assert arrivals(STARTED, TENTH, TENTH, Notice(text="x"), TENTH) == [0, 100, 200, 200, 300]


def test_a_gap_takes_its_time() -> None:
    gap = Gap(frames=44_100, reason="x")
    assert arrivals(STARTED, TENTH, gap, TENTH) == [0, 100, 1100, 1200]


def test_a_listener_who_was_late_catches_up() -> None:
    assert arrivals(STARTED, *[TENTH] * 4, dawdle=0.03) == [0, 100, 200, 300, 400]
    assert arrivals(STARTED, *[TENTH] * 3, dawdle=0.25) == [0, 250, 500, 750]


def test_nothing_adds_up() -> None:
    odd = Block(pcm=bytes(4 * 4_409))
    assert arrivals(STARTED, *[odd] * 3_000)[-1] == round(3_000 * 4_409 / 44.1, 6)


def test_closing_interrupts_the_wait() -> None:
    async def hear() -> tuple[list[SourceEvent], float]:
        closed = asyncio.Event()
        asyncio.get_running_loop().call_later(5, closed.set)
        gap = Gap(frames=44_100 * 3_600, reason="x")
        async with contextlib.aclosing(tell(STARTED, gap, TENTH)) as events:
            heard = [event async for event in at_real_time(events, closed=closed)]
        return heard, asyncio.get_running_loop().time()

    assert run_virtual(hear()) == ([STARTED], 5)
