"""The table that decides before Qt starts."""

import pytest

from surtitle.ui.window_system import WindowSystem, apply, choose


def wayland(desktop: str, **more: str) -> dict[str, str]:
    return {"WAYLAND_DISPLAY": "wayland-0", "XDG_CURRENT_DESKTOP": desktop, **more}


@pytest.mark.parametrize(
    ("environment", "platform", "bypass", "placeable", "visible"),
    [
        ({"DISPLAY": ":0"}, "xcb", False, True, True),
        ({"DISPLAY": ":0", "XDG_CURRENT_DESKTOP": "sway"}, "xcb", False, True, True),
        (wayland("GNOME", DISPLAY=":0"), "xcb", False, True, True),
        (wayland("ubuntu:GNOME", DISPLAY=":0"), "xcb", False, True, True),
        (wayland("KDE", DISPLAY=":0"), "xcb", False, True, True),
        (wayland("sway", DISPLAY=":0"), "xcb", True, True, True),
        (wayland("COSMIC", DISPLAY=":0"), "xcb", True, True, True),
        (wayland("", DISPLAY=":0"), "xcb", True, True, True),
        (wayland("GNOME"), "wayland", False, False, True),
        (wayland("sway", DISPLAY=""), "wayland", False, False, True),
        ({}, "offscreen", False, True, False),
        # The user's own choice is kept, and its consequences are known.
        ({"QT_QPA_PLATFORM": "offscreen", "DISPLAY": ":0"}, None, False, True, False),
        ({"QT_QPA_PLATFORM": "minimal:x"}, None, False, True, False),
        (wayland("sway", DISPLAY=":0", QT_QPA_PLATFORM="xcb"), None, True, True, True),
        (wayland("sway", DISPLAY=":0", QT_QPA_PLATFORM="wayland;xcb"), None, False, False, True),
        ({"QT_QPA_PLATFORM": "wayland-egl"}, None, False, False, True),
        ({"QT_QPA_PLATFORM": "eglfs"}, None, False, True, True),
    ],
)
def test_the_linux_table(
    environment: dict[str, str],
    platform: str | None,
    *,
    bypass: bool,
    placeable: bool,
    visible: bool,
) -> None:
    decision = choose(environment, system="linux")
    assert (decision.platform, decision.bypass) == (platform, bypass)
    assert (decision.placeable, decision.visible) == (placeable, visible)
    # Whatever cannot be done is said.
    assert bool(decision.notice) is not placeable


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_elsewhere_qt_knows_best(system: str) -> None:
    assert choose({}, system=system) == WindowSystem(platform=None)


def test_qt_is_told_but_never_against_the_user() -> None:
    empty: dict[str, str] = {}
    apply(WindowSystem(platform="xcb"), empty)
    assert empty == {"QT_QPA_PLATFORM": "xcb"}
    apply(WindowSystem(platform="offscreen"), empty)
    assert empty == {"QT_QPA_PLATFORM": "xcb"}
    untouched: dict[str, str] = {}
    apply(WindowSystem(platform=None), untouched)
    assert untouched == {}
