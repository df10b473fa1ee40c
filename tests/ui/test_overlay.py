"""The caption window, off screen."""

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QContextMenuEvent, QHelpEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolTip
from pytestqt.qtbot import QtBot

from fakes.screens import LAPTOP, LEFT_OF_LAPTOP, FakeScreens
from fakes.statuses import FAILED, SILENT, WORKING
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.errors import OutputError
from surtitle.core.placement import Place
from surtitle.ui.commands import Commands
from surtitle.ui.overlay import Overlay
from surtitle.ui.window_system import WindowSystem

# Off screen nothing can be raised or grabbed, and Qt says so.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def snapshot(settled: str, tentative: str = "", *, revision: int = 1) -> Snapshot:
    passage = Passage(key=0, settled=settled, tentative=tentative, start=0, end=0, closed=False)
    return Snapshot(revision=revision, passages=(passage,))


class Window:
    """An overlay, its commands, and what it asked to be kept."""

    def __init__(
        self,
        qtbot: QtBot,
        *,
        place: Place | None = None,
        bypass: bool = False,
        kind: type[Overlay] = Overlay,
    ) -> None:
        self.commands = Commands()
        self.screens = FakeScreens(LAPTOP, LEFT_OF_LAPTOP)
        self.overlay = kind(
            self.commands,
            window_system=WindowSystem(platform=None, bypass=bypass),
            place=place,
            find_monitors=self.screens,
        )
        self.kept: list[Place] = []
        self.overlay.placed.connect(self.kept.append)
        qtbot.addWidget(self.overlay)

    @property
    def rectangle(self) -> tuple[int, int, int, int]:
        return self.overlay.geometry().getRect()  # type: ignore[return-value] # stub says object


@pytest.fixture
def window(qtbot: QtBot) -> Window:
    return Window(qtbot)


def _right_click(overlay: Overlay) -> QContextMenuEvent:
    at = QPoint(20, 20)
    return QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, overlay.mapToGlobal(at))


class PaintCounter(QObject):
    def __init__(self, target: QObject) -> None:
        super().__init__()
        self.paints = 0
        target.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        self.paints += event.type() is QEvent.Type.Paint
        return False


def test_it_floats_and_leaves_the_keyboard_alone(window: Window) -> None:
    flags = window.overlay.windowFlags()
    for flag in (
        Qt.WindowType.FramelessWindowHint,
        Qt.WindowType.WindowStaysOnTopHint,
        Qt.WindowType.WindowDoesNotAcceptFocus,
    ):
        assert flag in flags
    assert flags & Qt.WindowType.WindowType_Mask == Qt.WindowType.Tool
    assert window.overlay.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    assert window.overlay.testAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
    assert Qt.WindowType.X11BypassWindowManagerHint not in flags


def test_it_passes_the_window_manager_where_that_is_needed(qtbot: QtBot) -> None:
    flags = Window(qtbot, bypass=True).overlay.windowFlags()
    assert Qt.WindowType.X11BypassWindowManagerHint in flags


def test_the_newest_text_is_shown_and_its_size_stays(window: Window) -> None:
    before = window.overlay.size()
    window.overlay.show_snapshot(snapshot("one"))
    assert window.overlay.caption_text() == "one"
    window.overlay.show_snapshot(snapshot("one " * 60, "end", revision=2))
    lines = window.overlay.caption_text().splitlines()
    assert len(lines) == 2
    assert lines[-1].endswith("end")
    assert window.overlay.size() == before


