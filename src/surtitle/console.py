"""Captions on a terminal, in a pipe, in a file."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from typing import Protocol, TextIO
from unicodedata import east_asian_width

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.errors import OutputError, SurtitleError
from surtitle.core.health import State, Status
from surtitle.core.transcript import Form, Writer

__all__ = ["Console", "StandardOutput"]

_ERASE = "\r\x1b[2K"


class Sink(Protocol):
    """Where the result goes."""

    def write(self, text: str, /) -> object:
        """Append. Raises OutputError or OSError."""


class Console:
    """An audience that writes what it is told.

    Results go to `sink` in the form asked for, an utterance at a time as it is
    finished (as JSON also while it grows). People get live text or progress on a
    terminal, and notices, on `aside`.

    Args:
        sink: Where results go.
        form: How they are written.
        aside: Standard error, for everything that is not a result.
        live: A terminal that shows the utterance under way, or None.
        duration: Seconds of sound in all, if that is known by now.
        on_trouble: Called once when a result cannot be written.
    """

    def __init__(
        self,
        sink: Sink,
        form: Form,
        *,
        aside: TextIO,
        live: TextIO | None,
        duration: Callable[[], float | None],
        on_trouble: Callable[[], None],
    ) -> None:
        self._sink = sink
        self._form = form
        self._writer = Writer(form)
        self._aside = aside
        self._live = live
        self._duration = duration
        self._on_trouble = on_trouble
        self._line = ""
        self._percent = ""
        self._under_way = ""
        self._said: tuple[State, str] | None = None
        self.trouble: SurtitleError | None = None
        """Why results could not be written, if they could not."""
        self.entries = 0
        """Finished utterances and gaps so far."""

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        """Write what is finished; show what is under way."""
        for passage in changed:
            self.entries += passage.closed and bool(passage.settled)
            if self._form is Form.JSON and not passage.closed:
                self._write(_json(_partial(passage)))
            elif passage.settled or self._form is Form.JSON:
                if passage.closed:
                    self._show("")
                self._write(self._writer.entry(passage.entry))
        if snapshot.passages and changed:
            newest = snapshot.passages[-1]
            self._under_way = "" if newest.closed else newest.settled + newest.tentative
            self._refresh()

    def status(self, status: Status) -> None:
        """Tell a change of state; show how far a file has come."""
        self._percent = self._progress(status.heard)
        self._refresh()
        said = (status.state, status.remedy)
        if said == self._said:
            return
        self._said = said
        if self._form is Form.JSON:
            self._write(_json(_status(status)))
        elif status.state in {State.RECOVERING, State.NO_SOUND}:
            self.notice(f"{status.message} {status.remedy}".rstrip())

    def notice(self, text: str) -> None:
        """Tell something beside the captions."""
        self._show("")
        with suppress(OSError, ValueError):  # nobody is there to tell
            print(f"surtitle: {text}", file=self._aside, flush=True)

    def close(self) -> None:
        """Write what is still open and clear the live line."""
        self._show("")
        self._write(self._writer.close())

    def _progress(self, position: float) -> str:
        duration = self._duration()
        if not duration:
            return ""
        return f"{min(100, int(100 * position / duration)):3d} %  "

    def _refresh(self) -> None:
        """Show how far things are, and the words under way."""
        self._show(self._percent + self._under_way)

    def _show(self, line: str) -> None:
        """Put `line` in place of the one shown last."""
        if self._live is None or line == self._line:
            return
        try:
            self._live.write(_ERASE + _fitted(line, shutil.get_terminal_size().columns - 1))
            self._live.flush()
        except (OSError, ValueError):  # it is gone, or cannot write this script
            self._live = None
        self._line = line

    def _write(self, text: str) -> None:
        if not text or self.trouble is not None:
            return
        try:
            self._sink.write(text)
        except SurtitleError as error:
            self.trouble = error
        except BrokenPipeError:
            self.trouble = OutputError("Nobody reads the output any more.")
        except OSError as error:
            self.trouble = OutputError(f"The output cannot be written: {error.strerror or error}.")
        if self.trouble is not None:
            self._on_trouble()


class StandardOutput:
    """Standard output, handed to the system at each write."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):
            # Words in a script that the terminal or the pipe is not set up for: better
            # written as escapes than lost, and no reason to stop.
            sys.stdout.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> None:
        """Append. Raises OSError."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            # What is left in Python's buffer would fail again, loudly, at the very end.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            raise


def _fitted(line: str, columns: int) -> str:
    """The end of a line, where the news is, as it fits; nothing that steers the terminal."""
    shown = "".join(character for character in line if character.isprintable())
    if _width(shown) <= columns:
        return shown
    while shown and _width(shown) >= columns:
        shown = shown[1:]
    return f"…{shown}"


def _width(text: str) -> int:
    """Columns, wide characters taking two; combining ones are counted, to be safe."""
    return len(text) + sum(east_asian_width(character) in {"W", "F"} for character in text)


def _partial(passage: Passage) -> dict[str, object]:
    return {
        "type": "partial",
        "source": passage.source,
        "utterance": passage.key,
        "start": round(passage.start / SAMPLE_RATE, 3),
        "end": round(passage.end / SAMPLE_RATE, 3),
        "text": passage.settled + passage.tentative,
        "settled": len(passage.settled),
    }


def _status(status: Status) -> dict[str, object]:
    return {
        "type": "status",
        "state": str(status.state),
        "look": str(status.look),
        "message": status.message,
        "remedy": status.remedy,
        "source": status.source,
        "engine": status.engine,
        "place": status.place,
        "behind": round(status.behind, 1),
        "lost": round(status.lost, 1),
        "breaks": status.breaks,
    }


def _json(record: dict[str, object]) -> str:
    # Half a surrogate pair, as a model may cut one, cannot be written.
    text = json.dumps(record, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace").decode()
