"""The caption window under a real window manager: never takes the keyboard, moves, closes."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[1] / "fakes" / "programs"
TOOLS = ("Xvfb", "openbox", "xdotool")

pytestmark = [
    pytest.mark.screen,
    pytest.mark.skipif(
        not all(shutil.which(tool) for tool in TOOLS), reason=f"needs {', '.join(TOOLS)}"
    ),
]


def until(condition: Callable[[], bool], what: str, *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        time.sleep(0.05)


class Desktop:
    """A screen of its own with a window manager, and programs on it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("WAYLAND", "QT_", "XDG_"))}
        self.environment = {**keep, "PYTHONPATH": str(PROGRAMS.parents[1])}
        read, write = os.pipe()
        self._run(
            "Xvfb", "-displayfd", str(write), "-screen", "0", "1280x720x24", pass_fds=(write,)
        )
        os.close(write)
        with os.fdopen(read) as answer:
            number = answer.readline().strip()  # ends also when Xvfb does
        assert number, "Xvfb did not start"
        self.environment["DISPLAY"] = f":{number}"
        self._run("openbox")
        # A command that only a window manager answers.
        until(lambda: self.x("get_num_desktops", check=False).isdigit(), "the window manager")

    def _run(self, *command: str, pass_fds: tuple[int, ...] = ()) -> Path:
        output = self.folder / f"{Path(command[-1]).stem}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self.environment,
                pass_fds=pass_fds,
            )

        def end() -> None:
            assert process.stdin is not None
            process.stdin.close()
            if command[0] != sys.executable:  # ours end with their input
                process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)

        self.stack.callback(end)
        return output

    def start(self, program: str) -> Path:
        """Start one of `fakes/programs`; gives the file with what it says."""
        return self._run(sys.executable, str(PROGRAMS / f"{program}.py"))

    def x(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["xdotool", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=10,
        )
        return done.stdout.strip()

    def window(self, title: str) -> str:
        # Qt has hidden windows of its own that carry the program's name.
        search = ("search", "--onlyvisible", "--name", f"^{title}$")
        until(lambda: self.x(*search, check=False) != "", f"window {title}")
        return self.x(*search).splitlines()[-1]

    def rectangle(self, window: str) -> tuple[int, int, int, int]:
        told = dict(
            line.split("=", 1)
            for line in self.x("getwindowgeometry", "--shell", window).splitlines()
        )
        return int(told["X"]), int(told["Y"]), int(told["WIDTH"]), int(told["HEIGHT"])

    def drag(self, window: str, x: int, y: int, dx: int, dy: int) -> None:
        """Pull at a point of the window until it follows, then let go at the end."""
        before = self.rectangle(window)
        self.x("mousemove", str(x), str(y), "mousedown", "1")
        halfway = [str(x + dx // 2), str(y + dy // 2)]

        def follows() -> bool:
            # The window manager takes over some time after the press, and looks at motion only.
            self.x("mousemove", *halfway, "sleep", "0.05", "mousemove_relative", "1", "1")
            return self.rectangle(window) != before

        until(follows, "the window to follow the pointer")
        self.x("mousemove", str(x + dx), str(y + dy), "sleep", "0.1", "mouseup", "1")


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    with ExitStack() as stack:
        yield Desktop(tmp_path, stack)


def test_the_keyboard_stays_where_it_was_and_the_window_obeys_the_hand(desktop: Desktop) -> None:
    typed = desktop.start("editor")
    editor = desktop.window("Editor")
    until(lambda: desktop.rectangle(editor)[2] > 100, "the editor")
    desktop.x("mousemove", "100", "100", "click", "1")

    def types(word: str) -> None:
        desktop.x("type", f"{word} ")
        until(lambda: typed.read_text().endswith(f"{word} \n"), f"'{word}' in the editor")

    types("before")
    said = desktop.start("captions")
    captions = desktop.window("Surtitle captions")
    until(lambda: desktop.rectangle(captions)[2] > 100, "the caption window")
    types("shown")

    x, y, width, height = desktop.rectangle(captions)
    desktop.drag(captions, x + width // 2, y + 30, -40, -200)
    until(lambda: said.read_text().count("placed") == 1, "the place after dragging")
    left, top, wide, high = desktop.rectangle(captions)
    assert (wide, high) == (width, height)
    assert abs(left - (x - 40)) <= 2
    assert abs(top - (y - 200)) <= 2
    types("dragged")

    x, y, width, height = desktop.rectangle(captions)
    desktop.drag(captions, x + width - 3, y + height - 3, 120, 80)
    until(lambda: said.read_text().count("placed") == 2, "the place after resizing")
    left, top, wide, high = desktop.rectangle(captions)
    assert (left, top) == (x, y)
    assert wide > width
    assert high > height
    types("resized")

    desktop.x("mousemove", str(x + 100), str(y + 20), "click", "3")
    desktop.x("sleep", "0.3", "key", "Down", "key", "Return")
    until(lambda: "pause" in said.read_text(), "the menu's first action")
    types("menu")
    assert typed.read_text().splitlines()[-1] == "before shown dragged resized menu "
