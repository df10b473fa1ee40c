"""A failure is told in full: it takes room from the captions, from the oldest first."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QImage, QPainter

from fakes.statuses import FAILED, SILENT
from surtitle.audio.devices import choose
from surtitle.audio.sound_server import Kind
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.errors import EngineError, SourceError, SurtitleError
from surtitle.core.health import Health, Status
from surtitle.core.layout import Layout, Screen, ScreenLine
from surtitle.engines.models import ELSEWHERE
from surtitle.ui.face import Face, Sharing, Style, share

HEIGHT = 107.0
LINE = 35.0
ROW = 15.0


def _share(wanted: int, captions: Sequence[bool], *, height: float = HEIGHT) -> Sharing:
    return share(wanted, captions, height=height, line=LINE, row=ROW)


@pytest.mark.parametrize(
    ("wanted", "captions", "rows", "lines"),
    [
        (1, (), 1, ()),
        (2, (True, True), 2, (0, 1)),  # what a status always has
        (3, (), 3, ()),
        (3, (True,), 3, (0,)),
        (3, (True, True), 3, (1,)),  # the oldest goes
        (4, (True, True), 4, (1,)),
        (4, (True, False), 4, (0,)),  # an empty one goes before it
        (4, (False, True), 4, (1,)),
        (5, (True,), 5, ()),  # no other way
        (7, (True, True), 7, ()),
        (9, (True, True), 7, ()),  # not even the whole window is enough
    ],
)
def test_the_window_is_shared(
    wanted: int, captions: tuple[bool, ...], rows: int, lines: tuple[int, ...]
) -> None:
    assert _share(wanted, captions) == Sharing(rows=rows, lines=lines)


@pytest.mark.parametrize(
    ("wanted", "captions", "lines"),
    [
        (2, (True, False, True, False), (0, 1, 2, 3)),
        (4, (True, False, True, False), (0, 1, 2)),  # of the empty ones the lowest
        (6, (True, False, True, False), (0, 2)),
        (8, (True, False, True, False), (2,)),
        (8, (True, True, True, True), (3,)),
    ],
)
def test_a_high_window_is_shared(
    wanted: int, captions: tuple[bool, ...], lines: tuple[int, ...]
) -> None:
    assert _share(wanted, captions, height=178).lines == lines


@given(st.integers(1, 40), st.lists(st.booleans(), max_size=8), st.floats(0, 500, allow_nan=False))
def test_nothing_overlaps_and_the_newest_text_goes_last(
    wanted: int, captions: list[bool], height: float
) -> None:
    sharing = _share(wanted, captions, height=height)
    assert 1 <= sharing.rows <= wanted
    assert list(sharing.lines) == sorted(set(sharing.lines))
    if sharing.lines:
        assert len(sharing.lines) * LINE + sharing.rows * ROW <= height
        written = [place for place, text in enumerate(captions) if text]
        assert not written or written[-1] in sharing.lines


def _status(error: SurtitleError, *, again: bool) -> Status:
    health = Health(
        0, source="System sound", engine="Moonshine Tiny", place="on this computer", live=False
    )
    if again:
        health.behind(12)
        health.broken(error)
    else:
        health.failed(error)
    return health.status(1)


def _missing(kind: Kind, platform: str) -> SourceError:
    with pytest.raises(SourceError) as raised:
        choose([], kind, None, platform=platform)
    return raised.value


# The longest ones there are; the last is that of `engines.models`.
ERRORS = [
    _missing(Kind.SYSTEM, "linux"),
    _missing(Kind.SYSTEM, "win32"),
    _missing(Kind.MIC, "linux"),
    EngineError(
        "The on-device engine is not available on this computer.",
        remedy=ELSEWHERE,
    ),
]
LONG = [_status(error, again=again) for error in ERRORS for again in (False, True)]
CAPTIONS = {
    0: Screen(lines=(), revision=0),
    1: Screen(
        lines=(ScreenLine(number=0, settled="only line", tentative=" so far", gap=False),),
        revision=1,
    ),
    2: Screen(
        lines=(
            ScreenLine(number=0, settled="older line", tentative="", gap=False),
            ScreenLine(number=1, settled="newest line", tentative=" so far", gap=False),
        ),
        revision=1,
    ),
}


def _painted(face: Face, size: QSize, screen: Screen, status: Status) -> QImage:
    picture = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(picture)
    face.paint(painter, size, screen, status)
    painter.end()
    return picture


def _changed(status: Status, *, message: str = "", remedy: str = "") -> Status:
    return Status(
        state=status.state,
        message=message or status.message,
        remedy=remedy or status.remedy,
        source=status.source,
        engine=status.engine,
        place=status.place,
    )


@pytest.mark.usefixtures("qtbot")
@pytest.mark.parametrize("lines", CAPTIONS)
@pytest.mark.parametrize("status", LONG, ids=lambda status: status.message)
def test_a_long_failure_is_shown_to_its_last_letter(status: Status, lines: int) -> None:
    face = Face(Style())
    size = face.default_size
    screen = CAPTIONS[lines]
    before = _painted(face, size, screen, status)
    # What is painted depends on the very last letters of both sentences.
    for other in (
        _changed(status, message=status.message[:-1] + "!"),
        _changed(status, remedy=status.remedy[:-1] + "!"),
    ):
        assert _painted(face, size, screen, other) != before
    area = face.status_area(size, screen, status)
    assert area.top() >= 10
    # Nothing is painted beside or below the room it has.
    plate = before.pixel(size.width() // 2, 6)
    right = QRect(round(area.right()) + 1, 12, 10, size.height() - 24)
    below = QRect(40, round(area.bottom()) + 1, size.width() - 80, 4)
    for rim in (right, below):
        pixels = {
            before.pixel(x, y)
            for x in range(rim.left(), rim.right())
            for y in range(rim.top(), rim.bottom())
        }
        assert pixels == {plate}


@pytest.mark.usefixtures("qtbot")
@pytest.mark.parametrize("status", LONG, ids=lambda status: status.message)
def test_the_newest_caption_stays_beside_a_long_failure(status: Status) -> None:
    face = Face(Style())
    size = face.default_size
    newest = Screen(lines=CAPTIONS[2].lines[-1:], revision=1)
    both = face.status_area(size, CAPTIONS[2], status)
    # Alone in the window it would stand in the same place, and above the failure.
    if both.height() > face.status_area(size, CAPTIONS[2], SILENT).height():
        assert _painted(face, size, CAPTIONS[2], status) == _painted(face, size, newest, status)
    row = QRect(18, 10, 500, 34)
    silent = _painted(face, size, newest, SILENT).copy(row)
    assert _painted(face, size, newest, status).copy(row) == silent


@pytest.mark.usefixtures("qtbot")
def test_a_short_failure_takes_nothing_from_the_captions() -> None:
    face = Face(Style())
    size = face.default_size
    usual = face.status_area(size, CAPTIONS[2], SILENT)
    assert face.status_area(size, CAPTIONS[2], FAILED) == usual
    captions = QRect(10, 10, size.width() - 20, round(usual.top()) - 10)
    silent = _painted(face, size, CAPTIONS[2], SILENT).copy(captions)
    assert _painted(face, size, CAPTIONS[2], FAILED).copy(captions) == silent


@pytest.mark.usefixtures("qtbot")
@pytest.mark.parametrize("status", [LONG[1], _changed(FAILED, message="W" * 400 + " 🎧" * 200)])
def test_what_fits_nowhere_is_cut_at_its_end(status: Status) -> None:
    face = Face(Style())
    size = face.minimum_size
    area = face.status_area(size, CAPTIONS[1], status)
    assert area.top() >= 10
    assert area.bottom() <= size.height() - 10
    picture = _painted(face, size, CAPTIONS[1], status)
    longer = _changed(status, remedy=f"{status.remedy} And more.")
    assert _painted(face, size, CAPTIONS[1], longer) == picture


@pytest.mark.usefixtures("qtbot")
def test_captions_come_back_after_the_failure() -> None:
    face = Face(Style())
    passage = Passage(key=0, settled="word " * 16, tentative="", start=0, end=0, closed=False)
    screen = Layout().update(
        Snapshot(revision=1, passages=(passage,)),
        width=face.text_width(face.default_size),
        lines=face.line_count(face.default_size),
        measure=face.measure,
    )
    before = _painted(face, face.default_size, screen, SILENT)
    assert _painted(face, face.default_size, screen, LONG[0]) != before
    assert _painted(face, face.default_size, screen, SILENT) == before
