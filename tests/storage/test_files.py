"""Folders, whole files, and damaged ones set aside."""

import stat
from pathlib import Path

import pytest

from surtitle.core.errors import OutputError
from surtitle.storage.files import private_folder, replace_file, set_aside, shown


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_its_owners_only_and_an_old_one_is_left_alone(tmp_path: Path) -> None:
    private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700
    (tmp_path / "c").mkdir(mode=0o755)
    private_folder(tmp_path / "c")
    assert mode(tmp_path / "c") == 0o755


@pytest.mark.parametrize("name", ["file", "file/below", "nul\0", "n" * 300])
def test_a_folder_that_cannot_be_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made") as caught:
        private_folder(tmp_path / name)
    assert caught.value.exit_code == 2
    assert "--data-dir" in caught.value.remedy


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert mode(path) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_what_cannot_be_replaced_is_unchanged_and_leaves_no_rest(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        replace_file(tmp_path / "folder", b"x")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_setting_aside_never_takes_a_name_twice(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert set_aside(path, copy=True).name == "file.damaged-1"
    assert set_aside(path).name == "file.damaged-2"
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        set_aside(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        "file.damaged-1": b"one",
        "file.damaged-2": b"one",
    }


@pytest.mark.parametrize(
    ("path", "text"), [("plain ü", "plain ü"), ("bad\udcff", "bad\\udcff"), ("a\nb", "a\\nb")]
)
def test_any_path_can_be_shown(path: str, text: str) -> None:
    assert shown(path) == text
