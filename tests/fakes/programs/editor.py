"""A window to type into; prints all that was typed, a line a change, until its input ends."""

import sys

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication, QPlainTextEdit

application = QApplication([])
editor = QPlainTextEdit()
editor.setWindowTitle("Editor")
editor.setGeometry(0, 0, 1200, 690)


def say() -> None:
    sys.stdout.write(editor.toPlainText() + "\n")
    sys.stdout.flush()


editor.textChanged.connect(say)
editor.show()
ended = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)
ended.activated.connect(lambda: application.exit(0))
application.exec()
