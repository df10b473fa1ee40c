import asyncio
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.virtual_time import VirtualTimeLoop, run_virtual


@given(st.lists(st.floats(min_value=0, max_value=1e4), min_size=1, max_size=8))
def test_timers_fire_in_order_at_their_time(delays: list[float]) -> None:
    fired: list[tuple[float, float]] = []

    async def sleeper(delay: float) -> None:
        await asyncio.sleep(delay)
        fired.append((delay, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(*map(sleeper, delays))

    run_virtual(main())
    assert [delay for delay, _ in fired] == sorted(delays)
    assert all(at == pytest.approx(delay, abs=1e-6) for delay, at in fired)


def test_an_hour_takes_no_time() -> None:
    begin = time.monotonic()
    run_virtual(asyncio.sleep(3600))
    # Not a measurement: anything under an hour proves it.
    assert time.monotonic() - begin < 60


def test_timeouts_work() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(5)


def test_what_only_ever_waits_fails() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ticking = asyncio.Event()

        def tick() -> None:
            loop.call_later(1, tick)

        tick()
        await ticking.wait()

    with pytest.raises(TimeoutError):
        run_virtual(main(), limit=100)


def test_the_executor_holds_the_clock() -> None:
    go = threading.Event()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_soon(go.set)
        async with asyncio.timeout(1):  # virtual: it would fire at once if the clock jumped
            await loop.run_in_executor(None, go.wait, 10)
        return loop.time()

    assert run_virtual(main()) == 0


def test_a_real_thread_holds_the_clock_when_announced() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        arrived = asyncio.Event()
        thread = threading.Timer(0.05, loop.call_soon_threadsafe, [arrived.set])
        thread.start()
        with loop.real_thread():
            async with asyncio.timeout(0.01):
                await arrived.wait()
        thread.join()
        return loop.time()

    assert run_virtual(main()) == 0
