"""Qt and asyncio in one loop. The only module that knows qasync, so that it can be replaced."""

import asyncio
import gc
import heapq
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, override

import qasync
from PySide6.QtCore import QObject, Qt, QTimer, QTimerEvent, Signal
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
    with _collecting_garbage_here(), _Loop(application) as loop:
        # Its own pool is ten QThreads, which Python does not know; this one ends with the loop.
        loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="pool"))
        return int(loop.run_until_complete(main()))


class _Alarm(QObject):
    """Rings once, on the thread that made it."""

    _from_elsewhere = Signal()

    def __init__(self, ring: Callable[[], None]) -> None:
        super().__init__()
        self._ring = ring
        self._set: int | None = None
        # Queued even on this thread: what is being done there must not be interrupted.
        self._from_elsewhere.connect(ring, Qt.ConnectionType.QueuedConnection)

    def ring_in(self, seconds: float) -> None:
        """Ring then, and not at the time set before."""
        if self._set is not None:
            self.killTimer(self._set)
        self._set = self.startTimer(math.ceil(1000 * seconds), Qt.TimerType.PreciseTimer)

    def ring_from_any_thread(self) -> None:
        """Ring as soon as the loop gets round to it."""
        self._from_elsewhere.emit()

    @override
    def timerEvent(self, event: QTimerEvent) -> None:
        self.killTimer(event.timerId())
        self._set = None
        self._ring()


class _Loop(qasync.QEventLoop):  # type: ignore[misc] # qasync has no types
    """qasync's loop with an order of business of its own.

    qasync starts a timer of Qt for each callback and keeps those of cancelled ones until
    they are due: at a hundred callbacks a second that is most of what an idle captioner
    does. Here one timer serves all, and what is ready is done in one go.
    """

    _MANY_CANCELLED = 100

    def __init__(self, application: QApplication) -> None:
        self._due: deque[asyncio.Handle] = deque()
        self._planned: list[asyncio.TimerHandle] = []
        self._cancelled = 0
        """How many of the planned ones have been cancelled."""
        self._alarm = _Alarm(self._do_business)
        self._alarm_at = math.inf
        self._called = False
        """Another thread has rung and has not been heard yet."""
        super().__init__(application)

    @override
    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context)
        self._due.append(handle)
        self._ring_by(self.time())
        return handle

    @override
    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context)
        self._due.append(handle)
        if not self._called:
            self._called = True
            self._alarm.ring_from_any_thread()
        return handle

    @override
    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    @override
    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._planned, handle)
        self._ring_by(when)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:  # noqa: ARG002 - asyncio's signature
        self._cancelled += 1
        if self._cancelled > max(self._MANY_CANCELLED, len(self._planned) // 2):
            self._planned = [planned for planned in self._planned if not planned.cancelled()]
            heapq.heapify(self._planned)
            self._cancelled = 0

    def _ring_by(self, when: float) -> None:
        if when < self._alarm_at:
            self._alarm_at = when
            self._alarm.ring_in(max(0.0, when - self.time()))

    def _do_business(self) -> None:
        """Do what is ready now. What becomes ready by it waits for what Qt has to do meanwhile."""
        self._called = False
        self._alarm_at = math.inf
        now = self.time()
        while self._planned and self._planned[0].when() <= now:
            self._due.append(heapq.heappop(self._planned))
        try:
            for _ in range(len(self._due)):
                handle = self._due.popleft()
                if not handle.cancelled():
                    handle._run()  # noqa: SLF001 - this is the loop it belongs to
        finally:
            if self._due:
                self._ring_by(now)
            elif self._planned:
                self._ring_by(self._planned[0].when())


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
