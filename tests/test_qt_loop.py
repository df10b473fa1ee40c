"""One loop for Qt and asyncio."""

import asyncio
import threading

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from surtitle.qt_loop import run_in_qt

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
    # A thread of Qt's is unknown to Python; its pool has crashed now and then.
    assert not isinstance(worker, threading._DummyThread)
    assert not worker.is_alive()
