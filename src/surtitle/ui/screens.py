"""Qt's screens as `surtitle.core.placement` knows them."""

from PySide6.QtCore import QObject, QRect, Signal
from PySide6.QtGui import QGuiApplication, QScreen

from surtitle.core.placement import Monitor, Rectangle

__all__ = ["ScreenWatch", "monitors"]


def monitors() -> list[Monitor]:
    """The screens there are now, the primary one marked."""
    primary = QGuiApplication.primaryScreen()
    return [
        Monitor(
            identity=_identity(screen),
            available=_rectangle(screen.availableGeometry()),
            primary=screen is primary,
        )
        for screen in QGuiApplication.screens()
        if not screen.availableGeometry().isEmpty()
    ]


class ScreenWatch(QObject):
    """Tells when screens come, go, or change their size, scale or order."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        application = QGuiApplication.instance()
        if not isinstance(application, QGuiApplication):  # pragma: no cover - needs no screens
            return
        application.screenAdded.connect(self._added)
        application.screenRemoved.connect(self.changed)
        application.primaryScreenChanged.connect(self.changed)
        for screen in QGuiApplication.screens():
            self._watch(screen)

    def _added(self, screen: QScreen) -> None:
        self._watch(screen)
        self.changed.emit()

    def _watch(self, screen: QScreen) -> None:
        screen.availableGeometryChanged.connect(self.changed)
        screen.logicalDotsPerInchChanged.connect(self.changed)


def _identity(screen: QScreen) -> str:
    parts = (screen.name(), screen.manufacturer(), screen.model(), screen.serialNumber())
    return " ".join(part for part in parts if part)


def _rectangle(area: QRect) -> Rectangle:
    return Rectangle(x=area.x(), y=area.y(), width=area.width(), height=area.height())
