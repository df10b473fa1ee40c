"""What the doctor says of the data folder."""

import asyncio
from pathlib import Path

import pytest

from surtitle.checks.finding import Finding, Level
from surtitle.checks.folders import check_folders, room


def check() -> Finding:
    found: list[Finding] = []
    asyncio.run(check_folders(found.append))
    (only,) = found
    return only


@pytest.mark.parametrize(
    ("free", "level"), [(100_000_000, Level.OK), (99_999_999, Level.WARN), (0, Level.WARN)]
)
def test_little_room_is_said(free: int, level: Level) -> None:
    assert room("/somewhere", free).level is level


def test_a_folder_that_can_be_written_to(tmp_path: Path) -> None:
    assert check().level in {Level.OK, Level.WARN}  # WARN: the disk of whoever tests is full
    data = tmp_path / "surtitle-home" / "data"
    assert data.is_dir()
    assert list(data.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SURTITLE_HOME", str(tmp_path / "file" / "home"))
    found = check()
    assert found.level is Level.FAIL
    assert "--data-dir" in found.remedy


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    found = check()
    assert found.level is Level.FAIL
    assert "the disk is full" in found.text
