"""Settings in a TOML file that its owner may write too: comments and order survive."""

from collections.abc import MutableMapping
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from surtitle.core.errors import OutputError, SettingsError, SurtitleError
from surtitle.core.settings import SETTINGS, VERSION, Settings
from surtitle.storage.files import replace_file, set_aside, shown, why

__all__ = ["SettingsFile"]


class SettingsFile:
    """The settings of one user. Every call reads or writes the file; nothing is remembered."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[Settings, list[SurtitleError]]:
        """Return the settings, and what was wrong with the file or in it.

        A file that is no TOML is set aside and the defaults are used. Never raises.
        """
        try:
            settings, problems = Settings.from_mapping(self._document().unwrap())
        except OSError as error:
            return Settings(), [
                OutputError(
                    f"The settings in {shown(self._path)} cannot be read: {why(error)}.",
                    remedy="The defaults are used meanwhile.",
                )
            ]
        except _NOT_TOML as error:
            return Settings(), [self._damaged(error)]
        return settings, list[SurtitleError](problems)

    def write(self, settings: Settings) -> None:
        """Change the file to these settings, and only where it says otherwise.

        Before something wrong, or of another version, is replaced, the file is copied.
        Raises OutputError.
        """
        try:
            try:
                document = self._document()
            except _NOT_TOML:
                set_aside(self._path)
                document = tomlkit.document()
            before, problems = Settings.from_mapping(document.unwrap())
            content = tomlkit.dumps(_changed(document, before, settings, problems))
            editable = _says(content, settings)
            if not editable:
                content = tomlkit.dumps(settings.to_mapping())
            if (problems or not editable) and self._path.exists():
                set_aside(self._path, copy=True)
        except OSError as error:
            raise OutputError(
                f"The settings in {shown(self._path)} cannot be changed: {why(error)}.",
                remedy="They hold until Surtitle ends.",
            ) from error
        replace_file(self._path, content.encode())

    def _document(self) -> tomlkit.TOMLDocument:
        """Read the file; no file is an empty one. Raises OSError or one of `_NOT_TOML`."""
        try:
            return tomlkit.parse(self._path.read_bytes().decode("utf-8-sig"))
        except FileNotFoundError:
            return tomlkit.document()

    def _damaged(self, error: Exception) -> SettingsError:
        where = f" (line {line})" if (line := getattr(error, "line", 0)) else ""
        try:
            aside = set_aside(self._path)
        except OSError:
            remedy = "The defaults are used meanwhile; mend or remove the file."
        else:
            remedy = f"The defaults are used; the file is kept as {shown(aside)}."
        return SettingsError(
            f"The settings in {shown(self._path)} are no valid TOML{where}.", remedy=remedy
        )


# What tomlkit says of a file that is none of its own; deep nesting exhausts its recursion.
_NOT_TOML = (TOMLKitError, ValueError, RecursionError)


def _changed(
    document: tomlkit.TOMLDocument,
    before: Settings,
    after: Settings,
    problems: list[SettingsError],
) -> tomlkit.TOMLDocument:
    """Set in the document what is new or was wrong."""
    wrong = {problem.field for problem in problems}
    if "version" in wrong or not document:
        document["version"] = VERSION
    for key, setting in SETTINGS.items():
        value = after.get(key)
        if value == before.get(key) and key not in wrong and setting.section not in wrong:
            continue
        if not isinstance(document.get(setting.section), MutableMapping):
            document[setting.section] = tomlkit.table()
        section = document[setting.section]
        assert isinstance(section, MutableMapping)  # noqa: S101 - made so just above
        section[setting.name] = value
    return document


def _says(content: str, settings: Settings) -> bool:
    """Whether a file of this content would be read as these settings, and is up to date."""
    try:
        mapping = tomlkit.parse(content).unwrap()
    except _NOT_TOML:
        return False
    found, problems = Settings.from_mapping(mapping)
    same = all(found.get(key) == settings.get(key) for key in SETTINGS)
    return same and not problems and mapping.get("version", VERSION) == VERSION
