"""A device as a source: opened, listened to and let go of, whatever it does."""

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from fakes.sound import LIMIT, Machine, block, listen, play, speak
from fakes.sound_device import PortAudioError, entry
from fakes.sound_server import microphone, output
from surtitle.audio import capture
from surtitle.audio.capture import measure
from surtitle.audio.devices import Device, choose, list_devices
from surtitle.audio.sound_server import Endpoint, Kind
from surtitle.core.audio import Block, Format, Gap, Lost, Started
from surtitle.core.errors import SourceError

if TYPE_CHECKING:
    from surtitle.captioner import Source

LOUD = output("loud", "Loudspeakers")
HEAD = output("head", "Headphones")
TABLE = microphone("table", "Table microphone")
ZEROS = bytes(960 * 2 * 2)
"""20 ms at 48 kHz, stereo."""


def speaking(*endpoints: Endpoint) -> Machine:
    machine = Machine(*(endpoints or (LOUD, HEAD, TABLE)))
    machine.module.on_start = speak
    return machine


def test_it_tells_started_then_the_sound() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        source: Source = listener.source
        assert source.live
        assert listener.source.name == "Loudspeakers"
        assert await listener.next() == Started(
            format=Format(rate=48_000, channels=2), name="Loudspeakers"
        )
        assert await listener.next() == Block(pcm=block(1))
        machine.module.streams[0].push(block(2))
        assert await listener.next() == Block(pcm=block(2))
        environment = machine.module.streams[0].environment
        assert environment["PULSE_SOURCE"] == "loud.monitor"
        await listener.source.close()
        assert await listener.rest() == []

    play(speaking(), scene)


def test_a_slow_listener_gets_a_gap_in_place_of_the_oldest() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine, kind=Kind.MIC)
        await listener.next_of(Started)
        stream = machine.module.streams[0]
        for number in range(2, 151):
            stream.push(number.to_bytes(2, "little") * 960)
        stream.settle()
        gap = await listener.next_of(Gap)
        # The first block was twice as long: it was made for two channels.
        assert gap.frames == 51 * 960
        rest = await listener.next_of(Block)
        assert rest.pcm == b"".join(n.to_bytes(2, "little") * 960 for n in range(51, 151))
        await listener.source.close()

    play(speaking(), scene)


def test_what_was_captured_before_closing_is_still_told() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        await listener.next_of(Started)
        machine.module.streams[0].push(block(2))
        await listener.source.close()
        assert await listener.rest() == [Block(pcm=block(1) + block(2))]
        await listener.source.close()

    play(speaking(), scene)


def test_a_stream_that_ends_by_itself_is_lost() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        await listener.next_of(Started)
        machine.module.streams[0].end()
        lost = await listener.next_of(Lost)
        assert "Loudspeakers has stopped" in str(lost.error)
        assert await listener.rest() == []

    play(speaking(), scene)


def test_an_error_in_the_callback_is_lost_and_chained() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        await listener.next_of(Started)
        inbox = listener.source._inbox
        assert inbox is not None
        inbox.error = error = MemoryError()
        lost = await listener.next_of(Lost)
        assert lost.error.__cause__ is error

    play(speaking(), scene)


def test_a_device_that_opens_but_never_delivers_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "_FIRST_BLOCK_LIMIT", 0.1)

    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        events = await listener.rest()
        assert len(events) == 1
        assert isinstance(events[0], Lost)
        assert "delivers no sound" in str(events[0].error)

    play(Machine(LOUD), scene)


def test_a_device_that_is_refused_is_lost() -> None:
    async def scene(machine: Machine) -> None:
        machine.module.refuse_with = PortAudioError("Device unavailable", -9985)
        events = await (await listen(machine)).rest()
        assert len(events) == 1
        assert isinstance(events[0], Lost)
        assert "another program" in str(events[0].error)

    play(speaking(), scene)


def test_an_opening_that_hangs_is_lost_and_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "_OPEN_LIMIT", 0.2)

    async def scene(machine: Machine) -> None:
        release = threading.Event()
        machine.module.hang["open"] = release
        listener = await listen(machine)
        lost = await listener.next_of(Lost)
        assert "does not open" in str(lost.error)
        release.set()
        assert await asyncio.to_thread(machine.module.opened.wait, LIMIT)
        assert await asyncio.to_thread(machine.module.streams[0].shut.wait, LIMIT)
        await machine.system.control.run(int, limit=LIMIT)

    play(speaking(), scene)


