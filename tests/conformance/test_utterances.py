"""One session after another, and several at once, as long as nothing goes wrong."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.servers import BOTH, MODEL, REAL, Kind, serving
from conformance.sound import Sound, bursts, loud, quiet
from conformance.talking import Seen, talking, within_limit
from surtitle.core.realtime_actions import Limits
from surtitle.core.realtime_generation import total_deltas

type Note = Callable[[str, str], None]

_TRAILING = Limits().trailing


async def heard(
    kind: Kind, sound: Sound, *, speed: float | None = None, piece: int = 1_280
) -> Seen:
    async with serving(kind) as server, talking(server.url, sound, model=MODEL) as talk:
        await talk.say(speed=speed, piece=piece)
        await talk.finish()
    return talk.seen


@BOTH
@pytest.mark.parametrize(("speed", "piece"), [(None, 1_280), (1.0, 320)])
def test_an_utterance(kind: Kind, speed: float | None, piece: int, note: Note) -> None:
    sound = bursts(4)
    seen = within_limit(heard(kind, sound, speed=speed, piece=piece))
    deltas = total_deltas(sound.samples + _TRAILING)
    note(f"40 words, {deltas} deltas, no silence", seen.described(sound))
    assert seen.error is None
    assert seen.text == sound.text
    assert seen.deltas == deltas
    assert (seen.commits, seen.finals) == (1, 1)
    assert seen.finished is not None
    assert seen.finished.position == sound.samples


@BOTH
def test_loud_from_the_first_sample_on(kind: Kind, note: Note) -> None:
    # The first 0.48 s belong to the prompt: 31 words of 8 s.
    sound = loud(8.0, counted=31)
    seen = within_limit(heard(kind, sound))
    note("31 words in 8 s", seen.described(sound))
    assert (seen.text, seen.error) == (sound.text, None)


@BOTH
def test_the_shortest_sound(kind: Kind, note: Note) -> None:
    sound = Sound(pcm=bytes(640))
    seen = within_limit(heard(kind, sound))
    note("an end, no words", seen.described(sound))
    assert (seen.text, seen.error) == ("", None)
    assert seen.finished is not None


@BOTH
def test_three_generations(kind: Kind, note: Note) -> None:
    sound = bursts(3)

    async def main() -> Seen:
        async with serving(kind) as server, talking(server.url, sound, model=MODEL) as talk:
            for second in (4.2, 7.8):  # in the pauses
                await talk.say(until=second, speed=4.0)
                await talk.renew()
            await talk.say(speed=4.0)
            await talk.finish()
        return talk.seen

    seen = within_limit(main())
    note("30 words over 2 seams, 3 commits", seen.described(sound))
    assert (seen.text, seen.error) == (sound.text, None)
    assert (seen.commits, seen.finals) == (3, 3)


@BOTH
@pytest.mark.parametrize("model", ["", "no/such-model"])
def test_a_model_that_is_not_known(kind: Kind, model: str, note: Note) -> None:
    sound = bursts(2)

    async def main() -> Seen:
        async with serving(kind) as server, talking(server.url, sound, model=model) as talk:
            await talk.say()
            await talk.finish()
        return talk.seen

    seen = within_limit(main())
    note("the model without a name is taken, 20 words", f"{seen.models} {seen.described(sound)}")
    assert (seen.text, seen.error) == (sound.text, None)
    assert seen.models == ([model, ""] if model else [""])


@BOTH
@pytest.mark.parametrize("count", [2, 4])
def test_sessions_at_once(kind: Kind, count: int, note: Note) -> None:
    sound = bursts(2)

    async def main() -> list[Seen]:
        return await asyncio.gather(*(heard(kind, sound, speed=1.0) for _ in range(count)))

    all_seen = within_limit(main())
    for seen in all_seen:
        note("20 words each", seen.described(sound))
    assert [(seen.text, seen.error) for seen in all_seen] == [(sound.text, None)] * count


@BOTH
def test_a_large_replay(kind: Kind, note: Note) -> None:
    sound = bursts(16)
    seen = within_limit(heard(kind, sound, speed=4.0))
    note("58.8 s at four times real time, 160 words", seen.described(sound))
    assert (seen.text, seen.error) == (sound.text, None)


def test_a_minute_without_speech(note: Note) -> None:
    """Of silence, as our client sends it; and of nothing at all, as of a computer that hangs."""
    spoken = bursts(1)
    sound = spoken + spoken

    async def paused(kind: Kind) -> Seen:
        async with serving(kind) as server, talking(server.url, sound, model=MODEL) as talk:
            await talk.say(until=spoken.seconds, speed=1.0)
            await asyncio.sleep(60.0)
            await talk.say(speed=1.0)
            await talk.finish()
        return talk.seen

    async def main() -> tuple[Seen, ...]:
        silence = spoken + quiet(60.0) + spoken
        return await asyncio.gather(
            *(heard("vLLM", silence, speed=1.0), paused("vLLM")),
            *(heard("ours", silence, speed=1.0), paused("ours")),
        )

    all_seen = within_limit(main())
    for what, seen in zip(("silence", "nothing", "silence", "nothing"), all_seen, strict=True):
        note(f"20 words around a minute of {what}", seen.described(sound))
    assert [(seen.text, seen.error) for seen in all_seen] == [(sound.text, None)] * 4


@REAL
def test_characters_split_over_tokens(kind: Kind, note: Note) -> None:
    # A loop of this phrase takes 19 frames: two silent ones and its tokens for each word.
    said = replace(loud(2 * 19 * 0.08), text="one😀 twoé three one😀 twoé three")
    sound = quiet(1.2) + said + quiet(1.2)

    async def main() -> Seen:
        async with (
            serving(kind, "KEYED") as server,
            talking(server.url, sound, key=server.key, model=MODEL) as talk,
        ):
            await talk.say(speed=2.0)
            await talk.finish()
        return talk.seen

    seen = within_limit(main())
    note("whole characters only", f"{seen.text!r} {seen.described(sound)}")
    assert (seen.text, seen.error) == (sound.text, None)
