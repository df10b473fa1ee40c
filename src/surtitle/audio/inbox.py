"""The hand-over of sound from PortAudio's thread to the event loop.

One thread puts, another takes, and neither ever waits: the box is a deque that
drops its oldest item by itself, and every item knows its position, so the
taker sees exactly how many frames are missing and where.
"""

import math
from collections import deque
from collections.abc import Buffer, Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Delivery", "Flags", "Inbox", "Times"]


class Times(Protocol):
    """What PortAudio says about when a block was recorded."""

    @property
    def inputBufferAdcTime(self) -> float:  # noqa: N802 - PortAudio's name
        """Stream time of the block's first frame, seconds; 0 where it is not known."""


class Flags(Protocol):
    """What PortAudio says about how a block was recorded."""

    @property
    def input_overflow(self) -> bool:
        """Whether frames were lost before this block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One block as PortAudio handed it over."""

    pcm: bytes
    frames: int
    position: int
    """Frames that were delivered before this block since the stream began."""
    time: float
    """Loop time at which it was handed over, seconds."""
    recorded: float
    """Stream time of its first frame, seconds; 0 where it is not known."""
    overflow: bool
    """Whether the device lost frames before this block."""


_LATELY = 3.0
"""Seconds for which sound that has stopped may go on any moment."""


class Inbox:
    """Holds what was delivered and not yet taken; the oldest goes when it is full.

    Args:
        blocks: How many blocks it holds at most.
        quiet_batch: How many blocks are worth waking the taker for while nothing but exact
            zeros has come for a while; else each is.
        clock: The loop's clock, seconds; called on PortAudio's thread.
        wake: Wakes the taker; called on PortAudio's thread, once for any number of
            blocks until `rearm`.
    """

    def __init__(
        self,
        *,
        blocks: int,
        clock: Callable[[], float],
        wake: Callable[[], None],
        quiet_batch: int = 1,
    ) -> None:
        self.error: Exception | None = None
        """What went wrong on PortAudio's thread."""
        self.ended = False
        """Whether PortAudio has said that the stream is over."""
        self._box: deque[Delivery] = deque(maxlen=blocks)
        self._quiet_batch = quiet_batch
        self._sounded = -math.inf
        """When the last block came that was not all zeros."""
        self._clock = clock
        self._wake = wake
        self._armed = True
        self._position = 0

    def deliver(self, indata: Buffer, frames: int, time: Times, status: Flags) -> None:
        """Be PortAudio's callback: copy, note, wake, return. Never raises."""
        try:
            pcm, now = bytes(indata), self._clock()
            self._box.append(
                Delivery(
                    pcm=pcm,
                    frames=frames,
                    position=self._position,
                    time=now,
                    recorded=time.inputBufferAdcTime,
                    overflow=status.input_overflow,
                )
            )
            self._position += frames
            if pcm.count(0) < len(pcm):
                self._sounded = now
            if self._armed and (len(self._box) >= self._quiet_batch or not self.quiet):
                self._armed = False
                self._wake()
        except Exception as error:  # noqa: BLE001 - raising would end the stream without a word
            self.error = error
            self._tell_end()

    def finish(self) -> None:
        """Be PortAudio's finished-callback. Never raises."""
        self.ended = True
        self._tell_end()

    @property
    def quiet(self) -> bool:
        """Whether nothing but exact zeros has come for a while."""
        return self._clock() - self._sounded > _LATELY

    def rearm(self) -> None:
        """Ask to be woken by the next block. Call before taking."""
        self._armed = True

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._box

    def clear(self) -> int:
        """Throw away what is there; return the position of what comes next."""
        start = 0
        while (delivery := self.take()) is not None:
            start = delivery.position + delivery.frames
        return start

    def take(self) -> Delivery | None:
        """Return the oldest block, None if there is none."""
        try:
            return self._box.popleft()
        except IndexError:
            return None

    def _tell_end(self) -> None:
        try:
            self._wake()
        except Exception as error:  # noqa: BLE001 - see deliver
            self.error = error
