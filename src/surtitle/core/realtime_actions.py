"""What the client's side of a Realtime session tells its owner to do, and the limits it keeps."""

from dataclasses import dataclass

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.errors import EngineError

__all__ = ["Action", "Beat", "Fault", "Finished", "Limits", "Restarted", "Send", "Words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long to wait and how much to keep. Times in seconds, sound in samples."""

    created_within: float = 10.0
    """For session.created."""
    first_delta_within: float = 10.0
    """For the first delta of a generation, from when it is due."""
    delta_within: float = 8.0
    """For any further delta, while sound is unanswered."""
    done_within: float = 5.0
    """For done after the final commit, or after the last delta that followed it."""
    trailing: int = 3 * SAMPLE_RATE // 2
    """Silence sent after the last sound: the model's delay and a second."""
    kept: int = 30 * SAMPLE_RATE
    """Sent sound that is kept to be sent again."""
    held: int = 60 * SAMPLE_RATE
    """Sound that may wait until the server can take it."""
    context: int | None = None
    """Tokens of the server's context window, if known; one is used for every 80 ms."""
    renew_after: int | None = None
    """Sound after which a generation should end: an old one costs the server more."""
    stale: int = 3
    """Generations in a row that the server may end before they came to anything."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this text frame."""

    frame: str


@dataclass(frozen=True, slots=True)
class Words:
    """More text, verbatim, blanks included; it speaks of sound up to `position`."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Beat:
    """The server lives, and there is no more text up to `position`."""

    position: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """The server ended the generation. Text of sound from `position` on will come again."""

    position: int


@dataclass(frozen=True, slots=True)
class Finished:
    """All is heard that will be, up to `position`; `text` is that of the last generation."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Fault:
    """The session has failed; nothing more comes of it."""

    error: EngineError


type Action = Send | Words | Beat | Restarted | Finished | Fault
