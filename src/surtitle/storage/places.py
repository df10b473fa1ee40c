"""Where files belong: where the platform expects them, or all in one folder."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from platformdirs import PlatformDirs

from surtitle.storage.files import private_folder

__all__ = ["HOME_VARIABLE", "Places"]

HOME_VARIABLE = "SURTITLE_HOME"
"""The environment variable that moves all places into one folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The folders of one user, as absolute paths. None exists before `create`."""

    data: Path
    """Transcripts and models: what a person would miss."""
    config: Path
    """Settings."""
    state: Path
    """What the program remembers by itself, such as where the window was."""
    cache: Path
    """What can be made again."""
    logs: Path

    @classmethod
    def find(cls, environ: Mapping[str, str], data_dir: str = "") -> Self:
        """Choose the folders: under `data_dir`, else $SURTITLE_HOME, else the platform's."""
        home = data_dir or environ.get(HOME_VARIABLE, "")
        if home:
            root = _absolute(home)
            return cls(**{each.name: root / each.name for each in fields(cls)})
        dirs = PlatformDirs("surtitle", appauthor=False)
        return cls(
            data=dirs.user_data_path,
            config=dirs.user_config_path,
            state=dirs.user_state_path,
            cache=dirs.user_cache_path,
            logs=dirs.user_log_path,
        )

    def create(self) -> None:
        """Make the folders that are missing, for their owner only. Raises OutputError."""
        for each in fields(self):
            private_folder(getattr(self, each.name))

    @property
    def transcripts(self) -> Path:
        """The database of `surtitle.storage.transcripts`."""
        return self.data / "transcripts.sqlite3"

    @property
    def settings(self) -> Path:
        """The file of `surtitle.storage.settings_file`."""
        return self.config / "settings.toml"

    @property
    def window_state(self) -> Path:
        """The file of `surtitle.storage.state_file`."""
        return self.state / "state.json"


def _absolute(home: str) -> Path:
    path = Path(home)
    with contextlib.suppress(RuntimeError):  # home unknown: then ~ is a name like any other
        path = path.expanduser()
    return path.absolute()
