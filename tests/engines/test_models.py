from dataclasses import replace
from pathlib import Path

import pytest

from surtitle.core.errors import Decision, EngineError
from surtitle.engines import models
from surtitle.engines.models import PACKAGED, locate


def test_the_packaged_model_is_there() -> None:
    folder = locate(PACKAGED)
    assert folder.is_dir()
    assert any(folder.glob("*.ort"))


def test_a_model_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "model.ort").touch()
    assert locate(replace(PACKAGED, folder=str(tmp_path))) == tmp_path


@pytest.mark.parametrize("folder", ["no-such-model", "/no/such/folder"])
def test_a_model_without_files(folder: str) -> None:
    with pytest.raises(EngineError, match="Moonshine Tiny are missing") as caught:
        locate(replace(PACKAGED, folder=folder))
    assert caught.value.decision is Decision.RECONFIGURE
    assert caught.value.remedy


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        locate(replace(PACKAGED, folder=str(tmp_path)))


def test_a_computer_for_which_there_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda _name: None)
    with pytest.raises(EngineError, match="not available on this computer") as caught:
        locate(PACKAGED)
    assert caught.value.decision is Decision.RECONFIGURE
    assert caught.value.field == "engine"
    assert "--engine" in caught.value.remedy
