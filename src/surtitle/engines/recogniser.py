"""From chunks of sound to hypotheses and finals, with a model that only knows whole utterances.

The model is asked again and again about the utterance that is going on, each
time with all of it that has been heard. When and how often is decided here, from
audio time and backlog alone, so that it can be tested without a model.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.endpointing import Begin, End, Endpointer, Rules
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice

__all__ = ["Recogniser", "Schedule", "without_loops"]

_WINDOW = 512
"""Samples that the voice detector scores at a time."""

_LOOP = re.compile(r"(\b\S+(?:\s+\S+){0,7}?)(?:[\s,.]+\1\b){3,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When the model is asked. Seconds of sound."""

    interval: float = 0.3
    """New sound between two hypotheses of an utterance."""
    first: float = 0.4
    """Sound of an utterance before it is asked about at all: less gives stray words."""
    voiced: float = 0.2
    """Speech that an utterance must hold to count as one: less is a click or a breath."""
    patience: float = 2.0
    """For each second that waits to be heard so much is added to the interval, so as to catch
    up; and the newest sound is waited for."""


@dataclass(slots=True)
class Recogniser:
    """One engine session.

    Args:
        transcribe: Text of an utterance, given as signed 16-bit samples at `SAMPLE_RATE`.
        score: Probability of speech in the next 512 such samples.
    """

    transcribe: Callable[[bytes], str]
    score: Callable[[bytes], float]
    rules: Rules = field(default_factory=Rules)
    schedule: Schedule = field(default_factory=Schedule)
    _position: int = -1
    _scored: int = 0
    _sound: bytearray = field(default_factory=bytearray)
    """From `_kept` on: what may still be needed for an utterance."""
    _kept: int = 0
    _endpointer: Endpointer | None = None
    _utterance: int = 0
    _begun: int | None = None
    _asked: int = 0
    _progress: int = -1

    def take(self, chunk: Chunk, *, backlog: float = 0.0) -> Iterator[EngineEvent]:
        """Hear a chunk; tell what follows from it. `backlog`: seconds of sound already waiting."""
        if chunk.start != self._position:
            yield from self._break_off(chunk.start)
        self._sound += chunk.pcm
        self._position = chunk.end
        yield from self._listen()
        yield from self._hypothesise(backlog)
        yield from self._advance()

    def finish(self) -> Iterator[EngineEvent]:
        """End what is going on: no more sound comes."""
        if self._endpointer is not None:
            for endpoint in self._endpointer.close():
                yield from self._at(endpoint)
            yield Progress(position=self._position)

    def _break_off(self, position: int) -> Iterator[EngineEvent]:
        """Sound is missing before `position`, or this is the very beginning."""
        yield from self.finish()
        self._sound.clear()
        self._kept = self._scored = self._position = position
        self._endpointer = Endpointer(self.rules, position=position)
        self._begun = None

    def _listen(self) -> Iterator[EngineEvent]:
        assert self._endpointer is not None  # noqa: S101 - the first chunk made it
        start, likely = self._scored, 0.0
        while self._position - self._scored >= _WINDOW:
            window = self._cut(self._scored, self._scored + _WINDOW)
            # Exact zeros are no sound at all; no model is asked what they mean.
            probability = self.score(window) if any(window) else 0.0
            likely = max(likely, probability)
            self._scored += _WINDOW
            for endpoint in self._endpointer.push(
                self._scored - _WINDOW, self._scored, probability
            ):
                yield from self._at(endpoint)
        if self._scored > start:
            yield Voice(start=start, end=self._scored, probability=likely)

    def _at(self, endpoint: Begin | End) -> Iterator[EngineEvent]:
        match endpoint:
            case Begin(start=start):
                self._utterance += 1
                self._begun = max(start, self._kept)
                self._asked = self._begun + int(
                    (self.schedule.first - self.schedule.interval) * SAMPLE_RATE
                )
            case End(end=end, voiced=voiced):
                begun = self._begun
                assert begun is not None  # noqa: S101 - an end follows a beginning
                text = self._ask(begun, end) if voiced >= self.schedule.voiced else ""
                self._begun = None
                yield Final(utterance=self._utterance, text=text, start=begun, end=end)

    def _hypothesise(self, backlog: float) -> Iterator[EngineEvent]:
        if self._begun is None:
            return
        wanted = self.schedule.interval + self.schedule.patience * backlog
        if self._position - self._asked < wanted * SAMPLE_RATE:
            return
        self._asked = self._position
        yield Partial(
            utterance=self._utterance,
            text=self._ask(self._begun, self._position),
            start=self._begun,
            end=self._position,
        )

    def _advance(self) -> Iterator[EngineEvent]:
        """Let go of sound that no utterance can reach any more."""
        assert self._endpointer is not None  # noqa: S101 - take() has seen to it
        settled = self._endpointer.settled if self._begun is None else self._begun
        settled = min(settled, self._scored)
        if settled > self._kept:
            del self._sound[: 2 * (settled - self._kept)]
            self._kept = settled
        if settled > self._progress:
            self._progress = settled
            yield Progress(position=settled)

    def _cut(self, start: int, end: int) -> bytes:
        return bytes(self._sound[2 * (start - self._kept) : 2 * (end - self._kept)])

    def _ask(self, start: int, end: int) -> str:
        return without_loops(self.transcribe(self._cut(start, end)))


def without_loops(text: str) -> str:
    """The text with a phrase that repeats four times or more said once.

    Models that lose the thread repeat themselves without end; people seldom do.
    """
    return _LOOP.sub(r"\1", text).strip()
