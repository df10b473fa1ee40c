"""The caption window: floats above everything, never takes the keyboard.

A projection: it is given immutable snapshots and statuses and paints the newest
ones, at most once a frame. What the user wants leaves it through `Commands` and
`placed`; it decides nothing and touches no file but the picture it is asked for.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QContextMenuEvent,
    QHelpEvent,
    QHideEvent,
    QMouseEvent,
    QMoveEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from surtitle.core.captions import Snapshot
from surtitle.core.errors import OutputError
from surtitle.core.health import Status
from surtitle.core.layout import Layout, Screen
from surtitle.core.placement import (
    Edge,
    Monitor,
    Place,
    Rectangle,
    place_of,
    rectangle_for,
    stretched,
)
from surtitle.ui.commands import Commands
from surtitle.ui.face import Face, Style, provenance
from surtitle.ui.resources import app_icon
from surtitle.ui.screens import ScreenWatch, monitors
from surtitle.ui.window_system import WindowSystem

__all__ = ["Overlay"]

_FRAME_MS = 16
_ACCESSIBLE_MS = 250
"""Screen readers and tests get the text that often at most."""
_HAND_RESTS_MS = 400
"""A window manager does not say when the user lets go: this long without motion says it."""
_LOST_MS = 60
_SEARCHES = 3
"""How often, after it was shown, the window asks the window manager where it is."""
_EDGE = 10
"""Pixels along the rim that resize instead of move."""
_CORNER = 24

_FLAGS = (
    Qt.WindowType.Tool
    | Qt.WindowType.FramelessWindowHint
    | Qt.WindowType.WindowStaysOnTopHint
    | Qt.WindowType.WindowDoesNotAcceptFocus
)
_QT_EDGES = {
    Edge.LEFT: Qt.Edge.LeftEdge,
    Edge.TOP: Qt.Edge.TopEdge,
    Edge.RIGHT: Qt.Edge.RightEdge,
    Edge.BOTTOM: Qt.Edge.BottomEdge,
}
_CURSORS = {
    Edge.LEFT: Qt.CursorShape.SizeHorCursor,
    Edge.RIGHT: Qt.CursorShape.SizeHorCursor,
    Edge.TOP: Qt.CursorShape.SizeVerCursor,
    Edge.BOTTOM: Qt.CursorShape.SizeVerCursor,
    Edge.LEFT | Edge.TOP: Qt.CursorShape.SizeFDiagCursor,
    Edge.RIGHT | Edge.BOTTOM: Qt.CursorShape.SizeFDiagCursor,
    Edge.RIGHT | Edge.TOP: Qt.CursorShape.SizeBDiagCursor,
    Edge.LEFT | Edge.BOTTOM: Qt.CursorShape.SizeBDiagCursor,
}


class Overlay(QWidget):
    """The floating caption window. Closing it asks to quit and hides it.

    Args:
        commands: The actions of its menu.
        window_system: What `window_system.choose` decided.
        place: Where the user last put it.
        style: What it looks like.
        find_monitors: The screens there are; for tests.

    Signals:
        placed: The user has put the window somewhere: a `Place` to be kept.
    """

    placed = Signal(object)

    def __init__(
        self,
        commands: Commands,
        *,
        window_system: WindowSystem | None = None,
        place: Place | None = None,
        style: Style | None = None,
        find_monitors: Callable[[], Sequence[Monitor]] = monitors,
    ) -> None:
        super().__init__(None, _FLAGS)
        self._commands = commands
        self._window_system = window_system or WindowSystem(platform=None)
        if self._window_system.bypass:
            self.setWindowFlag(Qt.WindowType.X11BypassWindowManagerHint)
        for attribute in (
            Qt.WidgetAttribute.WA_TranslucentBackground,
            Qt.WidgetAttribute.WA_ShowWithoutActivating,
            # Without it macOS hides tool windows of programs in the background: always.
            Qt.WidgetAttribute.WA_MacAlwaysShowToolWindow,
        ):
            self.setAttribute(attribute)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, on=False)
        self.setWindowTitle(self.tr("Surtitle captions"))
        self.setAccessibleName(self.tr("Captions"))
        self.setWindowIcon(app_icon())
        self.setMouseTracking(True)

        self._face = Face(style or Style())
        self._measure = self._face.measure
        self._layout = Layout()
        self._snapshot = Snapshot(revision=0, passages=())
        self._screen = Screen(lines=(), revision=0)
        self._status = commands.status
        self._painted = (self._screen, self._status)
        self._stale = False
        self._frame = self._timer(_FRAME_MS, self._next_frame)
        self._accessible = self._timer(_ACCESSIBLE_MS, self._tell_screen_readers)

        self._place = place
        self._find_monitors = find_monitors
        self._drag: tuple[QPoint, Rectangle, Edge] | None = None
        self._by_hand = False
        self._moved = False
        self._intended = QPoint()
        self._hand_rests = self._timer(_HAND_RESTS_MS, self._keep_place)
        self._searches = 0
        self._lost = self._timer(_LOST_MS, self._search)
        self._screens = ScreenWatch(self)
        self._screens.changed.connect(self.rearrange)

        self._menu = QMenu(self)
        commands.fill(self._menu)
        self.setMinimumSize(self._face.minimum_size)
        self.rearrange()
        self._tell_screen_readers()

    # What is shown

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show this text. Cheap to call often: what comes within a frame is merged."""
        self._snapshot = snapshot
        self._request_frame()

    def show_status(self, status: Status) -> None:
        """Show this status; likewise."""
        if _words(status) != _words(self._status) or status.state is not self._status.state:
            self._status = status
            self._request_frame()

    @property
    def is_behind(self) -> bool:
        """Whether something newer than what is painted waits for the next frame."""
        return self._stale

    def caption_text(self) -> str:
        """The newest caption lines, also those that give way to a failure for the moment."""
        self._lay_out()
        lines = self._screen.lines
        return "\n".join(line.settled + line.tentative for line in lines).strip("\n")

    def render_png(self, path: Path) -> None:
        """Draw the window into a file; works without a display.

        Raises:
            OutputError: The file cannot be written.
        """
        self._lay_out()
        if not self.grab().save(str(path), "PNG"):
            raise OutputError(
                f"The picture cannot be written to {path}.",
                remedy="Check that the folder exists and can be written to.",
            )

    # Where it stands

    def rearrange(self) -> None:
        """Go where the user last put the window, or as near as the present screens allow."""
        size = self._face.default_size
        found = rectangle_for(
            self._place, self._find_monitors(), width=size.width(), height=size.height()
        )
        self._by_hand = False
        self._hand_rests.stop()
        if found is not None and self._window_system.placeable:
            self._intended = QPoint(found.x, found.y)
            self.setGeometry(found.x, found.y, found.width, found.height)
        elif found is not None:
            self.resize(found.width, found.height)

    # Painting

    def paintEvent(self, _event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the newest screen and status."""
        painter = QPainter(self)
        self._face.paint(painter, self.size(), self._screen, self._status)
        painter.end()

    def _request_frame(self) -> None:
        self._stale = True
        if not self._frame.isActive():
            self._next_frame()

    def _next_frame(self) -> None:
        if not self._stale:
            return
        self._stale = False
        self._lay_out()
        painted = (self._screen, self._status)
        if painted != self._painted:
            self._painted = painted
            self.update()
            self._frame.start()
            if not self._accessible.isActive():
                self._accessible.start()

    def _lay_out(self) -> None:
        self._screen = self._layout.update(
            self._snapshot,
            width=self._face.text_width(self.size()),
            lines=self._face.line_count(self.size()),
            measure=self._measure,
        )

    def _tell_screen_readers(self) -> None:
        self.setAccessibleDescription(self.caption_text())
        self.setWhatsThis(_words(self._status))

    # Moving and resizing by hand

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Begin to move the window, or to resize it at its rim."""
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        edges = self._edges_at(event.position())
        self._by_hand, self._moved = True, False
        window = self.windowHandle()
        # Past the window manager nobody answers these requests.
        if window is not None and not self._window_system.bypass:
            started = (
                window.startSystemResize(_qt_edges(edges)) if edges else window.startSystemMove()
            )
            if started:
                return
        where = self.geometry()
        before = Rectangle(x=where.x(), y=where.y(), width=where.width(), height=where.height())
        self._drag = (event.globalPosition().toPoint(), before, edges)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Follow the pointer, or show what pressing here would do."""
        if self._drag is None:
            edges = self._edges_at(event.position())
            self.setCursor(_CURSORS.get(edges, Qt.CursorShape.ArrowCursor))
            return
        start, before, edges = self._drag
        way = event.globalPosition().toPoint() - start
        if not edges:
            self.move(before.x + way.x(), before.y + way.y())
            return
        least = self.minimumSize()
        after = stretched(
            before, edges, way.x(), way.y(), width=least.width(), height=least.height()
        )
        self.setGeometry(after.x, after.y, after.width, after.height)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End moving or resizing."""
        if self._drag is not None and event.button() is Qt.MouseButton.LeftButton:
            self._drag = None
            self._hand_rests.stop()
            self._keep_place()

    def moveEvent(self, _event: QMoveEvent) -> None:  # noqa: N802 - Qt's name
        """Note that the window manager moves it for the user."""
        if self._by_hand:
            self._moved = True
            self._hand_rests.start()
        elif self._is_lost and self._searches > 0:
            self._lost.start()

    def resizeEvent(self, _event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Flow the text into the new width."""
        self._request_frame()
        if self._by_hand:
            self._hand_rests.start()

    @property
    def _is_lost(self) -> bool:
        """Qt on X11 sometimes believes for ever that a window it has placed is at (0, 0).

        It would then also start to drag it from there, and the window would jump.
        """
        corner = QPoint(0, 0)
        return self.pos() == corner != self._intended and self._window_system.placeable

    def _search(self) -> None:
        # The window manager answers any request for a place with where the window is.
        if self._is_lost and self.isVisible() and not self._by_hand:
            self._searches -= 1
            self.move(self._intended)

    def _keep_place(self) -> None:
        where = self.geometry()
        if self._is_lost and not self._moved:
            where = QRect(self._intended, where.size())
        place = place_of(
            Rectangle(x=where.x(), y=where.y(), width=where.width(), height=where.height()),
            self._find_monitors(),
        )
        if place is not None and self._window_system.placeable and place != self._place:
            self._place = place
            self._intended = where.topLeft()
            self.placed.emit(place)

    def _edges_at(self, point: QPointF) -> Edge:
        sides = {
            Edge.LEFT: point.x(),
            Edge.RIGHT: self.width() - point.x(),
            Edge.TOP: point.y(),
            Edge.BOTTOM: self.height() - point.y(),
        }
        # Near a corner the second side counts from further away: corners are hard to hit.
        on_rim = min(sides.values()) < _EDGE
        edges = Edge(0)
        for edge, distance in sides.items():
            if distance < (_CORNER if on_rim else _EDGE):
                edges |= edge
        return edges

    # Menus, closing, being shown

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Offer every action."""
        self._menu.popup(event.globalPos())

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """The window manager's close: hide at once and ask for the end of the program."""
        event.accept()
        self._commands.quit_requested.emit()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Let the menus offer to hide it."""
        super().showEvent(event)
        self._searches = _SEARCHES
        self._commands.show_captions_visible(visible=True)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Let the menus offer to show it."""
        super().hideEvent(event)
        self._commands.show_captions_visible(visible=False)

    def event(self, event: QEvent) -> bool:
        """Tell the whole status where it may be cut short."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            area = self._face.status_area(self.size(), self._screen, self._status)
            if area.contains(QPointF(event.pos())):
                QToolTip.showText(event.globalPos(), _words(self._status), self)
            return True
        return super().event(event)

    def _timer(self, milliseconds: int, action: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(milliseconds)
        timer.timeout.connect(action)
        return timer


def _words(status: Status) -> str:
    parts = (status.message, status.remedy, status.source, provenance(status))
    return "\n".join(part for part in parts if part)


def _qt_edges(edges: Edge) -> Qt.Edge:
    found = Qt.Edge(0)
    for edge in edges:
        found |= _QT_EDGES[edge]
    return found
