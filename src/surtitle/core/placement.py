"""Where the caption window stands: a saved place and the screens there are in; a rectangle out.

Positions are kept as shares of the room a screen leaves, so that a bar at the
bottom centre is there on any screen: 0 is flush with the left or top edge, 1
with the right or bottom one. All lengths are logical pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto

__all__ = ["Edge", "Monitor", "Place", "Rectangle", "place_of", "rectangle_for", "stretched"]

_BOTTOM_CENTRE = (0.5, 0.96)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A part of the desktop; screens left of or above the main one have negative corners."""

    x: int
    y: int
    width: int
    height: int

    def overlap(self, other: "Rectangle") -> int:
        """How many square pixels two rectangles share."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(across, 0) * max(down, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """A screen, as far as placing a window on it goes."""

    identity: str
    """The same when the screen comes back: its plug, maker, model and serial number."""
    available: Rectangle
    """Without task bars and docks."""
    primary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the user put the window; what is saved."""

    screen: str
    """`Monitor.identity`."""
    x: float
    """Share of the horizontal room, 0 to 1."""
    y: float
    """Share of the vertical room, 0 to 1."""
    width: int
    height: int


class Edge(Flag):
    """Sides of a window that are being pulled."""

    LEFT = auto()
    TOP = auto()
    RIGHT = auto()
    BOTTOM = auto()


def place_of(window: Rectangle, monitors: Sequence[Monitor]) -> Place | None:
    """Describe where the window stands, by the screen that shows most of it.

    Returns:
        None when no screen shows any of it.
    """
    best = max(monitors, key=lambda monitor: window.overlap(monitor.available), default=None)
    if best is None or window.overlap(best.available) == 0:
        return None
    room = best.available
    return Place(
        screen=best.identity,
        x=_share(window.x - room.x, room.width - window.width),
        y=_share(window.y - room.y, room.height - window.height),
        width=window.width,
        height=window.height,
    )


def rectangle_for(
    place: Place | None, monitors: Sequence[Monitor], *, width: int, height: int
) -> Rectangle | None:
    """Where the window is to stand now: always wholly on one screen.

    A place on a screen that is not there is bottom centre of the primary screen;
    it is not forgotten, since the caller keeps it.

    Args:
        place: What was saved, if anything.
        monitors: The screens there are.
        width: Default width, for when nothing was saved.
        height: Default height, likewise.

    Returns:
        None when there is no screen.
    """
    if not monitors:
        return None
    home = next((m for m in monitors if place is not None and m.identity == place.screen), None)
    x, y = (place.x, place.y) if place is not None and home is not None else _BOTTOM_CENTRE
    if place is not None:
        width, height = place.width, place.height
    if home is None:
        home = next((monitor for monitor in monitors if monitor.primary), monitors[0])
    room = home.available
    width = max(1, min(width, room.width))
    height = max(1, min(height, room.height))
    return Rectangle(
        x=room.x + round(_clamped(x) * (room.width - width)),
        y=room.y + round(_clamped(y) * (room.height - height)),
        width=width,
        height=height,
    )


def stretched(
    window: Rectangle, edges: Edge, dx: int, dy: int, *, width: int, height: int
) -> Rectangle:
    """The window after its edges were pulled; the opposite ones stay where they are.

    Args:
        window: Before.
        edges: Which ones are pulled.
        dx: How far to the right.
        dy: How far down.
        width: Smallest width.
        height: Smallest height.
    """
    right, bottom = window.x + window.width, window.y + window.height
    if Edge.RIGHT in edges:
        window = replace(window, width=max(width, window.width + dx))
    if Edge.BOTTOM in edges:
        window = replace(window, height=max(height, window.height + dy))
    if Edge.LEFT in edges:
        wide = max(width, window.width - dx)
        window = replace(window, x=right - wide, width=wide)
    if Edge.TOP in edges:
        high = max(height, window.height - dy)
        window = replace(window, y=bottom - high, height=high)
    return window


def _share(offset: int, room: int) -> float:
    # A window as large as the screen leaves no room: any share is right.
    return _clamped(offset / room) if room > 0 else 0.5


def _clamped(share: float) -> float:
    # Also for numbers from a damaged file: not-a-number compares false and becomes 0.
    return min(share, 1.0) if share > 0 else 0.0
