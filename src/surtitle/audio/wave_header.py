"""What a WAV file's header promises, which is not always what follows.

FFmpeg reads around a wrong length without a word; to say what is missing, the
promise has to be known.
"""

from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["WaveHeader", "read_wave_header"]

_UNKNOWN = 0xFFFFFFFF
_CHUNKS = 64
"""Chunks looked at before the sound; more than any program writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveHeader:
    """How much sound a header speaks of."""

    byte_rate: int
    """Bytes of sound for each second."""
    promised: int
    """Bytes of sound there should be."""
    present: int
    """Bytes there are, at most."""

    @property
    def seconds(self) -> float:
        """How long the sound should be."""
        return self.promised / self.byte_rate


def read_wave_header(file: BinaryIO) -> WaveHeader | None:
    """Read the header of a RIFF or RF64 WAV file; `file` is left anywhere.

    Returns:
        The promise, or None where there is none: it is no WAV file, or was being
        written as a stream, with its length left at 0 or at the largest value.

    Raises:
        OSError: If the file cannot be read.
    """
    size = file.seek(0, 2)
    file.seek(0)
    start = file.read(12)
    if start[:4] not in {b"RIFF", b"RF64"} or start[8:] != b"WAVE":
        return None
    byte_rate = 0
    long_length = _UNKNOWN
    for _ in range(_CHUNKS):
        head = file.read(8)
        if len(head) < 8:  # noqa: PLR2004 — four letters and a length
            return None
        kind, length = head[:4], int.from_bytes(head[4:], "little")
        if kind == b"data":
            promised = long_length if length == _UNKNOWN else length
            if not byte_rate or promised in {0, _UNKNOWN}:
                return None
            present = min(promised, size - file.tell())
            return WaveHeader(byte_rate=byte_rate, promised=promised, present=present)
        following = file.tell() + length + length % 2
        if kind == b"fmt ":
            byte_rate = int.from_bytes(file.read(12)[8:], "little")
        elif kind == b"ds64":
            long_length = int.from_bytes(file.read(16)[8:], "little")
        file.seek(following)
    return None
