"""Transcripts on disk, through crashes, full disks and other processes."""

import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from surtitle.core.errors import OutputError
from surtitle.core.transcript import Entry
from surtitle.storage.database import connect
from surtitle.storage.session import Session
from surtitle.storage.transcripts import TranscriptStore

NOW = datetime(2026, 11, 30, 15, 47, tzinfo=timezone(timedelta(hours=1)))
SOON = 20.0
"""Seconds to wait for what takes milliseconds on a machine that is not busy."""


def entry(key: int, text: str = "words", *, closed: bool = True) -> Entry:
    return Entry(key=key, start=float(key), end=key + 0.5, text=text, closed=closed)


class Troubles(list[OutputError]):
    """Collects what the user would be told."""

    def __init__(self) -> None:
        super().__init__()
        self._came = threading.Condition()

    def __call__(self, error: OutputError) -> None:
        with self._came:
            self.append(error)
            self._came.notify_all()

    def await_one(self) -> OutputError:
        with self._came:
            assert self._came.wait_for(lambda: self, SOON)
            return self[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "transcripts.sqlite3"


@pytest.fixture
def store(path: Path) -> TranscriptStore:
    return TranscriptStore(path)


@pytest.fixture
def troubles() -> Iterator[Troubles]:
    """Collect troubles, and see to it that no session's thread outlives the test."""
    yield Troubles()
    for thread in threading.enumerate():
        if thread.name == "surtitle-transcript":
            thread.join(SOON)
            assert not thread.is_alive()


def impatient(path: Path) -> sqlite3.Connection:
    return connect(path, busy_seconds=0.02)


def begin(path: Path, troubles: Troubles, database: "Database | None" = None) -> Session:
    """Begin a session that does not wait long between tries."""
    return Session(
        path,
        started_at=NOW,
        source="Speakers",
        engine="Moonshine",
        on_trouble=troubles,
        open_database=database or impatient,
        most_waiting=5,
        retry_seconds=0.01,
    )


class Database:
    """Opens real databases that may grow to so many pages only: a disk that can be full."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def __call__(self, path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return connection


# Keeping and reading.


def test_what_is_kept_is_read_back(store: TranscriptStore, troubles: Troubles) -> None:
    session = store.begin_session(NOW, "Speakers", "Moonshine", troubles)
    gap = Entry(key=3, start=4.0, end=16.0, text="", gap=True, source="Me")
    kept = [entry(1, "Hello."), entry(2, "Ünïcode 日本語"), gap]
    for each in kept:
        session.keep(each)
    assert session.close(SOON)
    (stored,) = store.sessions()
    assert (stored.source, stored.engine, stored.entries) == ("Speakers", "Moonshine", 3)
    assert stored.started_at == NOW
    assert stored.started_at.utcoffset() == timedelta(hours=1)
    assert stored.id == session.id
    assert store.entries(stored.id) == kept
    assert not troubles


def test_an_entry_grows_in_place(store: TranscriptStore, troubles: Troubles) -> None:
    session = store.begin_session(NOW, "", "", troubles)
    for text in ("Hel", "Hello", "Hello there"):
        session.keep(entry(1, text, closed=False))
        assert session.flush(SOON)
        assert session.id is not None
        assert store.entries(session.id) == [entry(1, text, closed=False)]
    session.keep(entry(1, "Hello there."))
    assert session.close(SOON)
    assert store.entries(1) == [entry(1, "Hello there.")]


def test_sessions_are_apart_and_newest_first(store: TranscriptStore, troubles: Troubles) -> None:
    for text in ("first", "second"):
        session = store.begin_session(NOW, text, "", troubles)
        session.keep(entry(1, text))
        assert session.close(SOON)
    assert [(each.id, each.source) for each in store.sessions()] == [(2, "second"), (1, "first")]
    assert [each.text for each in store.entries(1)] == ["first"]
    assert store.entries(99) == []


def test_nothing_kept_leaves_nothing(store: TranscriptStore, path: Path) -> None:
    assert store.begin_session(NOW, "", "").close(SOON)
    assert store.sessions() == []
    assert store.entries(1) == []
    assert not path.parent.exists()


def test_only_the_owner_can_read_any_of_the_files(path: Path, troubles: Troubles) -> None:
    session = begin(path, troubles)
    session.keep(entry(1))
    assert session.flush(SOON)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == dict.fromkeys([path.name, f"{path.name}-wal", f"{path.name}-shm"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert session.close(SOON)


def test_a_start_without_a_zone_is_a_defect(store: TranscriptStore) -> None:
    with pytest.raises(ValueError, match="time zone"):
        store.begin_session(NOW.replace(tzinfo=None), "", "")


def test_what_utf8_cannot_hold_is_replaced(store: TranscriptStore, troubles: Troubles) -> None:
    session = store.begin_session(NOW, "a\ud800", "", troubles)
    session.keep(entry(1, "a\ud800b"))
    assert session.close(SOON)
    assert [each.text for each in store.entries(1)] == ["a?b"]


def test_keeping_after_closing_is_counted(store: TranscriptStore, troubles: Troubles) -> None:
    session = store.begin_session(NOW, "", "", troubles)
    assert session.close(SOON)
    session.keep(entry(1))
    assert session.lost == 1
    assert not session.close(SOON)


# Crashes and other processes.

_PROGRAM = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from surtitle.core.transcript import Entry
from surtitle.storage.transcripts import TranscriptStore

store = TranscriptStore(Path(sys.argv[1]))
trouble = lambda error: print(error, file=sys.stderr)
session = store.begin_session(datetime.now(UTC), sys.argv[2], "", trouble)
for key in range(int(sys.argv[3])):
    for text in ("half", "whole"):
        session.keep(Entry(key=key, start=key, end=key + 1, text=text, closed=text == "whole"))
        assert session.flush(20)
    print(key, flush=True)
session.keep(Entry(key=key + 1, start=key + 1, end=key + 2, text="broken off", closed=False))
assert session.flush(20)
print("open", flush=True)
if sys.argv[4] == "wait":
    sys.stdin.read()
assert session.close(20)
"""


def recorder(path: Path, name: str, count: int, end: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(path), name, str(count), end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_kill_in_mid_sentence_loses_nothing_that_was_kept(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    with recorder(path, "killed", 20, "wait") as process:
        assert process.stdout is not None
        seen = [line.strip() for line in iter(process.stdout.readline, "open\n")]
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SOON)
    assert process.returncode == -signal.SIGKILL
    assert path.with_name(f"{path.name}-wal").exists()
    *settled, last = store.entries(1)
    assert [str(each.key) for each in settled] == seen
    assert {(each.text, each.closed) for each in settled} == {("whole", True)}
    assert (last.text, last.closed) == ("broken off", False)
    session = begin(path, troubles)
    session.keep(entry(1))
    assert session.close(SOON)
    assert [each.entries for each in store.sessions()] == [1, 21]
    assert not troubles


def test_two_processes_keep_at_once(store: TranscriptStore, path: Path) -> None:
    processes = [recorder(path, name, 50, "end") for name in ("one", "two")]
    for process in processes:
        _, errors = process.communicate(timeout=2 * SOON)
        assert (process.returncode, errors) == (0, "")
    assert sorted((each.source, each.entries) for each in store.sessions()) == [
        ("one", 51),
        ("two", 51),
    ]


def test_another_program_that_holds_the_database_only_delays(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    first = begin(path, troubles)
    first.keep(entry(1))
    assert first.close(SOON)
    session = begin(path, troubles)
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        session.keep(entry(1))
        assert "another program holds it" in str(troubles.await_one())
        session.keep(entry(2))
        other.execute("ROLLBACK")
    assert session.close(SOON)
    assert len(store.entries(2)) == 2
    assert len(troubles) == 1


# Full disks and places that cannot be.


def test_a_full_disk_is_told_once_and_what_waits_is_saved_when_there_is_room(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    database = Database(pages=12)
    session = begin(path, troubles, database)
    session.keep(entry(1))
    assert session.flush(SOON)
    session.keep(entry(2, "x" * 100_000))
    assert "the disk is full" in str(troubles.await_one())
    session.keep(entry(3))
    assert not session.flush(0.1)
    assert [each.key for each in store.entries(1)] == [1]
    database.pages = 10_000
    assert session.flush(SOON)
    assert session.close(SOON)
    assert [each.key for each in store.entries(1)] == [1, 2, 3]
    assert len(troubles) == 1
    assert session.lost == 0


def test_what_can_never_be_saved_is_bounded_counted_and_told(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    session = begin(path, troubles, Database(pages=12))
    session.keep(entry(0))
    assert session.flush(SOON)
    for key in range(1, 9):
        session.keep(entry(key, "x" * 100_000))
    assert not session.close(0.5)
    assert session.lost == 8
    tried_again = "Make room; what is not yet saved is tried again."
    kept = f"What was saved before is in {path}."
    assert [str(each) for each in troubles] == [
        f"The transcripts in {path}: the disk is full. {tried_again}",
        f"Lines of the transcript that could not be saved: 8. {kept}",
    ]
    assert [each.key for each in store.entries(1)] == [0]


def test_a_folder_that_cannot_be_is_told_and_does_not_stop_the_caller(
    tmp_path: Path, troubles: Troubles
) -> None:
    (tmp_path / "file").touch()
    session = begin(tmp_path / "file" / "transcripts.sqlite3", troubles)
    session.keep(entry(1))
    assert "cannot be made" in str(troubles.await_one())
    assert not session.close(0.5)
    assert session.lost == 1


# Damage.


def damaged(path: Path) -> list[Path]:
    return [each for each in path.parent.iterdir() if ".damaged-" in each.name]


def test_a_damaged_database_is_set_aside_and_a_new_one_begun(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 500)
    with pytest.raises(OutputError, match="damaged"):
        store.sessions()
    session = begin(path, troubles)
    session.keep(entry(1))
    assert session.close(SOON)
    (aside,) = damaged(path)
    assert aside.read_bytes() == b"this is no database" * 500
    assert len(store.entries(1)) == 1
    assert [aside.name in str(each) for each in troubles] == [True]


def test_damage_in_mid_session(store: TranscriptStore, path: Path, troubles: Troubles) -> None:
    first = begin(path, troubles)
    first.keep(entry(1))
    assert first.close(SOON)
    with path.open("r+b") as file:  # all but the first page, which says that it is a database
        file.seek(4096)
        file.write(b"\xff" * 40_000)
    session = begin(path, troubles)
    session.keep(entry(7))
    assert session.close(SOON)
    assert len(damaged(path)) == 1
    assert [each.key for each in store.entries(1)] == [7]
    assert len(troubles) == 1


def test_a_database_removed_in_mid_session_is_begun_anew(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    session = begin(path, troubles)
    session.keep(entry(1))
    assert session.flush(SOON)
    for each in path.parent.iterdir():
        each.unlink()
    session.keep(entry(2))
    assert session.close(SOON)
    assert [each.key for each in store.entries(1)] == [2]
    assert not troubles


def test_a_database_replaced_in_mid_session_takes_no_harm(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    session = begin(path, troubles)
    session.keep(entry(1, "before"))
    assert session.flush(SOON)
    elsewhere = path.with_name("other.sqlite3")
    theirs = begin(elsewhere, troubles)
    theirs.keep(entry(1, "theirs"))  # still in the file beside the database, not in it
    assert theirs.flush(SOON)
    for suffix in ("", "-wal", "-shm"):
        elsewhere.with_name(elsewhere.name + suffix).replace(path.with_name(path.name + suffix))
    session.keep(entry(2, "after"))
    assert session.close(SOON)
    assert [[each.text for each in store.entries(number)] for number in (1, 2)] == [
        ["theirs"],
        ["after"],
    ]
    assert theirs.close(SOON)
    assert not troubles


def test_a_session_deleted_while_it_goes_on_goes_on(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    session = begin(path, troubles)
    session.keep(entry(1))
    assert session.flush(SOON)
    with closing(connect(path)) as other:
        other.execute("DELETE FROM sessions")
    session.keep(entry(2))
    assert session.close(SOON)
    assert [each.key for each in store.entries(1)] == [2]
    assert not troubles


def test_a_newer_database_is_left_alone(
    store: TranscriptStore, path: Path, troubles: Troubles
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(OutputError, match="newer Surtitle"):
        store.sessions()
    session = begin(path, troubles)
    session.keep(replace(entry(1), text="secret words"))
    assert "Update Surtitle" in str(troubles.await_one())
    assert not session.close(0.5)
    assert not damaged(path)
    assert not any("secret" in str(each) for each in troubles)


def test_times_are_stored_as_given(store: TranscriptStore, troubles: Troubles) -> None:
    session = store.begin_session(NOW.astimezone(UTC), "", "", troubles)
    exact = Entry(key=2**40, start=0.1 + 0.2, end=1e6 / 3, text="x")
    session.keep(exact)
    assert session.close(SOON)
    assert store.entries(1) == [exact]
