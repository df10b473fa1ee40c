"""Which engine session is next, and that none is left behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat

import pytest

from fakes.virtual_time import run_virtual
from surtitle.core.errors import Decision, EngineError
from surtitle.relay import Engines, Relay

AWAY = EngineError("It is away.", decision=Decision.RETRY)
REFUSED = EngineError("The key is refused.", remedy="Check it.", decision=Decision.RECONFIGURE)

type Way = float | Exception
"""A session starts after so many seconds, or fails."""


class FakeSession:
    """As `surtitle.relay.Session`."""

    def __init__(self, name: str, way: Way, stop_takes: float) -> None:
        self.name = name
        self.started = self.ready = self.stopped = False
        self.made_at = asyncio.get_running_loop().time()
        self._way = way
        self._stop_takes = stop_takes

    async def start(self) -> None:
        assert not self.started, "one session is started once"
        self.started = True
        if isinstance(self._way, Exception):
            raise self._way
        await asyncio.sleep(self._way)
        self.ready = True

    async def stop(self) -> None:
        await asyncio.sleep(self._stop_takes)
        self.stopped = True


class Maker:
    """Makes sessions, each in its way, then as the last one."""

    def __init__(self, name: str, *ways: Way, stop_takes: float = 0.0) -> None:
        self.name = name
        self.made: list[FakeSession] = []
        self._ways: Iterator[Way] = chain(ways, repeat(ways[-1]))
        self._stop_takes = stop_takes

    def __call__(self) -> FakeSession:
        self.made.append(FakeSession(self.name, next(self._ways), self._stop_takes))
        return self.made[-1]


class Bench:
    """A relay with its engines, and what it has told."""

    def __init__(
        self,
        chosen: Maker,
        stand_in: Maker | None = None,
        *,
        renew_after: float | None = None,
    ) -> None:
        self.chosen = chosen
        self.stand_in = stand_in
        self.told: list[str] = []
        self.relay = Relay(
            Engines(chosen=chosen, stand_in=stand_in, away=4.0, renew_after=renew_after),
            chance=lambda: 0.0,
            tell=self.told.append,
        )

    @property
    def made(self) -> list[FakeSession]:
        return [*self.chosen.made, *(self.stand_in.made if self.stand_in else [])]


def now() -> float:
    return asyncio.get_running_loop().time()


def play(scene: Callable[[Bench], Awaitable[None]], bench: Callable[[], Bench]) -> Bench:
    """Play a scene, close the relay, and see that no session and no task is left."""

    async def main() -> Bench:
        one = bench()
        await scene(one)
        began = now()
        await one.relay.close()
        assert now() - began <= 4.0
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await one.relay.close()
        assert all(session.stopped for session in one.made if session.started)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return one

    return run_virtual(main())


async def end(bench: Bench, session: FakeSession) -> None:
    bench.relay.leave(session)
    await asyncio.sleep(0.01)


# One engine.


def test_the_first_session_is_the_one_that_was_looked_at() -> None:
    async def scene(bench: Bench) -> None:
        assert bench.relay.next is bench.relay.next
        session = await bench.relay.begin()
        assert session is bench.chosen.made[0]
        assert session.ready
        await end(bench, session)

    assert play(scene, lambda: Bench(Maker("Chosen", 1.0))).told == []


@pytest.mark.parametrize("error", [AWAY, REFUSED, ZeroDivisionError()])
def test_without_another_engine_a_failure_is_whoever_asks_s(error: Exception) -> None:
    async def scene(bench: Bench) -> None:
        with pytest.raises(type(error)) as caught:
            await bench.relay.begin()
        assert caught.value is error
        assert not bench.relay.can_stand_in
        if isinstance(error, EngineError):
            assert not bench.relay.give_up(error)

    assert play(scene, lambda: Bench(Maker("Chosen", error))).told == []


def test_what_was_looked_at_and_never_started_is_let_go() -> None:
    async def scene(bench: Bench) -> None:
        assert bench.relay.next.name == "Chosen"

    bench = play(scene, lambda: Bench(Maker("Chosen", 0.0)))
    assert bench.chosen.made[0].stopped


# Another engine stands in.


@pytest.mark.parametrize(
    ("way", "at"), [(0.0, 0.0), (3.9, 3.9), (4.1, 4.0), (60.0, 4.0), (AWAY, 4.0), (REFUSED, 0.0)]
)
def test_it_stands_in_when_the_chosen_one_is_away_long_enough(way: Way, at: float) -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        assert now() == pytest.approx(at)
        assert session.name == ("Chosen" if at == way else "Other")
        assert bench.relay.standing_in is (session.name == "Other")
        await end(bench, session)

    play(scene, lambda: Bench(Maker("Chosen", way), Maker("Other", 0.0)))


def test_the_chosen_one_is_told_to_be_away_and_back_once_each() -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.works()
        await asyncio.sleep(20)
        assert bench.relay.ready
        await end(bench, session)
        back = bench.relay.taking_over()
        assert back is not None
        assert bench.told == ["Chosen is away; Other goes on meanwhile."]
        bench.relay.works()
        bench.relay.works()
        await end(bench, back)

    bench = play(scene, lambda: Bench(Maker("Chosen", 10.0), Maker("Other", 0.0)))
    assert bench.told == ["Chosen is away; Other goes on meanwhile.", "Chosen is back."]


def test_one_that_starts_and_never_works_is_not_told_to_be_back() -> None:
    async def scene(bench: Bench) -> None:
        for _ in range(20):
            await end(bench, await bench.relay.begin())
            await asyncio.sleep(1)

    bench = play(scene, lambda: Bench(Maker("Chosen", 0.0), Maker("Other", 0.0)))
    assert bench.told == ["Chosen is away; Other goes on meanwhile."]
    assert len(bench.chosen.made) <= 8, "it is sought less and less often"


def test_attempts_grow_further_apart() -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.works()
        await asyncio.sleep(55.6)
        await end(bench, session)

    bench = play(scene, lambda: Bench(Maker("Chosen", AWAY), Maker("Other", 0.0)))
    times = [session.made_at for session in bench.chosen.made]
    assert times == pytest.approx([0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5, 47.5, 55.5])


def test_a_service_that_says_when_to_come_again_is_not_asked_sooner() -> None:
    busy = EngineError("It is busy.", decision=Decision.RETRY, retry_after=30.0)

    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        await asyncio.sleep(60)
        await end(bench, session)

    bench = play(scene, lambda: Bench(Maker("Chosen", busy), Maker("Other", 0.0)))
    assert [session.made_at for session in bench.chosen.made] == pytest.approx([0, 30.5, 61.5])


def test_what_only_the_user_can_put_right_is_told_once_and_not_tried_again() -> None:
    async def scene(bench: Bench) -> None:
        for _ in range(3):
            session = await bench.relay.begin()
            assert session.name == "Other"
            await asyncio.sleep(30)
            await end(bench, session)

    bench = play(scene, lambda: Bench(Maker("Chosen", AWAY, REFUSED), Maker("Other", 0.0)))
    assert bench.told == [str(REFUSED), "Other goes on instead."]
    assert len(bench.chosen.made) == 2


def test_giving_up() -> None:
    """First the chosen engine, then the other one; not both."""

    async def scene(bench: Bench) -> None:
        await end(bench, await bench.relay.begin())
        assert bench.relay.can_stand_in
        assert bench.relay.give_up(REFUSED)
        other = await bench.relay.begin()
        assert (other.name, bench.relay.can_stand_in) == ("Other", False)
        assert not bench.relay.give_up(AWAY)
        await end(bench, other)

    bench = play(scene, lambda: Bench(Maker("Chosen", 0.0), Maker("Other", 0.0)))
    assert bench.told == [str(REFUSED), "Other goes on instead."]


def test_a_successor_of_an_engine_that_was_given_up_does_not_take_over() -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.plan()
        await asyncio.sleep(20)
        assert bench.relay.ready
        assert bench.relay.give_up(REFUSED)
        await end(bench, session)
        other = await bench.relay.begin()
        assert other.name == "Other"
        await end(bench, other)

    play(scene, lambda: Bench(Maker("Chosen", 0.0), Maker("Other", 0.0), renew_after=10))


def test_giving_up_the_one_that_stands_in_leaves_the_chosen_one() -> None:
    async def scene(bench: Bench) -> None:
        with pytest.raises(EngineError):
            await bench.relay.begin()
        assert not bench.relay.can_stand_in
        assert bench.relay.give_up(REFUSED)
        session = await bench.relay.begin()
        assert session.name == "Chosen"
        assert not bench.relay.standing_in
        assert not bench.relay.give_up(AWAY)
        await end(bench, session)

    play(scene, lambda: Bench(Maker("Chosen", 60.0, 1.0), Maker("Other", REFUSED)))


def test_a_fault_of_ours_in_a_relief_is_not_swallowed() -> None:
    async def scene(bench: Bench) -> None:
        with pytest.raises(ZeroDivisionError):
            await bench.relay.begin()

    play(scene, lambda: Bench(Maker("Chosen", ZeroDivisionError()), Maker("Other", 0.0)))


# One is there before the other goes.


@pytest.mark.parametrize("other", [True, False])
def test_a_session_is_ready_when_another_one_has_grown_old(*, other: bool) -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.plan()
        bench.relay.works()
        await asyncio.sleep(100.5)
        assert bench.relay.taking_over() is None
        await asyncio.sleep(1)
        successor = bench.relay.taking_over()
        assert successor is bench.chosen.made[1]
        assert successor.ready
        assert bench.relay.taking_over() is None
        await end(bench, session)
        await end(bench, successor)

    make = lambda: Bench(  # noqa: E731 - one of many
        Maker("Chosen", 1.0), Maker("Other", 0.0) if other else None, renew_after=100
    )
    assert play(scene, make).told == []


def test_attempts_at_a_successor_grow_further_apart_though_the_present_one_works() -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.plan()
        for _ in range(160):
            await asyncio.sleep(1)
            bench.relay.works()
        await end(bench, session)

    bench = play(scene, lambda: Bench(Maker("Chosen", 0.0, AWAY), renew_after=100))
    assert 6 <= len(bench.chosen.made) <= 13
    assert bench.told == []


@pytest.mark.parametrize("after", [50, 100.5, 102])
@pytest.mark.parametrize("other", [True, False])
def test_one_that_breaks_before_its_successor_is_ready(after: float, *, other: bool) -> None:
    """The next one is at once the successor, or another one."""

    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.plan()
        await asyncio.sleep(after)
        bench.relay.works()
        await end(bench, session)
        began = now()
        following = await bench.relay.begin()
        assert following.name == "Chosen"
        assert following.ready
        assert now() - began <= 1.0
        alive = [one for one in bench.made if one.started and not one.stopped]
        assert alive == [following]
        bench.relay.plan()
        await end(bench, following)

    play(
        scene,
        lambda: Bench(
            Maker("Chosen", 1.0), Maker("Other", 0.0) if other else None, renew_after=100
        ),
    )


def test_a_successor_that_is_refused_leaves_the_present_one_alone() -> None:
    async def scene(bench: Bench) -> None:
        session = await bench.relay.begin()
        bench.relay.plan()
        await asyncio.sleep(300)
        assert not bench.relay.ready
        await end(bench, session)
        with pytest.raises(EngineError, match="key is refused"):
            await bench.relay.begin()

    bench = play(scene, lambda: Bench(Maker("Chosen", 0.0, REFUSED), renew_after=100))
    assert bench.told == [str(REFUSED)]
    assert len(bench.chosen.made) == 3


# Nothing is left.


@pytest.mark.parametrize("stop_takes", [0.0, 2.0, 3600.0])
def test_sessions_are_not_waited_for_and_not_forgotten(stop_takes: float) -> None:
    async def main() -> None:
        bench = Bench(Maker("Chosen", 0.0, stop_takes=stop_takes))
        session = await bench.relay.begin()
        began = now()
        bench.relay.leave(session)
        assert now() == began
        await bench.relay.close()
        assert now() - began == pytest.approx(min(stop_takes, 3.0))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 3.0, 4.0, 4.2, 5.0, 30.0])
@pytest.mark.parametrize("way", [0.0, 1.0, 4.0, 60.0, AWAY, REFUSED])
@pytest.mark.parametrize("other", [0.0, 0.3, AWAY])
def test_whoever_is_cancelled_leaves_nothing(at: float, way: Way, other: Way) -> None:
    """At any moment, with a session begun or not."""

    async def go_on(bench: Bench) -> None:
        while True:
            try:
                session = await bench.relay.begin()
            except EngineError:
                await asyncio.sleep(1)
                continue
            try:
                bench.relay.plan()
                await asyncio.sleep(2)
            finally:
                bench.relay.leave(session)

    async def scene(bench: Bench) -> None:
        task = asyncio.create_task(go_on(bench))
        await asyncio.sleep(at)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def bench() -> Bench:
        chosen = Maker("Chosen", way, stop_takes=1.0)
        return Bench(chosen, Maker("Other", other, stop_takes=2.0), renew_after=1.0)

    play(scene, bench)
