"""The one thread that opens, lists and closes audio devices.

Such calls block, sometimes for good, and on some systems must all come from
the same thread. A call that does not end in time is left behind with its
thread, never waited for, and the next call gets a fresh one.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

__all__ = ["ControlThread"]

_MOST_WAITING = 32
"""Calls waiting for their turn; reached only when something is badly wrong."""


class ControlThread:
    """Runs blocking calls one after the other, each with a time limit.

    The thread is a daemon: a call that hangs cannot keep the program alive.

    Args:
        on_abandon: Called when a thread is left behind in the middle of a call, to put
            right what that call has changed for the whole process.
    """

    def __init__(self, *, on_abandon: Callable[[], None] = lambda: None) -> None:
        self._on_abandon = on_abandon
        self._jobs: queue.Queue[Callable[[], None] | None] | None = None

    async def run[T](
        self, work: Callable[[], T], *, limit: float, undo: Callable[[T], object] | None = None
    ) -> T:
        """Run `work` on the thread and return what it returns, or raise what it raises.

        Args:
            work: The blocking call.
            limit: Seconds until it is given up.
            undo: Called on the control thread with the result of a call that ended
                after it was given up or cancelled.

        Raises:
            TimeoutError: The limit was reached.
        """
        done: Future[T] = Future()

        def job() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller, whatever it is
                done.set_exception(error)
            else:
                done.set_result(result)

        self._post(job)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(done)
        except (TimeoutError, asyncio.CancelledError) as error:
            # `work` itself may have raised TimeoutError; then nothing is left behind.
            if isinstance(error, TimeoutError) and not done.done():
                self._abandon()
            if undo is not None:
                done.add_done_callback(lambda late: self._undo(late, undo))
            raise

    def stop(self) -> None:
        """Let the thread end after what it is doing. The next call starts a new one."""
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.put_nowait(None)

    async def finish(self, *, limit: float) -> None:
        """Let the thread end, and wait until the call it is in has ended, up to the limit.

        To be awaited before the program ends: then the libraries are unloaded, and under a
        call that is still in one of them the process dies of a segmentation fault.
        """
        with suppress(TimeoutError):  # it hangs, and is left behind
            # Twice: what ends too late to be wanted is undone after the first.
            for _ in range(2):
                if self._jobs is not None:
                    await self.run(lambda: None, limit=limit)
        self.stop()

    def _post(self, job: Callable[[], None]) -> None:
        if self._jobs is None:
            self._jobs = queue.Queue(_MOST_WAITING)
            threading.Thread(
                target=_work_through, args=(self._jobs,), name="audio-control", daemon=True
            ).start()
        try:
            self._jobs.put_nowait(job)
        except queue.Full as error:
            raise TimeoutError("the audio thread has not kept up with its calls") from error

    def _abandon(self) -> None:
        self.stop()
        self._on_abandon()

    def _undo[T](self, late: Future[T], undo: Callable[[T], object]) -> None:
        if not late.cancelled() and late.exception() is None:
            result = late.result()
            self._post(lambda: _ignore_errors(lambda: undo(result)))


def _work_through(jobs: queue.Queue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()


def _ignore_errors(work: Callable[[], object]) -> None:
    with suppress(Exception):  # nobody is left to hear of it
        work()
