"""One status for each of the three looks, and a pause."""

from surtitle.core.health import State, Status

__all__ = ["FAILED", "PAUSED", "SILENT", "WORKING"]

SILENT = Status(
    state=State.LISTENING,
    message="Listening, nobody speaks",
    source="Speakers",
    engine="Moonshine Tiny",
    place="on this computer",
)
WORKING = Status(
    state=State.WORKING,
    message="Captioning",
    source="Speakers",
    engine="Moonshine Tiny",
    place="on this computer",
)
FAILED = Status(
    state=State.NO_SOUND,
    message="No sound arrives",
    remedy="Check that the microphone is not muted.",
    source="Headset",
    engine="Moonshine Tiny",
    place="on this computer",
)
PAUSED = Status(state=State.PAUSED, message="Paused", place="on this computer")
