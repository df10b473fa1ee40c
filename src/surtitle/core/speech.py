"""What engines say about the sound they were given.

All positions are sample positions at `surtitle.core.audio.SAMPLE_RATE`, counted
from the moment capture began.
"""

from dataclasses import dataclass

__all__ = ["EngineEvent", "Final", "Partial", "Progress", "Voice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """The engine's present hypothesis of an utterance that is still going on."""

    utterance: int
    """Number of the utterance; grows within one engine session."""
    text: str
    """The whole hypothesis, replacing earlier ones of this utterance."""
    stable_until: int = 0
    """Characters of `text` that the engine promises not to change again."""
    start: int
    """First sample of the utterance."""
    end: int
    """One past the last sample this hypothesis was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The last hypothesis of an utterance. Its text may be empty: it was no speech after all."""

    utterance: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything before `position` is done with: its text, if any, has been given in a final."""

    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How likely it is that somebody speaks in the samples from `start` to `end`."""

    start: int
    end: int
    probability: float
    """0 to 1."""


type EngineEvent = Partial | Final | Progress | Voice
