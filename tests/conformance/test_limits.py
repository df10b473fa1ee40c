"""Where a server has no more room: in its context window, and for more sessions."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import pairwise

from conformance.servers import BOTH, MODEL, REAL, Kind, serving
from conformance.sound import COUNT, Sound, bursts, loud, quiet
from conformance.talking import Seen, Talk, talking, within_limit
from surtitle.core.errors import Decision
from surtitle.core.realtime_actions import Limits

type Note = Callable[[str, str], None]

_CONTEXT = 200
"""Tokens of the context window: 13.4 s."""
_IMPATIENT = Limits(first_delta_within=2.0)


async def _heard(
    kind: Kind, sound: Sound, *, speed: float | None = None, limits: Limits | None = None
) -> Talk:
    async with (
        serving(kind, "SHORT") as server,
        talking(server.url, sound, model=MODEL, limits=limits) as talk,
    ):
        await talk.say(speed=speed)
        await talk.finish()
    return talk


@BOTH
def test_the_end_of_a_context_that_is_not_known(kind: Kind, note: Note) -> None:
    sound = bursts(11)
    talk = within_limit(_heard(kind, sound, speed=1.0))
    seen = talk.seen
    note(
        "40.8 s, 110 words; one end that the server chose, then ours in pauses",
        f"{seen.described(sound)}; renewed {talk.renewals} times in a pause",
    )
    assert (seen.text, seen.error) == (sound.text, None)
    assert len(seen.restarts) == 1
    assert talk.renewals >= 2


@BOTH
def test_the_end_of_a_context_that_is_known(kind: Kind, note: Note) -> None:
    sound = bursts(11)
    talk = within_limit(_heard(kind, sound, speed=4.0, limits=Limits(context=_CONTEXT)))
    seen = talk.seen
    note(
        "40.8 s at four times real time, 110 words; the server never ends by itself",
        f"{seen.described(sound)}; renewed {talk.renewals} times in a pause",
    )
    assert (seen.text, seen.error) == (sound.text, None)
    assert not seen.restarts


@BOTH
def test_nobody_pauses(kind: Kind, note: Note) -> None:
    """Only the tiny model loses words by it, which hears none in the first 0.48 s."""
    sound = loud(40.0)
    talk = within_limit(_heard(kind, sound, speed=2.0, limits=Limits(context=_CONTEXT)))
    seen = talk.seen
    words = seen.text.split()
    note("40 s without a pause: 166 words, but 2 less after each seam", seen.described(sound))
    assert seen.error is None
    assert len(seen.restarts) == seen.commits - 1, "what was cut is heard again, once a seam"
    assert seen.finished is not None
    assert seen.finished.position == sound.samples
    # Of the frames of a generation 6 are its prompt's, and up to 2 are too few for a word.
    frames, seams = 500 - 6 * seen.commits, seen.commits
    # Heard again: the word that was cut, and 6 frames, as this model has not Voxtral's delay.
    assert (frames - 2 * seams) / 3 <= len(words) <= (frames + 9 * (seams - 1)) / 3
    # Counted anew after each seam, and without a hole in between.
    jumps = [b for a, b in pairwise(words) if b != _after(a)]
    assert jumps == ["one"] * (seen.commits - 1)


@BOTH
def test_the_end_comes_while_we_end(kind: Kind, note: Note) -> None:
    # With its trailing silence it is longer than the context, without it it is not.
    sound = bursts(3) + quiet(0.8)

    async def main() -> tuple[Talk, Talk]:
        return await asyncio.gather(
            _heard(kind, sound, speed=1.0),
            _heard(kind, sound, speed=1.0, limits=Limits(context=_CONTEXT)),
        )

    seen, known = (talk.seen for talk in within_limit(main()))
    note("not known: an error after which it is tried again", seen.described(sound))
    note("known: every word", known.described(sound))
    assert seen.error is not None
    assert seen.error.decision is Decision.RETRY
    assert "stopped before it had heard everything" in seen.error.message
    assert (known.text, known.error) == (sound.text, None)


@BOTH
def test_more_sessions_than_slots(kind: Kind, note: Note) -> None:
    sound = bursts(1)

    async def main() -> tuple[Seen, Seen, Seen]:
        async with serving(kind, "SHORT") as server, AsyncExitStack() as stack:
            url = server.url
            others = [
                await stack.enter_async_context(talking(url, sound, model=MODEL)) for _ in range(2)
            ]
            await asyncio.gather(*(other.say(until=3.0, speed=4.0) for other in others))
            await asyncio.gather(*(other.until_deltas(20) for other in others))
            async with (
                talking(url, sound, model=MODEL) as patient,
                talking(url, sound, model=MODEL, limits=_IMPATIENT) as impatient,
            ):
                await asyncio.gather(patient.say(), impatient.say())
                await impatient.until_over()
                assert not patient.seen.deltas
                await stack.aclose()  # the others leave politely
                await patient.finish()
            async with talking(url, sound, model=MODEL) as later:
                await later.say()
                await later.finish()
        return impatient.seen, patient.seen, later.seen

    impatient, patient, later = within_limit(main())
    note("waits 2 s only: says that the server is full", impatient.described(sound))
    note("waits until the others have left: 10 words", patient.described(sound))
    note("comes later: 10 words", later.described(sound))
    assert impatient.error is not None
    assert "may be full" in impatient.error.message
    assert (impatient.error.decision, impatient.error.retry_after) == (Decision.RETRY, 5.0)
    assert [(s.text, s.error) for s in (patient, later)] == [(sound.text, None)] * 2


@REAL
def test_a_polite_end_frees_everything(kind: Kind, note: Note) -> None:
    sound = bursts(8)

    async def main() -> list[float]:
        async with serving(kind, "SHORT") as server:
            async with talking(server.url, sound, model=MODEL) as talk:
                await talk.say(until=20.0)
                await talk.until_deltas(20)
            names = ("num_requests_running", "num_requests_waiting", "websocket_connections_active")
            for _ in range(20):
                left = [await server.metric(f"vllm:{name}") for name in names]
                if not any(left):
                    break
                await asyncio.sleep(0.1)
            return left

    left = within_limit(main())
    note("closed in mid-stream: nothing runs, waits or is connected", str(left))
    assert left == [0.0, 0.0, 0.0]


def _after(word: str) -> str:
    return COUNT[(COUNT.index(word) + 1) % len(COUNT)]
