"""The whole engine, on both servers: what the captioner gets to see."""

import asyncio
from collections.abc import Callable

from conformance.hearing import Hearing, overlaps
from conformance.servers import BOTH, Kind, serving
from conformance.sound import Sound, bursts
from conformance.talking import within_limit
from surtitle.core.realtime_actions import Limits

type Note = Callable[[str, str], None]


def _judge(hearing: Hearing, note: Note, expected: str) -> None:
    note(expected, hearing.described())
    assert hearing.error is None
    assert hearing.text == hearing.sound.text
    assert hearing.progress == hearing.sound.samples
    assert overlaps(hearing.finals) == []


def _heard(
    kind: Kind, sound: Sound, *, config: str = "MAIN", speed: float, limits: Limits | None = None
) -> Hearing:
    async def main() -> Hearing:
        async with serving(kind, "SHORT" if config == "SHORT" else "MAIN") as server:
            hearing = Hearing(server, sound, limits=limits)
            await hearing.run(speed=speed)
        return hearing

    return within_limit(main())


@BOTH
def test_the_engine_in_real_time(kind: Kind, note: Note) -> None:
    _judge(_heard(kind, bursts(4), speed=1.0), note, "40 words")


@BOTH
def test_the_engine_as_fast_as_it_goes(kind: Kind, note: Note) -> None:
    _judge(_heard(kind, bursts(12), speed=100.0), note, "44.4 s at its own four times, 120 words")


@BOTH
def test_the_engine_renews_for_age(kind: Kind, note: Note) -> None:
    limits = Limits(renew_after=5 * 16_000)
    _judge(_heard(kind, bursts(8), speed=4.0, limits=limits), note, "80 words, 4 generations")


@BOTH
def test_the_engine_at_the_end_of_the_context(kind: Kind, note: Note) -> None:
    hearing = _heard(kind, bursts(11), config="SHORT", speed=1.0)
    _judge(hearing, note, "40.8 s where 13.4 fit, not known before: 110 words")


@BOTH
def test_engines_at_once(kind: Kind, note: Note) -> None:
    async def main() -> list[Hearing]:
        async with serving(kind) as server:
            all_of_them = [Hearing(server, bursts(2)) for _ in range(4)]
            await asyncio.gather(*(one.run() for one in all_of_them))
        return all_of_them

    for hearing in within_limit(main()):
        _judge(hearing, note, "20 words each")
