"""What is wrong with a file, in sentences for the person who named it."""

import os
from pathlib import Path

from surtitle.core.errors import MediaError

__all__ = ["cannot_open", "no_sound", "not_media", "read_failed", "seconds_in_words", "shown"]

_CONVERT = "Convert it to WAV, FLAC, MP3 or MP4 first, for example with ffmpeg."


def shown(path: Path) -> str:
    """The path as it can be printed anywhere: whatever cannot be is a replacement character."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def cannot_open(path: Path, error: OSError | ValueError) -> MediaError:
    """The file cannot even be opened."""
    name = shown(path)
    match error:
        case IsADirectoryError():
            return MediaError(
                f'"{name}" is a folder, not a media file.', remedy="Name a file in it.", usage=True
            )
        case PermissionError():
            return MediaError(
                f'You are not allowed to read "{name}".',
                remedy="Change its permissions, or copy it to a folder of yours.",
                usage=True,
            )
        case FileNotFoundError() | NotADirectoryError() | ValueError():
            return MediaError(
                f'There is no file "{name}".', remedy="Check the name and the folder.", usage=True
            )
        case _:
            return MediaError(
                f'"{name}" cannot be opened: {error.strerror}.',
                remedy="Check the disk or the network, and try again.",
            )


def read_failed(name: str, error: OSError) -> MediaError:
    """The world failed while reading: a disk, a network share, a pipe."""
    return MediaError(
        f'Reading "{name}" failed: {error.strerror or "the system does not say why"}.',
        remedy="Check the disk or the network, and try again.",
    )


def no_sound(path: Path, what: str) -> MediaError:
    """The file is what it should be, but there is nothing to hear; `what` says how."""
    return MediaError(
        f'"{shown(path)}" {what}.', remedy="Choose a file with sound in it.", usage=True
    )


def not_media(path: Path, what: str) -> MediaError:
    """The file holds something that cannot be decoded; `what` says how."""
    return MediaError(f'"{shown(path)}" {what}.', remedy=_CONVERT, usage=True)


def seconds_in_words(first: float, second: float) -> tuple[str, str]:
    """Both lengths, with as many decimals as it takes to tell them apart: 1 to 3."""
    for decimals in (1, 2):
        texts = f"{first:.{decimals}f} s", f"{second:.{decimals}f} s"
        if texts[0] != texts[1]:
            return texts
    return f"{first:.3f} s", f"{second:.3f} s"
