"""Pictures are found, drawn sharp, and told apart by form."""

import pytest
from PySide6.QtGui import QColor, QImage

from fakes.statuses import FAILED, PAUSED, SILENT, WORKING
from surtitle.core.errors import SurtitleError
from surtitle.core.health import Status
from surtitle.ui.resources import app_icon, icon, icon_name, pixmap, resource

pytestmark = pytest.mark.usefixtures("qtbot")  # the application

NAMES = ["failed", "paused", "silent", "surtitle", "working"]


def test_a_missing_file_is_said_in_a_sentence() -> None:
    with pytest.raises(SurtitleError, match=r"icons/none\.svg is missing"):
        resource("icons/none.svg")


@pytest.mark.parametrize(
    ("status", "name"),
    [(SILENT, "silent"), (WORKING, "working"), (FAILED, "failed"), (PAUSED, "paused")],
)
def test_each_look_has_its_picture(status: Status, name: str) -> None:
    assert icon_name(status) == name


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_pictures_are_drawn_in_device_pixels(scale: float) -> None:
    drawn = pixmap("working", 24, scale)
    assert (drawn.width(), drawn.devicePixelRatio()) == (round(24 * scale), scale)


def test_icons_offer_the_small_sizes_of_trays() -> None:
    assert {16, 22, 32} <= {size.width() for size in icon("silent").availableSizes()}
    assert not app_icon().isNull()


def test_pictures_differ_without_their_colours() -> None:
    forms = [_dark_and_light(name) for name in NAMES]
    for index, one in enumerate(forms):
        for other in forms[index + 1 :]:
            differing = sum(a != b for a, b in zip(one, other, strict=True))
            assert differing > 0.04 * len(one)


def _dark_and_light(name: str) -> list[bool]:
    picture = pixmap(name, 32).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    return [
        QColor(picture.pixelColor(x, y)).lightness() * picture.pixelColor(x, y).alphaF() > 127
        for x in range(32)
        for y in range(32)
    ]
