"""The whole program as it is, with a reader beside it.

Prints what a screen reader gets of the caption window, a JSON object a line, whenever it
changes: `text` (the caption lines) and `status` (what the status line says).
"""

import json
import sys

from surtitle.qt_loop import ask_for_display

ask_for_display()

from PySide6.QtCore import QTimer  # noqa: E402 - Qt must not be met before the choice above
from PySide6.QtGui import QAccessible  # noqa: E402 - same
from PySide6.QtWidgets import QApplication  # noqa: E402 - same

from surtitle.cli import main  # noqa: E402 - same
from surtitle.ui.overlay import Overlay  # noqa: E402 - same

_EVERY_MS = 50


class Reader:
    """Reads the window and says what has changed."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def read(self) -> None:
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, Overlay):
                accessible = QAccessible.queryAccessibleInterface(widget)
                seen = {
                    "text": accessible.text(QAccessible.Text.Description),
                    "status": accessible.text(QAccessible.Text.Help),
                }
                if seen != self._told:
                    self._told = seen
                    sys.stdout.write(json.dumps(seen) + "\n")
                    sys.stdout.flush()


application = QApplication(sys.argv[:1])
reader = Reader()
timer = QTimer()
timer.timeout.connect(reader.read)
timer.start(_EVERY_MS)
code = main(sys.argv[1:])
timer.stop()
sys.exit(code)
