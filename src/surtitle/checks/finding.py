"""What a check of the doctor finds out, and how it is put on the page."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Level", "Report", "fail", "ok", "warn"]


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """Something is missing that captions can do without."""
    FAIL = "FAIL"
    """Something must be put right first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    text: str
    """What was found, without a full stop."""
    remedy: str = ""
    """What to do, as a sentence; there is one unless all is well."""

    def __str__(self) -> str:
        line = f"{self.level:<6}{self.text}"
        return f"{line}\n      → {self.remedy}" if self.remedy else line


type Report = Callable[[Finding], None]
"""Called with each finding as soon as there is one."""


def ok(text: str) -> Finding:
    """All is well."""
    return Finding(level=Level.OK, text=text)


def warn(text: str, remedy: str) -> Finding:
    """Something is missing that captions can do without."""
    return Finding(level=Level.WARN, text=text, remedy=remedy)


def fail(text: str, remedy: str) -> Finding:
    """Something must be put right first."""
    return Finding(level=Level.FAIL, text=text, remedy=remedy)
