"""Run as a program: opens the display with Qt, which may crash or hang, and tells about it.

Prints one JSON object: `{"platform": "xcb", "screens": 1, "tray": false}`. The doctor
runs it, as a crash in Qt must end this process only.
"""

import json
import os
import sys

from PySide6.QtWidgets import QApplication

from surtitle.ui.tray import tray_available
from surtitle.ui.window_system import apply, choose

__all__ = ["main"]


def main() -> int:
    """Open the display, tell, and close it. Returns the exit code."""
    apply(choose(os.environ, system=sys.platform), os.environ)
    application = QApplication([])
    answer = {
        "platform": application.platformName(),
        "screens": len(application.screens()),
        "tray": tray_available(),
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    application.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
