"""Which window system to ask Qt for, and what it can do for a caption window.

Decided before the application object exists, by a pure table; measured reasons
are in the README's list of decisions. In short: on Wayland an ordinary window can
neither stay on top nor be placed, one that goes through XWayland can.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

__all__ = ["WindowSystem", "apply", "choose"]

_KEEPS_ON_TOP = frozenset({"gnome", "gnome-classic", "gnome-flashback", "unity", "kde"})
_NEVER_ON_SCREEN = frozenset({"offscreen", "minimal", "vnc"})

_PLAIN_WINDOW = (
    "This desktop lets no program keep its window on top or choose its place. "
    "Use its window menu (often Alt+Space) and choose “Always on Top”."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSystem:
    """What was decided."""

    platform: str | None
    """Value for QT_QPA_PLATFORM; None leaves the choice to Qt or to the user."""
    bypass: bool = False
    """Show the captions past the window manager: only so do they stay on top there."""
    placeable: bool = True
    """Whether a window can be given a place and tells where it is."""
    visible: bool = True
    """False when there is no display: everything is drawn off screen."""
    notice: str = ""
    """A sentence for the user; empty when all is well."""


def choose(environment: Mapping[str, str], *, system: str) -> WindowSystem:
    """Decide from what the session says about itself.

    Args:
        environment: The environment variables.
        system: `sys.platform`.
    """
    wanted = environment.get("QT_QPA_PLATFORM", "")
    plugin = wanted.split(";")[0].split(":")[0]
    if plugin in _NEVER_ON_SCREEN:
        return WindowSystem(platform=None, placeable=True, visible=False)
    if not system.startswith(("linux", "freebsd")):
        return WindowSystem(platform=None)
    wayland = bool(environment.get("WAYLAND_DISPLAY"))
    x11 = bool(environment.get("DISPLAY"))
    if not wanted and not wayland and not x11:
        return WindowSystem(platform="offscreen", visible=False)
    if plugin.startswith("wayland") or (not wanted and wayland and not x11):
        platform = None if wanted else "wayland"
        return WindowSystem(platform=platform, placeable=False, notice=_PLAIN_WINDOW)
    if wanted and plugin != "xcb":
        return WindowSystem(platform=None)
    desktops = environment.get("XDG_CURRENT_DESKTOP", "").lower().split(":")
    bypass = wayland and _KEEPS_ON_TOP.isdisjoint(desktops)
    return WindowSystem(platform=None if wanted else "xcb", bypass=bypass)


def apply(decision: WindowSystem, environment: MutableMapping[str, str]) -> None:
    """Tell Qt; call before the application object is made. The user's own choice stays."""
    if decision.platform is not None:
        environment.setdefault("QT_QPA_PLATFORM", decision.platform)
