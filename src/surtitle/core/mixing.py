"""Many channels become one, without losing a voice that only one of them carries.

The plain mean of the channels is right for most sound, and wrong for some that
people really have: a voice in the centre of 5.1 becomes six times fainter, and
channels that are each other's inverse (a badly wired microphone) cancel to
silence. So channels that have carried nothing yet do not count, and while the
others cancel, the loudest one speaks alone.

Choices are made for windows of 20 ms that are counted from the first frame, so
they do not depend on how the sound arrives in blocks; a change is faded over a
window, so it is not heard.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mixer", "Mono", "window_frames"]

type Mono = NDArray[np.float32]
"""One channel on the scale of 16-bit samples, not yet rounded or clipped."""

_WINDOWS_PER_SECOND = 50

_AUDIBLE = 32.0**2
"""Mean square (about -60 dBFS) from which a channel carries something and a window counts."""

_CANCELLED = 0.25
"""The mean counts as cancelled below this share of the power it has when one channel sounds alone.

Unrelated channels never add up to less than one of them alone; 6 dB are left for chance.
"""

_LOUDER = 4.0
"""How many times the power of the chosen channel another one needs to take its place."""

_CALM_WINDOWS = 25
"""Half a second without cancelling before the mean is trusted again."""


def window_frames(rate: int) -> int:
    """How many frames at `rate` hertz one choice holds for: 20 ms."""
    return max(1, rate // _WINDOWS_PER_SECOND)


class Mixer:
    """Mixes interleaved frames down to one channel.

    Args:
        rate: Frames per second.
        channels: Samples per frame, at least 1.
    """

    def __init__(self, *, rate: int, channels: int) -> None:
        self._channels = channels
        self._window = window_frames(rate)
        self._pending = np.empty((0, channels), np.int16)
        self._live = np.zeros(channels, np.bool_)
        self._alone: int | None = None
        self._calm = 0
        self._weights: NDArray[np.float32] | None = None
        # From just above 0 to exactly 1, where the next window goes on.
        self._ramp = (np.arange(1, self._window + 1) / self._window).astype(np.float32)

    def push(self, samples: NDArray[np.int16]) -> Mono:
        """Mix frames, given as an array of frames by channels; up to 20 ms stay inside."""
        if self._channels == 1:
            return samples[:, 0].astype(np.float32)
        if len(self._pending):
            samples = np.concatenate((self._pending, samples))
        whole = len(samples) // self._window * self._window
        self._pending = samples[whole:].copy()
        return self._mix(samples[:whole])

    def flush(self) -> Mono:
        """Mix what is still inside; what is learnt about the channels stays."""
        rest = self._pending
        self._pending = np.empty((0, self._channels), np.int16)
        return self._mix(rest)

    def _mix(self, samples: NDArray[np.int16]) -> Mono:
        if not samples.any():  # silence teaches nothing, and idle time should cost nothing
            return np.zeros(len(samples), np.float32)
        windows = [
            self._mix_window(samples[start : start + self._window])
            for start in range(0, len(samples), self._window)
        ]
        return np.concatenate(windows) if windows else np.empty(0, np.float32)

    def _mix_window(self, window: NDArray[np.int16]) -> Mono:
        wanted = self._choose(window)
        before = wanted if self._weights is None else self._weights
        self._weights = wanted
        mixed = np.zeros(len(window), np.float32)
        # Channel by channel and in this order: sums of floats then never depend
        # on how much sound came at once.
        for channel in np.flatnonzero(wanted + before):
            column = window[:, channel].astype(np.float32)
            if before[channel] == wanted[channel]:
                mixed += column * wanted[channel]
            else:
                step = wanted[channel] - before[channel]
                mixed += column * (before[channel] + step * self._ramp[: len(window)])
        return mixed

    def _choose(self, window: NDArray[np.int16]) -> NDArray[np.float32]:
        """The weight of every channel at the end of this window."""
        wide = window.astype(np.int64)  # sums of squares stay exact
        powers = (wide * wide).sum(axis=0) / len(window)
        self._live |= powers >= _AUDIBLE
        # Until something is heard every channel counts, so that faint sound is not lost.
        counted = self._live if self._live.any() else np.ones_like(self._live)
        count = int(counted.sum())
        loudest = int(powers.argmax())
        if powers[loudest] >= _AUDIBLE:
            total = wide[:, counted].sum(axis=1)
            together = float((total * total).sum()) / len(window)  # count² times the mean's power
            self._judge(powers, loudest=loudest, cancelled=together < _CANCELLED * powers[loudest])
        weights = np.zeros(self._channels, np.float32)
        if self._alone is None:
            weights[counted] = 1.0 / count
        else:
            weights[self._alone] = 1.0
        return weights

    def _judge(self, powers: NDArray[np.float64], *, loudest: int, cancelled: bool) -> None:
        """Decide whether one channel speaks alone, slowly in one direction only."""
        if cancelled:
            self._calm = 0
            if self._alone is None:
                self._alone = loudest
        elif self._alone is not None:
            self._calm += 1
            if self._calm >= _CALM_WINDOWS:
                self._alone = None
                return
        if self._alone is not None and powers[loudest] > _LOUDER * powers[self._alone]:
            self._alone = loudest
