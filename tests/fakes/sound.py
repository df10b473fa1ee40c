"""A computer whose sound system is a fake, and what is needed to listen to its devices."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from fakes.sound_device import FakeSoundDevice, FakeStream, entry
from fakes.sound_server import FakeSoundServer
from surtitle.audio.capture import DeviceSource, open_source
from surtitle.audio.control import ControlThread
from surtitle.audio.devices import SoundSystem, choose, list_devices
from surtitle.audio.portaudio import PortAudio
from surtitle.audio.sound_server import Endpoint, Kind, SoundServer
from surtitle.core.audio import Block, Gap, Lost, Moved, SourceEvent, Started

__all__ = ["LIMIT", "Listener", "Machine", "block", "listen", "play", "speak"]

LIMIT = 10.0
"""Seconds after which a test that waits has failed."""


class Machine:
    """A computer with a fake sound system. Ends its thread on leaving the `with` block."""

    def __init__(
        self, *endpoints: Endpoint, inputs: list[dict[str, Any] | Exception] | None = None
    ) -> None:
        self.server = FakeSoundServer(*endpoints) if endpoints else None
        names = ["pulse", "default"] if endpoints else []
        self.module = FakeSoundDevice(
            entries=inputs if inputs is not None else [entry(name) for name in names],
            server=self.server,
        )
        self.opened: list[AsyncGenerator[SourceEvent]] = []
        """Events that a test listens to, to be closed at its end."""
        self.system = SoundSystem(
            portaudio=PortAudio(self.module),
            control=ControlThread(),
            connect=self.server.connect if self.server is not None else _no_server,
        )
        """What to give to the code under test."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.system.control.stop()


async def _no_server() -> SoundServer | None:
    return None


def block(number: int) -> bytes:
    return number.to_bytes(2, "little") * 960 * 2


def speak(stream: FakeStream) -> None:
    stream.push(block(1))


class Listener:
    """A source and what it says, one event at a time."""

    def __init__(self, source: DeviceSource) -> None:
        self.source = source
        self.events = source.events()

    async def next(self) -> SourceEvent:
        return await asyncio.wait_for(anext(self.events), LIMIT)

    async def next_of[E: (Started, Lost, Moved, Gap, Block)](self, kind: type[E]) -> E:
        async with asyncio.timeout(LIMIT):
            while True:
                event = await self.next()
                if isinstance(event, kind):
                    return event

    async def rest(self) -> list[SourceEvent]:
        async with asyncio.timeout(LIMIT):
            return [event async for event in self.events]


async def listen(
    machine: Machine, *, kind: Kind = Kind.SYSTEM, wanted: str | None = None, follow: bool = False
) -> Listener:
    found = await list_devices(system=machine.system)
    device = choose(found, kind, wanted, platform="linux")
    source = open_source(device, follow_default=follow, system=machine.system)
    listener = Listener(source)
    machine.opened.append(listener.events)
    return listener


def play(machine: Machine, scene: Callable[[Machine], Awaitable[None]]) -> None:
    """Run a scene, and see that nothing of it is left."""

    async def run() -> None:
        await scene(machine)
        for events in machine.opened:
            await events.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            await asyncio.wait(left, timeout=LIMIT)
        assert not {task for task in left if not task.done()}
        assert all(stream.closed for stream in machine.module.streams)
        if machine.server is not None:
            assert machine.server.open_connections == 0

    with machine:
        asyncio.run(run())
