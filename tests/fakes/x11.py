"""A screen of its own with a window manager, for tests of real windows.

Needs the Debian packages xvfb, openbox, xdotool and, for pictures, imagemagick;
without them the tests that ask for it are skipped.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fakes.running import until

__all__ = ["PrivateScreen", "private_screen"]

_TOOLS = ("Xvfb", "openbox", "xdotool")
_LIMIT = 10.0
"""Seconds that a tool may take."""
_CLIENT_MESSAGE = 33
_FOREIGN = ("DISPLAY", "WAYLAND_", "QT_", "XDG_SESSION", "XDG_CURRENT_DESKTOP")
"""Variables that speak of another screen than this one."""


@contextmanager
def private_screen() -> Iterator["PrivateScreen"]:
    """Start a screen and its window manager, and end both."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs the programs {', '.join(missing)}")
    with ExitStack() as stack:
        read, write = os.pipe()
        command = ("Xvfb", "-displayfd", str(write), "-screen", "0", "1280x720x24")
        _start(stack, *command, environment=dict(os.environ), pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as answer:
            number = answer.readline().strip()  # ends also when Xvfb does
        assert number, "Xvfb did not start"
        screen = PrivateScreen(f":{number}")
        _start(stack, "openbox", environment=screen.environment)
        # A command that only a window manager answers.
        until(lambda: screen.x("get_num_desktops", check=False).isdigit(), "the window manager")
        yield screen


class PrivateScreen:
    """A running X server with a window manager."""

    def __init__(self, display: str) -> None:
        self.display = display

    @property
    def environment(self) -> dict[str, str]:
        """What a program sees that is to appear here."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        return {**kept, "DISPLAY": self.display}

    def x(self, *words: str, check: bool = True) -> str:
        """Run a command of xdotool and return what it prints."""
        return subprocess.run(
            ["xdotool", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=_LIMIT,
        ).stdout.strip()

    def window(self, title: str) -> str:
        """Wait for a visible window with this title and return its number."""
        until(lambda: bool(self.windows(title)), f"window {title}")
        return self.windows(title)[-1]

    def windows(self, title: str) -> list[str]:
        """Return the visible windows with this title."""
        # Qt has hidden windows of its own that carry the program's name.
        search = ("search", "--onlyvisible", "--name", f"^{title}$")
        return self.x(*search, check=False).splitlines()

    def rectangle(self, window: str) -> tuple[int, int, int, int]:
        """Return left, top, width and height of a window."""
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

    def close(self, window: str) -> None:
        """Ask a window to close, as a window manager does when its cross is clicked."""
        xlib = ctypes.CDLL("libX11.so.6")
        xlib.XOpenDisplay.restype = ctypes.c_void_p
        xlib.XInternAtom.restype = ctypes.c_ulong
        display = ctypes.c_void_p(xlib.XOpenDisplay(self.display.encode()))
        assert display.value, f"no display {self.display}"
        try:
            kind, close = (
                xlib.XInternAtom(display, name, 0)
                for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW")
            )
            event = _ClientMessage(
                type=_CLIENT_MESSAGE, window=int(window), message_type=kind, format=32
            )
            event.data[0] = close
            window_number = ctypes.c_ulong(int(window))
            assert xlib.XSendEvent(display, window_number, 0, 0, ctypes.byref(event))
        finally:
            xlib.XCloseDisplay(display)  # sends what waits

    def photograph(self, file: Path) -> None:
        """Write a picture of the whole screen."""
        if shutil.which("import") is None:
            pytest.skip("needs the Debian package imagemagick")
        command = ["import", "-window", "root", str(file)]
        subprocess.run(command, env=self.environment, check=True, timeout=_LIMIT)


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent, as long as the longest event."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("rest", ctypes.c_long * 12),
    )


def _start(
    stack: ExitStack,
    *command: str,
    environment: dict[str, str],
    pass_fds: tuple[int, ...] = (),
) -> None:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        pass_fds=pass_fds,
    )

    def end() -> None:
        process.terminate()
        try:
            process.wait(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=_LIMIT)

    stack.callback(end)
