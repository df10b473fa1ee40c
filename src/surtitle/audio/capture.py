"""Live sound from a device, as a source of the captioner."""

import asyncio
import itertools
import json
import math
import os
import sys
from array import array
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, suppress

from surtitle.audio.devices import SOUND_SYSTEM, Device, Kind, SoundSystem, ways_to
from surtitle.audio.inbox import Inbox
from surtitle.audio.portaudio import Opened, Request
from surtitle.audio.sound_server import Endpoint, SoundServer, Survey
from surtitle.audio.steering import TAG, Steering, gone
from surtitle.audio.timeline import Timeline
from surtitle.core.audio import Block, Lost, Moved, SourceEvent, Started
from surtitle.core.errors import Decision, SourceError

__all__ = ["DeviceSource", "measure", "open_source"]

_INBOX_BLOCKS = 100
"""2 s in blocks of 20 ms."""
_QUIET_BATCH = 25
"""Blocks that wake the loop while the device delivers exact zeros: most of a day it does, and
nobody waits. Any sound wakes it at once."""
_OPEN_LIMIT = 5.0
_CLOSE_LIMIT = 1.5
_HANG_UP_LIMIT = 0.4
"""Seconds; opening, closing, and leaving the sound server. Closing all takes at most 2 s."""
_FIRST_BLOCK_LIMIT = 2.5
"""Seconds; an idle PulseAudio output has been seen to take 2.0."""
_TICK = 0.1
"""Seconds between two looks at the clock while nothing comes."""
_QUIET_TICK = 0.5
"""The same while there has been no sound for a while."""
_UNHEARD_OF_LIMIT = 0.5
"""Seconds the server may take to list our stream once sound comes."""

_serial = itertools.count(1)


def open_source(
    device: Device, *, follow_default: bool = False, system: SoundSystem = SOUND_SYSTEM
) -> "DeviceSource":
    """Return a source that captures a device; it opens when its events are asked for.

    Args:
        device: What `choose` returned.
        follow_default: Whether to go along when another device becomes the default; True
            when the user named none.
        system: What to capture through.
    """
    return DeviceSource(device, follow_default=follow_default, system=system)


