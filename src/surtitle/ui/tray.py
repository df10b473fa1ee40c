"""The icon in the system tray: state at a glance, every action in its menu."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from surtitle.ui.commands import Commands
from surtitle.ui.resources import icon, icon_name

__all__ = ["Tray", "tray_available"]


def tray_available() -> bool:
    """Whether there is a tray now; without one, use `surtitle.ui.controls`."""
    return QSystemTrayIcon.isSystemTrayAvailable()


class Tray(QObject):
    """Shows `commands` and their status in the system tray, until `hide`."""

    def __init__(self, commands: Commands, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._commands = commands
        self._menu = QMenu()
        commands.fill(self._menu)
        self._icon = QSystemTrayIcon(self)
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._activated)
        self._shown_icon = ""
        commands.changed.connect(self._refresh)
        self._refresh()

    @property
    def tooltip(self) -> str:
        """What the icon says when the pointer rests on it."""
        return self._icon.toolTip()

    @property
    def menu(self) -> QMenu:
        """What the icon offers."""
        return self._menu

    @property
    def shown_icon(self) -> str:
        """Name of the picture shown: `silent`, `working`, `failed` or `paused`."""
        return self._shown_icon

    def show(self) -> None:
        """Appear in the tray, also in one that starts later."""
        self._icon.show()

    def hide(self) -> None:
        """Leave the tray; do so before the program ends, or some trays keep a dead icon."""
        self._icon.hide()
        self._menu.close()

    def _refresh(self) -> None:
        status = self._commands.status
        name = icon_name(status)
        if name != self._shown_icon:
            self._shown_icon = name
            self._icon.setIcon(icon(name))
        lines = [f"Surtitle: {status.message}", status.remedy, status.source]
        tooltip = "\n".join(line for line in lines if line)
        if tooltip != self._icon.toolTip():
            self._icon.setToolTip(tooltip)

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Trigger:
            self._commands.show_hide_requested.emit()
