"""The writing side of a transcript: a thread that keeps what it is handed, come what may."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from surtitle.core.errors import OutputError
from surtitle.core.transcript import Entry
from surtitle.storage.database import NewerError, Trouble, connect, judge, told
from surtitle.storage.files import shown

__all__ = ["Session"]

_MOST_WAITING = 10_000
"""Entries kept in memory while the disk refuses them: some hours of speech."""

_RETRY_SECONDS = 1.0
_RETRY_SECONDS_AT_MOST = 30.0

_INSERT_SESSION = """
    INSERT INTO sessions (id, started_at, source, engine) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING
"""

_UPSERT = """
    INSERT INTO entries (session_id, key, start, "end", text, gap, source, closed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id, key) DO UPDATE SET
        start = excluded.start, "end" = excluded."end", text = excluded.text,
        gap = excluded.gap, source = excluded.source, closed = excluded.closed
"""

type _Identity = tuple[int, int]
type _Failure = sqlite3.Error | OSError | OutputError | NewerError
_FAILURES = (sqlite3.Error, OSError, OutputError, NewerError)


class Session:
    """Keeps the entries of one recording. Made by `TranscriptStore.begin_session`.

    `keep` hands an entry to a thread that commits it at once, together with what
    else has come meanwhile. What the disk refuses waits and is tried again; the
    oldest goes, counted in `lost`, only when very much waits or the session closes.
    """

    def __init__(
        self,
        path: Path,
        *,
        started_at: datetime,
        source: str,
        engine: str,
        on_trouble: Callable[[OutputError], None],
        open_database: Callable[[Path], sqlite3.Connection] = connect,
        most_waiting: int = _MOST_WAITING,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self.lost = 0
        """Entries that could not be saved and are gone."""
        self._path = path
        self._about = (started_at.isoformat(), _storable(source), _storable(engine))
        self._on_trouble = on_trouble
        self._open_database = open_database
        self._most_waiting = most_waiting
        self._retry_seconds = retry_seconds
        self._told = set[str]()
        # All below is guarded by the condition.
        self._changed = threading.Condition()
        self._waiting: dict[int, Entry] = {}
        self._writing = False
        self._give_up_at: float | None = None
        self._thread: threading.Thread | None = None
        # All below belongs to the thread.
        self._connection: sqlite3.Connection | None = None
        self._file: _Identity | None = None
        self._row: int | None = None
        self._row_file: _Identity | None = None

    @property
    def id(self) -> int | None:
        """The number of the session in the database, once something is kept."""
        return self._row

    def keep(self, entry: Entry) -> None:
        """Store an entry, in place of the one with the same key. Never blocks, never raises.

        After `close` it does nothing but count the entry as lost.
        """
        with self._changed:
            if self._give_up_at is not None:
                self.lost += 1
                return
            self._waiting[entry.key] = entry
            self._bound()
            if self._thread is None:
                # Not to wait for when the program ends: `close` is for that.
                thread = threading.Thread(target=self._run, name="surtitle-transcript", daemon=True)
                # Where no thread can be had now, the next entry tries again.
                with contextlib.suppress(RuntimeError):
                    thread.start()
                    self._thread = thread
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until all that was kept is on disk; False if it is not after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._writing), timeout)

    def close(self, timeout: float = 5.0) -> bool:
        """Save what waits, for so many seconds, and stop. Safe to call again.

        Returns whether all was saved. If not, `on_trouble` is told how much was lost.
        """
        with self._changed:
            if self._give_up_at is None:
                # Sooner than the caller does, so that the loss can be counted and told.
                self._give_up_at = monotonic() + 0.8 * timeout
            self._changed.notify_all()
        if self._thread is None:
            self._leave()
        else:
            self._thread.join(timeout)
        return not self.lost and self.flush(0)

    # The thread.

    def _run(self) -> None:
        failures = 0
        try:
            while (batch := self._take()) is not None:
                try:
                    self._save(batch.values())
                except _FAILURES as error:
                    failures += 1
                    self._put_back(batch)
                    self._meet(error)
                    if not self._pause(failures):
                        break
                else:
                    failures = 0
                    self._done()
        finally:
            self._disconnect()
            self._leave()

    def _take(self) -> dict[int, Entry] | None:
        """Wait for entries and take them all; None when the session is closed and none wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._give_up_at is not None)
            batch, self._waiting = self._waiting, {}
            self._writing = bool(batch)
            return batch or None

    def _put_back(self, batch: dict[int, Entry]) -> None:
        with self._changed:
            self._waiting = {**batch, **self._waiting}
            self._writing = False
            self._bound()

    def _done(self) -> None:
        with self._changed:
            self._writing = False
            self._changed.notify_all()

    def _pause(self, failures: int) -> bool:
        """Wait before the next try; False when the time to close has run out."""
        seconds = min(self._retry_seconds * 2 ** min(failures - 1, 10), _RETRY_SECONDS_AT_MOST)
        with self._changed:
            if self._give_up_at is None:
                self._changed.wait_for(lambda: self._give_up_at is not None, seconds)
                return True
            rest = self._give_up_at - monotonic()
            if rest <= 0:
                return False
            self._changed.wait(min(seconds, self._retry_seconds, rest))
            return True

    def _leave(self) -> None:
        with self._changed:
            self.lost += len(self._waiting)
            self._waiting = {}
            self._changed.notify_all()
        if self.lost:
            self._tell(
                "lost",
                OutputError(
                    f"Lines of the transcript that could not be saved: {self.lost:,}.",
                    remedy=f"What was saved before is in {shown(self._path)}.",
                ),
            )

    def _bound(self) -> None:
        while len(self._waiting) > self._most_waiting:
            del self._waiting[next(iter(self._waiting))]
            self.lost += 1

    # The database.

    def _save(self, entries: Iterable[Entry]) -> None:
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            row = self._row if self._row_file == self._file else None
            # Also when the row is known: somebody may have deleted it meanwhile.
            inserted = connection.execute(_INSERT_SESSION, (row, *self._about))
            if inserted.rowcount:
                row = inserted.lastrowid
            connection.executemany(_UPSERT, [_row(row, entry) for entry in entries])
        self._row, self._row_file = row, self._file

    def _connected(self) -> sqlite3.Connection:
        # Somebody may have removed the file or set it aside; what is then written to
        # the open one would be lost without an error.
        if self._connection is not None and self._file == _identity(self._path):
            return self._connection
        self._disconnect()
        self._file = _identity(self._path)
        self._connection = self._open_database(self._path)
        self._file = _identity(self._path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _meet(self, error: _Failure) -> None:
        """Tell of a failure, and put right what can be."""
        self._disconnect()  # after a failure nothing is taken for granted
        trouble = judge(error)
        if trouble is not Trouble.DAMAGED:
            self._tell(trouble, told(self._path, error))
            return
        if self._file != _identity(self._path):
            return  # another process has set it aside already
        try:
            aside = _set_aside(self._path)
        except OSError as failure:
            self._tell(trouble, told(self._path, failure))
            return
        self._tell(
            trouble,
            OutputError(
                f"The transcripts in {shown(self._path)} were damaged; a new file was begun.",
                remedy=f"The old one is kept as {shown(aside)}.",
            ),
        )

    def _tell(self, kind: str, error: OutputError) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._on_trouble(error)


def _row(session: int | None, entry: Entry) -> tuple[object, ...]:
    return (
        session,
        entry.key,
        entry.start,
        entry.end,
        _storable(entry.text),
        entry.gap,
        _storable(entry.source),
        entry.closed,
    )


def _storable(text: str) -> str:
    """Replace what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _identity(path: Path) -> _Identity | None:
    """Tell one file of this name from another."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _set_aside(path: Path) -> Path:
    """Rename a database with the files that belong to it, so that tools can still mend it."""
    date = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    aside = path.with_name(f"{path.name}.damaged-{date}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside
