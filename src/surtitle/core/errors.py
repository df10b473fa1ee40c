"""Our errors: each carries the decision it forces and words for the person who reads it.

Foreign exceptions are turned into these at the edge and chained; inside,
nobody knows which library failed.
"""

from enum import StrEnum

__all__ = [
    "Decision",
    "EngineError",
    "MediaError",
    "OutputError",
    "SettingsError",
    "SourceError",
    "SurtitleError",
    "UsageError",
]


class Decision(StrEnum):
    """What whoever meets an error has to do."""

    RETRY = "retry"
    """The same thing may work again by itself."""
    RECONFIGURE = "reconfigure"
    """Somebody must change something first; the remedy says what."""
    FATAL = "fatal"
    """It cannot work here."""


class SurtitleError(Exception):
    """Anything that Surtitle itself reports.

    Args:
        message: One sentence saying what went wrong and with what. Never speech.
        remedy: One sentence saying what to do; may be empty.
        decision: What the caller should do.
        field: The setting, option or argument at fault, as the user wrote it.
        retry_after: Seconds to wait before trying again, if known.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        decision: Decision = Decision.FATAL,
        field: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.decision = decision
        self.field = field
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


class UsageError(SurtitleError):
    """The user asked for something that cannot be meant: exit code 2."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting has a value it cannot have."""


class SourceError(SurtitleError):
    """A device, a sound server or the capture of one failed."""


class MediaError(SurtitleError):
    """A media file or stream cannot be read; exit code 2 when the path itself is wrong."""

    def __init__(self, message: str, *, remedy: str = "", usage: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_code = 2 if usage else 1


class EngineError(SurtitleError):
    """A speech engine cannot start, broke, or does not answer."""


class OutputError(SurtitleError):
    """A transcript or another result cannot be written."""

    def __init__(self, message: str, *, remedy: str = "", usage: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_code = 2 if usage else 1
