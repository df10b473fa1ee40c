"""Shows a caption window until its input ends, and prints what it asks for, a line each."""

import os
import sys

from surtitle.ui.window_system import apply, choose

decision = choose(os.environ, system=sys.platform)
apply(decision, os.environ)

from PySide6.QtCore import QSocketNotifier  # noqa: E402 - same
from PySide6.QtWidgets import QApplication  # noqa: E402 - same

from fakes.statuses import WORKING  # noqa: E402 - the choice above must come first
from surtitle.core.captions import Passage, Snapshot  # noqa: E402 - same
from surtitle.ui.commands import Commands  # noqa: E402 - same
from surtitle.ui.overlay import Overlay  # noqa: E402 - same


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


application = QApplication([])
application.setQuitOnLastWindowClosed(False)
commands = Commands()
overlay = Overlay(commands, window_system=decision)
overlay.placed.connect(lambda place: say("placed", place.width, place.height))
commands.quit_requested.connect(lambda: say("quit"))
commands.start_pause_requested.connect(lambda: say("pause"))
words = Passage(key=0, settled="Steady words", tentative="", start=0, end=0, closed=True)
overlay.show_status(WORKING)
overlay.show_snapshot(Snapshot(revision=1, passages=(words,)))
overlay.show()
ended = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)
ended.activated.connect(lambda: application.exit(0))
application.exec()
