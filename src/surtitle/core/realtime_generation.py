"""One generation of a Realtime session: what was sent, what came back, where that lies.

Where a server answers every 80 ms of sound with one delta, counting them tells how
far it has heard. Whether it does so is measured, never assumed. Its numbers
are those of Voxtral with a delay of 480 ms.
"""

from collections import deque
from dataclasses import dataclass

from surtitle.core.audio import CHUNK_SAMPLES

__all__ = [
    "PROMPT_TOKENS",
    "ContextWindow",
    "DeltaClock",
    "Generation",
    "due_deltas",
    "total_deltas",
]

PROMPT_TOKENS = 39
"""Tokens of the context that are used before the first delta."""
_FIRST = 9_000
"""Samples that the first delta needs."""
_CLOSING = 12_760
"""Samples of silence that the server adds at the end, less the first frame's surplus."""
_CLOSING_TOKENS = 17 + 2
"""Tokens that the server itself needs for the end of a generation, and some to spare."""
_LEAST_CONTEXT = 128
"""Tokens; a server that ends a generation earlier has not come to its limit."""
_PROOF = 25
"""Deltas that must have come as a clock would send them, before it is trusted."""
_SLACK = 3
"""Deltas by which a clock may differ: another delay, a frame on its way."""


def due_deltas(samples: int) -> int:
    """Deltas that so much sound gives while more may come."""
    return 1 + (samples - _FIRST) // CHUNK_SAMPLES if samples >= _FIRST else 0


def total_deltas(samples: int) -> int:
    """Deltas that so much sound gives in all, once it has ended; none for no sound."""
    return 1 + (samples + _CLOSING) // CHUNK_SAMPLES if samples > 0 else 0


@dataclass(slots=True)
class _Span:
    """Sound without a gap: sample `offset` of the generation is at position `start`."""

    offset: int
    start: int
    samples: int


class Generation:
    """Counts what goes out and what comes back between a commit and its done."""

    def __init__(self) -> None:
        self.samples = 0
        """Sent, silence at the end included."""
        self.deltas = 0
        self.reached = 0
        """Samples whose text has come, if the deltas are a clock."""
        self.unanswered = 0
        """Samples sent since the last delta."""
        self.committed = False
        self.closed = False
        """The end has been told to the server."""
        self.first_due: float | None = None
        """Since when, in seconds, a first delta is due."""
        self.behind_since: float | None = None
        """Since when deltas have been missing."""
        self.last_sign = 0.0
        """When the last delta came, or the last commit went out."""
        self._text: list[str] = []
        self._spans: deque[_Span] = deque()

    @property
    def text(self) -> str:
        """All text that has come."""
        return "".join(self._text)

    @property
    def due(self) -> int:
        """Deltas that a clock would have sent at most."""
        return total_deltas(self.samples) if self.closed else due_deltas(self.samples)

    @property
    def tokens(self) -> int:
        """Place in the context window that this generation has come to, or soon will."""
        return PROMPT_TOKENS + max(self.deltas, self.due)

    @property
    def proven(self) -> bool:
        """Long enough to show how a server behaves."""
        return self.deltas >= _PROOF

    def sent(self, start: int, samples: int) -> None:
        """Note that the sound from position `start` went out."""
        last = self._spans[-1] if self._spans else None
        if last is not None and last.start + last.samples == start:
            last.samples += samples
        else:
            self._spans.append(_Span(offset=self.samples, start=start, samples=samples))
        self.padded(samples)

    def padded(self, samples: int) -> None:
        """Note that silence went out that is nowhere in the sound."""
        self.samples += samples
        self.unanswered += samples

    def told(self, text: str, *, end: int | None) -> None:
        """Note a delta; `end` is where it lies in the generation, if the server says so."""
        self.deltas += 1
        self.unanswered = 0
        reached = self.deltas * CHUNK_SAMPLES if end is None else end
        self.reached = max(self.reached, min(reached, self.samples))
        if text:
            self._text.append(text)

    def missing(self, text: str) -> str:
        """What a done's text has more than the deltas had; they may differ by blanks before."""
        have, whole = self.text.lstrip(), text.lstrip()
        rest = whole[len(have) :] if whole.startswith(have) else ""
        return rest if rest.strip() else ""

    def place(self) -> int | None:
        """Position in the sound up to which the text has come; None if none was sent."""
        while len(self._spans) > 1 and self._spans[1].offset < self.reached:
            self._spans.popleft()
        if not self._spans:
            return None
        span = self._spans[0]
        return span.start + min(max(self.reached - span.offset, 0), span.samples)

    def complete(self, counted: int) -> bool:
        """Whether `counted` tokens, or the deltas, are all that the sound must give."""
        return max(self.deltas, counted) >= total_deltas(self.samples) - _SLACK


class DeltaClock:
    """Whether the deltas of a server count the sound: measured over all its generations."""

    def __init__(self) -> None:
        self._exact = False
        self._kept_time = False
        self._wrong = False

    @property
    def counted(self) -> bool:
        """Whether the deltas tell how far the server has heard."""
        return self._exact or (self._kept_time and not self._wrong)

    def delta(self, generation: Generation, *, exact: bool) -> None:
        """Judge by a delta that `generation` has noted; `exact` if it carried its place."""
        self._exact = self._exact or exact
        ahead = generation.deltas - generation.due
        if ahead > _SLACK:
            self._wrong = True
        elif generation.proven and ahead >= -_SLACK:
            self._kept_time = True


class ContextWindow:
    """How much of it a generation may use.

    Args:
        tokens: Its size, if known.
        reserve: Samples that may still have to be sent when the end is seen coming.
    """

    def __init__(self, tokens: int | None, *, reserve: int) -> None:
        self._tokens = tokens
        self._reserve = reserve // CHUNK_SAMPLES + _CLOSING_TOKENS

    def ended_at(self, tokens: int) -> bool:
        """Learn from a generation that the server ended; False if that taught nothing."""
        if tokens < _LEAST_CONTEXT:
            return False
        self._tokens = min(self._tokens or tokens, tokens)
        return True

    def used(self, share: float, *, tokens: int, spare: int = 0) -> bool:
        """Whether so much of it is used, or too little is left to end in order.

        Args:
            share: Of the whole window.
            tokens: Those that are used.
            spare: Tokens that are to be left besides, as long as there are as many again.
        """
        if self._tokens is None or self._tokens < _LEAST_CONTEXT:
            return False
        room = self._tokens - self._reserve
        return tokens >= min(share * self._tokens, max(room - spare, room / 2))
