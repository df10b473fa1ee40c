"""A result file that grows, and what it says when it cannot."""

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from surtitle.core.errors import OutputError
from surtitle.storage.output import OutputFile


def test_each_write_is_with_the_system_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with OutputFile(path) as file:
        file.write("één\n")
        assert path.read_text("utf-8") == "één\n"
        file.write("two\n")
        assert path.read_text("utf-8") == "één\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exists", "exists already. Choose another name or remove it."),
        ("folder", "is a folder"),
        ("missing/out.txt", "folder does not exist"),
        ("exists/out.txt", "no folder"),
        ("n" * 300, "too long"),
        ("nul\0", "no such name"),
        ("dangling", "exists already"),
        ("pipe", "nobody reads"),
    ],
)
def test_a_path_that_cannot_be_written_is_the_users_to_change(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "exists").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match=words) as caught:
        OutputFile(tmp_path / name)
    assert caught.value.exit_code == 2
    assert (tmp_path / "exists").read_text() == "precious"


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    # Whoever runs the tests may be root, to whom nothing is refused.
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OutputError, match="no permission") as caught:
        OutputFile(tmp_path / "out.txt")
    assert caught.value.exit_code == 2


def test_force_takes_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old and long")
    with OutputFile(tmp_path / "out", force=True) as file:
        file.write("new")
    assert (tmp_path / "out").read_text() == "new"


def test_a_full_device(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with OutputFile(link) as file, pytest.raises(OutputError, match="disk is full") as caught:
        file.write("x")
    assert caught.value.exit_code == 1
    assert "Nothing was written" in caught.value.remedy


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Have the system refuse any file of this process that would be longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_when_the_room_ends_whole_entries_are_kept_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with OutputFile(path) as file:
        with file_size_limit(10):
            file.write("one\n")
            file.write("two\n")
            with pytest.raises(OutputError, match="8 bytes") as caught:
                file.write("three\n")
        assert path.read_text() == "one\ntwo\n"
        assert caught.value.exit_code == 1
        file.write("four\n")
    assert path.read_text() == "one\ntwo\nfour\n"


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with OutputFile(path) as file:
        file.write("heard\n")
        assert os.read(reader, 100) == b"heard\n"
        os.close(reader)
        with pytest.raises(OutputError, match="broken pipe"):
            file.write("x")


def test_what_utf8_cannot_hold_is_replaced(tmp_path: Path) -> None:
    with OutputFile(tmp_path / "out") as file:
        file.write("a\ud800b")
    assert (tmp_path / "out").read_text() == "a?b"
