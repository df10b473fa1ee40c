"""Blocking audio calls: one after the other, never waited for beyond their limit."""

import asyncio
import threading

import pytest

from surtitle.audio.control import ControlThread

SOON = 10.0


def test_it_returns_and_raises_what_the_call_does() -> None:
    async def run() -> None:
        control = ControlThread()
        assert await control.run(lambda: 42, limit=SOON) == 42
        with pytest.raises(ZeroDivisionError):
            await control.run(lambda: 1 // 0, limit=SOON)
        control.stop()

    asyncio.run(run())


def test_all_calls_come_from_one_thread() -> None:
    async def run() -> None:
        control = ControlThread()
        names = [await control.run(threading.get_ident, limit=SOON) for _ in range(3)]
        both = await asyncio.gather(
            control.run(threading.get_ident, limit=SOON),
            control.run(threading.get_ident, limit=SOON),
        )
        assert len({*names, *both}) == 1
        assert names[0] != threading.get_ident()
        control.stop()

    asyncio.run(run())


def test_a_call_that_hangs_is_left_behind_and_its_late_result_undone() -> None:
    async def run() -> None:
        abandoned: list[bool] = []
        undone = asyncio.Event()
        loop = asyncio.get_running_loop()
        results: list[str] = []

        def undo(result: str) -> None:
            results.append(result)
            loop.call_soon_threadsafe(undone.set)

        control = ControlThread(on_abandon=lambda: abandoned.append(True))
        release = threading.Event()

        def hang() -> str:
            release.wait(SOON)
            return "opened late"

        with pytest.raises(TimeoutError):
            await control.run(hang, limit=0.05, undo=undo)
        assert abandoned == [True]
        assert await control.run(lambda: "goes on", limit=SOON) == "goes on"
        release.set()
        await asyncio.wait_for(undone.wait(), SOON)
        assert results == ["opened late"]
        control.stop()

    asyncio.run(run())


def test_a_cancelled_call_is_undone_without_leaving_its_thread() -> None:
    async def run() -> None:
        abandoned: list[bool] = []
        control = ControlThread(on_abandon=lambda: abandoned.append(True))
        started, release, undone = threading.Event(), threading.Event(), threading.Event()

        def work() -> int:
            started.set()
            release.wait(SOON)
            return 1

        def undo(_: int) -> None:
            undone.set()

        task = asyncio.create_task(control.run(work, limit=SOON, undo=undo))
        await asyncio.to_thread(started.wait, SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        assert await asyncio.to_thread(undone.wait, SOON)
        assert abandoned == []
        control.stop()

    asyncio.run(run())


def test_finishing_waits_for_the_call_under_way_and_for_what_undoes_it() -> None:
    async def run() -> None:
        control = ControlThread()
        started, release = threading.Event(), threading.Event()
        done: list[str] = []

        def work() -> None:
            started.set()
            release.wait(SOON)
            done.append("opened")

        task = asyncio.create_task(
            control.run(work, limit=SOON, undo=lambda _: done.append("closed"))
        )
        await asyncio.to_thread(started.wait, SOON)
        task.cancel()
        finishing = asyncio.create_task(control.finish(limit=SOON))
        await asyncio.wait([task])
        assert not finishing.done()
        release.set()
        await finishing
        assert done == ["opened", "closed"]

    asyncio.run(run())


def test_finishing_does_not_wait_for_ever_nor_start_a_thread_of_its_own() -> None:
    async def run() -> None:
        control = ControlThread()
        before = threading.active_count()
        await control.finish(limit=SOON)
        assert threading.active_count() == before
        release = threading.Event()
        task = asyncio.create_task(control.run(lambda: release.wait(SOON), limit=SOON))
        await asyncio.sleep(0)
        await control.finish(limit=0.05)
        assert not task.done()
        release.set()
        assert await task

    asyncio.run(run())


def test_a_time_out_of_the_call_itself_leaves_nothing_behind() -> None:
    async def run() -> None:
        abandoned: list[bool] = []
        control = ControlThread(on_abandon=lambda: abandoned.append(True))

        def refuse() -> None:
            raise TimeoutError("of its own")

        with pytest.raises(TimeoutError, match="of its own"):
            await control.run(refuse, limit=SOON)
        assert abandoned == []
        control.stop()

    asyncio.run(run())
