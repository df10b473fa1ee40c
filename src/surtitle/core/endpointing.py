"""Where an utterance begins and ends, from how likely speech is at each moment.

A pause ends an utterance. How long a pause must be depends on how long the
utterance already is: a short one waits for the speaker to go on, because the
recogniser is better with more context; a long one takes the next chance, because
recognition slows down with length. One that never pauses is cut where speech was
least likely.
"""

from collections import deque
from dataclasses import dataclass

from surtitle.core.audio import SAMPLE_RATE

__all__ = ["Begin", "End", "Endpoint", "Endpointer", "Rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """An utterance begins at sample `start`, which may be some way back."""

    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The utterance ends at sample `end`, which may be some way back."""

    end: int
    voiced: float
    """Seconds of it in which speech was likely."""
    quiet: int
    """From this sample to where the end was noticed nobody spoke: sound that reaches at least
    so far holds every word of it. Where nobody paused it is where the end was noticed."""


type Endpoint = Begin | End


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Thresholds are probabilities, times are seconds."""

    speech: float = 0.5
    """From here on somebody speaks."""
    silence: float = 0.15
    """Below this nobody speaks; in between things stay as they were. Low, because words that
    noise or other voices half cover are still words."""
    onset: float = 0.09
    """So much speech opens an utterance; a click does not."""
    pre_roll: float = 0.5
    """Sound kept from before the onset, for soft beginnings."""
    hangover: float = 0.3
    """Sound kept after the last speech."""
    pauses: tuple[tuple[float, float], ...] = (
        (0.0, 1.0),
        (3.0, 1.0),
        (6.0, 0.6),
        (10.0, 0.4),
        (14.0, 0.25),
        (17.0, 0.16),
    )
    """(utterance length, pause that ends it): straight lines between these points."""
    longest: float = 18.0
    """At this length it is cut, pause or not."""
    search: float = 4.0
    """How far back the cut may be."""

    def pause(self, length: float) -> float:
        """Seconds of pause that end an utterance of `length` seconds."""
        x0, y0 = self.pauses[0]
        for x1, y1 in self.pauses[1:]:
            if length < x1:
                return y0 + (y1 - y0) * (length - x0) / (x1 - x0)
            x0, y0 = x1, y1
        return y0


class Endpointer:
    """Is told the probability of speech window by window; answers with endpoints.

    Positions are samples at `SAMPLE_RATE`. Windows come in order and touch each
    other; after a hole in the sound call `close` and make a new one.
    """

    def __init__(self, rules: Rules, *, position: int = 0) -> None:
        self._rules = rules
        self._floor = position
        """No utterance may begin before this."""
        self._position = position
        self._start: int | None = None
        """Of the open utterance."""
        self._voiced_until = -1
        self._voiced = 0
        """Samples of speech in the open utterance, or in the onset under way."""
        self._onset: int | None = None
        self._recent: deque[tuple[float, int, int]] = deque()
        """(probability, middle, samples of speech) of the windows a forced cut may choose from."""

    @property
    def settled(self) -> int:
        """Nothing before this position can become part of a later utterance."""
        if self._start is not None:
            return self._start
        back = int(self._rules.pre_roll * SAMPLE_RATE)
        onset = self._position if self._onset is None else self._onset
        return max(self._floor, onset - back)

    def push(self, start: int, end: int, probability: float) -> list[Endpoint]:
        """Hear of the window from `start` to `end`."""
        self._position = end
        self._track(start, end, probability)
        if self._start is None:
            return self._opened()
        return self._ended()

    def close(self, end: int) -> list[Endpoint]:
        """End what is open: the sound stops at sample `end`, less than a window further on."""
        if self._start is None:
            return []
        self._position = end
        return [self._end(end, quiet=self._voiced_until)]

    def _track(self, start: int, end: int, probability: float) -> None:
        rules = self._rules
        voiced = probability >= rules.speech or (
            probability >= rules.silence and self._voiced_until == start
        )
        if voiced:
            if self._onset is None and self._start is None:
                self._onset = start
            self._voiced += end - start
            self._voiced_until = end
        elif self._start is None:
            self._onset = None
            self._voiced = 0
        self._recent.append((probability, (start + end) // 2, (end - start) * voiced))
        while self._recent[0][1] < end - rules.search * SAMPLE_RATE:
            self._recent.popleft()

    def _opened(self) -> list[Endpoint]:
        rules = self._rules
        if self._onset is None or self._voiced < rules.onset * SAMPLE_RATE:
            return []
        self._start = max(self._floor, self._onset - int(rules.pre_roll * SAMPLE_RATE))
        return [Begin(start=self._start)]

    def _ended(self) -> list[Endpoint]:
        assert self._start is not None  # noqa: S101 - the only caller asked first
        rules = self._rules
        length = (self._voiced_until - self._start) / SAMPLE_RATE
        pause = (self._position - self._voiced_until) / SAMPLE_RATE
        if pause >= rules.pause(length):
            end = min(self._position, self._voiced_until + int(rules.hangover * SAMPLE_RATE))
            return [self._end(end, quiet=self._voiced_until)]
        if (self._position - self._start) / SAMPLE_RATE < rules.longest:
            return []
        half = self._start + int(rules.longest / 2 * SAMPLE_RATE)
        cut = min((p, -middle) for p, middle, _ in self._recent if middle > half)[1] * -1
        behind = sum(voiced for _, middle, voiced in self._recent if middle > cut)
        self._voiced -= behind
        ended = self._end(cut, quiet=self._position)
        # Nobody paused, so the next utterance begins where this one was cut.
        self._start = cut
        self._voiced = behind
        self._voiced_until = max(self._voiced_until, cut)
        return [ended, Begin(start=cut)]

    def _end(self, end: int, *, quiet: int) -> End:
        voiced = self._voiced / SAMPLE_RATE
        self._floor = end
        self._start = None
        self._onset = None
        self._voiced = 0
        return End(end=end, voiced=voiced, quiet=quiet)
