"""Lets recorded sound arrive as it would from a microphone."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable

from surtitle.core.audio import Block, Format, Gap, SourceEvent, Started

__all__ = ["at_real_time"]


async def at_real_time(
    events: AsyncIterable[SourceEvent], *, closed: asyncio.Event
) -> AsyncGenerator[SourceEvent]:
    """Hold every block and gap back until its last frame would have sounded.

    Times are counted in frames from `Started` on the clock of the running loop, so
    nothing adds up over hours; a consumer that was late gets the next blocks at
    once. Ends as soon as `closed` is set.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    form = Format(rate=1, channels=1)
    frames = 0
    async for event in events:
        match event:
            case Started():
                start, form = loop.time(), event.format
            case Block():
                frames += len(event.pcm) // (2 * form.channels)
            case Gap():
                frames += event.frames
            case _:
                pass
        due = start + frames / form.rate
        # More than once: some loops (Qt's) wake a little early.
        while (rest := due - loop.time()) > 0 and not closed.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), rest)
        if closed.is_set():
            return
        yield event
