"""Qt and asyncio in one loop. The only module that knows qasync, so that it can be replaced."""

import gc
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import qasync
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from surtitle.core.errors import SurtitleError
from surtitle.ui.window_system import WindowSystem, apply, choose
from surtitle.ui.x_display import answers

__all__ = ["ask_for_display", "run_in_qt"]

_COLLECT_MS = 500
"""Between two looks at whether it is time to collect garbage."""


def ask_for_display() -> WindowSystem:
    """Decide which window system Qt is to use. Call before anything of Qt.

    Raises:
        SurtitleError: There should be a display, but it does not answer.
    """
    window_system = choose(os.environ, system=sys.platform)
    display = os.environ.get("DISPLAY", "")
    if window_system.platform == "xcb" and not answers(display):
        raise SurtitleError(
            f"The display {display} does not answer.",
            remedy="Start Surtitle from within the desktop, or use: surtitle caption system",
        )
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
    with _collecting_garbage_here(), qasync.QEventLoop(application) as loop:
        # Its own pool is ten QThreads, which Python does not know; this one ends with the loop.
        loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="pool"))
        return int(loop.run_until_complete(main()))


@contextmanager
def _collecting_garbage_here() -> Iterator[None]:
    """Have Python look for garbage in this thread only.

    It does so in whichever thread makes objects. When it finds windows in another one,
    PySide deletes them here later, one by one, although a window deletes what it holds:
    the program then dies of a segmentation fault.
    """
    enabled = gc.isenabled()
    gc.disable()
    timer = QTimer()
    timer.timeout.connect(_collect_garbage)
    timer.start(_COLLECT_MS)
    try:
        yield
    finally:
        timer.stop()
        gc.collect()
        if enabled:
            gc.enable()


def _collect_garbage() -> None:
    """Do what Python would have done by itself: the oldest generation that is due."""
    due = [have > most for have, most in zip(gc.get_count(), gc.get_threshold(), strict=True)]
    if any(due):
        gc.collect(max(generation for generation, is_due in enumerate(due) if is_due))