def test_a_burst_is_painted_once_a_frame(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    qtbot.wait(50)
    counter = PaintCounter(window.overlay)
    for revision in range(200):
        window.overlay.show_snapshot(snapshot("", f"word {revision}", revision=revision))
    qtbot.waitUntil(lambda: counter.paints > 0 and not window.overlay.is_behind, timeout=2000)
    qtbot.wait(50)
    assert window.overlay.caption_text() == "word 199"
    assert counter.paints <= 3


def test_asking_for_the_text_takes_no_frame_away(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    qtbot.wait(50)
    window.overlay.show_snapshot(snapshot("one"))
    QApplication.processEvents()
    counter = PaintCounter(window.overlay)
    window.overlay.show_snapshot(snapshot("one two", revision=2))
    assert window.overlay.caption_text() == "one two"
    qtbot.waitUntil(lambda: counter.paints > 0, timeout=2000)


def test_nothing_is_painted_while_nothing_changes(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    window.overlay.show_status(WORKING)
    qtbot.waitExposed(window.overlay, timeout=2000)
    qtbot.wait(50)
    counter = PaintCounter(window.overlay)
    for _ in range(5):
        window.overlay.show_status(WORKING)
        window.overlay.show_snapshot(snapshot(""))
        qtbot.wait(20)
    assert counter.paints == 0


def test_screen_readers_can_read_captions_and_status(window: Window, qtbot: QtBot) -> None:
    window.overlay.show_status(FAILED)
    window.overlay.show_snapshot(snapshot("hello world"))
    interface = QAccessible.queryAccessibleInterface(window.overlay)
    assert interface.text(QAccessible.Text.Name) == "Captions"
    qtbot.waitUntil(
        lambda: interface.text(QAccessible.Text.Description) == "hello world", timeout=2000
    )
    assert FAILED.remedy in interface.text(QAccessible.Text.Help)


def test_the_picture_is_written_without_a_display(window: Window, tmp_path: Path) -> None:
    window.overlay.show_status(SILENT)
    window.overlay.render_png(tmp_path / "empty.png")
    window.overlay.show_snapshot(snapshot("some words"))
    window.overlay.render_png(tmp_path / "words.png")
    picture = QImage(str(tmp_path / "words.png"))
    assert picture.size() == window.overlay.size()
    assert picture != QImage(str(tmp_path / "empty.png"))


def test_a_picture_that_cannot_be_written_is_said(window: Window, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        window.overlay.render_png(tmp_path / "missing" / "picture.png")


def test_it_begins_bottom_centre_and_keeps_nothing_unasked(window: Window, qtbot: QtBot) -> None:
    x, y, width, height = window.rectangle
    assert abs(x + width / 2 - 400) <= 1
    assert 600 < y + height <= 760
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    window.overlay.move(5, 5)  # not the user's doing
    assert window.kept == []


@pytest.mark.parametrize("bypass", [False, True])
def test_dragging_moves_it_and_its_place_is_kept_once(qtbot: QtBot, *, bypass: bool) -> None:
    window = Window(qtbot, bypass=bypass)
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    x, y, width, height = window.rectangle
    middle = QPoint(width // 2, height // 2)
    QTest.mousePress(window.overlay, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(window.overlay, middle + QPoint(-40, -300))
    QTest.mouseRelease(window.overlay, Qt.MouseButton.LeftButton, pos=middle)
    assert window.rectangle == (x - 40, y - 300, width, height)
    (place,) = window.kept
    assert place.screen == LAPTOP.identity
    again = Window(qtbot, place=place)
    assert again.rectangle == window.rectangle


def test_pulling_the_rim_resizes_and_flows_again(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    window.overlay.show_snapshot(snapshot("word " * 12))
    assert len(window.overlay.caption_text().splitlines()) == 2
    x, y, width, height = window.rectangle
    rim = QPoint(width - 2, height // 2)
    QTest.mousePress(window.overlay, Qt.MouseButton.LeftButton, pos=rim)
    QTest.mouseMove(window.overlay, rim + QPoint(300, 0))
    QTest.mouseRelease(window.overlay, Qt.MouseButton.LeftButton, pos=rim)
    assert window.rectangle == (x, y, width + 300, height)
    assert len(window.overlay.caption_text().splitlines()) == 1
    assert window.kept[-1].width == width + 300


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [
        (1, 60, Qt.CursorShape.SizeHorCursor),
        (-2, 60, Qt.CursorShape.SizeHorCursor),
        (200, 1, Qt.CursorShape.SizeVerCursor),
        (1, 15, Qt.CursorShape.SizeFDiagCursor),
        (-2, 1, Qt.CursorShape.SizeBDiagCursor),
        (200, 60, Qt.CursorShape.ArrowCursor),
    ],
)
def test_the_pointer_tells_what_pressing_would_do(
    window: Window, qtbot: QtBot, x: int, y: int, shape: Qt.CursorShape
) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    QTest.mouseMove(window.overlay, QPoint(x % window.overlay.width(), y))
    assert window.overlay.cursor().shape() is shape


def test_it_waits_on_another_screen_until_its_own_returns(qtbot: QtBot) -> None:
    there = Place(screen=LEFT_OF_LAPTOP.identity, x=0.0, y=0.0, width=600, height=130)
    window = Window(qtbot, place=there)
    assert window.rectangle == (-1920, -200, 600, 130)
    window.screens.present.remove(LEFT_OF_LAPTOP)
    window.overlay.rearrange()
    assert 0 <= window.rectangle[0] < 800
    window.screens.present.append(LEFT_OF_LAPTOP)
    window.overlay.rearrange()
    assert window.rectangle == (-1920, -200, 600, 130)
    assert window.kept == []  # the rescue is not what the user wanted


class LostInTheCorner(Overlay):
    """As some window managers have it: Qt believes for ever that the window is at (0, 0)."""

    def geometry(self) -> QRect:
        return QRect(self.pos(), self.size())

    def pos(self) -> QPoint:
        return QPoint(0, 0)


def test_a_position_that_qt_does_not_know_is_not_kept(qtbot: QtBot) -> None:
    there = Place(screen=LAPTOP.identity, x=0.25, y=0.5, width=600, height=130)
    window = Window(qtbot, place=there, kind=LostInTheCorner)
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    window.overlay._by_hand = True  # as after pressing on the rim, with a window manager
    window.overlay.resize(500, 130)
    qtbot.waitUntil(lambda: bool(window.kept), timeout=2000)
    (place,) = window.kept
    assert (place.width, place.height) == (500, 130)
    assert place.x == pytest.approx(50 / 300)  # where it was put, not the corner
    assert place.y == pytest.approx(0.5)


def test_a_window_that_qt_has_lost_is_found_again(window: Window, qtbot: QtBot) -> None:
    before = window.rectangle
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    window.overlay.move(0, 0)  # what the first message of some window managers amounts to
    qtbot.waitUntil(lambda: window.rectangle == before, timeout=2000)
    assert window.kept == []


def test_the_whole_status_is_told_where_it_may_be_cut_short(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    window.overlay.show_status(FAILED)
    over = QPoint(60, window.overlay.height() - 20)
    for at, told in ((QPoint(60, 20), False), (over, True)):
        pointer_rests = QHelpEvent(QEvent.Type.ToolTip, at, window.overlay.mapToGlobal(at))
        QApplication.sendEvent(window.overlay, pointer_rests)
        assert (FAILED.remedy in QToolTip.text()) is told


def test_closing_asks_to_quit_and_destroys_nothing(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    assert "Hide" in window.commands.show_hide.text().replace("&", "")
    with qtbot.waitSignal(window.commands.quit_requested, timeout=1000):
        window.overlay.close()
    assert "Show" in window.commands.show_hide.text().replace("&", "")
    window.overlay.show_snapshot(snapshot("still here"))
    assert window.overlay.caption_text() == "still here"


def test_its_menu_opens_without_stopping_the_program(window: Window, qtbot: QtBot) -> None:
    window.overlay.show()
    qtbot.waitExposed(window.overlay, timeout=2000)
    menu = window.overlay.findChild(QMenu)
    assert isinstance(menu, QMenu)
    window.overlay.contextMenuEvent(_right_click(window.overlay))
    qtbot.waitUntil(menu.isVisible, timeout=2000)
    menu.close()
