"""The demo: the window captions a recorded speech that ships with the speech engine."""

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

from surtitle.audio.files import MediaFile, Pace
from surtitle.captioner import Captioner
from surtitle.console import Console, StandardOutput
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.health import Status
from surtitle.core.settings import Settings
from surtitle.core.stability import Stability
from surtitle.core.transcript import Form
from surtitle.engines.models import PACKAGED, locate
from surtitle.engines.on_device import OnDeviceEngine
from surtitle.qt_loop import ask_for_display, run_in_qt
from surtitle.storage.places import Places
from surtitle.ui.commands import Commands
from surtitle.ui.face import style_of
from surtitle.ui.overlay import Overlay
from surtitle.ui.window_system import WindowSystem

__all__ = ["run"]

_RECORDING = "two_cities.wav"
_LINGER = 4.0
"""Seconds that the window stays after the last word."""


def run() -> int:
    """Run the demo. Returns the exit code; raises SurtitleError."""
    recording = locate(PACKAGED).parent / _RECORDING
    window_system = ask_for_display()
    return run_in_qt(lambda: _Demo(recording, window_system).run())


class _Demo:
    """Tells both the window and the terminal."""

    def __init__(self, recording: Path, window_system: WindowSystem) -> None:
        settings = Settings()
        self._over = asyncio.Event()
        self._visible = window_system.visible
        # Whoever looks on hears the speech at its own pace; a picture can be had sooner.
        pace = Pace.REAL_TIME if self._visible else Pace.FAST
        source = MediaFile(recording, pace=pace)
        self._commands = Commands()
        self._overlay = Overlay(
            self._commands, window_system=window_system, style=style_of(settings)
        )
        self._console = Console(
            StandardOutput(),
            Form.TEXT,
            aside=sys.stderr,
            live=None,
            duration=lambda: source.duration,
            on_trouble=self._over.set,
        )
        self._captioner = Captioner(
            source,
            OnDeviceEngine,
            Captions(Stability.of(settings.captions_steadiness)),
            self,
            chance=random.random,
            patience=3,
        )

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        """Show and print the text."""
        self._overlay.show_snapshot(snapshot)
        self._console.captions(snapshot, changed)

    def status(self, status: Status) -> None:
        """Show the state of things."""
        self._overlay.show_status(status)
        self._commands.show_status(status)

    def notice(self, text: str) -> None:
        """Print a notice."""
        self._console.notice(text)

    async def run(self) -> int:
        """Caption the recording, then say where the picture is."""
        print(
            "Surtitle captions the opening of A Tale of Two Cities, on this computer.", flush=True
        )
        if self._visible:
            self._overlay.show()
        self._commands.quit_requested.connect(self._over.set)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: closing the window is the way
                loop.add_signal_handler(number, self._over.set)
        captioning = loop.create_task(self._captioner.run())
        over = loop.create_task(self._over.wait())
        try:
            await asyncio.wait([captioning, over], return_when=asyncio.FIRST_COMPLETED)
            interrupted = not captioning.done()
            await self._captioner.stop()
            await captioning
            self._console.close()
            picture = self._picture()
            if self._visible and not interrupted:
                await asyncio.wait([over], timeout=_LINGER)
        finally:
            for task in (captioning, over):
                task.cancel()
            await asyncio.gather(captioning, over, return_exceptions=True)
            self._overlay.hide()
        if self._console.trouble is not None:
            raise self._console.trouble
        print("The window at the end, as a picture:")
        print(picture, flush=True)
        return 130 if interrupted else 0

    def _picture(self) -> Path:
        places = Places.find(os.environ)
        places.create()
        picture = places.cache / "demo.png"
        self._overlay.render_png(picture)
        return picture
