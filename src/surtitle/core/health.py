"""Frames, level, speech and engine progress in; one status out."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Look", "State", "Status"]


class Look(StrEnum):
    """The three things a reader must be able to tell apart at a glance."""

    SILENT = "silent"
    WORKING = "working"
    FAILED = "failed"


class State(StrEnum):
    """What the captioner is doing."""

    STARTING = "starting"
    LISTENING = "listening"
    """All is well; nobody has spoken yet, or not for a while."""
    WORKING = "working"
    """Speech is being captioned."""
    DELAYED = "delayed"
    """Speech is heard but its text is late."""
    RECOVERING = "recovering"
    """Something broke and is being put right; sound is kept meanwhile."""
    NO_SOUND = "no sound"
    """The device delivers nothing, or exact zeros: muted, unplugged or not permitted."""
    PAUSED = "paused"
    FAILED = "failed"
    """It needs the user; the remedy says what to do."""
    ENDED = "ended"


_LOOKS = {
    State.STARTING: Look.SILENT,
    State.LISTENING: Look.SILENT,
    State.WORKING: Look.WORKING,
    State.DELAYED: Look.WORKING,
    State.RECOVERING: Look.FAILED,
    State.NO_SOUND: Look.FAILED,
    State.PAUSED: Look.SILENT,
    State.FAILED: Look.FAILED,
    State.ENDED: Look.SILENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the captioner is, in values and in words."""

    state: State
    message: str
    """A few words for the status line, such as `Listening, no sound yet`."""
    remedy: str = ""
    """What the user can do about it; empty when nothing is wrong."""
    source: str = ""
    """What is being listened to."""
    engine: str = ""
    """What makes the text."""
    place: str = ""
    """Where the sound goes, such as `on this computer`."""
    level: float = -120.0
    """Loudness of the sound in dBFS."""
    behind: float = 0.0
    """Seconds of sound that have no text yet."""

    @property
    def look(self) -> Look:
        """Which of the three looks the window and the tray show."""
        return _LOOKS[self.state]
