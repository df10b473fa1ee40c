"""The picture itself: contrast, room, and three looks that differ without colour."""

from itertools import combinations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage, QPainter

from fakes.statuses import FAILED, SILENT, WORKING
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.health import Status
from surtitle.core.layout import Layout, Screen
from surtitle.ui.face import Face, Style

pytestmark = pytest.mark.usefixtures("qtbot")  # the application


def _screen(face: Face, settled: str, tentative: str = "") -> Screen:
    passage = Passage(key=0, settled=settled, tentative=tentative, start=0, end=0, closed=False)
    return Layout().update(
        Snapshot(revision=1, passages=(passage,)),
        width=face.text_width(face.default_size),
        lines=face.line_count(face.default_size),
        measure=face.measure,
    )


def _painted(face: Face, screen: Screen, status: Status, over: str) -> QImage:
    """The window over a board of one colour."""
    window = QImage(face.default_size, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(window)
    face.paint(painter, face.default_size, screen, status)
    painter.end()
    board = QImage(face.default_size, QImage.Format.Format_RGB32)
    board.fill(QColor(over))
    painter = QPainter(board)
    painter.drawImage(0, 0, window)
    painter.end()
    return board


def _luminance(colour: QColor) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [colour.redF(), colour.greenF(), colour.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: QColor, other: QColor) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("over", ["#ffffff", "#000000"])
@pytest.mark.parametrize("status", [SILENT, WORKING, FAILED])
def test_every_text_has_a_contrast_of_seven_to_one(over: str, status: Status) -> None:
    style = Style()
    painted = _painted(Face(style), Screen(lines=(), revision=0), status, over)
    plate = painted.pixelColor(painted.width() // 2, 20)
    for text in (style.settled, style.tentative, style.status, style.warning):
        assert _contrast(QColor(text), plate) >= 7.0


def test_painted_text_reaches_the_contrast_it_promises() -> None:
    face = Face(Style())
    for settled, tentative in (("HHHH", ""), ("", "HHHH")):
        painted = _painted(face, _screen(face, settled, tentative), WORKING, "#ffffff")
        plate = painted.pixelColor(painted.width() - 30, 20)
        row = range(18, int(18 + face.measure("HHHH")))
        brightest = max((painted.pixelColor(x, 26) for x in row), key=_luminance)
        assert _contrast(brightest, plate) >= 7.0


def test_tentative_text_looks_different_from_settled_text() -> None:
    face = Face(Style())
    one = _painted(face, _screen(face, "words"), WORKING, "#000000")
    other = _painted(face, _screen(face, "", "words"), WORKING, "#000000")
    assert one != other


def test_settling_text_moves_no_pixel_of_it() -> None:
    style = Style(tentative=Style().settled)
    face = Face(style)
    before = _painted(face, _screen(face, "AVA", "VAT To"), WORKING, "#000000")
    after = _painted(face, _screen(face, "AVAVAT To"), WORKING, "#000000")
    assert before == after


def test_three_looks_differ_without_colour() -> None:
    face = Face(Style())
    empty = Screen(lines=(), revision=0)
    looks = [
        _painted(face, empty, status, "#808080").convertToFormat(QImage.Format.Format_Grayscale8)
        for status in (SILENT, WORKING, FAILED)
    ]
    icon = face.status_area(face.default_size, empty, WORKING).toRect()
    icon.setWidth(icon.height())
    border = (face.default_size.width() // 2, 0, 40, 2)
    for one, other in combinations(looks, 2):
        assert one.copy(icon) != other.copy(icon)
        assert one.copy(*border) != other.copy(*border)


def test_the_default_window_has_two_lines_of_32_to_42_characters() -> None:
    face = Face(Style())
    assert face.line_count(face.default_size) == 2
    width = face.text_width(face.default_size)
    words = "people like having their words written where everyone can read them while talking"
    fitting = max(n for n in range(len(words)) if face.measure(words[:n]) <= width)
    assert 32 <= fitting <= 46
    # Enough for the widest measure that a reader still takes for a line.
    assert face.minimum_size.width() < width
    assert face.line_count(face.minimum_size) == 1


@pytest.mark.parametrize("height", [0, 40, 127, 200, 500])
def test_lines_and_status_never_overlap(height: int) -> None:
    face = Face(Style())
    size = QSize(500, max(height, face.minimum_size.height()))
    lines = face.line_count(size)
    text = Screen(lines=(), revision=0)
    assert lines >= 1
    last = 10 + lines * (face.default_size.height() - face.minimum_size.height())
    assert last <= face.status_area(size, text, WORKING).top()
    assert text.lines == ()


def test_text_stays_inside_the_plate() -> None:
    face = Face(Style())
    painted = _painted(face, _screen(face, "W" * 200), WORKING, "#000000")
    for x in range(painted.width() - 14, painted.width() - 2):
        for y in range(12, painted.height() - 12):
            assert painted.pixelColor(x, y).lightness() < 100