def test_a_closing_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "_CLOSE_LIMIT", 0.1)

    async def scene(machine: Machine) -> None:
        release = threading.Event()
        machine.module.hang["close"] = release
        listener = await listen(machine)
        await listener.next_of(Started)
        async with asyncio.timeout(2):
            await listener.source.close()
        assert not machine.module.streams[0].closed
        release.set()
        # The next one goes on with a thread that is free.
        again = await listen(machine)
        await again.next_of(Started)
        await again.source.close()
        for stream in machine.module.streams:
            assert await asyncio.to_thread(stream.shut.wait, LIMIT)

    play(speaking(), scene)


def test_closing_while_it_opens_leaves_nothing_open() -> None:
    async def scene(machine: Machine) -> None:
        release = threading.Event()
        machine.module.hang["open"] = release
        listener = await listen(machine)
        first = asyncio.create_task(listener.rest())
        await asyncio.sleep(0.05)
        await listener.source.close()
        release.set()
        assert await first == []

    play(speaking(), scene)


def test_cancelling_while_it_opens_leaves_nothing_open() -> None:
    async def scene(machine: Machine) -> None:
        release = threading.Event()
        machine.module.hang["open"] = release
        listener = await listen(machine)
        first = asyncio.create_task(listener.rest())
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.wait([first], timeout=LIMIT)
        assert first.cancelled()
        release.set()
        # One after the other on the same thread: the opening, its undoing, and ours.
        await machine.system.control.run(int, limit=LIMIT)
        await machine.system.control.run(int, limit=LIMIT)
        assert len(machine.module.streams) == 1

    play(speaking(), scene)


def test_closing_while_the_first_sound_is_awaited_is_no_loss() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        first = asyncio.create_task(listener.rest())
        assert await asyncio.to_thread(machine.module.opened.wait, LIMIT)
        await listener.source.close()
        assert await first == []

    play(Machine(LOUD), scene)


def test_closing_before_opening_is_fine() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine)
        await listener.source.close()
        assert machine.module.streams == []
        assert await listener.rest() == []

    play(speaking(), scene)


def test_sound_after_the_loop_has_gone_hurts_nobody() -> None:
    async def leave(machine: Machine) -> None:
        listener = await listen(machine)
        await listener.next_of(Started)
        machine.module.hang["close"] = threading.Event()
        # The loop ends without closing the source.
        listener.source._opened = None
        await listener.source.close()

    machine = speaking()
    with machine:
        asyncio.run(leave(machine))
        stream = machine.module.streams[0]
        stream.push(block(2))
        stream.settle()
        stream.end()


def test_without_a_server_a_microphone_is_opened_directly() -> None:
    async def scene(machine: Machine) -> None:
        listener = await listen(machine, kind=Kind.MIC)
        started = await listener.next_of(Started)
        assert started == Started(format=Format(rate=44_100, channels=2), name="USB (hw:1,0)")
        assert await listener.next() == Block(pcm=block(1))
        await listener.source.close()

    machine = Machine(inputs=[entry("USB (hw:1,0)", channels=4)])
    machine.module.on_start = speak
    play(machine, scene)


@pytest.mark.parametrize(
    ("pcm", "level"),
    [
        (ZEROS, -120.0),
        ((16_384).to_bytes(2, "little") * 1_920, -6.0),
        ((328).to_bytes(2, "little") * 1_920, -40.0),
    ],
)
def test_a_level_is_measured(pcm: bytes, level: float) -> None:
    async def scene(machine: Machine) -> None:
        found = await list_devices(system=machine.system)
        device = choose(found, Kind.SYSTEM, None)
        assert await measure(device, 0.1, system=machine.system) == pytest.approx(level, abs=0.1)

    machine = Machine(LOUD)
    machine.module.on_start = lambda stream: stream.push(pcm)
    play(machine, scene)


def test_measuring_a_lost_device_raises() -> None:
    async def scene(machine: Machine) -> None:
        device = Device(
            id="gone", kind=Kind.SYSTEM, name="Gone", default=False, rate=48_000, channels=2
        )
        with pytest.raises(SourceError, match="Gone is not there"):
            await measure(device, 0.1, system=machine.system)

    play(speaking(), scene)
