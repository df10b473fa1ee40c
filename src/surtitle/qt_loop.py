"""Qt and asyncio in one loop. The only module that knows qasync, so that it can be replaced."""

import os
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

import qasync
from PySide6.QtWidgets import QApplication

from surtitle.ui.window_system import WindowSystem, apply, choose

__all__ = ["ask_for_display", "run_in_qt"]


def ask_for_display() -> WindowSystem:
    """Decide which window system Qt is to use. Call before anything of Qt."""
    window_system = choose(os.environ, system=sys.platform)
    apply(window_system, os.environ)
    return window_system


def run_in_qt(main: Callable[[], Coroutine[object, object, int]]) -> int:
    """Run a coroutine in one loop with Qt. It ends when the coroutine does, not with a window."""
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)  # noqa: S101 - nobody here makes another kind
    application.setApplicationName("surtitle")
    application.setApplicationDisplayName("Surtitle")
    application.setDesktopFileName("surtitle")
    application.setQuitOnLastWindowClosed(False)
    with qasync.QEventLoop(application) as loop:
        # Its own pool starts ten QThreads at its first use, and about once in a hundred times
        # the program then died of a segmentation fault. This one ends when the loop is closed.
        loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="pool"))
        return int(loop.run_until_complete(main()))
