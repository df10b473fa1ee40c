"""Reading that blocks happens in a thread of its own; what was read arrives on the loop."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass

__all__ = ["Reader"]

_POLL = 0.25
"""Seconds between two looks at whether the loop still wants anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The last thing a thread says."""

    error: BaseException | None


class Reader[T]:
    """Runs a generator in a thread and hands its items to one asyncio consumer.

    The thread is at most `ahead` items ahead of the consumer, so a slow consumer
    costs no memory. It is a daemon: a read that never returns (a dead network
    share) cannot keep the program from quitting.

    Args:
        items: What blocks; used in the thread only.
        ahead: How many items may wait for the consumer.
        name: The thread's name.
    """

    def __init__(self, items: Generator[T], *, ahead: int, name: str) -> None:
        self._items = items
        self._credit = threading.Semaphore(ahead)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Queue[T | _End] = asyncio.Queue()  # bounded by the credit
        self._ended = asyncio.Event()

    async def read(self) -> AsyncGenerator[T]:
        """Start the thread and give its items in order. May be called once.

        Raises:
            Exception: What the generator raised, after all items before it.
        """
        if self._stopped.is_set():
            return
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        try:
            # Without a time limit on purpose: standard input may be silent for hours.
            while not isinstance(item := await self._arrived.get(), _End):
                self._credit.release()
                if self._stopped.is_set():
                    return
                yield item
            if item.error is not None:
                raise item.error
        finally:
            self.stop()

    def stop(self) -> None:
        """Ask the thread to end and let the consumer go. Safe in every state."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._credit.release()
            self._arrived.put_nowait(_End(error=None))

    async def close(self, *, timeout: float) -> None:  # noqa: ASYNC109 — a bound, then we leave
        """Stop, and wait at most `timeout` seconds for the thread to let go of its file."""
        self.stop()
        if self._loop is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), timeout)
            if self._ended.is_set():
                self._thread.join(timeout)  # at its very last step: no time to speak of

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                if not self._has_room():
                    break
                self._post(item)
        except Exception as raised:  # noqa: BLE001 — carried to the consumer, who raises it
            error = raised
        finally:
            self._items.close()
            self._post(_End(error=error))

    def _has_room(self) -> bool:
        """Wait for the consumer; false when it has gone."""
        while not self._stopped.is_set():
            if self._credit.acquire(timeout=_POLL):
                return not self._stopped.is_set()
        return False

    def _post(self, item: T | _End) -> None:
        if self._loop is None:  # unreachable: the thread is started after the loop is known
            return
        try:
            self._loop.call_soon_threadsafe(self._take, item)
        except RuntimeError:  # the loop has closed: nobody is there to tell
            self._stopped.set()

    def _take(self, item: T | _End) -> None:
        if isinstance(item, _End):
            self._ended.set()
        self._arrived.put_nowait(item)
