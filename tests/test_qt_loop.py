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
        assert not deleted_in
        much = [[i] for i in range(10_000)]
        async with asyncio.timeout(10):
            while not deleted_in:  # noqa: ASYNC110 - nothing tells that garbage was collected
                await asyncio.sleep(0.01)
        return len(much)

    run_in_qt(main)
    assert deleted_in == [threading.main_thread()]
    assert gc.isenabled()
