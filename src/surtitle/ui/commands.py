"""What the user can ask of Surtitle, as actions shared by every menu and window.

The window's own menu, the tray and the control window show the same actions, so
they can never disagree. Actions say what is wanted; whoever connects decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal, SignalInstance
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

from surtitle.core.health import State, Status

__all__ = ["Commands", "SourceChoice"]

_STOPPED = frozenset({State.PAUSED, State.ENDED, State.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """Something that can be listened to, as the source menu shows it."""

    id: str
    name: str
    """What a person recognises."""
    chosen: bool = False


class Commands(QObject):
    """The actions and their wishes.

    Signals:
        start_pause_requested: Start captioning, or pause it.
        source_requested: Listen to the source with this `SourceChoice.id`.
        show_hide_requested: Show the caption window, or hide it.
        quit_requested: End the program.
    """

    start_pause_requested = Signal()
    source_requested = Signal(str)
    show_hide_requested = Signal()
    quit_requested = Signal()
    changed = Signal()
    """The sources or the status are others now."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.status = Status(state=State.STARTING, message=self.tr("Starting"))
        self.sources: tuple[SourceChoice, ...] = ()
        self.start_pause = self._action(self.start_pause_requested)
        self.show_hide = self._action(self.show_hide_requested)
        self.quit = self._action(self.quit_requested)
        self.quit.setText(self.tr("&Quit Surtitle"))
        self._source_group: QActionGroup | None = None
        self.show_status(self.status)
        self.show_captions_visible(visible=False)

    def show_status(self, status: Status) -> None:
        """Offer what fits the state: to pause while captioning, else to start."""
        self.status = status
        stopped = status.state in _STOPPED
        self.start_pause.setText(
            self.tr("&Start captioning") if stopped else self.tr("&Pause captioning")
        )
        self.changed.emit()

    def show_sources(self, sources: Sequence[SourceChoice]) -> None:
        """Offer these sources."""
        self.sources = tuple(sources)
        if self._source_group is not None:
            self._source_group.deleteLater()
        group = QActionGroup(self)
        for source in self.sources:
            # A lone & would be taken for the mark of a keyboard letter.
            action = QAction(source.name.replace("&", "&&"), group)
            action.setCheckable(True)
            action.setChecked(source.chosen)
            action.setData(source.id)
        group.triggered.connect(lambda action: self.source_requested.emit(action.data()))
        self._source_group = group
        self.changed.emit()

    def show_captions_visible(self, *, visible: bool) -> None:
        """Offer to hide the caption window, or to show it."""
        self.show_hide.setText(self.tr("&Hide captions") if visible else self.tr("S&how captions"))

    def fill(self, menu: QMenu) -> None:
        """Put the actions into a menu, which then follows every change."""
        menu.addAction(self.start_pause)
        sources = menu.addMenu(self.tr("S&ource"))
        menu.addAction(self.show_hide)
        menu.addSeparator()
        menu.addAction(self.quit)
        self._fill_sources(sources)
        # Also while closed: trays copy menus and do not ask before they show them.
        self.changed.connect(lambda: self._fill_sources(sources))

    def _fill_sources(self, menu: QMenu) -> None:
        group = self._source_group
        offered = group.actions() if group is not None else []
        if menu.actions() == offered:
            return
        menu.clear()
        menu.addActions(offered)
        menu.menuAction().setEnabled(bool(offered))

    def _action(self, wish: SignalInstance) -> QAction:
        action = QAction(self)
        action.triggered.connect(lambda: wish.emit())  # noqa: PLW0108 - drops `checked`
        return action
