"""The display and the tray: can the caption window be shown, and how is it reached?"""

import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec

from surtitle.checks.child import Answer, run_python
from surtitle.checks.finding import Finding, Level, Report, fail, ok, warn
from surtitle.ui.window_system import WindowSystem, choose

__all__ = ["check_desktop", "display", "tray"]

_LIMIT = 20.0
_SYSTEMS = {"win32": "Windows", "darwin": "macOS"}


def display(
    decision: WindowSystem,
    environment: Mapping[str, str],
    answer: Answer | None,
    *,
    system: str = sys.platform,
) -> Finding:
    """Judge the display.

    Args:
        decision: What was chosen for this environment.
        environment: The environment variables.
        answer: What `surtitle.ui.probe` says; None if it need not be asked.
        system: As `sys.platform`.
    """
    if not decision.visible:
        if environment.get("QT_QPA_PLATFORM"):
            return warn(
                "Display: QT_QPA_PLATFORM says that nothing is to be shown",
                "Unset it to see the window. Captions in the terminal work all the same.",
            )
        return warn(
            "There is no display, so no window can be shown",
            "Captions in the terminal still work: surtitle caption SOURCE.",
        )
    name = _name(decision, environment, system)
    if answer is None or _told(answer) is None:
        hangs = answer is not None and answer.code is None
        what = "does not answer" if hangs else "cannot be opened by Qt"
        return fail(f"Display: {name} {what}", _cannot_open(system))
    if decision.notice:
        return warn(f"Display: {name}, where the window does not stay on top", decision.notice)
    return ok(f"Display: {name}")


def tray(answer: Answer) -> Finding | None:
    """Judge the tray by what `surtitle.ui.probe` says; None if it could not say."""
    told = _told(answer)
    if told is None:
        return None
    if told.get("tray") is True:
        return ok("Tray")
    return warn(
        "This desktop shows no tray icons",
        "Nothing is lost: a small control window takes the place of the icon. "
        "On GNOME, the extension “AppIndicator” brings icons back.",
    )


async def check_desktop(report: Report, *, system: str = sys.platform) -> None:
    """Look at the display and the tray with Qt, in a process of its own.

    Says nothing of them where Qt is not installed: that is said of the library.
    """
    if find_spec("PySide6") is None:
        return
    environment = dict(os.environ)
    decision = choose(environment, system=system)
    if not decision.visible:
        report(display(decision, environment, None, system=system))
        return
    answer = await run_python("-m", "surtitle.ui.probe", limit=_LIMIT)
    found = display(decision, environment, answer, system=system)
    report(found)
    icons = None if found.level is Level.FAIL else tray(answer)
    if icons is not None:
        report(icons)


def _name(decision: WindowSystem, environment: Mapping[str, str], system: str) -> str:
    if system in _SYSTEMS:
        return _SYSTEMS[system]
    x11, wayland = environment.get("DISPLAY", ""), environment.get("WAYLAND_DISPLAY", "")
    if not decision.placeable:
        return f"Wayland ({wayland})"
    return f"Wayland through XWayland ({x11})" if wayland and x11 else f"X11 ({x11})"


def _told(answer: Answer) -> dict[str, object] | None:
    """What the process said, None if it crashed or was stopped."""
    if answer.code != 0:
        return None
    try:
        told = json.loads(answer.output)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _cannot_open(system: str) -> str:
    if system in _SYSTEMS:
        return "Log out and in again. Captions in the terminal still work."
    return (
        "Check that it runs and lets you in, and install what Qt needs, for example: "
        "sudo apt install libxcb-cursor0 libxkbcommon-x11-0. Captions in the terminal still work."
    )
