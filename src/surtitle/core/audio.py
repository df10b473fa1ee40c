"""Blocks from sources, chunks for engines, and the way from one to the other.

Audio time is counted in samples at `SAMPLE_RATE` since capture began. It never
stops: lost frames advance it, so that later times stay true.
"""

from dataclasses import dataclass

from surtitle.core.errors import SurtitleError

__all__ = [
    "CHUNK_SAMPLES",
    "SAMPLE_RATE",
    "Block",
    "Chunk",
    "Format",
    "Gap",
    "Lost",
    "Moved",
    "Notice",
    "Silent",
    "SourceEvent",
    "Started",
]

SAMPLE_RATE = 16_000
"""Hertz. What every engine is given."""

CHUNK_SAMPLES = 1_280
"""80 ms: one Voxtral token. What every engine is given at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a source counts its sound. Samples are always signed 16-bit, little-endian."""

    rate: int
    """Frames per second, 4,000 to 384,000."""
    channels: int
    """Samples per frame, at least 1."""


# What a source says, in order. A source first says Started; after Lost it says nothing more.


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Sound is about to come, in this format, from what `name` says."""

    format: Format
    name: str
    """What a person recognises, such as `Speakers (USB headset)` or a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some frames of sound, of any length."""

    pcm: bytes
    """Interleaved signed 16-bit little-endian samples in the source's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """This many frames (at the source's rate) are missing here, and why, in a few words."""

    frames: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The sound now comes from somewhere else."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The source is well but has delivered nothing, or only exact zeros, for so long."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the user should know that stops nothing, as a sentence."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The source has ended against our will. Nothing more comes from it."""

    error: SurtitleError


type SourceEvent = Started | Block | Gap | Moved | Silent | Notice | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Mono sound at `SAMPLE_RATE` for an engine."""

    start: int
    """Position of the first sample."""
    pcm: bytes
    """Signed 16-bit little-endian samples; `CHUNK_SAMPLES` of them, fewer only at the end."""
    level: float
    """Root mean square in dBFS, -120 for digital silence."""

    @property
    def samples(self) -> int:
        """How many samples the chunk holds."""
        return len(self.pcm) // 2

    @property
    def end(self) -> int:
        """Position one past the last sample."""
        return self.start + self.samples
