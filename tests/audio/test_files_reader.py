import asyncio
import contextlib
import threading
from collections.abc import Generator

import pytest

from surtitle.audio.reader import Reader


def numbers(count: int) -> Generator[int]:
    yield from range(count)


def test_items_come_in_order() -> None:
    async def read() -> list[int]:
        return [item async for item in Reader(numbers(2_000), ahead=4, name="x").read()]

    assert asyncio.run(read()) == list(range(2_000))


def test_what_goes_wrong_comes_after_what_went_right() -> None:
    def fails() -> Generator[int]:
        yield 1
        raise ZeroDivisionError

    got: list[int] = []

    async def read() -> None:
        async for item in Reader(fails(), ahead=4, name="x").read():
            got.append(item)  # noqa: PERF401 — what came before the error is wanted

    with pytest.raises(ZeroDivisionError):
        asyncio.run(read())
    assert got == [1]


def test_the_thread_waits_for_the_listener() -> None:
    made: list[int] = []

    def counted() -> Generator[int]:
        for number in range(1_000):
            made.append(number)
            yield number

    async def read() -> int:
        reader = Reader(counted(), ahead=4, name="x")
        async with contextlib.aclosing(reader.read()) as items:
            for _ in range(10):
                await anext(items)
            for _ in range(50):  # as long as the thread likes
                await asyncio.sleep(0.001)
            most = len(made)
        await reader.close(timeout=5)
        return most

    assert asyncio.run(read()) <= 10 + 4 + 1


def test_leaving_early_closes_the_generator_in_its_thread() -> None:
    closed_in: list[str] = []

    def noted() -> Generator[int]:
        try:
            while True:
                yield 1
        finally:
            closed_in.append(threading.current_thread().name)

    async def read() -> None:
        reader = Reader(noted(), ahead=4, name="reader-under-test")
        async with contextlib.aclosing(reader.read()) as items:
            await anext(items)
        await reader.close(timeout=5)

    asyncio.run(read())
    assert closed_in == ["reader-under-test"]


def test_closing_does_not_wait_for_a_read_that_never_returns() -> None:
    release = threading.Event()

    def stuck() -> Generator[int]:
        yield 1
        release.wait(30)

    async def read() -> list[int]:
        reader = Reader(stuck(), ahead=4, name="x")
        items: list[int] = []

        async def listen() -> None:
            items.extend([item async for item in reader.read()])

        async with asyncio.timeout(5):
            listening = asyncio.create_task(listen())
            await asyncio.sleep(0.01)
            await reader.close(timeout=0.05)
            await listening
        return items

    try:
        assert asyncio.run(read()) == [1]
    finally:
        release.set()


def test_a_loop_that_has_gone_ends_the_thread() -> None:
    release = threading.Event()

    def late() -> Generator[int]:
        release.wait(30)
        yield 1

    threads: list[threading.Thread] = []

    async def start() -> None:
        reader = Reader(late(), ahead=4, name="gone")
        listening = asyncio.create_task(anext(reader.read()))
        await asyncio.sleep(0.01)
        threads.extend(thread for thread in threading.enumerate() if thread.name == "gone")
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening

    asyncio.run(start())
    release.set()
    threads[0].join(5)
    assert not threads[0].is_alive()


def test_closing_before_reading() -> None:
    async def read() -> list[int]:
        reader = Reader(numbers(9), ahead=4, name="x")
        await reader.close(timeout=1)
        return [item async for item in reader.read()]

    assert asyncio.run(read()) == []
