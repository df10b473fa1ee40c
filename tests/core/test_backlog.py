from collections.abc import Iterator

from hypothesis import given

from fakes.choices import Choices, made, thorough
from surtitle.core.audio import Chunk
from surtitle.core.backlog import Backlog

SECOND = 16_000


def chunk(start: int, samples: int = 10) -> Chunk:
    return Chunk(start=start, pcm=bytes(2 * samples), level=-120.0)


def filled(chunks: int, *, origin: int = 0, bound: float = 600.0) -> Backlog:
    backlog = Backlog(origin=origin, bound=bound)
    for number in range(chunks):
        backlog.put(chunk(origin + 10 * number))
    return backlog


def taken(backlog: Backlog, most: int = 10_000, *, fresh: bool = True) -> Iterator[Chunk]:
    for _ in range(most):
        following = backlog.take(fresh=fresh)
        if following is None:
            return
        yield following


def test_sound_is_handed_out_in_order() -> None:
    backlog = filled(5, origin=100)
    assert (backlog.settled, backlog.handed, backlog.reached) == (100, 100, 100)
    assert [c.start for c in taken(backlog)] == [100, 110, 120, 130, 140]
    assert backlog.handed == 150
    assert backlog.waiting == 0


def test_a_new_session_gets_what_has_no_text() -> None:
    backlog = filled(5)
    list(taken(backlog, 4))
    assert backlog.settle(15)
    assert not backlog.settle(15), "no news"
    assert not backlog.settle(3), "nor is the past"
    backlog.rewind()
    again = list(taken(backlog))
    assert [(c.start, c.samples) for c in again] == [(15, 5), (20, 10), (30, 10), (40, 10)]


def test_when_nothing_fresh_is_wanted_only_what_was_handed_out_comes_again() -> None:
    backlog = filled(5)
    list(taken(backlog, 3))
    assert list(taken(backlog, fresh=False)) == []
    backlog.rewind()
    assert [c.start for c in taken(backlog, fresh=False)] == [0, 10, 20]
    assert backlog.handed == 30


def test_an_engine_cannot_have_come_further_than_its_sound() -> None:
    backlog = filled(5)
    list(taken(backlog, 2))
    backlog.reach(10**9)
    assert backlog.reached == 20


def test_what_a_session_had_is_passed_over() -> None:
    backlog = filled(10)
    list(taken(backlog, 5))
    backlog.settle(12)
    backlog.rewind()
    list(taken(backlog, 3))
    backlog.pass_over()
    assert backlog.settled == 40
    assert backlog.due(None) == [(12, 40)]
    backlog.rewind()
    assert [c.start for c in taken(backlog)] == [40, 50, 60, 70, 80, 90]


def test_what_an_earlier_session_had_heard_is_passed_over_too() -> None:
    backlog = filled(10)
    list(taken(backlog, 7))
    backlog.reach(65)
    backlog.rewind()
    list(taken(backlog, 1))
    backlog.pass_over()
    assert backlog.due(None) == [(0, 70)]


def test_passing_over_nothing_is_no_gap() -> None:
    backlog = filled(0)
    backlog.pass_over()
    assert backlog.due(None) == []


def test_gaps_count_as_settled_once_they_are_marked() -> None:
    backlog = filled(2)
    backlog.lose(20, 50)
    assert backlog.due(19) == []
    assert backlog.due(20) == [(20, 50)]
    assert backlog.settled == 50


def test_what_leaves_a_full_buffer_is_one_gap() -> None:
    backlog = filled(5_000, bound=1.0)
    assert backlog.waiting == SECOND
    assert backlog.due(None) == [(0, 50_000 - SECOND)]


def test_what_is_left_out_is_a_gap() -> None:
    backlog = filled(10)
    list(taken(backlog, 2))
    backlog.leave_out(70)
    assert backlog.waiting == 30
    assert (backlog.lost, backlog.unmarked) == (50, 50)
    assert [c.start for c in taken(backlog)] == [70, 80, 90]
    assert backlog.due(19) == []
    assert backlog.due(20) == [(20, 70)]
    assert (backlog.lost, backlog.unmarked) == (50, 0)
    assert backlog.settled == 70


def test_what_a_broken_session_had_heard_does_not_come_again_behind_the_mark() -> None:
    backlog = filled(10)
    list(taken(backlog, 8))
    backlog.reach(75)
    backlog.rewind()
    backlog.leave_out(50)
    assert backlog.due(None) == [(0, 70)]
    assert [c.start for c in taken(backlog)] == [70, 80, 90]


def test_what_has_its_text_is_not_lost_when_it_leaves_a_full_buffer() -> None:
    backlog = filled(10, bound=100 / SECOND)
    list(taken(backlog, 3))
    backlog.settle(15)
    backlog.put(chunk(100, 30))
    assert backlog.due(None) == [(15, 30)]


def test_lost_is_counted_once() -> None:
    backlog = filled(3)
    backlog.lose(30, 60)
    backlog.lose(40, 70)
    assert backlog.lost == 40
    list(taken(backlog))
    backlog.settle(30)
    backlog.due(30)
    backlog.put(chunk(70))
    backlog.lose(80, 90)
    assert (backlog.lost, backlog.unmarked) == (50, 10)


STEPS = {
    "put": (1, 30),
    "lose": (1, 30),
    "take": (1, 5),
    "settle": (0, 40),
    "due": (0, 0),
    "rewind": (0, 0),
    "pass over": (0, 0),
    "leave out": (0, 100),
}
"""What can happen, and how much of it at least and at most."""


def any_steps(choose: Choices) -> list[tuple[str, int]]:
    kinds = choose.several(lambda: choose.of([*STEPS]), most=40)
    return [(kind, choose.between(*STEPS[kind])) for kind in kinds]


@thorough
@given(made(any_steps, 81))
def test_every_sample_is_settled_or_marked_or_comes_again(steps: list[tuple[str, int]]) -> None:
    backlog = Backlog(origin=0, bound=100 / SECOND)
    end = 0
    settled: set[int] = set()
    marked: list[int] = []
    for step, size in steps:
        match step:
            case "put":
                backlog.put(chunk(end, size))
                end += size
            case "lose":
                backlog.lose(end, end + size)
                end += size
            case "take":
                list(taken(backlog, size))
            case "settle":
                position = min(backlog.settled + size, backlog.handed)
                settled.update(range(position))
                backlog.settle(position)
            case "due":
                marked += [s for a, b in backlog.due(backlog.settled) for s in range(a, b)]
            case "rewind":
                backlog.rewind()
            case "leave out":
                backlog.leave_out(end - size)
            case _:
                backlog.pass_over()
                backlog.rewind()
    backlog.rewind()
    rest = {s for c in taken(backlog) for s in range(c.start, c.end)}
    marked += [s for a, b in backlog.due(None) for s in range(a, b)]
    assert settled | rest | set(marked) >= set(range(end))
