"""A small window with every action, for desktops without a system tray."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QCloseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from surtitle.ui.commands import Commands
from surtitle.ui.resources import app_icon, icon_name, pixmap

__all__ = ["ControlWindow"]

_ICON_SIZE = 32
_TARGET_HEIGHT = 32


class ControlWindow(QWidget):
    """An ordinary window: takes the keyboard, stands in the task bar; closing it quits."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, on=False)
        self._commands = commands
        self.setWindowTitle(self.tr("Surtitle"))
        self.setWindowIcon(app_icon())
        self._picture = QLabel()
        self._shown_icon = ""
        self._status = QLabel()
        self._status.setWordWrap(True)
        self._status.setTextFormat(Qt.TextFormat.PlainText)
        self._status.setAccessibleName(self.tr("Status"))
        self._sources = QComboBox()
        self._sources.setAccessibleName(self.tr("Source"))
        self._sources.activated.connect(self._source_chosen)
        label = QLabel(self.tr("S&ource"))
        label.setBuddy(self._sources)

        top = QHBoxLayout()
        top.addWidget(self._picture)
        top.addWidget(self._status, stretch=1)
        source = QHBoxLayout()
        source.addWidget(label)
        source.addWidget(self._sources, stretch=1)
        actions = QHBoxLayout()
        for action in (commands.start_pause, commands.show_hide, commands.quit):
            actions.addWidget(_ActionButton(action))
        self._rows = QVBoxLayout(self)
        for row in (top, source, actions):
            self._rows.addLayout(row)
        self._sources.setMinimumHeight(_TARGET_HEIGHT)
        self.setMinimumWidth(420)

        commands.changed.connect(self._refresh)
        self._refresh()

    @property
    def status_text(self) -> str:
        """The status as it is shown."""
        return self._status.text()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Wrap the status again."""
        super().resizeEvent(event)
        self._make_room()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Hide at once and ask for the end of the program."""
        event.accept()
        self._commands.quit_requested.emit()

    def _refresh(self) -> None:
        status = self._commands.status
        name = icon_name(status)
        if name != self._shown_icon:
            self._shown_icon = name
            self._picture.setPixmap(pixmap(name, _ICON_SIZE, self.devicePixelRatio()))
        text = " ".join(part for part in (status.message, status.remedy) if part)
        if text != self._status.text():
            self._status.setText(text)
            self._make_room()
        names = [source.name for source in self._commands.sources]
        if names != [self._sources.itemText(i) for i in range(self._sources.count())]:
            self._sources.clear()
            self._sources.addItems(names)
        chosen = [i for i, source in enumerate(self._commands.sources) if source.chosen]
        self._sources.setCurrentIndex(chosen[0] if chosen else -1)
        self._sources.setEnabled(bool(names))

    def _make_room(self) -> None:
        """Be high enough for the wrapped status: Qt sees to that inside windows only."""
        self._rows.activate()  # or it answers for the text before
        self.setMinimumHeight(self._rows.totalHeightForWidth(self.width()))

    def _source_chosen(self, index: int) -> None:
        self._commands.source_requested.emit(self._commands.sources[index].id)


class _ActionButton(QPushButton):
    """A button that is an action: same text, same effect."""

    def __init__(self, action: QAction) -> None:
        super().__init__()
        self._action = action
        self.setMinimumHeight(_TARGET_HEIGHT)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setText(self._action.text())
        self.setEnabled(self._action.isEnabled())
