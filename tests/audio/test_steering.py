"""A stream stays on what was asked for, moves with the default, or is given up aloud."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.sound_server import FakeSoundServer, microphone, output
from surtitle.audio.sound_server import Endpoint, Kind, Recording, Survey
from surtitle.audio.steering import TAG, Gone, Stay, Steering, Switch, Verdict, decide
from surtitle.core.audio import Lost, Moved
from surtitle.core.errors import SourceError

LOUD = output("loud", "Loudspeakers")
HEAD = output("head", "Headphones")
TABLE = microphone("table", "Table microphone")
HEADSET = microphone("headset", "Headset")


def survey(*endpoints: Endpoint, default: str, kind: Kind = Kind.SYSTEM) -> Survey:
    return Survey(server="pulseaudio", endpoints=endpoints, defaults={kind: default})


BOTH = survey(LOUD, HEAD, default="loud")
SWITCHED = survey(LOUD, HEAD, default="head")


@pytest.mark.parametrize(
    ("state", "connected", "follow", "verdict"),
    [
        (BOTH, "loud.monitor", False, Stay()),
        (BOTH, "loud.monitor", True, Stay()),
        (BOTH, None, False, Stay()),
        (BOTH, "head.monitor", False, Switch(to=LOUD, connected=False)),
        (BOTH, "head.monitor", True, Switch(to=LOUD, connected=False)),
        (SWITCHED, "loud.monitor", False, Stay()),
        (SWITCHED, "loud.monitor", True, Switch(to=HEAD, connected=False)),
        (SWITCHED, "head.monitor", True, Switch(to=HEAD, connected=True)),
        (SWITCHED, "head.monitor", False, Switch(to=LOUD, connected=False)),
        (survey(HEAD, default="head"), "head.monitor", False, Gone()),
        (survey(HEAD, default="head"), "head.monitor", True, Switch(to=HEAD, connected=True)),
        (survey(default=""), None, True, Gone()),
        (survey(default=""), None, False, Gone()),
        (survey(LOUD, HEAD, default="unheard-of"), "loud.monitor", True, Gone()),
        (survey(microphone("loud", "Same name"), default="loud"), "loud.monitor", False, Gone()),
    ],
)
def test_decide(*, state: Survey, connected: str | None, follow: bool, verdict: Verdict) -> None:
    assert decide(state, wanted=LOUD, connected=connected, follow=follow) == verdict


class Bench:
    """A server with one stream of ours."""

    def __init__(self, *, follow: bool, on: str = "loud.monitor", tag: str = "us") -> None:
        self.server = FakeSoundServer(LOUD, HEAD, TABLE)
        properties = {"application.process.id": str(os.getpid())} | ({TAG: tag} if tag else {})
        stranger = Recording(index=3, source="table", properties={"application.process.id": "1"})
        ours = Recording(index=7, source=on, properties=properties)
        self.server.state = replace(self.server.state, recordings=(stranger, ours))
        self.now = 0.0
        self.follow = follow

    async def steering(self) -> Steering:
        connection = await self.server.connect()
        assert connection is not None
        return Steering(
            server=connection,
            wanted=LOUD,
            follow=self.follow,
            tag="us",
            process=os.getpid(),
            clock=lambda: self.now,
        )

    def check(self) -> Moved | None:
        async def run() -> Moved | None:
            return await (await self.steering()).check()

        return asyncio.run(run())

    @property
    def connected(self) -> str:
        return next(r.source for r in self.server.state.recordings if r.index == 7)


def test_a_stream_on_the_wrong_source_is_moved_back_without_a_word() -> None:
    bench = Bench(follow=False, on="table")
    assert bench.check() is None
    assert bench.connected == "loud.monitor"


def test_a_new_default_takes_the_stream_along() -> None:
    bench = Bench(follow=True)
    bench.server.make_default(HEAD)
    assert bench.check() == Moved(name="Headphones")
    assert bench.connected == "head.monitor"


def test_a_vanished_source_is_lost_although_the_server_moved_the_stream() -> None:
    bench = Bench(follow=False)
    bench.server.remove(LOUD)
    assert bench.connected == "head.monitor"
    with pytest.raises(SourceError, match="Loudspeakers is not there any more"):
        bench.check()
    assert bench.server.moves == []


def test_a_server_that_does_not_move_the_stream_loses_it() -> None:
    bench = Bench(follow=False, on="table")
    bench.server.stubborn = True
    with pytest.raises(SourceError, match="keeps taking"):
        bench.check()


def test_an_untagged_stream_is_known_by_the_process() -> None:
    bench = Bench(follow=False, on="table", tag="")
    bench.check()
    assert bench.connected == "loud.monitor"


def test_another_stream_of_ours_is_left_alone() -> None:
    bench = Bench(follow=False, on="table", tag="the microphone's")
    assert bench.check() is None
    assert bench.server.moves == []


def test_a_tug_of_war_ends() -> None:
    bench = Bench(follow=False)

    async def run() -> None:
        steering = await bench.steering()
        for _ in range(5):
            bench.server.reconnect(7, "table")
            await steering.check()
        bench.server.reconnect(7, "table")
        with pytest.raises(SourceError, match="keeps taking"):
            await steering.check()

    asyncio.run(run())


def test_rare_moves_go_on_for_ever() -> None:
    bench = Bench(follow=False)

    async def run() -> None:
        steering = await bench.steering()
        for _ in range(50):
            bench.now += 3.0
            bench.server.reconnect(7, "table")
            await steering.check()

    asyncio.run(run())
    assert len(bench.server.moves) == 50


def watch(bench: Bench, happen: Callable[[], None]) -> Moved | Lost:
    """Return the first thing told after something has happened to the server."""

    async def run() -> Moved | Lost:
        told: asyncio.Queue[Moved | Lost] = asyncio.Queue(10)
        steering = await bench.steering()
        task = asyncio.create_task(steering.watch(told.put_nowait))
        await asyncio.sleep(0)
        happen()
        try:
            return await asyncio.wait_for(told.get(), 10)
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=10)

    return asyncio.run(run())


def test_watching_tells_a_move() -> None:
    bench = Bench(follow=True)
    assert watch(bench, lambda: bench.server.make_default(HEAD)) == Moved(name="Headphones")


def test_watching_tells_that_the_source_is_gone() -> None:
    bench = Bench(follow=False)
    told = watch(bench, lambda: bench.server.remove(LOUD))
    assert isinstance(told, Lost)
    assert "Loudspeakers" in str(told.error)


def test_watching_tells_that_the_server_is_gone() -> None:
    bench = Bench(follow=True)
    told = watch(bench, bench.server.die)
    assert isinstance(told, Lost)


def test_microphones_follow_their_own_default() -> None:
    state = survey(LOUD, TABLE, HEADSET, default="headset", kind=Kind.MIC)
    verdict = decide(state, wanted=TABLE, connected="table", follow=True)
    assert verdict == Switch(to=HEADSET, connected=False)
