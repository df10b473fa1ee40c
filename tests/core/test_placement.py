"""A saved place always leads to a window that can be seen."""

import math

import pytest
from hypothesis import given

from fakes.choices import Choices, made, thorough
from fakes.screens import LAPTOP, LEFT_OF_LAPTOP, TALL
from surtitle.core.placement import (
    Edge,
    Monitor,
    Place,
    Rectangle,
    place_of,
    rectangle_for,
    stretched,
)


def rectangle(x: int, y: int, width: int, height: int) -> Rectangle:
    return Rectangle(x=x, y=y, width=width, height=height)


def test_the_default_is_bottom_centre_of_the_primary_screen() -> None:
    found = rectangle_for(None, [LEFT_OF_LAPTOP, LAPTOP], width=600, height=110)
    assert found == rectangle(100, 624, 600, 110)


def test_without_a_screen_there_is_no_place() -> None:
    assert rectangle_for(None, [], width=600, height=110) is None
    assert place_of(rectangle(0, 0, 9, 9), []) is None


def test_a_window_outside_every_screen_has_no_place() -> None:
    assert place_of(rectangle(5000, 5000, 100, 100), [LAPTOP, TALL]) is None


def test_a_place_is_on_the_screen_that_shows_most_of_the_window() -> None:
    place = place_of(rectangle(-500, 100, 600, 110), [LAPTOP, LEFT_OF_LAPTOP])
    assert place is not None
    assert place.screen == LEFT_OF_LAPTOP.identity
    assert place.x == 1.0  # what stuck out over the edge is not remembered


def test_a_screen_that_is_gone_is_replaced_until_it_returns() -> None:
    here = rectangle(-1800, -100, 600, 110)
    place = place_of(here, [LAPTOP, LEFT_OF_LAPTOP])
    assert rectangle_for(place, [LAPTOP], width=1, height=1) == rectangle(100, 624, 600, 110)
    assert rectangle_for(place, [LEFT_OF_LAPTOP, LAPTOP], width=1, height=1) == here


def test_a_smaller_screen_gets_a_smaller_window() -> None:
    place = Place(screen=TALL.identity, x=0.5, y=0.0, width=2000, height=3000)
    assert rectangle_for(place, [TALL], width=1, height=1) == TALL.available


@pytest.mark.parametrize("share", [math.nan, math.inf, -math.inf, -3.0, 7.0])
def test_damaged_numbers_still_give_a_visible_window(share: float) -> None:
    place = Place(screen=LAPTOP.identity, x=share, y=share, width=-5, height=0)
    found = rectangle_for(place, [LAPTOP], width=1, height=1)
    assert found is not None
    assert found.overlap(LAPTOP.available) == found.width * found.height > 0


def _any_rectangle(choose: Choices) -> Rectangle:
    x, y = choose.between(-4000, 4000), choose.between(-4000, 4000)
    return rectangle(x, y, choose.between(1, 3000), choose.between(1, 3000))


def _any_monitors(choose: Choices) -> list[Monitor]:
    here = dict.fromkeys(choose.several(lambda: choose.of("abc"), least=1, most=3))
    return [
        Monitor(identity=each, available=_any_rectangle(choose)) for each in dict.fromkeys(here)
    ]


def _window_on_a_screen(choose: Choices) -> tuple[Rectangle, list[Monitor]]:
    monitors = _any_monitors(choose)
    room = choose.of(monitors).available
    width, height = choose.between(1, room.width), choose.between(1, room.height)
    x = room.x + choose.between(0, room.width - width)
    y = room.y + choose.between(0, room.height - height)
    return rectangle(x, y, width, height), monitors


_rectangles, _monitors = made(_any_rectangle, 8), made(_any_monitors, 28)


@given(_rectangles, _monitors, _monitors)
def test_whatever_happens_to_the_screens_the_window_is_wholly_on_one(
    window: Rectangle, before: list[Monitor], after: list[Monitor]
) -> None:
    place = place_of(window, before)
    found = rectangle_for(place, after, width=600, height=110)
    assert found is not None
    area = found.width * found.height
    assert any(found.overlap(monitor.available) == area for monitor in after)


@thorough
@given(made(_window_on_a_screen, 37))
def test_a_window_that_fits_comes_back_to_the_same_pixel(
    fitting: tuple[Rectangle, list[Monitor]],
) -> None:
    window, monitors = fitting
    place = place_of(window, monitors)
    inside = [m for m in monitors if window.overlap(m.available) == window.width * window.height]
    if place is not None and inside and place.screen == inside[0].identity:
        assert rectangle_for(place, monitors, width=1, height=1) == window


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (Edge.RIGHT, rectangle(100, 100, 330, 100)),
        (Edge.LEFT, rectangle(130, 100, 270, 100)),
        (Edge.BOTTOM, rectangle(100, 100, 300, 80)),
        (Edge.TOP, rectangle(100, 80, 300, 120)),
        (Edge.RIGHT | Edge.BOTTOM, rectangle(100, 100, 330, 80)),
        (Edge.LEFT | Edge.TOP, rectangle(130, 80, 270, 120)),
    ],
)
def test_pulled_edges_move_and_the_others_stay(edges: Edge, expected: Rectangle) -> None:
    before = rectangle(100, 100, 300, 100)
    assert stretched(before, edges, 30, -20, width=200, height=60) == expected


def test_nothing_gets_smaller_than_the_smallest_size() -> None:
    before = rectangle(100, 100, 300, 100)
    edges = Edge.LEFT | Edge.TOP
    assert stretched(before, edges, 900, 900, width=200, height=60) == rectangle(200, 140, 200, 60)
