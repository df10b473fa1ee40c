"""Where files belong."""

import stat
from pathlib import Path

import pytest

from surtitle.core.errors import OutputError
from surtitle.storage.places import Places


def test_one_folder_holds_everything(tmp_path: Path) -> None:
    places = Places.find({"SURTITLE_HOME": str(tmp_path / "home")})
    assert places == Places(
        data=tmp_path / "home" / "data",
        config=tmp_path / "home" / "config",
        state=tmp_path / "home" / "state",
        cache=tmp_path / "home" / "cache",
        logs=tmp_path / "home" / "logs",
    )
    assert places.transcripts.parent == places.data
    assert places.settings.parent == places.config
    assert places.window_state.parent == places.state


def test_the_option_wins_over_the_variable_and_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = Places.find({"SURTITLE_HOME": "/elsewhere"}, "here")
    assert places.data == tmp_path / "here" / "data"


def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Places.find({}, "~/captions").data == tmp_path / "captions" / "data"


@pytest.mark.parametrize("home", [None, ""])
def test_otherwise_the_platform_decides(home: str | None) -> None:
    places = Places.find({} if home is None else {"SURTITLE_HOME": home})
    assert "surtitle" in places.data.parts
    assert places.data.is_absolute()


def test_all_are_made_for_their_owner_only(tmp_path: Path) -> None:
    places = Places.find({}, str(tmp_path / "home"))
    places.create()
    places.create()
    for folder in (places.data, places.config, places.state, places.cache, places.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        Places.find({}, str(tmp_path / "file")).create()
