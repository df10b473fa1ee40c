"""An event loop whose clock jumps to the next timer as soon as nothing else can happen."""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from typing import Any

__all__ = ["VirtualTimeLoop", "run_virtual"]

_PATIENCE = 10.0
"""Real seconds to wait for a real thread, or for anything at all, before giving up."""


class _JumpingSelector(selectors.DefaultSelector):
    """Looks for real events without waiting; what the loop would wait for, it skips."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None and not self.threads:
            self.now += timeout
            return []
        ready = super().select(_PATIENCE)
        if not ready:
            waited = "a real thread" if self.threads else "an event, but there is no timer"
            raise TimeoutError(f"Waited {_PATIENCE} s for {waited}, and nothing came.")
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its clock starts at 0 and stands still while anything can run.

    It is for timers, not for sockets or pipes: nothing waits for those. Work in
    the loop's executor holds the clock by itself. A test that waits for
    another real thread, such as one that calls `call_soon_threadsafe`, says so:

        with loop.real_thread():
            await arrived.wait()
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._jumping.now

    @contextlib.contextmanager
    def real_thread(self) -> Iterator[None]:
        """Hold the clock while a real thread is at work that the loop does not know of."""
        self._jumping.threads += 1
        try:
            yield
        finally:
            self._jumping.threads -= 1

    def run_in_executor[*Ts, T](
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread and hold the clock until it is done."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.threads += 1
        future.add_done_callback(lambda _: self._let_go())
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the loop's own face
        """End the executor's threads, in real time."""
        with self.real_thread():
            await super().shutdown_default_executor(timeout)

    def _let_go(self) -> None:
        self._jumping.threads -= 1


def run_virtual[T](coro: Coroutine[Any, Any, T], *, limit: float = 86_400) -> T:
    """Run a coroutine in virtual time and return its result.

    Args:
        coro: What to run.
        limit: Virtual seconds after which TimeoutError is raised, so that a
            program that only ever waits fails instead of spinning.
    """

    async def limited() -> T:
        async with asyncio.timeout(limit):
            return await coro

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(limited())
