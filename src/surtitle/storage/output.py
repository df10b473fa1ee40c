"""A file for results that grows as they come and keeps what it has when something fails."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Self

from surtitle.core.errors import OutputError
from surtitle.storage.files import shown, why

__all__ = ["OutputFile"]

_USERS_FAULT = {
    errno.EEXIST: ("it exists already", "Choose another name or remove it."),
    errno.EISDIR: ("it is a folder", "Give the name of a file in it."),
    errno.ENOENT: ("its folder does not exist", "Make the folder first, or choose another name."),
    errno.ENOTDIR: ("its folder is no folder", "Choose another name."),
    errno.EACCES: ("you have no permission", "Choose a place where you may write."),
    errno.EPERM: ("you have no permission", "Choose a place where you may write."),
    errno.EROFS: ("nothing can be written there", "Choose a place where you may write."),
    errno.ENAMETOOLONG: ("its name is too long", "Choose a shorter name."),
    errno.ENXIO: ("nobody reads from this pipe", "Start its reader first."),
}


class OutputFile:
    """A new owner-only file, or a device or pipe that exists.

    What `write` has returned from is with the system: killing the process does not
    lose it. Also a context manager that closes.

    Args:
        path: Where to write.
        force: Take the place of a file that exists.

    Raises:
        OutputError: The path cannot be written, or exists. Exit code 2 if the user
            has to choose another.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._path = path
        self._kept = 0
        self._handle = -1
        try:
            self._handle = _open(path, force=force)
        except (OSError, ValueError) as error:
            code = error.errno if isinstance(error, OSError) else None
            fault, remedy = _USERS_FAULT.get(code or 0, ("", ""))
            if isinstance(error, ValueError):
                fault, remedy = "there can be no such name", "Choose another name."
            elif not fault:
                fault = why(error)
            raise OutputError(
                f"{shown(path) or 'A file without a name'} cannot be written: {fault}.",
                remedy=remedy,
                usage=bool(remedy),
            ) from error
        self._regular = stat.S_ISREG(os.fstat(self._handle).st_mode)

    def write(self, text: str) -> None:
        """Append and hand to the system at once.

        Raises OutputError when that fails; what was written by earlier calls is kept
        and the file ends with it.
        """
        rest = memoryview(text.encode("utf-8", "replace"))
        size = len(rest)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            self._cut()
            raise self._failure(error) from error
        self._kept += size

    def close(self) -> None:
        """Wait for the disk and close. Safe to call again. Raises OutputError."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        try:
            try:
                if self._regular:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._failure(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is not None and self._regular and not self._kept:
            # An empty file would only be in the way of the next attempt.
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _cut(self) -> None:
        """Take half-written text off the end; if that fails too, it stays."""
        if self._regular:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._kept)
                os.lseek(self._handle, 0, os.SEEK_END)

    def _failure(self, error: OSError) -> OutputError:
        kept = f"What was written before is kept: {self._kept:,} bytes."
        if not self._kept:
            kept = "Nothing was written."
        elif not self._regular:
            kept = f"{self._kept:,} bytes were written before."
        return OutputError(f"Writing {shown(self._path)} failed: {why(error)}.", remedy=kept)


def _open(path: Path, *, force: bool) -> int:
    flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        # Non-blocking while opening only: else a pipe without a reader waits forever.
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(handle, True)
        return handle
    existing = os.O_TRUNC if force else os.O_EXCL
    return os.open(path, flags | os.O_CREAT | existing, 0o600)
