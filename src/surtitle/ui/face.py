"""How captions look: sizes, colours, and the painting of a screen and a status.

Knows no window; it is given a size and a painter. The colours keep a contrast
of 7:1 over the worst background that can show through the plate, which is white.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QPainter,
    QPen,
    QPixmap,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)

from surtitle.core.health import Look, Status
from surtitle.core.layout import Screen, ScreenLine
from surtitle.core.settings import Settings
from surtitle.ui.resources import icon_name, pixmap

__all__ = ["Face", "Sharing", "Style", "provenance", "share", "style_of"]

_LINE_HEIGHT = 1.25
_SIDE = 18.0
_TOP = 10.0
_BETWEEN = 6.0
_CORNER = 10.0
_ICON = 28
_BESIDE_ICON = 10.0
_NEW_ROW = "\N{LINE SEPARATOR}"
_BESIDE = " ·\N{NO-BREAK SPACE}"
# A sentence with the letters of English in about their usual numbers, and its spaces.
_SAMPLE = "The words you hear are written here and stay where they are until read."


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a caption looks like. Sizes are logical pixels."""

    text_size: int = 24
    status_size: int = 13
    characters: int = 42
    """How many average characters fit in a line of the default window."""
    lines: int = 2
    settled: str = "#ffffff"
    tentative: str = "#dcdcdc"
    status: str = "#e6e6e6"
    warning: str = "#ffd166"
    plate: str = "#080808"
    plate_opacity: float = 0.8


