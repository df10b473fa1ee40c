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

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mixer", "Mono", "window_frames"]

type Mono = NDArray[np.float32]
"""One channel on the scale of 16-bit samples, not yet rounded or clipped."""

type Powers = NDArray[np.float64]
"""The sum over a window of each channel times each channel."""

type Weights = tuple[float, ...]
"""How much of each channel is in the mix."""

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
        self._live = [False] * channels
        self._alone: int | None = None
        self._calm = 0
        self._weights: Weights | None = None
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
        mixed = np.zeros(len(samples), np.float32)
        if not samples.any():  # silence teaches nothing, and idle time should cost nothing
            return mixed
        weights = [self._choose(powers, frames) for powers, frames in self._powers(samples)]
        start, before = 0, weights[0] if self._weights is None else self._weights
        for wanted, windows in _runs(weights, before):
            part = slice(start, start + windows * self._window)
            self._add(mixed[part], samples[part], before, wanted)
            start, before = part.stop, wanted
        self._weights = before
        return mixed

    def _powers(self, samples: NDArray[np.int16]) -> Iterator[tuple[Powers, int]]:
        """For each window the products of all channels with each other, and its length.

        Sums of products of 16-bit samples are exact in 64-bit floats, in whatever order.
        """
        whole = len(samples) // self._window
        exact = samples.astype(np.float64)
        windows = exact[: whole * self._window].reshape(whole, self._window, self._channels)
        for products in windows.transpose(0, 2, 1) @ windows:
            yield products, self._window
        if rest := len(samples) - whole * self._window:
            yield exact[-rest:].T @ exact[-rest:], rest

    def _add(
        self, mixed: Mono, samples: NDArray[np.int16], before: Weights, wanted: Weights
    ) -> None:
        """Mix `samples` into `mixed`; if the weights change, it is a window that fades."""
        # Channel by channel and in this order: sums of floats then never depend
        # on how much sound came at once.
        for channel, (old, new) in enumerate(zip(before, wanted, strict=True)):
            if not (old or new):
                continue
            column = samples[:, channel].astype(np.float32)
            if old == new:
                mixed += column * np.float32(new)
            else:
                fade = np.float32(old) + np.float32(new - old) * self._ramp[: len(column)]
                mixed += column * fade

    def _choose(self, products: Powers, frames: int) -> Weights:
        """The weight of every channel at the end of this window."""
        powers = (products.diagonal() / frames).tolist()
        self._live = [
            live or power >= _AUDIBLE for live, power in zip(self._live, powers, strict=True)
        ]
        # Until something is heard every channel counts, so that faint sound is not lost.
        counted = self._live if any(self._live) else [True] * self._channels
        loudest = powers.index(max(powers))
        if powers[loudest] >= _AUDIBLE:
            # Times the square of their number: the power of the channels' mean.
            together = float(products[counted][:, counted].sum()) / frames
            self._judge(powers, loudest=loudest, cancelled=together < _CANCELLED * powers[loudest])
        if self._alone is not None:
            return tuple(float(channel == self._alone) for channel in range(self._channels))
        return tuple(counts / sum(counted) for counts in counted)

    def _judge(self, powers: list[float], *, loudest: int, cancelled: bool) -> None:
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


def _runs(weights: list[Weights], before: Weights) -> Iterator[tuple[Weights, int]]:
    """Put windows without a change together; one with a change stands alone."""
    count = 0
    for wanted in weights:
        if wanted == before:
            count += 1
            continue
        if count:
            yield before, count
        yield wanted, 1
        before, count = wanted, 0
    if count:
        yield before, count
