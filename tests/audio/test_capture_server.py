"""A device of a sound server as a source: it comes from where it should, or it is given up."""

import json

import pytest

from fakes.sound import Machine, block, listen, play, speak
from fakes.sound_device import entry
from fakes.sound_server import microphone, output
from surtitle.audio import capture
from surtitle.audio.sound_server import Endpoint, Kind
from surtitle.core.audio import Block, Lost, Moved, Started

LOUD = output("loud", "Loudspeakers")
HEAD = output("head", "Headphones")
TABLE = microphone("table", "Table microphone")


def speaking(*endpoints: Endpoint) -> Machine:
    machine = Machine(*(endpoints or (LOUD, HEAD, TABLE)))
    machine.module.on_start = speak
    return machine


def test_it_follows_the_default_output() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine, follow=True)
        await listener.next_of(Started)
        server.make_default(HEAD)
        assert await listener.next_of(Moved) == Moved(name="Headphones")
        assert listener.source.name == "Headphones"
        assert server.state.recordings[0].source == "head.monitor"
        server.remove(HEAD)
        assert await listener.next_of(Moved) == Moved(name="Loudspeakers")
        await listener.source.close()

    play(speaking(), scene)


def test_it_opens_on_what_is_the_default_by_then() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine, follow=True)
        server.make_default(HEAD)
        started = await listener.next_of(Started)
        assert started.name == listener.source.name == "Headphones"
        await listener.source.close()

    play(speaking(), scene)


def test_a_named_output_that_vanishes_is_lost_not_replaced() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine, wanted="Headphones")
        await listener.next_of(Started)
        server.remove(HEAD)
        lost = await listener.next_of(Lost)
        assert "Headphones is not there any more" in str(lost.error)

    play(speaking(), scene)


def test_a_device_that_vanished_before_opening_is_lost() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine, wanted="Headphones")
        server.remove(HEAD)
        events = await listener.rest()
        assert [type(event) for event in events] == [Lost]

    play(speaking(), scene)


def test_sound_from_a_wrong_source_is_not_told() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        server.misconnects_to = "table"
        listener = await listen(machine)
        await listener.next_of(Started)
        assert server.state.recordings[0].source == "loud.monitor"
        machine.module.streams[0].push(block(2))
        assert await listener.next() == Block(pcm=block(2))
        await listener.source.close()

    play(speaking(), scene)


def test_a_server_that_ends_is_lost() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine)
        await listener.next_of(Started)
        server.die()
        await listener.next_of(Lost)

    play(speaking(), scene)


def test_a_server_that_is_gone_before_opening_is_lost() -> None:
    async def scene(machine: Machine) -> None:
        server = machine.server
        assert server is not None
        listener = await listen(machine)
        server.die()
        lost = await listener.next_of(Lost)
        assert "No sound server" in str(lost.error)

    play(speaking(), scene)


def test_a_missing_way_to_the_server_is_said() -> None:
    async def scene(machine: Machine) -> None:
        lost = await (await listen(machine)).next_of(Lost)
        assert "libasound2-plugins" in str(lost.error)

    play(Machine(LOUD, inputs=[entry("USB")]), scene)


def test_two_devices_at_once_do_not_meet() -> None:
    async def scene(machine: Machine) -> None:
        system = await listen(machine)
        mic = await listen(machine, kind=Kind.MIC)
        assert (await system.next_of(Started)).name == "Loudspeakers"
        assert (await mic.next_of(Started)).name == "Table microphone"
        server = machine.server
        assert server is not None
        assert [r.source for r in server.state.recordings] == ["loud.monitor", "table"]
        assert server.moves == []
        await system.source.close()
        await mic.source.close()

    play(speaking(), scene)


@pytest.mark.parametrize(
    ("wanted", "source", "pipewire"),
    [
        (LOUD, "loud.monitor", {"target.object": "loud", "stream.capture.sink": True}),
        (TABLE, "table", {"target.object": "table"}),
    ],
)
def test_the_environment_leads_to_the_source(
    wanted: Endpoint, source: str, pipewire: dict[str, object]
) -> None:
    environment = capture.environment_for(wanted, "7-1")
    assert environment["PULSE_SOURCE"] == source
    assert environment["PULSE_PROP"] == "surtitle.stream=7-1"
    assert json.loads(environment["PIPEWIRE_ALSA"]) == {**pipewire, "surtitle.stream": "7-1"}
