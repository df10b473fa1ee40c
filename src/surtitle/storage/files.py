"""Owner-only folders and files, written whole or not at all, and set aside instead of lost."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from surtitle.core.errors import OutputError

__all__ = ["private_folder", "replace_file", "set_aside", "shown", "why"]


def shown(path: Path | str) -> str:
    """Return a path as it can be put into a sentence, whatever bytes it is made of."""
    text = os.fspath(path).encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else repr(text)[1:-1]


def why(error: OSError) -> str:
    """Say in a few words what the system said."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    return (error.strerror or type(error).__name__).lower()


def private_folder(path: Path) -> None:
    """Make sure there is a folder that can be written to; make it for its owner only.

    A folder that exists keeps the permissions its owner gave it. Raises OutputError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else "no such name is possible"
        raise OutputError(
            f"The folder {shown(path)} cannot be made: {reason}.",
            remedy="Choose another with --data-dir, or change what stands in its way.",
            usage=True,
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise OutputError(
            f"The folder {shown(path)} cannot be written to.",
            remedy="Give yourself permission, or choose another with --data-dir.",
            usage=True,
        )


def replace_file(path: Path, content: bytes) -> None:
    """Write a whole owner-only file: after a crash there is the old one or the new one.

    The folder is made if there is none; a symbolic link is followed. Raises OutputError.
    """
    try:
        path = Path(os.path.realpath(path))  # unlike resolve, never raises for a loop
        private_folder(path.parent)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - of a descriptor
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        _keep_name(path.parent)
    except OSError as error:
        raise OutputError(
            f"{shown(path)} cannot be written: {why(error)}.",
            remedy="What it held before is unchanged.",
        ) from error


def set_aside(path: Path, *, copy: bool = False) -> Path:
    """Give a damaged file another name, or with `copy` its content, and return that name.

    Raises OSError.
    """
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.damaged-{number}")
        try:
            handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        os.close(handle)
        try:
            if copy:
                aside.write_bytes(path.read_bytes())
            else:
                path.replace(aside)
        except OSError:
            aside.unlink()
            raise
        return aside


def _keep_name(folder: Path) -> None:
    """Ask the system to store the folder's list of names too, where it can."""
    with contextlib.suppress(OSError):  # Windows opens no folders, and needs none of this
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
