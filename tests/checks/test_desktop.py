"""What the doctor says of the display and the tray."""

import asyncio
import json

import pytest

from surtitle.checks.child import Answer
from surtitle.checks.desktop import check_desktop, display, tray
from surtitle.checks.finding import Finding, Level
from surtitle.ui.window_system import choose

WELL = Answer(code=0, output=json.dumps({"platform": "xcb", "screens": 1, "tray": True}))
X11 = {"DISPLAY": ":7"}
WAYLAND = {"WAYLAND_DISPLAY": "wayland-0"}


@pytest.mark.parametrize(
    ("environment", "system", "answer", "level", "text"),
    [
        (X11, "linux", WELL, Level.OK, "Display: X11 (:7)"),
        (X11 | WAYLAND, "linux", WELL, Level.OK, "Display: Wayland through XWayland (:7)"),
        (WAYLAND, "linux", WELL, Level.WARN, "Display: Wayland (wayland-0), where"),
        ({}, "win32", WELL, Level.OK, "Display: Windows"),
        ({}, "darwin", WELL, Level.OK, "Display: macOS"),
        ({}, "linux", None, Level.WARN, "There is no display"),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", None, Level.WARN, "QT_QPA_PLATFORM"),
        (X11, "linux", Answer(code=-6), Level.FAIL, "X11 (:7) cannot be opened"),
        (X11, "linux", Answer(code=1), Level.FAIL, "X11 (:7) cannot be opened"),
        (X11, "linux", Answer(code=0, output="?"), Level.FAIL, "X11 (:7) cannot be opened"),
        (X11, "linux", Answer(code=None), Level.FAIL, "X11 (:7) does not answer"),
        ({}, "darwin", Answer(code=-6), Level.FAIL, "macOS cannot be opened"),
    ],
)
def test_the_table_of_displays(
    environment: dict[str, str], system: str, answer: Answer | None, level: Level, text: str
) -> None:
    found = display(choose(environment, system=system), environment, answer, system=system)
    assert found.level is level
    assert text in found.text
    assert bool(found.remedy) is (level is not Level.OK)
    if not environment and system == "linux":
        assert "terminal still work" in found.remedy


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        (WELL, Level.OK),
        (Answer(code=0, output='{"tray": false}'), Level.WARN),
        (Answer(code=0, output="[]"), None),
        (Answer(code=0, output=""), None),
        (Answer(code=-11, output=WELL.output), None),
    ],
)
def test_the_table_of_trays(answer: Answer, level: Level | None) -> None:
    found = tray(answer)
    assert (found and found.level) == level


def test_a_display_that_is_not_there_crashes_qt_but_not_us(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":4242")
    found: list[Finding] = []
    asyncio.run(check_desktop(found.append, system="linux"))
    assert [each.level for each in found] == [Level.FAIL]
    assert ":4242" in found[0].text
