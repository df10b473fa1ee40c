"""What to do when an engine fails: wait and replay, pass over what breaks it, or give up.

The judge only knows failures and progress; it neither waits nor starts anything.
"""

from dataclasses import dataclass

from surtitle.core.errors import Decision, EngineError

__all__ = ["Again", "GiveUp", "Judge", "PassOver", "Verdict", "backoff"]

_DELAYS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
_JITTER = 0.25
_POISON = 3
"""Sessions that break at one place before the sound there is taken for the cause."""
_NEAR = 2.0
"""Seconds between two places that still are one."""


def backoff(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row; `chance` is from 0 to 1."""
    return _DELAYS[min(failures, len(_DELAYS) - 1)] * (1 + _JITTER * chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Start a new session after `delay` seconds and replay what has no settled text."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOver:
    """The same sound has broken session after session: mark it as lost and go on behind it."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Nothing but a change by the user helps; the error says which."""

    error: EngineError


type Verdict = Again | PassOver | GiveUp


class Judge:
    """Remembers the failures of one engine since it last did its work.

    Args:
        patience: Failures in a row after which to give up; None never gives up.
    """

    def __init__(self, *, patience: int | None = None) -> None:
        self._patience = patience
        self._failures = 0
        self._at_one_place = 0
        self._place = 0.0

    @property
    def failures(self) -> int:
        """How often it has failed since the last progress."""
        return self._failures

    def progress(self) -> None:
        """Text has been settled, or sound found to hold none: the engine works.

        That a session could be started proves nothing.
        """
        self._failures = 0
        self._at_one_place = 0

    def alive(self) -> None:
        """Words have come, though none is settled yet: whoever gives them can be reached."""
        self._failures = 0

    def failed(
        self, error: EngineError, *, hearing: bool, chance: float, place: float = 0.0
    ) -> Verdict:
        """Decide after a failure.

        Args:
            error: What happened.
            hearing: Whether the session had been given sound.
            chance: A random number from 0 to 1, so that many clients do not return at once.
            place: How far in the sound it had come, in seconds.
        """
        self._failures += 1
        # One that says when to come back is full, or is being restarted: not the sound's fault.
        if hearing and error.retry_after is None:
            near = abs(place - self._place) <= _NEAR
            self._at_one_place = self._at_one_place + 1 if near else 1
            self._place = place
        if error.decision is not Decision.RETRY:
            return GiveUp(error=error)
        if self._patience is not None and self._failures > self._patience:
            return GiveUp(error=error)
        delay = max(error.retry_after or 0.0, backoff(self._failures - 1, chance))
        if self._at_one_place >= _POISON:
            self._at_one_place = 0
            return PassOver(delay=delay)
        return Again(delay=delay)
