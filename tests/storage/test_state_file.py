"""What the program remembers by itself."""

from pathlib import Path

import pytest

from surtitle.core.placement import Place
from surtitle.storage.state_file import StateFile

PLACE = {"screen": "DP-1 Dell", "x": 0.25, "y": 0.8, "width": 800, "height": 120}


def test_records_are_kept_apart(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state" / "state.json")
    assert file.read("window.place") == {}
    file.write("window.place", PLACE)
    file.write("other", {"a": 1})
    assert file.read("window.place") == PLACE
    assert file.read("other") == {"a": 1}
    assert file.problem() is None


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_told_and_set_aside_when_next_written(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    file = StateFile(path)
    assert file.read("window.place") == {}
    assert "damaged" in str(file.problem())
    file.write("window.place", PLACE)
    assert file.read("window.place") == PLACE
    assert (tmp_path / "state.json.damaged-1").read_bytes() == content


def test_an_empty_file_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "state.json").touch()
    assert StateFile(tmp_path / "state.json").problem() is None


def test_a_record_of_another_shape_is_none(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"window.place": 3}')
    assert StateFile(tmp_path / "state.json").read("window.place") == {}


def test_the_windows_place_comes_back(tmp_path: Path) -> None:
    place = Place(screen="DP-1 Dell", x=0.25, y=1.0, width=800, height=120)
    file = StateFile(tmp_path / "state.json")
    assert file.window_place() is None
    file.keep_window_place(place)
    assert file.window_place() == place


@pytest.mark.parametrize(
    "wrong", [{"x": -0.1}, {"y": 1.1}, {"width": 0}, {"height": "tall"}, {"screen": None}]
)
def test_a_place_that_cannot_be_is_none(tmp_path: Path, wrong: dict[str, object]) -> None:
    file = StateFile(tmp_path / "state.json")
    file.write("window.place", {**PLACE, **wrong})
    assert file.window_place() is None
