"""Keeps a device's audio time true: deliveries and the clock in, source events out.

Pure: no device, no clock. Two kinds of device differ. A microphone always
delivers; when it does not, something is wrong. A loopback of the computer's
own sound may deliver nothing while nothing plays; then the missing frames are
silence.
"""

from surtitle.audio.inbox import Delivery
from surtitle.core.audio import Block, Format, Gap, Lost, Silent, SourceEvent
from surtitle.core.errors import Decision, SourceError

__all__ = ["LOST_AFTER", "PATIENCE", "SILENT_AFTER", "TOLERANCE", "Timeline"]

PATIENCE = 0.4
"""Seconds without a delivery until a loopback's missing frames count as silence.

A busy computer calls back up to some 0.2 s late without losing anything; sound
put in for such a delay would split words.
"""
TOLERANCE = 0.1
"""Seconds by which audio time may differ from the clock while a loopback is silent."""
SILENT_AFTER = 2.0
"""Seconds of nothing, or of exact zeros, from a microphone until it is called silent."""
LOST_AFTER = 5.0
"""Seconds without a delivery until a microphone is given up."""

_SETTLE = 1.0
"""Seconds of deliveries after a break until the missing frames are counted.

What was only late has come in by then.
"""
_WORTH_A_GAP = 0.25
"""Seconds missing after a break that are more than jitter."""
_LONGEST_SILENCE = 1.0
"""Seconds of silence in one block."""
_SAMPLE_BYTES = 2


class Timeline:
    """One stream's time from its first delivery on.

    Args:
        layout: The stream's format.
        loopback: Whether it may deliver nothing while all is well.
        name: What a person calls it.
        start: Position of the first frame that counts.
    """

    def __init__(self, *, layout: Format, loopback: bool, name: str, start: int = 0) -> None:
        self.emitted = 0
        """Frames told so far, as blocks and as gaps."""
        self._rate = layout.rate
        self._frame_bytes = layout.channels * _SAMPLE_BYTES
        self._loopback = loopback
        self._name = name
        self._anchor: float | None = None  # loop time of frame 0
        self._filled = False  # whether silence was put in by the clock
        self._next = start  # position of the next delivery if nothing is lost
        self._recorded_end = 0.0
        self._last_call = 0.0
        self._last_sound = 0.0
        self._told_silent = 0
        self._resumed: float | None = None

    def deliver(self, delivery: Delivery) -> list[SourceEvent]:
        """Take what the device delivered; say what it means."""
        if self._anchor is None:
            frames = delivery.position - self._next + delivery.frames
            self._anchor = delivery.time - frames / self._rate
            self._last_sound = self._anchor
        elif delivery.time - self._last_call > SILENT_AFTER:
            self._resumed = delivery.time
        self._last_call = max(self._last_call, delivery.time)

        events = self._gaps(delivery)
        sound = bool(delivery.pcm.strip(b"\0"))
        if sound:
            self._last_sound = delivery.time
            self._told_silent = 0
        # Silence put in by the clock may turn out to have been sound that was late. Audio
        # time is then ahead, and gets back in step by leaving out silence, never sound.
        if sound or not self._filled or self._ahead(delivery.time) <= TOLERANCE:
            events.append(Block(pcm=delivery.pcm))
            self.emitted += delivery.frames
        if not self._filled:
            # A block can come late but never early: the earliest start that fits is the true one.
            self._anchor = min(self._anchor, delivery.time - self.emitted / self._rate)
        events += self._gap_after_break(delivery.time)
        return events

    def tick(self, now: float) -> list[SourceEvent]:
        """Say what the passing of time means. Call often, after all deliveries."""
        if self._anchor is None:
            return []
        absent = now - self._last_call
        if self._loopback:
            return self._silence(now) if absent > PATIENCE else []
        if absent >= LOST_AFTER:
            return [
                Lost(
                    error=SourceError(
                        f"{self._name} has delivered no sound for {absent:.0f} seconds.",
                        remedy="Check that it is still connected and switched on.",
                        decision=Decision.RETRY,
                    )
                )
            ]
        quiet = now - self._last_sound
        if quiet < SILENT_AFTER or int(quiet) <= self._told_silent:
            return []
        self._told_silent = int(quiet)
        return [Silent(seconds=quiet)]

    def _ahead(self, now: float) -> float:
        """Seconds by which audio time is ahead of the clock; negative when behind."""
        return self.emitted / self._rate - (now - (self._anchor or 0.0))

    def _gaps(self, delivery: Delivery) -> list[SourceEvent]:
        """Account for the frames missing before a delivery."""
        dropped = delivery.position - self._next
        self._next = delivery.position + delivery.frames
        missing = 0
        if delivery.overflow and not dropped and 0 < self._recorded_end < delivery.recorded:
            missing = round((delivery.recorded - self._recorded_end) * self._rate)
            if missing < delivery.frames // 2:  # the device's clock jitters
                missing = 0
        self._recorded_end = (
            delivery.recorded + delivery.frames / self._rate if delivery.recorded > 0 else 0.0
        )
        if dropped:
            return [self._gap(dropped, "this computer could not keep up")]
        if missing:
            return [self._gap(missing, "the device lost sound")]
        return []

    def _gap_after_break(self, now: float) -> list[SourceEvent]:
        """Count what did not come even after a microphone came back."""
        if self._loopback or self._resumed is None or now - self._resumed < _SETTLE:
            return []
        self._resumed = None
        behind = -self._ahead(now)
        if behind < _WORTH_A_GAP:
            return []
        return [self._gap(round(behind * self._rate), "the device delivered nothing")]

    def _silence(self, now: float) -> list[SourceEvent]:
        """Bring a loopback's audio time up to the clock."""
        missing = round(-self._ahead(now) * self._rate)
        longest = round(_LONGEST_SILENCE * self._rate)
        events: list[SourceEvent] = []
        while missing > 0:
            frames = min(missing, longest)
            events.append(Block(pcm=bytes(frames * self._frame_bytes)))
            self.emitted += frames
            missing -= frames
            self._filled = True
        return events

    def _gap(self, frames: int, reason: str) -> Gap:
        self.emitted += frames
        return Gap(frames=frames, reason=reason)
