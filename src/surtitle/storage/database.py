"""The database of transcripts: its shape, how it is opened, and what its errors mean."""

import contextlib
import errno
import sqlite3
import time
from enum import StrEnum
from pathlib import Path

from surtitle.core.errors import OutputError
from surtitle.storage.files import private_folder, shown

__all__ = ["BUSY_SECONDS", "SCHEMA_VERSION", "NewerError", "Trouble", "connect", "judge", "told"]

BUSY_SECONDS = 2.0
"""How long to wait for another process that writes."""

_SCHEMA = (
    # Version 1. The rows of `entries` keep their id, so that a full-text index can refer to it.
    """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started_at TEXT NOT NULL,
        source TEXT NOT NULL,
        engine TEXT NOT NULL
    ) STRICT;
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        key INTEGER NOT NULL,
        start REAL NOT NULL,
        "end" REAL NOT NULL,
        text TEXT NOT NULL,
        gap INTEGER NOT NULL,
        source TEXT NOT NULL,
        closed INTEGER NOT NULL,
        UNIQUE (session_id, key)
    ) STRICT;
    """,
)

SCHEMA_VERSION = len(_SCHEMA)


class Trouble(StrEnum):
    """The kinds of failure a person has to do different things about."""

    FULL = "full"
    LOCKED = "locked"
    DENIED = "denied"
    DAMAGED = "damaged"
    NEWER = "newer"
    OTHER = "other"


_KINDS = {
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_BUSY: Trouble.LOCKED,
    sqlite3.SQLITE_LOCKED: Trouble.LOCKED,
    sqlite3.SQLITE_READONLY: Trouble.DENIED,
    sqlite3.SQLITE_PERM: Trouble.DENIED,
    sqlite3.SQLITE_CANTOPEN: Trouble.DENIED,
    sqlite3.SQLITE_AUTH: Trouble.DENIED,
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
}

_WORDS = {
    Trouble.FULL: ("the disk is full", "Make room; what is not yet saved is tried again."),
    Trouble.LOCKED: ("another program holds it", "Close other programs that have it open."),
    Trouble.DENIED: ("it cannot be opened or written", "Check the permissions of its folder."),
    Trouble.DAMAGED: ("it is damaged", "Surtitle sets it aside at the next recording."),
    Trouble.NEWER: ("a newer Surtitle has changed it", "Update Surtitle."),
}


class NewerError(Exception):
    """The database has a shape this program does not know."""


def connect(
    path: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """Open the database in write-ahead mode, bring it to this version, and return it.

    With `create` the folder and the file are made if missing, for their owner only;
    SQLite gives the files beside it the same permissions. Another process that writes
    is waited for, `busy_seconds` at a time. Transactions are begun explicitly.
    Raises sqlite3.Error, OSError, OutputError or NewerError: see `judge`.
    """
    if create:
        private_folder(path.parent)
        path.touch(mode=0o600)
    with contextlib.suppress(OSError):
        path.chmod(0o600)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        _write_ahead(connection, busy_seconds)
        # In write-ahead mode this survives a killed process; only power loss can take
        # the last lines, never the database.
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def judge(error: Exception) -> Trouble:
    """Say what kind of failure an error from here is."""
    match error:
        case NewerError():
            return Trouble.NEWER
        case OutputError():
            return Trouble.DENIED
        case OSError(errno=errno.ENOSPC):
            return Trouble.FULL
        case OSError():
            return Trouble.DENIED
        case sqlite3.Error():
            # The low byte of an extended code is the plain one.
            return _KINDS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, Trouble.OTHER)
        case _:
            return Trouble.OTHER


def told(path: Path, error: Exception) -> OutputError:
    """Make the sentence for a person from a failure."""
    if isinstance(error, OutputError):
        return error
    reason, remedy = _WORDS.get(judge(error), (str(error), ""))
    return OutputError(f"The transcripts in {shown(path)}: {reason}.", remedy=remedy)


def _write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Turn on write-ahead mode, which stays with the file.

    SQLite does not wait for others while it does this, so the waiting is here.
    """
    patience = time.monotonic() + busy_seconds
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if judge(error) is not Trouble.LOCKED or time.monotonic() > patience:
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        # Another process may have done it while this one waited for its turn.
        version = _version(connection)
        if version > SCHEMA_VERSION:
            raise NewerError
        for script in _SCHEMA[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
