"""What Voxtral makes of the sound of one generation: a delta for each 80 ms, counted exactly."""

from bisect import bisect_right

from fakes.coded_sound import Speech, place_of
from surtitle.core.realtime_messages import Done, Usage

__all__ = ["PROMPT", "Generation"]

PROMPT = 39
"""Tokens of the context that are used before the first delta."""
_FRAME = 1_280
_FIRST = 9_000
"""Samples that the first delta needs."""
_CLOSING = 12_760
"""Samples of silence that it adds at the end, less the first frame's surplus."""


class Generation:
    """From a commit to its done."""

    def __init__(self, speech: Speech) -> None:
        self.samples = 0
        self.deltas = 0
        self._speech = speech
        self._text: list[str] = []
        self._words: dict[int, list[str]] = {}
        """What stands in which delta."""
        self._first = self._next = -1
        """Of the sound without a gap that it hears now."""
        self._offset = 0

    @property
    def due(self) -> int:
        return 1 + (self.samples - _FIRST) // _FRAME if self.samples >= _FIRST else 0

    @property
    def total(self) -> int:
        return 1 + (self.samples + _CLOSING) // _FRAME

    def hear(self, pcm: bytes) -> None:
        samples = len(pcm) // 2
        start = place_of(pcm)
        if start is not None:
            if start != self._next:
                self._first, self._offset = start, self.samples
            self._next = start + samples
            ends = self._speech.ends
            for word in self._speech.words[bisect_right(ends, start) :]:
                if word.end > self._next:
                    break
                if word.start >= self._first:
                    end = self._offset + word.end - self._first
                    self._words.setdefault(-(-end // _FRAME) - 1, []).append(f" {word.text}")
        self.samples += samples

    def next(self, *, blank: bool) -> str:
        text = "".join(self._words.pop(self.deltas, []))
        self.deltas += 1
        if blank:
            return ""
        self._text.append(text)
        return text

    def done(self) -> Done:
        usage = Usage(
            prompt_tokens=PROMPT,
            total_tokens=PROMPT + self.deltas,
            completion_tokens=self.deltas,
        )
        return Done(text="".join(self._text), usage=usage)