class DeviceSource:
    """A microphone, or what an output plays. See `captioner.Source`."""

    def __init__(self, device: Device, *, follow_default: bool, system: SoundSystem) -> None:
        self._device = device
        self._follow = follow_default
        self._system = system
        self._name = device.name
        self._woken = asyncio.Event()
        self._news: deque[SourceEvent] = deque()
        self._inbox: Inbox | None = None
        self._opened: Opened | None = None
        self._server: SoundServer | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._ticker: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        """What a person recognises."""
        return self._name

    @property
    def live(self) -> bool:
        """Sound that is not taken in time is lost."""
        return True

    async def events(self) -> AsyncGenerator[SourceEvent]:
        """Open the device and tell what comes, `Started` first. May be called once."""
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Lost):
                        return
        except SourceError as error:
            if not self._closing.is_set():  # then it only stumbled over being closed
                yield Lost(error=error)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop and let go of the device. Safe in every state, more than once; at most 2 s."""
        self._closing.set()
        self._woken.set()
        if self._ticker is not None:
            self._ticker.cancel()
        server, self._server = self._server, None
        if server is not None:
            await server.close()  # ends the watcher too
        opened, self._opened = self._opened, None
        if opened is not None:
            # TimeoutError: it hangs, as it may when the device is gone, and is left behind.
            with suppress(TimeoutError):
                await self._system.control.run(
                    lambda: self._system.portaudio.close(opened), limit=_CLOSE_LIMIT
                )
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            await asyncio.wait([watcher], timeout=_HANG_UP_LIMIT)
            watcher.cancel()

    async def _events(self) -> AsyncGenerator[SourceEvent]:
        loop = asyncio.get_running_loop()
        steering = await self._open(loop)
        if self._opened is None or self._inbox is None:  # closed meanwhile
            return
        inbox, layout = self._inbox, self._opened.format
        await self._first_block(inbox)
        start = 0 if steering is None else await self._confirm(steering, inbox)
        timeline = Timeline(
            layout=layout,
            loopback=self._device.kind is Kind.SYSTEM,
            name=self._name,
            start=start,
        )
        if self._closing.is_set():
            return
        yield Started(format=layout, name=self._name)
        self._look_in(loop)
        while True:
            self._woken.clear()
            inbox.rearm()
            for event in _merged(_delivered(inbox, timeline)):
                yield event
            while self._news:
                yield self._news.popleft()
            if self._closing.is_set():
                return
            self._raise_if_over(inbox)
            for event in timeline.tick(loop.time()):
                yield event
            await self._woken.wait()

    def _look_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake ourselves now and then: that nothing comes must be noticed too.

        One timer that comes again is cheaper than a time limit on every wait.
        """
        self._woken.set()
        if not self._closing.is_set():
            quiet = self._inbox is not None and self._inbox.quiet
            self._ticker = loop.call_later(_QUIET_TICK if quiet else _TICK, self._look_in, loop)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> Steering | None:
        """Open the stream; on a sound server also prepare to watch where it is connected."""
        if self._device.on_server:
            self._server = await self._system.connect()
            if self._server is None:
                raise SourceError(
                    "No sound server (PipeWire or PulseAudio) answers.",
                    remedy="Start it, or log out and in again.",
                    decision=Decision.RETRY,
                )
            survey = await self._server.survey()
            wanted = self._wanted(survey)
            self._name = wanted.description
            tag = f"{os.getpid()}-{next(_serial)}"
            steering = Steering(
                server=self._server,
                wanted=wanted,
                follow=self._follow,
                tag=tag,
                process=os.getpid(),
                clock=loop.time,
            )
            request = _request_of_server(survey, wanted, tag)
        else:
            steering = None
            request = Request(
                label=self._device.name,
                names=(self._device.id.removeprefix(f"{self._device.host}/"),),
                absent=gone(self._device.name, self._device.kind),
                host=self._device.host,
            )
        inbox = Inbox(
            blocks=_INBOX_BLOCKS,
            quiet_batch=_QUIET_BATCH,
            clock=loop.time,
            wake=self._waker(loop),
        )
        portaudio = self._system.portaudio
        try:
            opened = await self._system.control.run(
                lambda: portaudio.open(request, callback=inbox.deliver, finished=inbox.finish),
                limit=_OPEN_LIMIT,
                undo=portaudio.close,
            )
        except TimeoutError as error:
            raise SourceError(
                f"{self._name} does not open.",
                remedy="Unplug it or switch it off and on, then try again.",
                decision=Decision.RETRY,
            ) from error
        self._opened, self._inbox = opened, inbox
        if self._closing.is_set():  # `close` came while it opened and had nothing to close yet
            await self.close()
        return steering

    def _wanted(self, survey: Survey) -> Endpoint:
        kind = self._device.kind
        wanted = survey.default(kind) if self._follow else None
        wanted = wanted or survey.endpoint(kind, self._device.id)
        if wanted is None:
            raise gone(self._device.name, kind)
        return wanted

    async def _first_block(self, inbox: Inbox) -> None:
        """Wait until sound comes: that opening went well does not mean that it will."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_BLOCK_LIMIT):
                while inbox.empty and not self._closing.is_set():
                    self._raise_if_over(inbox)
                    await self._wait(_TICK)
        if inbox.empty and not self._closing.is_set():
            raise SourceError(
                f"{self._name} was opened but delivers no sound.",
                remedy="Check that it is connected and that programs may record from it.",
                decision=Decision.RETRY,
            )

    async def _confirm(self, steering: Steering, inbox: Inbox) -> int:
        """Make sure that the sound comes from where it should, then keep watch.

        Returns the position of the first frame that does.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _UNHEARD_OF_LIMIT
        await steering.check()
        while not steering.seen and loop.time() < until and not self._closing.is_set():
            await asyncio.sleep(_TICK)
            await steering.check()
        # What was heard before it was connected rightly came from somewhere else.
        start = inbox.clear() if steering.switches else 0
        self._name = steering.wanted.description
        self._watcher = asyncio.create_task(steering.watch(self._tell), name="sound steering")
        return start

    def _tell(self, event: Moved | Lost) -> None:
        if isinstance(event, Moved):
            self._name = event.name
        if not self._closing.is_set():  # then the watcher ends because we hang up
            self._news.append(event)
            self._woken.set()

    def _raise_if_over(self, inbox: Inbox) -> None:
        if inbox.error is not None:
            raise SourceError(
                f"Taking over the sound of {self._name} failed.",
                remedy="Surtitle opens it again.",
                decision=Decision.RETRY,
            ) from inbox.error
        if inbox.ended:
            raise SourceError(
                f"{self._name} has stopped delivering sound.",
                remedy="Check that it is still connected.",
                decision=Decision.RETRY,
            )

    async def _wait(self, limit: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._woken.wait()

    def _waker(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        def wake() -> None:
            # RuntimeError: the loop is closed, and nobody is left who could want the sound.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._woken.set)

        return wake


def _delivered(inbox: Inbox, timeline: Timeline) -> Iterator[SourceEvent]:
    while (delivery := inbox.take()) is not None:
        yield from timeline.deliver(delivery)


def _merged(events: Iterable[SourceEvent]) -> Iterator[SourceEvent]:
    """Put blocks that follow each other together: what is done for each has its price."""
    pcm = b""
    for event in events:
        if isinstance(event, Block):
            pcm += event.pcm
            continue
        if pcm:
            yield Block(pcm=pcm)
            pcm = b""
        yield event
    if pcm:
        yield Block(pcm=pcm)


def _request_of_server(survey: Survey, wanted: Endpoint, tag: str) -> Request:
    package = "pipewire-alsa" if survey.is_pipewire else "libasound2-plugins"
    return Request(
        label=wanted.description,
        names=ways_to(survey),
        absent=SourceError(
            "ALSA, through which sound is recorded, has no way to the sound server.",
            remedy=f"Install it, for example: sudo apt install {package}.",
            decision=Decision.RECONFIGURE,
        ),
        rate=wanted.rate,
        channels=wanted.channels,
        environment=environment_for(wanted, tag),
    )


def environment_for(wanted: Endpoint, tag: str) -> dict[str, str]:
    """Return what leads either ALSA device to the wanted source; they read it while they open.

    `PIPEWIRE_ALSA` is for the device `pipewire`, the others are for `pulse`.
    """
    properties: dict[str, object] = {"target.object": wanted.name, TAG: tag}
    if wanted.kind is Kind.SYSTEM:
        properties["stream.capture.sink"] = True
    return {
        "PIPEWIRE_ALSA": json.dumps(properties),
        "PULSE_SOURCE": wanted.source,
        "PULSE_PROP": f"{TAG}={tag}",
    }


async def measure(device: Device, seconds: float, *, system: SoundSystem = SOUND_SYSTEM) -> float:
    """Listen for some seconds and return the level of the loudest block in dBFS (RMS).

    Returns -120 for digital silence.

    Raises:
        SourceError: The device does not open or is lost.
    """
    loop = asyncio.get_running_loop()
    loudest = -120.0
    until = math.inf
    async with aclosing(open_source(device, system=system).events()) as events:
        async for event in events:
            match event:
                case Started():
                    until = loop.time() + seconds
                case Block(pcm=pcm):
                    loudest = max(loudest, _level(pcm))
                case Lost(error=error):
                    raise error
            if loop.time() >= until:
                break
    return loudest


def _level(pcm: bytes) -> float:
    samples = array("h", pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    power = math.sumprod(samples, samples) / max(len(samples), 1)
    return max(-120.0, 10.0 * math.log10(power / 32768.0**2)) if power else -120.0
