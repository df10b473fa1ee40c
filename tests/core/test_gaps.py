import itertools

import pytest
from hypothesis import given

from fakes.choices import Choices, made, thorough
from surtitle.core.gaps import Gaps


def any_spans(choose: Choices) -> list[tuple[int, int]]:
    return choose.several(lambda: (choose.between(0, 60), choose.between(-3, 20)), most=12)


@thorough
@given(made(any_spans, 25))
def test_every_lost_sample_is_in_one_span_and_spans_do_not_touch(
    spans: list[tuple[int, int]],
) -> None:
    gaps = Gaps()
    for start, length in spans:
        gaps.add(start, start + length)
    due = gaps.due(None)
    lost = {sample for start, length in spans for sample in range(start, start + length)}
    assert [sample for start, end in due for sample in range(start, end)] == sorted(lost)
    assert all(a < b for span in due for a, b in [span])
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(due))
    assert gaps.due(None) == []


@pytest.mark.parametrize(
    ("position", "taken"),
    [
        (9, []),
        (10, [(10, 20)]),
        (29, [(10, 20)]),
        (30, [(10, 20), (30, 40)]),
        (99, [(10, 20), (30, 40)]),
    ],
)
def test_spans_are_due_when_the_text_has_come_to_them(
    position: int, taken: list[tuple[int, int]]
) -> None:
    gaps = Gaps()
    gaps.add(30, 40)
    gaps.add(10, 20)
    assert gaps.due(position) == taken
    assert taken + gaps.due(None) == [(10, 20), (30, 40)]


def test_no_sound_is_no_gap() -> None:
    gaps = Gaps()
    gaps.add(5, 5)
    gaps.add(9, 3)
    assert gaps.due(None) == []
