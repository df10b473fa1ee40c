"""One loop for Qt and asyncio."""

import asyncio
import gc
import threading

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from surtitle.core.errors import SurtitleError
from surtitle.qt_loop import ask_for_display, run_in_qt


def test_a_display_that_does_not_answer_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QT_QPA_PLATFORM")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":4712")
    with pytest.raises(SurtitleError, match="The display :4712 does not answer"):
        ask_for_display()


pytestmark = pytest.mark.usefixtures("qapp")


def test_it_runs_qt_and_returns_what_the_coroutine_returns() -> None:
    async def main() -> int:
        fired = asyncio.Event()
        QTimer.singleShot(0, fired.set)
        async with asyncio.timeout(10):
            await fired.wait()
        return 7

    assert run_in_qt(main) == 7


def test_it_does_not_end_with_a_window() -> None:
    async def main() -> int:
        return int(QApplication.quitOnLastWindowClosed())

    assert run_in_qt(main) == 0


def test_work_in_threads_is_done_by_threads_of_python_which_end_with_the_loop() -> None:
    workers: list[threading.Thread] = []

    async def main() -> int:
        workers.append(await asyncio.to_thread(threading.current_thread))
        return 0

    run_in_qt(main)
    [worker] = workers
    # A thread of Qt's is unknown to Python.
    assert not isinstance(worker, threading._DummyThread)
    assert not worker.is_alive()


class Knot:
    """Garbage that only the collector of cycles finds."""

    def __init__(self, deleted_in: list[threading.Thread]) -> None:
        self._self = self
        self._deleted_in = deleted_in

    def __del__(self) -> None:
        self._deleted_in.append(threading.current_thread())


def test_garbage_is_collected_in_the_thread_of_the_windows_only() -> None:
    deleted_in: list[threading.Thread] = []

    def make_much() -> None:
        # Python collects the youngest garbage each time some hundred objects have been made.
        assert len([[i] for i in range(100_000)]) == 100_000

    async def main() -> int:
        gc.collect()
        Knot(deleted_in)
        await asyncio.to_thread(make_much)
        assert set(deleted_in) <= {threading.main_thread()}  # it may have had its turn meanwhile
        much = [[i] for i in range(10_000)]
        async with asyncio.timeout(10):
            while not deleted_in:  # noqa: ASYNC110 - nothing tells that garbage was collected
                await asyncio.sleep(0.01)
        return len(much)

    run_in_qt(main)
    assert deleted_in == [threading.main_thread()]
    assert gc.isenabled()


def test_what_is_asked_for_from_within_does_not_interrupt() -> None:
    order: list[str] = []

    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.call_soon(order.append, "first")
        loop.call_soon_threadsafe(order.append, "second")
        order.append("this")
        await asyncio.sleep(0.01)
        return 0

    run_in_qt(main)
    assert order == ["this", "first", "second"]


def test_timers_ring_in_their_order_and_cancelled_ones_not_at_all() -> None:
    order: list[int] = []

    async def main() -> int:
        loop = asyncio.get_running_loop()
        soon = loop.time() + 0.05
        for number in range(500):
            loop.call_later(3600, order.append, -1).cancel()
            loop.call_at(soon + 0.001 * (number % 5), order.append, number % 5)
        async with asyncio.timeout(10):
            while len(order) < 500:  # noqa: ASYNC110 - the last of them is not known
                await asyncio.sleep(0.01)
        return 0

    run_in_qt(main)
    assert order == sorted(order)
    assert len(order) == 500


def test_threads_wake_the_loop() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        heard = 0
        everything = asyncio.Event()

        def hear() -> None:
            nonlocal heard
            heard += 1
            if heard == 2000:
                everything.set()

        def tell() -> None:
            for _ in range(1000):
                loop.call_soon_threadsafe(hear)

        threads = [threading.Thread(target=tell) for _ in range(2)]
        for thread in threads:
            thread.start()
        async with asyncio.timeout(10):
            await everything.wait()
        for thread in threads:
            thread.join()
        return heard

    assert run_in_qt(main) == 2000


def test_a_closed_loop_says_so() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> int:
        loops.append(asyncio.get_running_loop())
        return 0

    run_in_qt(main)
    with pytest.raises(RuntimeError, match="closed"):
        loops[0].call_soon_threadsafe(print)
