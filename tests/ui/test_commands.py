"""One set of actions for every menu and window."""

import pytest
from PySide6.QtWidgets import QComboBox, QMenu, QPushButton, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from fakes.statuses import FAILED, PAUSED, SILENT, WORKING
from surtitle.core.health import Status
from surtitle.ui.commands import Commands, SourceChoice
from surtitle.ui.controls import ControlWindow
from surtitle.ui.tray import Tray, tray_available

pytestmark = pytest.mark.usefixtures("qtbot")  # the application

SOURCES = [
    SourceChoice(id="mic", name="Microphone & co"),
    SourceChoice(id="system", name="System sound", chosen=True),
]


@pytest.fixture
def commands() -> Commands:
    commands = Commands()
    commands.show_sources(SOURCES)
    return commands


def _texts(menu: QMenu) -> list[str]:
    return [action.text().replace("&", "") for action in menu.actions() if action.text()]


def _source_menu(menu: QMenu) -> QMenu:
    (found,) = [child for child in menu.findChildren(QMenu) if child.menuAction().text()]
    return found


@pytest.mark.parametrize(
    ("status", "offer"),
    [
        (SILENT, "Pause captioning"),
        (WORKING, "Pause captioning"),
        (PAUSED, "Start captioning"),
    ],
)
def test_what_is_offered_fits_the_state(commands: Commands, status: Status, offer: str) -> None:
    commands.show_status(status)
    assert commands.start_pause.text().replace("&", "") == offer


def test_every_action_says_what_is_wanted(commands: Commands, qtbot: QtBot) -> None:
    for action, wish in (
        (commands.start_pause, commands.start_pause_requested),
        (commands.show_hide, commands.show_hide_requested),
        (commands.quit, commands.quit_requested),
    ):
        with qtbot.waitSignal(wish, timeout=1000):
            action.trigger()


def test_a_filled_menu_follows_the_sources(commands: Commands, qtbot: QtBot) -> None:
    menu = QMenu()
    commands.fill(menu)
    assert _texts(menu) == ["Pause captioning", "Source", "Show captions", "Quit Surtitle"]
    sources = _source_menu(menu)
    assert [(a.text(), a.isChecked()) for a in sources.actions()] == [
        ("Microphone && co", False),
        ("System sound", True),
    ]
    with qtbot.waitSignal(commands.source_requested, timeout=1000) as wish:
        sources.actions()[0].trigger()
    assert wish.args == ["mic"]
    commands.show_sources([])
    assert sources.actions() == []
    assert not sources.menuAction().isEnabled()


def test_the_tray_shows_state_in_picture_and_words(commands: Commands) -> None:
    tray = Tray(commands)
    commands.show_status(FAILED)
    assert tray.shown_icon == "failed"
    assert "No sound arrives" in tray.tooltip
    assert FAILED.remedy in tray.tooltip
    commands.show_status(PAUSED)
    assert tray.shown_icon == "paused"
    assert _texts(tray.menu)[0] == "Start captioning"


def test_a_click_on_the_tray_shows_or_hides(commands: Commands, qtbot: QtBot) -> None:
    tray = Tray(commands)
    icon = tray.findChild(QSystemTrayIcon)
    assert isinstance(icon, QSystemTrayIcon)
    with qtbot.waitSignal(commands.show_hide_requested, timeout=1000):
        icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    with qtbot.assertNotEmitted(commands.show_hide_requested):
        icon.activated.emit(QSystemTrayIcon.ActivationReason.Context)


def test_off_screen_there_is_no_tray() -> None:
    assert not tray_available()


def test_the_control_window_has_every_action_by_keyboard(commands: Commands, qtbot: QtBot) -> None:
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    buttons = {b.text().replace("&", ""): b for b in window.findChildren(QPushButton)}
    assert list(buttons) == ["Pause captioning", "Show captions", "Quit Surtitle"]
    assert all("&" in b.text() and b.minimumHeight() >= 24 for b in buttons.values())
    with qtbot.waitSignal(commands.start_pause_requested, timeout=1000):
        buttons["Pause captioning"].click()
    sources = window.findChild(QComboBox)
    assert isinstance(sources, QComboBox)
    assert sources.accessibleName() == "Source"
    assert sources.currentText() == "System sound"
    with qtbot.waitSignal(commands.source_requested, timeout=1000) as wish:
        sources.activated.emit(0)
    assert wish.args == ["mic"]


def test_the_control_window_tells_the_status(commands: Commands, qtbot: QtBot) -> None:
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    commands.show_status(FAILED)
    assert f"{FAILED.message} {FAILED.remedy}" in window.status_text
    commands.show_status(PAUSED)
    assert any("Start" in button.text() for button in window.findChildren(QPushButton))


def test_closing_the_control_window_asks_to_quit(commands: Commands, qtbot: QtBot) -> None:
    window = ControlWindow(commands)
    qtbot.addWidget(window)
    with qtbot.waitSignal(commands.quit_requested, timeout=1000):
        window.close()