def style_of(settings: Settings) -> Style:
    """The look that the settings ask for."""
    style = Style()
    return replace(
        style,
        text_size=round(style.text_size * settings.captions_text_size / 100),
        lines=settings.captions_lines,
        plate_opacity=settings.captions_opacity / 100,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How the window is divided between the captions and a failure."""

    rows: int
    """Rows of small text for the failure, at least 1."""
    lines: tuple[int, ...]
    """The caption lines that remain, from the top down, by their place before."""


def share(
    wanted: int, captions: Sequence[bool], *, height: float, line: float, row: float
) -> Sharing:
    """Give a failure the rows it needs; empty caption lines go first, then the oldest.

    Args:
        wanted: Rows that the whole text of the failure takes.
        captions: For each caption line, from the top down, whether anything is in it.
        height: Of everything, without the margins.
        line: Height of a caption line.
        row: Height of a row of the failure; two of them are always set aside.
    """
    rows = max(1, min(wanted, int(height // row)))
    room = max(0, int((height - max(2, rows) * row - _BETWEEN) // line))
    remaining = list(range(len(captions)))
    while len(remaining) > room:
        empty = [place for place in remaining if not captions[place]]
        remaining.remove(empty[-1] if empty else remaining[0])
    return Sharing(rows=rows, lines=tuple(remaining))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """A failure's message and remedy, wrapped."""

    text: QTextLayout
    sharing: Sharing
    whole: bool
    """Nothing had to be left out."""


class Face:
    """Measures and paints in one style."""

    def __init__(self, style: Style) -> None:
        self.style = style
        families = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).families()
        self._font = QFont(families)
        self._font.setStyleHint(QFont.StyleHint.SansSerif)
        self._font.setPixelSize(style.text_size)
        self._font.setWeight(QFont.Weight.Medium)
        self._small = QFont(self._font)
        self._small.setPixelSize(style.status_size)
        self._small_bold = QFont(self._small)
        self._small_bold.setWeight(QFont.Weight.Bold)
        self._metrics = QFontMetricsF(self._font)
        self._small_metrics = QFontMetricsF(self._small)
        self._line_height = round(self._metrics.height() * _LINE_HEIGHT)
        self._small_height = self._small_metrics.height()
        self._mark = QFont(self._font)
        self._mark.setItalic(True)
        self._dimmed = QTextCharFormat()
        self._dimmed.setForeground(QColor(style.tentative))
        self._unwrapped = QTextOption()
        self._unwrapped.setWrapMode(QTextOption.WrapMode.NoWrap)
        self._wrapped = QTextOption()
        self._wrapped.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._alarming = QTextCharFormat()
        self._alarming.setFont(self._small_bold)
        self._alarming.setForeground(QColor(style.warning))
        self._arranged: tuple[object, _Failure] | None = None
        self._icons: dict[tuple[str, float], QPixmap] = {}

    def measure(self, text: str) -> float:
        """Width of a caption's text."""
        return self._metrics.horizontalAdvance(text)

    @property
    def default_size(self) -> QSize:
        """Room for the style's lines of its number of characters, and the status."""
        return self._size_for(self.style.characters, self.style.lines)

    @property
    def minimum_size(self) -> QSize:
        """Room for one line of twelve characters."""
        return self._size_for(12, 1)

    def text_width(self, size: QSize) -> float:
        """How wide a caption line may be in a window of that size."""
        return max(1.0, size.width() - 2 * _SIDE)

    def line_count(self, size: QSize) -> int:
        """How many caption lines a window of that size shows, at least one."""
        room = size.height() - 2 * _TOP - _BETWEEN - self._status_height
        return max(1, int(room // self._line_height))

    def status_area(self, size: QSize, screen: Screen, status: Status) -> QRectF:
        """Where the status is written; a long failure takes room from the captions."""
        height = self._status_height
        if status.look is Look.FAILED:
            rows = self._failure(size, screen, status).sharing.rows
            height = max(2, rows) * self._row_height
        top = size.height() - _TOP - height
        return QRectF(_SIDE, top, self.text_width(size), height)

    def paint(self, painter: QPainter, size: QSize, screen: Screen, status: Status) -> None:
        """Paint everything; the painter's device may be translucent."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_plate(painter, size, status.look)
        area = self.status_area(size, screen, status)
        self._paint_icon(painter, area, status)
        area.setLeft(area.left() + _ICON + _BESIDE_ICON)
        lines = screen.lines
        if status.look is Look.FAILED:
            failure = self._failure(size, screen, status)
            lines = tuple(lines[place] for place in failure.sharing.lines)
            painter.setPen(QColor(self.style.status))
            failure.text.draw(painter, area.topLeft())
        else:
            self._paint_status(painter, area, status)
        for row, line in enumerate(lines):
            leading = (self._line_height - self._metrics.height()) / 2
            top = _TOP + row * self._line_height + leading
            self._paint_line(painter, QRectF(_SIDE, top, self.text_width(size), 0), line)

    @property
    def _status_height(self) -> float:
        return 2 * self._row_height

    @property
    def _row_height(self) -> float:
        return max(_ICON / 2, self._small_height)

    def _size_for(self, characters: int, lines: int) -> QSize:
        average = self.measure(_SAMPLE) / len(_SAMPLE)
        height = 2 * _TOP + lines * self._line_height + _BETWEEN + self._status_height
        return QSizeF(2 * _SIDE + characters * average, height).toSize() + QSize(1, 1)

    def _paint_plate(self, painter: QPainter, size: QSize, look: Look) -> None:
        whole = QRectF(QPointF(0, 0), QSizeF(size))
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
        painter.fillRect(whole, Qt.GlobalColor.transparent)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
        plate = QColor(self.style.plate)
        plate.setAlphaF(self.style.plate_opacity)
        # Three borders that differ in form: dashes, a thin line, a thick bright one.
        pen = {
            Look.SILENT: QPen(QColor("#b4b4b4"), 1.5, Qt.PenStyle.DashLine),
            Look.WORKING: QPen(QColor("#8c8c8c"), 1.0),
            Look.FAILED: QPen(QColor(self.style.warning), 3.0),
        }[look]
        inset = pen.widthF() / 2
        painter.setBrush(plate)
        painter.setPen(pen)
        edge = whole.adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(edge, _CORNER, _CORNER)

    def _paint_line(self, painter: QPainter, area: QRectF, line: ScreenLine) -> None:
        text = QTextLayout(line.settled + line.tentative, self._mark if line.gap else self._font)
        text.setTextOption(self._unwrapped)
        text.beginLayout()
        # One line, whatever is in it: where it ends was decided by `core.layout`.
        text.createLine().setLineWidth(area.width())
        text.endLayout()
        # A selection, not a format: formats are shaped apart, and letters would
        # shift by a hair when they settle.
        tentative = QTextLayout.FormatRange()
        tentative.start = _utf16_length(line.settled)
        tentative.length = _utf16_length(line.tentative)
        tentative.format = self._dimmed
        painter.setPen(QColor(self.style.settled))
        text.draw(painter, area.topLeft(), [tentative] if line.tentative else [])

    def _paint_icon(self, painter: QPainter, area: QRectF, status: Status) -> None:
        scale = painter.device().devicePixelRatio()
        key = (icon_name(status), scale)
        if key not in self._icons:
            self._icons[key] = pixmap(key[0], _ICON, scale)
        top = area.top() + (self._status_height - _ICON) / 2
        painter.drawPixmap(QPointF(area.left(), top), self._icons[key])

    def _paint_status(self, painter: QPainter, area: QRectF, status: Status) -> None:
        row = QRectF(area)
        row.setHeight(self._row_height)
        colour = self.style.status
        written = self._write(painter, row, status.message, self._small_bold, colour)
        if status.source:
            rest = row.adjusted(written, 0, 0, 0)
            self._write(painter, rest, f" · {status.source}", self._small, colour)
        row.translate(0, self._row_height)
        below = status.remedy or provenance(status)
        self._write(painter, row, below, self._small, colour)

    def _failure(self, size: QSize, screen: Screen, status: Status) -> _Failure:
        """What to show of a failure; worked out again only when it matters."""
        captions = tuple(bool((line.settled + line.tentative).strip()) for line in screen.lines)
        words = (status.message, status.source, status.remedy, provenance(status))
        key = (size.width(), size.height(), captions, *words)
        if self._arranged is None or self._arranged[0] != key:
            message, source, remedy, origin = (" ".join(part.split()) for part in words)
            # From the most to the fewest words and rows: everything, then the failure
            # alone, then message and remedy in one paragraph.
            offers = (
                _join(_NEW_ROW, _join(_BESIDE, message, source), remedy or origin),
                _join(_NEW_ROW, message, remedy),
                _join(" ", message, remedy),
            )
            made = [self._arrange(offer, len(message), size, captions) for offer in offers]
            # The first of those that leave most captions alone, if they need no cut.
            best = max(made, key=lambda f: (f.whole, sum(captions[i] for i in f.sharing.lines)))
            self._arranged = (key, best)
        return self._arranged[1]

    def _arrange(self, text: str, alarming: int, size: QSize, captions: Sequence[bool]) -> _Failure:
        """Wrap a text of which so many characters are the message, and cut what has no room."""
        width = self.text_width(size) - _ICON - _BESIDE_ICON
        laid = self._wrap(text, alarming, width)
        sharing = share(
            laid.lineCount(),
            captions,
            height=size.height() - 2 * _TOP,
            line=self._line_height,
            row=self._row_height,
        )
        whole = laid.lineCount() == sharing.rows
        if not whole:
            start = _characters(text, laid.lineAt(sharing.rows - 1).textStart())
            metrics = QFontMetricsF(self._small_bold if start < alarming else self._small)
            rest = text[start:].replace(_NEW_ROW, " ")
            # A pixel less: what is cut must not wrap once more by a hair.
            last = metrics.elidedText(rest, Qt.TextElideMode.ElideRight, width - 1)
            laid = self._wrap(text[:start] + last, alarming, width)
        return _Failure(text=laid, sharing=sharing, whole=whole)

    def _wrap(self, text: str, alarming: int, width: float) -> QTextLayout:
        laid = QTextLayout(text, self._small)
        laid.setTextOption(self._wrapped)
        message = QTextLayout.FormatRange()
        message.start = 0
        message.length = _utf16_length(text[:alarming])
        message.format = self._alarming
        laid.setFormats([message])
        laid.setCacheEnabled(True)
        laid.beginLayout()
        row = laid.createLine()
        while row.isValid():
            row.setLineWidth(width)
            top = (laid.lineCount() - 1) * self._row_height
            row.setPosition(QPointF(0, top + (self._row_height - row.height()) / 2))
            row = laid.createLine()
        laid.endLayout()
        return laid

    def _write(self, painter: QPainter, row: QRectF, text: str, font: QFont, colour: str) -> float:
        """Write one row of small text, shortened to the room there is; tells its width."""
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, row.width())
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)
        return metrics.horizontalAdvance(shown)


def provenance(status: Status) -> str:
    """Where the sound goes and what makes the text, in a row: `On this computer · Moonshine`."""
    place = status.place[:1].upper() + status.place[1:]
    return " · ".join(part for part in (place, status.engine) if part)


def _utf16_length(text: str) -> int:
    """Qt counts in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _characters(text: str, units: int) -> int:
    """How many characters the first so many UTF-16 units are."""
    encoded = text.encode("utf-16-le", "surrogatepass")[: 2 * units]
    return len(encoded.decode("utf-16-le", "surrogatepass"))


def _join(separator: str, *parts: str) -> str:
    return separator.join(part for part in parts if part)
