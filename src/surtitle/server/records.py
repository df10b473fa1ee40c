"""What is remembered of a session, and the line that tells of it: never what was said."""

from dataclasses import dataclass, field

__all__ = ["SessionRecord", "session_line"]


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """What is remembered of a request to the stand-in: never what was said, no token."""

    number: int
    target: str
    """Path and query."""
    headers: dict[str, str] = field(repr=False)
    """Without the signature and the session token."""
    endpoint: str = ""
    """The one that it called; empty if it did not get that far."""
    status: int | None = None
    """Of the answer; None if there was none."""
    events_in: int = 0
    """Parts from the client."""
    events_out: int = 0
    """Parts to the client."""
    admitted: bool = False
    """It took one of the sessions there are."""
    ended: str = ""
    """`client`, `client lost`, `container CODE`, `limit`, `fault NAME`, `refused ERROR`,
    `stopped`; empty while it lasts."""


def session_line(
    *, number: int, seconds: float, came: int, went: int, ended: str, endpoint: str = ""
) -> str:
    """The line for the log of a server when a session is over.

    Args:
        number: Of the session, from 1 on.
        seconds: How long it lasted.
        came: Events from the client.
        went: Events to it.
        ended: Who ended it, or what.
        endpoint: What it called, where there are several.
    """
    name = f"Session {number} at {endpoint}" if endpoint else f"Session {number}"
    return f"{name}: {seconds:.1f} s, {came} events in, {went} out, ended: {ended}"
