"""What the program remembers by itself, such as where the window was: a JSON file.

It is no setting: nobody edits it, and losing it costs little.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from surtitle.core.errors import OutputError, SurtitleError
from surtitle.core.placement import Place
from surtitle.storage.files import replace_file, set_aside, shown, why

__all__ = ["StateFile"]


_PLACE = "window.place"


class StateFile:
    """Named records of plain values. Every call reads or writes the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> dict[str, object]:
        """Return a record, such as `window.place`; empty if there is none. Never raises."""
        record = self._records()[0].get(name)
        return record if isinstance(record, dict) else {}

    def window_place(self) -> Place | None:
        """Return where the user put the window; None if unknown or nonsense. Never raises."""
        match self.read(_PLACE):
            case {
                "screen": str(screen),
                "x": int() | float() as x,
                "y": int() | float() as y,
                "width": int(width),
                "height": int(height),
            } if 0 <= x <= 1 and 0 <= y <= 1 and width > 0 and height > 0:
                return Place(screen=screen, x=x, y=y, width=width, height=height)
            case _:
                return None

    def keep_window_place(self, place: Place) -> None:
        """Remember where the user put the window. Raises OutputError."""
        self.write(_PLACE, asdict(place))

    def problem(self) -> SurtitleError | None:
        """Say what is wrong with the file, if anything."""
        return self._records()[1]

    def write(self, name: str, record: Mapping[str, object]) -> None:
        """Replace one record; a file that could not be read is set aside. Raises OutputError."""
        records, problem = self._records()
        if problem is not None:
            try:
                set_aside(self._path)
            except OSError as error:
                raise problem from error
        content = json.dumps({**records, name: dict(record)}, indent=2)
        replace_file(self._path, f"{content}\n".encode())

    def _records(self) -> tuple[dict[str, object], SurtitleError | None]:
        try:
            content = self._path.read_bytes()
            records = json.loads(content) if content.strip() else {}
        except FileNotFoundError:
            return {}, None
        except OSError as error:
            return {}, self._unreadable(why(error))
        except (ValueError, RecursionError):
            return {}, self._unreadable("it is damaged")
        if not isinstance(records, dict):
            return {}, self._unreadable("it is damaged")
        return records, None

    def _unreadable(self, reason: str) -> OutputError:
        return OutputError(
            f"{shown(self._path)} cannot be read: {reason}.",
            remedy="Where the window was is forgotten; nothing else is lost.",
        )
