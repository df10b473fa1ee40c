"""The user stops it, or whoever runs it cancels it."""

import asyncio

import pytest

from fakes.audience import RememberingAudience
from fakes.captioning import SPEECH, TEXT, Meanwhile, Session, caption, device, file_of, stop_at
from fakes.engine import WELL, Plan, ScriptedEngines, broken
from fakes.speech import numbered, seconds
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.audio import CHUNK_SAMPLES
from surtitle.core.captions import Captions
from surtitle.core.health import State
from surtitle.core.stability import Stability


def cancel_at(time: float, *, times: int = 1) -> Meanwhile:
    async def cancel(session: Session) -> None:
        await asyncio.sleep(time)
        (running,) = (t for t in asyncio.all_tasks() if "Session.run" in str(t.get_coro()))
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([running], timeout=60)
        assert running.done()
        assert session.captioner.position >= 0

    return cancel


def test_stopping_a_device_brings_what_it_had_delivered() -> None:
    session = caption(device(60, endless=True), Plan(speed=1.0), meanwhile=stop_at(5.5))
    assert session.error is None
    assert session.audience.lines == [TEXT[0], "it was the worst"]
    assert session.audience.gaps == []
    assert session.took < 8
    assert session.audience.statuses[-1].state is State.ENDED


def test_stopping_a_file_keeps_what_was_handed_over_and_reads_no_more() -> None:
    source = file_of(600)
    speech = numbered([5] * 100)
    handed = 0

    async def stop(session: Session) -> None:
        nonlocal handed
        await asyncio.sleep(4.0)
        handed = session.engines.made[0].fed[-1].end
        await session.captioner.stop()

    session = caption(source, Plan(speed=2.0), speech=speech, meanwhile=stop)
    until = session.engines.made[0].fed[-1].end
    assert until <= handed + CHUNK_SAMPLES, "the one that was waiting for room"
    whole = [w.text for s in speech for w in s.words if w.end <= until]
    assert session.error is None
    assert session.audience.words == whole
    assert session.audience.gaps == []
    assert source.told < 600 / 0.08 / 2


@pytest.mark.parametrize("live", [True, False])
def test_a_crash_after_stopping_loses_nothing_that_was_handed_over(*, live: bool) -> None:
    crash = Plan(speed=1.0, breaks_at=seconds(5.2))
    source = device(60, endless=True) if live else file_of(60)
    session = caption(source, crash, meanwhile=stop_at(5.0 if live else 1.0))
    assert session.error is None
    until = max(chunk.end for chunk in session.engines.made[0].fed)
    whole = [w.text for s in SPEECH for w in s.words if w.end <= until]
    assert session.audience.words == whole
    assert session.audience.gaps == []


@pytest.mark.parametrize(
    "plan",
    [Plan(refuses=broken()), Plan(breaks_at=0), Plan(refuses=broken(), start_takes=20)],
)
def test_an_engine_that_stays_away_does_not_keep_the_user(plan: Plan) -> None:
    session = caption(device(60, endless=True), then=plan, meanwhile=stop_at(20.5))
    assert session.error is not None
    assert session.took < 20.5 + 2 * plan.start_takes + 1
    assert session.audience.gaps[0][0] == 0
    assert session.audience.gaps[-1][1] == session.captioner.position
    assert sum(b - a for a, b in session.audience.gaps) == session.captioner.position


def test_stopping_before_it_runs() -> None:
    async def main() -> None:
        source = file_of()
        session = Session(source, ScriptedEngines(SPEECH))
        await session.captioner.stop()
        await session.run()
        assert session.error is None
        assert session.audience.lines == []

    run_virtual(main())


def test_stopping_twice_and_after_the_end() -> None:
    async def stop(session: Session) -> None:
        await asyncio.sleep(2)
        await asyncio.gather(session.captioner.stop(), session.captioner.stop())
        await asyncio.sleep(30)
        await session.captioner.stop()

    assert caption(device(60, endless=True), meanwhile=stop).error is None


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("plan", [WELL, Plan(start_takes=20), Plan(refuses=broken())])
def test_cancelling_ends_everything_and_marks_what_is_missing(plan: Plan, times: int) -> None:
    session = caption(device(60, endless=True), then=plan, meanwhile=cancel_at(5.5, times=times))
    assert session.took == pytest.approx(5.5, abs=0.1)
    covered = session.audience.gaps[-1] if session.audience.gaps else (0, 0)
    assert covered[1] == session.captioner.position
    before = [w.text for s in SPEECH for w in s.words if w.end <= covered[0]]
    assert session.audience.words[: len(before)] == before


@pytest.mark.parametrize("live", [True, False])
def test_starting_and_stopping_again_and_again_leaves_nothing(*, live: bool) -> None:
    async def main() -> None:
        captions = Captions(Stability.of(0.5))
        audience = RememberingAudience()
        origin = 0
        for cycle in range(20):
            source = device(60, endless=True) if live else file_of(60)
            engines = ScriptedEngines((), Plan(breaks_at=seconds(0.5 + cycle)))
            captioner = Captioner(
                source, engines, captions, audience, chance=lambda: 0.0, origin=origin
            )
            running = asyncio.create_task(captioner.run())
            await asyncio.sleep(cycle / 10)
            await captioner.stop()
            await running
            origin = captioner.position
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert not source.open
            assert all(engine.stopped for engine in engines.made)

    run_virtual(main())
