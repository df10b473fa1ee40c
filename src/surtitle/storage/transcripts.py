"""Transcripts on disk: every line is kept as it comes, and outlives the process that heard it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from surtitle.core.errors import OutputError
from surtitle.core.transcript import Entry
from surtitle.storage.database import NewerError, connect, told
from surtitle.storage.session import Session

__all__ = ["StoredSession", "TranscriptStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """One recording, as it stands in the database."""

    id: int
    started_at: datetime
    """Wall-clock time of audio time 0, with the zone it was recorded in."""
    source: str
    engine: str
    entries: int
    """How many utterances and gaps it has."""


class TranscriptStore:
    """The transcripts of one user. Several processes may use the same at once.

    Nothing is opened until it is needed, and reading never makes a database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin_session(
        self,
        started_at: datetime,
        source: str,
        engine: str,
        on_trouble: Callable[[OutputError], None] = lambda _: None,
    ) -> Session:
        """Begin to keep a transcript. Returns at once and never fails.

        Args:
            started_at: Wall-clock time of audio time 0; with a time zone.
            source: What is listened to, for people.
            engine: What makes the text, for people.
            on_trouble: Told of each kind of failure once, on the session's own thread,
                possibly after `close` has given up. Must be quick and must not raise.

        Raises:
            ValueError: `started_at` has no time zone.
        """
        if started_at.tzinfo is None:
            raise ValueError("started_at needs a time zone")
        return Session(
            self._path,
            started_at=started_at,
            source=source,
            engine=engine,
            on_trouble=on_trouble,
        )

    def sessions(self) -> list[StoredSession]:
        """Return all sessions with at least one entry, newest first. Raises OutputError."""
        rows = self._rows(
            "SELECT s.id, s.started_at, s.source, s.engine, count(*)"
            " FROM sessions AS s JOIN entries AS e ON e.session_id = s.id"
            " GROUP BY s.id ORDER BY s.id DESC"
        )
        return [
            StoredSession(
                id=number,
                started_at=datetime.fromisoformat(started_at),
                source=source,
                engine=engine,
                entries=entries,
            )
            for number, started_at, source, engine, entries in rows
        ]

    def entries(self, session_id: int) -> list[Entry]:
        """Return a session's entries in the order of their start. Raises OutputError.

        The last ones may be open if the session goes on or its process was killed.
        """
        rows = self._rows(
            'SELECT key, start, "end", text, gap, source, closed FROM entries'
            " WHERE session_id = ? ORDER BY start, id",
            session_id,
        )
        return [
            Entry(
                key=key,
                start=start,
                end=end,
                text=text,
                gap=bool(gap),
                source=source,
                closed=bool(closed),
            )
            for key, start, end, text, gap, source, closed in rows
        ]

    def _rows(self, query: str, *values: int) -> list[tuple[Any, ...]]:
        try:
            if not self._path.exists():
                return []
            with closing(connect(self._path, create=False)) as connection:
                return connection.execute(query, values).fetchall()
        except (sqlite3.Error, OSError, NewerError) as error:
            raise told(self._path, error) from error
