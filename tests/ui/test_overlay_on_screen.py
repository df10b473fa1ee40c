"""The caption window under a real window manager: never takes the keyboard, moves, closes."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fakes.running import Running, until
from fakes.x11 import PrivateScreen, private_screen

PROGRAMS = Path(__file__).parents[1] / "fakes" / "programs"

pytestmark = pytest.mark.screen


@pytest.fixture
def desktop() -> Iterator[PrivateScreen]:
    with private_screen() as screen:
        yield screen


def test_the_keyboard_stays_where_it_was_and_the_window_obeys_the_hand(
    desktop: PrivateScreen, tmp_path: Path
) -> None:
    with ExitStack() as programs:

        def start(program: str) -> Running:
            environment = {**desktop.environment, "PYTHONPATH": str(PROGRAMS.parents[1])}
            path = str(PROGRAMS / f"{program}.py")
            return programs.enter_context(
                Running(path, folder=tmp_path, environment=environment, open_input=True)
            )

        typed = start("editor")
        editor = desktop.window("Editor")
        until(lambda: desktop.rectangle(editor)[2] > 100, "the editor")
        desktop.x("mousemove", "100", "100", "click", "1")

        def types(word: str) -> None:
            desktop.x("type", f"{word} ")
            until(lambda: typed.said.endswith(f"{word} \n"), f"'{word}' in the editor")

        types("before")
        captions = start("captions")
        window = desktop.window("Surtitle captions")
        until(lambda: desktop.rectangle(window)[2] > 100, "the caption window")
        types("shown")

        x, y, width, height = desktop.rectangle(window)
        desktop.drag(window, x + width // 2, y + 30, -40, -200)
        until(lambda: captions.said.count("placed") == 1, "the place after dragging")
        left, top, wide, high = desktop.rectangle(window)
        assert (wide, high) == (width, height)
        assert abs(left - (x - 40)) <= 2
        assert abs(top - (y - 200)) <= 2
        types("dragged")

        x, y, width, height = desktop.rectangle(window)
        desktop.drag(window, x + width - 3, y + height - 3, 120, 80)
        until(lambda: captions.said.count("placed") == 2, "the place after resizing")
        left, top, wide, high = desktop.rectangle(window)
        assert (left, top) == (x, y)
        assert wide > width
        assert high > height
        types("resized")

        desktop.x("mousemove", str(x + 100), str(y + 20), "click", "3")
        desktop.x("sleep", "0.3", "key", "Down", "key", "Return")
        until(lambda: "pause" in captions.said, "the menu's first action")
        types("menu")
        assert typed.said.splitlines()[-1] == "before shown dragged resized menu "
