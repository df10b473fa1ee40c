"""The control window has room for what it says."""

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from fakes.statuses import SILENT
from surtitle.core.health import State, Status
from surtitle.ui.commands import Commands
from surtitle.ui.controls import ControlWindow

# Off screen there is no window manager to be told of sizes, and Qt says so.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

LONG = Status(
    state=State.FAILED,
    message="What this computer plays cannot be heard: no sound server with an output answers. "
    "Trying again; nothing is lost, 12 s behind.",
    remedy="Start PipeWire or PulseAudio, or caption a microphone: surtitle caption mic. " * 3,
)


def _status_label(window: ControlWindow) -> QLabel:
    (found,) = [each for each in window.findChildren(QLabel) if each.accessibleName() == "Status"]
    return found


def _room(window: ControlWindow) -> int:
    """Pixels that the status has to spare; below 0 it is clipped."""
    QApplication.processEvents()
    label = _status_label(window)
    return label.height() - label.heightForWidth(label.width())


@pytest.mark.parametrize("shown_before", [False, True])
def test_a_long_status_is_not_clipped(qtbot: QtBot, *, shown_before: bool) -> None:
    commands = Commands()
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    commands.show_status(SILENT)
    if shown_before:
        window.show()
        QApplication.processEvents()
    before = window.sizeHint().height()
    commands.show_status(LONG)
    window.show()
    assert _room(window) >= 0
    assert window.height() > before
    # The user cannot make it too small either.
    window.resize(window.width(), 10)
    assert _room(window) >= 0


def test_its_width_decides_how_high_it_must_be(qtbot: QtBot) -> None:
    commands = Commands()
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    commands.show_status(LONG)
    window.resize(900, 10)
    window.show()
    assert _room(window) >= 0
    wide = window.minimumHeight()
    window.resize(420, 10)
    assert _room(window) >= 0
    assert window.minimumHeight() > wide


def test_a_short_status_asks_for_little_again(qtbot: QtBot) -> None:
    commands = Commands()
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    commands.show_status(SILENT)
    window.show()
    QApplication.processEvents()
    least = window.minimumHeight()
    commands.show_status(LONG)
    QApplication.processEvents()
    assert window.minimumHeight() > least
    commands.show_status(SILENT)
    QApplication.processEvents()
    assert window.minimumHeight() == least
