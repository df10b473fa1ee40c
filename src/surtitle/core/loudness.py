"""Lifting speech that is too faint for models made for speech of usual loudness.

Loud sound is left as it is; only what is faint is made louder, up to a bound.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surtitle.core.audio import SAMPLE_RATE

__all__ = ["Lift", "Samples", "lifted"]

type Samples = NDArray[np.float32]
"""Mono sound at `SAMPLE_RATE`, -1 to 1."""

_USUAL = 0.05
"""Root mean square of the louder parts of speech that models hear best."""
_MOST = 100.0
"""40 dB: speech at -60 dBFS still becomes speech, and the hiss of a quiet room stays below it."""
_ATTACK = 0.3
"""Share of the way to a louder window that is gone at once: a click is no speech."""
_FALL_SECONDS = 3.0
"""In so long the loudness remembered falls to half: short pauses are not made loud."""
_FIRST = 0.02
"""Loudness taken for granted at the beginning."""
_FRAME = SAMPLE_RATE * 80 // 1000
_LOUDER = 90
"""Percentile of the frames' loudness that stands for an utterance."""


class Lift:
    """Lifts a stream window by window, by what has been heard lately."""

    def __init__(self) -> None:
        self._loudness = _FIRST

    def push(self, window: Samples) -> Samples:
        """The next window, lifted."""
        loudness = _loudness(window)
        if loudness > self._loudness:
            self._loudness += _ATTACK * (loudness - self._loudness)
        else:
            self._loudness *= 0.5 ** (len(window) / SAMPLE_RATE / _FALL_SECONDS)
        return _scaled(window, max(self._loudness, loudness))


def lifted(utterance: Samples) -> Samples:
    """A whole utterance, lifted by how loud its louder parts are; exact silence does not count."""
    whole = len(utterance) // _FRAME * _FRAME
    if not whole:
        return _scaled(utterance, _loudness(utterance))
    frames = np.sqrt(np.mean(np.square(utterance[:whole].reshape(-1, _FRAME)), axis=1))
    sounding = frames[frames > 0]
    return _scaled(utterance, float(np.percentile(sounding, _LOUDER)) if len(sounding) else 0.0)


def _loudness(samples: Samples) -> float:
    return math.sqrt(float(np.mean(np.square(samples)))) if len(samples) else 0.0


def _scaled(samples: Samples, loudness: float) -> Samples:
    if not 0 < loudness < _USUAL:
        return samples
    gain = np.float32(min(_MOST, _USUAL / loudness))
    louder: Samples = np.clip(samples * gain, np.float32(-1), np.float32(1))
    return louder
