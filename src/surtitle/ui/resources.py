"""Finds Surtitle's own pictures, installed or in a working copy, and draws them sharp."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from surtitle.core.errors import SurtitleError
from surtitle.core.health import State, Status

__all__ = ["app_icon", "icon", "icon_name", "pixmap", "resource"]

_TRAY_SIZES = (16, 20, 22, 24, 32, 44, 48, 64, 128)


def resource(name: str) -> bytes:
    """Read a file of `resources/`, such as `icons/silent.svg`.

    Raises:
        SurtitleError: The installation is incomplete.
    """
    package = files("surtitle")
    # Inside the wheel beside the code; in a working copy two folders up.
    for folder in (package / "resources", _working_copy(package)):
        file = folder.joinpath(*name.split("/")) if folder else None
        if file is not None and file.is_file():
            return file.read_bytes()
    raise SurtitleError(
        f"Surtitle's own file {name} is missing.", remedy="Please install Surtitle again."
    )


def icon_name(status: Status) -> str:
    """Which picture stands for a status; each has a shape of its own."""
    return "paused" if status.state is State.PAUSED else str(status.look)


def pixmap(name: str, size: int, scale: float = 1.0) -> QPixmap:
    """Draw one of `resources/icons`.

    Args:
        name: Without the ending; `silent`, `working`, `failed`, `paused` or `surtitle`.
        size: Edge in logical pixels.
        scale: Device pixels in a logical one.
    """
    renderer = QSvgRenderer(QByteArray(resource(f"icons/{name}.svg")))
    edge = max(1, round(size * scale))
    drawn = QPixmap(edge, edge)
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    renderer.render(painter, QRectF(0, 0, edge, edge))
    painter.end()
    drawn.setDevicePixelRatio(scale)
    return drawn


def icon(name: str) -> QIcon:
    """The same at every size that a tray or a task bar asks for."""
    made = QIcon()
    for size in _TRAY_SIZES:
        made.addPixmap(pixmap(name, size))
    return made


def app_icon() -> QIcon:
    """What stands for Surtitle in window lists."""
    return icon("surtitle")


def _working_copy(package: Traversable) -> Traversable | None:
    folder = package / ".." / ".." / "resources"
    return folder if folder.is_dir() else None
