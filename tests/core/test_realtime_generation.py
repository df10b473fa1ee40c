import pytest

from surtitle.core.realtime_generation import ContextWindow, Generation, total_deltas
from surtitle.core.realtime_sound import MESSAGE_SAMPLES, Shelf, in_messages

FRAME = 1_280


def test_all_is_heard_when_all_but_a_few_deltas_have_come() -> None:
    generation = Generation()
    generation.sent(0, 100 * FRAME)
    total = total_deltas(100 * FRAME)
    assert [generation.complete(total - missing) for missing in (0, 3, 4)] == [True, True, False]


@pytest.mark.parametrize(
    ("tokens", "used"), [(0, False), (799, False), (800, True), (10_000, True)]
)
def test_a_share_of_the_context(tokens: int, used: bool) -> None:  # noqa: FBT001 - a table
    assert ContextWindow(1_000, reserve=0).used(0.8, tokens=tokens) == used


def test_what_is_still_to_be_sent_must_fit() -> None:
    window = ContextWindow(200, reserve=10 * FRAME)
    assert [window.used(0.95, tokens=tokens) for tokens in (170, 171)] == [False, True]


def test_in_a_small_context_a_pause_is_waited_for_early_enough() -> None:
    window = ContextWindow(200, reserve=10 * FRAME)  # 171 and the server's own 19 are the end
    wanted = [window.used(0.8, tokens=tokens, spare=50) for tokens in (120, 121)]
    assert wanted == [False, True]
    assert not window.used(0.8, tokens=85, spare=171), "half of the room is for sound"
    assert window.used(0.8, tokens=86, spare=171)


def test_an_unknown_context_is_never_used_up_until_it_is_learned() -> None:
    window = ContextWindow(None, reserve=0)
    assert not window.used(0.8, tokens=10**9)
    assert not window.ended_at(39), "this was not for the context"
    assert not window.used(0.8, tokens=10**9)
    assert window.ended_at(1_000)
    assert window.ended_at(2_000), "it does not grow by that"
    assert window.used(0.8, tokens=800)


def test_the_text_that_done_has_more() -> None:
    generation = Generation()
    generation.told(" one", end=None)
    whole = [" one two", "one two", " one", "other", "", " one  "]
    assert [generation.missing(text) for text in whole] == [" two", " two", "", "", "", ""]


def test_sound_on_the_shelf_is_taken_from_a_place_on() -> None:
    shelf = Shelf(bound=100)
    for start in (0, 40, 80):
        shelf.put(start, bytes(range(80)))
    full = [shelf.full]
    assert shelf.drop() == 40
    assert [*full, shelf.full] == [True, False]
    assert shelf.take(since=50) == [(50, bytes(range(20, 80))), (80, bytes(range(80)))]
    assert (shelf.samples, shelf.take()) == (0, [])


def test_messages_hold_what_follows_each_other_and_no_more_than_they_may() -> None:
    pieces = [(0, bytes(20)), (10, bytes(20)), (30, bytes(20)), (40, bytes(5 * MESSAGE_SAMPLES))]
    assert [(at, len(pcm) // 2) for at, pcm in in_messages(pieces)] == [
        (0, 20),
        (30, 10),
        (40, MESSAGE_SAMPLES),
        (40 + MESSAGE_SAMPLES, MESSAGE_SAMPLES),
        (40 + 2 * MESSAGE_SAMPLES, MESSAGE_SAMPLES // 2),
    ]
