"""Frames, level, speech and engine progress in; one status out."""

from dataclasses import dataclass
from enum import StrEnum

from surtitle.core.errors import SurtitleError

__all__ = ["Health", "Look", "State", "Status"]


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
    heard: float = 0.0
    """Seconds of sound that the engine has heard, counted from where captioning began."""
    lost: float = 0.0
    """Seconds of sound that have no text and get none; each has its mark."""
    breaks: int = 0
    """How often an engine session has broken and another one went on."""

    @property
    def look(self) -> Look:
        """Which of the three looks the window and the tray show."""
        return _LOOKS[self.state]


_NO_FRAMES = 2.0
"""Seconds without a single frame from a device before it counts as dead."""
_ALL_ZERO = 2.0
"""Seconds of exact zeros before a microphone counts as muted; a real one always hisses."""
_SPEAKING = 0.5
"""Probability from which on somebody speaks."""
_RECENT = 4.0
"""Seconds for which speech or text still counts as going on: pauses are no silence."""
_TOGETHER = 1.0
"""Seconds between two scores of speech up to which it was one stretch of speech."""
_LATE = 4.0
"""Seconds of speech without text, or of sound not heard yet, that count as a delay."""


class Health:
    """Watches the captioner; all times are seconds on one monotonic clock.

    Args:
        now: When listening began.
        source: What is being listened to.
        engine: What makes the text.
        place: Where the sound goes.
        live: Whether sound must keep coming, as from a device; a file is merely read.
        microphone: Whether exact zeros mean that something is wrong. When nothing is
            played, a computer's own sound is exactly zero.
    """

    def __init__(
        self,
        now: float,
        *,
        source: str,
        engine: str,
        place: str,
        live: bool = True,
        microphone: bool = False,
    ) -> None:
        self.source = source
        self._engine = engine
        self._place = place
        self._live = live
        self._microphone = microphone
        self._began = now
        self._framed: float | None = None
        self._nonzero: float | None = None
        self._spoken: float | None = None
        self._unanswered = 0.0
        """Seconds of speech since words last appeared."""
        self._text: float | None = None
        self._level = -120.0
        self._behind = 0.0
        self._heard = 0.0
        self._lost = 0.0
        self._breaks = 0
        self._started = False
        self._trouble: SurtitleError | None = None
        self._failure: SurtitleError | None = None
        self._ended = False

    def frames(self, now: float, *, level: float) -> None:
        """Sound has arrived, this loud (dBFS)."""
        if self._framed is None:
            self._nonzero = now
        self._framed = now
        self._level = level
        if level > -120:  # noqa: PLR2004 - the level of exact zeros
            self._nonzero = now

    def ready(self) -> None:
        """An engine session is there to hear."""
        self._started = True

    def voice(self, now: float, probability: float) -> None:
        """The voice detector has scored some sound."""
        if probability >= _SPEAKING:
            if self._spoken is not None and now - self._spoken <= _TOGETHER:
                self._unanswered += now - self._spoken
            self._spoken = now

    def text(self, now: float) -> None:
        """Words have appeared."""
        self._text = now
        self._unanswered = 0.0
        self._trouble = None

    def progress(self) -> None:
        """The engine has done some sound: whatever was wrong is over."""
        self._trouble = None

    def behind(self, seconds: float, *, heard: float = 0.0, lost: float = 0.0) -> None:
        """So much sound has not been heard by the engine yet, so much has, and so much is lost."""
        self._behind = seconds
        self._heard = heard
        self._lost = lost

    def served(self, *, engine: str, place: str) -> None:
        """From now on this engine makes the text."""
        self._engine = engine
        self._place = place

    def broken(self, error: SurtitleError) -> None:
        """Something failed and is being put right."""
        self._trouble = error
        self._breaks += 1

    def failed(self, error: SurtitleError) -> None:
        """Something failed for good."""
        self._failure = error

    def ended(self) -> None:
        """The sound has ended, as it should."""
        self._ended = True

    def status(self, now: float) -> Status:
        """How things are now."""
        state, message, remedy = self._judge(now)
        return Status(
            state=state,
            message=message,
            remedy=remedy,
            source=self.source,
            engine=self._engine,
            place=self._place,
            level=self._level,
            behind=self._behind,
            heard=self._heard,
            lost=self._lost,
            breaks=self._breaks,
        )

    def _judge(self, now: float) -> tuple[State, str, str]:
        if (failure := self._failure) is not None:
            return State.FAILED, failure.message, failure.remedy
        if self._ended:
            return State.ENDED, "Ended", ""
        if (trouble := self._trouble) is not None:
            lost = f"{max(1.0, self._lost):.0f} s are lost" if self._lost else "nothing is lost"
            message = f"{trouble.message} Trying again; {lost}, {self._behind:.0f} s behind."
            return State.RECOVERING, message, trouble.remedy
        return self._silence(now) or self._speech(now)

    def _silence(self, now: float) -> tuple[State, str, str] | None:
        """What is wrong with the sound, if anything."""
        if not self._live:
            return None
        last = self._began if self._framed is None else self._framed
        if now - last >= _NO_FRAMES:
            return (
                State.NO_SOUND,
                f"No sound arrives from {self.source}.",
                "Check that it is connected and switched on, or choose another source.",
            )
        if self._microphone and self._nonzero is not None and now - self._nonzero >= _ALL_ZERO:
            return (
                State.NO_SOUND,
                f"{self.source} is muted, or Surtitle may not use it.",
                "Unmute it, or allow the use of the microphone in the system's settings.",
            )
        return None

    def _speech(self, now: float) -> tuple[State, str, str]:
        if not self._started:
            return State.STARTING, "Starting; what is said is kept.", ""
        spoken = self._spoken is not None and now - self._spoken <= _RECENT
        texted = self._text is not None and now - self._text <= _RECENT
        if self._live and self._behind > _LATE:
            return State.DELAYED, f"{self._behind:.0f} s behind, catching up.", ""
        if spoken and self._unanswered > _LATE:
            return State.DELAYED, "Speech is heard, but no words come out of it.", ""
        if spoken or texted:
            return State.WORKING, "Captioning", ""
        if self._text is None:
            return State.LISTENING, "Listening, no speech yet", ""
        return State.LISTENING, "Listening", ""
