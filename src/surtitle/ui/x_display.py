"""Whether an X server answers. Qt ends the program without a sentence where none does."""

import re
import socket

__all__ = ["answers"]

_WITHIN = 2.0
"""Seconds that a server may take to accept a connection."""
_DISPLAY = re.compile(r"(?P<host>[^:]*):(?P<number>\d+)(?:\.\d+)?")
_FIRST_PORT = 6000


def answers(display: str) -> bool:
    """Try to connect to what `DISPLAY` names; what cannot be understood is left to Qt."""
    match = _DISPLAY.fullmatch(display)
    if match is None:
        return True
    number = int(match["number"])
    if match["host"] in {"", "unix"}:
        path = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - X11's own place
        return any(_connects(socket.AF_UNIX, address) for address in (f"\0{path}", path))
    return _connects(socket.AF_INET, (match["host"], _FIRST_PORT + number))


def _connects(family: int, address: str | tuple[str, int]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(_WITHIN)
        try:
            connection.connect(address)
        except OSError:
            return False
    return True
