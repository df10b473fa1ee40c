"""What is said, and what still works, where there is no display."""

import os
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from fakes.recording import plain, recording
from fakes.running import Running

SHORT_DEMO = """
import sys
from surtitle import cli, demo
demo._RECORDING = sys.argv[1]
sys.exit(cli.main(["demo"]))
"""
"""`surtitle demo` with another recording: its own lasts 44 s."""
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture
def no_display() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in SCREENS}


def test_the_program_says_what_to_do_instead(no_display: dict[str, str], tmp_path: Path) -> None:
    with Running("-m", "surtitle", folder=tmp_path, environment=no_display) as program:
        program.ends(1)
        assert program.said == ""
        assert program.complained.splitlines() == [
            "surtitle: There is no display for the caption window. Use: surtitle caption system"
        ]


def test_the_demo_prints_the_words_and_leaves_a_picture_of_the_window(
    no_display: dict[str, str], tmp_path: Path
) -> None:
    speech = recording(tmp_path / "speech.wav", seconds=6.5)
    arguments = ("-c", SHORT_DEMO, str(speech))
    with Running(*arguments, folder=tmp_path, environment=no_display) as demo:
        demo.ends(0, within=90)
        demo.leaves_nothing()
        assert demo.complained == ""
        said = demo.said
    assert "best of times" in plain(said)
    assert "age of wisdom" in plain(said)
    picture = QImage(said.splitlines()[-1])
    assert picture.width() > 300
    assert picture.height() > 80
    bright = sum(
        picture.pixelColor(x, y).lightness() > 200
        for x in range(picture.width())
        for y in range(picture.height() * 2 // 3)
    )
    assert bright > 500, "no text in the picture"
