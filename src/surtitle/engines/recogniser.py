"""From chunks of sound to hypotheses and finals, with a model that only knows whole utterances.

The model is asked again and again about the utterance that is going on, each
time with all of it that has been heard. When and how often is decided here, from
audio time and backlog alone, so that it can be tested without a model.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.credibility import Credibility, is_filler, likeness, most_agreed
from surtitle.core.endpointing import Begin, End, Endpointer, Rules
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice

__all__ = ["Recogniser", "Schedule", "without_loops"]

_WINDOW = 512
"""Samples that the voice detector scores at a time."""

_LOOP = re.compile(r"(\b\S+(?:\s+\S+){0,7}?)(?:[\s,.]+\1\b){3,}", re.IGNORECASE)
_STUTTER = re.compile(r"([,;:])\1+")
"""This model does that now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When the model is asked, and how. Seconds of sound."""

    interval: float = 0.2
    """New sound between two hypotheses of an utterance."""
    long: float = 5.0
    """From here on an utterance is long: a hypothesis of it takes a good part of a second."""
    long_interval: float = 0.4
    """The interval then: two hypotheses so far apart say as much as three closer together, and
    three could not be closer together."""
    first: float = 0.4
    """Sound of an utterance before it is asked about at all: less gives stray words."""
    voiced: float = 0.2
    """Speech that an utterance must hold to count as one: less is a click or a breath."""
    patience: float = 2.0
    """For each second that waits to be heard so much is added to the interval, so as to catch
    up; and the newest sound is waited for."""
    doubt: float = 3.0
    """So much of an utterance is asked about every `doubt_interval` at the latest, backlog or
    not: whether it is speech at all shows in how its first hypotheses get on."""
    doubt_interval: float = 0.4
    tail: float = 0.25
    """Silence put behind the sound of an utterance that is going on: a word cut short by its
    end is then less often taken for another."""
    lead: float = 0.4
    """Silence put before it to see whether a hypothesis stands."""


class _Utterance:
    def __init__(self, number: int, start: int) -> None:
        self.number = number
        self.start = start
        self.asked = start
        self.questions = 0
        self.answers: list[tuple[int, str]] = []
        """(end of the sound, hypothesis) for as long as nobody has spoken since."""
        self.credibility = Credibility()


class Recogniser:
    """One engine session.

    Args:
        transcribe: Text of an utterance, given as signed 16-bit samples at `SAMPLE_RATE`.
        score: Probability of speech in the next 512 such samples.
    """

    def __init__(
        self,
        transcribe: Callable[[bytes], str],
        score: Callable[[bytes], float],
        *,
        rules: Rules | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self._transcribe = transcribe
        self._score = score
        self._rules = rules or Rules()
        self._schedule = schedule or Schedule()
        self._endpointer = Endpointer(self._rules)
        self._utterance: _Utterance | None = None
        self._utterances = 0
        self._sound = bytearray()
        """From `_kept` to `_position`: what an utterance may still need."""
        self._kept = 0
        self._scored = 0
        self._position: int | None = None
        self._progress = -1

    def take(self, chunk: Chunk, *, backlog: float = 0.0) -> Iterator[EngineEvent]:
        """Hear a chunk; tell what follows from it. `backlog`: seconds of sound already waiting."""
        if chunk.start != self._position:
            yield from self._begin_at(chunk.start)
        self._sound += chunk.pcm
        self._position = chunk.end
        yield from self._listen(chunk.end)
        if self._utterance is not None:
            yield from self._hypothesise(self._utterance, chunk.end, backlog)
        yield from self._advance()

    def finish(self) -> Iterator[EngineEvent]:
        """End what is going on: no more sound comes."""
        if self._position is None:
            return
        for endpoint in self._endpointer.close(self._position):
            yield from self._at(endpoint)
        yield Progress(position=self._position)

    def _begin_at(self, position: int) -> Iterator[EngineEvent]:
        """Sound is missing before `position`, or this is the very beginning."""
        yield from self.finish()
        self._sound.clear()
        self._kept = self._scored = position
        self._endpointer = Endpointer(self._rules, position=position)

    def _listen(self, end: int) -> Iterator[EngineEvent]:
        start, likely = self._scored, 0.0
        while end - self._scored >= _WINDOW:
            begin, self._scored = self._scored, self._scored + _WINDOW
            window = self._cut(begin, self._scored)
            # Exact zeros are no sound at all; no model is asked what they mean.
            probability = self._score(window) if any(window) else 0.0
            likely = max(likely, probability)
            for endpoint in self._endpointer.push(begin, self._scored, probability):
                yield from self._at(endpoint)
        if self._scored > start:
            yield Voice(start=start, end=self._scored, probability=likely)

    def _at(self, endpoint: Begin | End) -> Iterator[EngineEvent]:
        match endpoint:
            case Begin(start=start):
                self._utterances += 1
                self._utterance = _Utterance(self._utterances, max(start, self._kept))
            case End(end=end, voiced=voiced, quiet=quiet):
                utterance, self._utterance = self._utterance, None
                assert utterance is not None  # noqa: S101 - an end follows a beginning
                text = ""
                if voiced >= self._schedule.voiced:
                    text = self._final(utterance, end, voiced, quiet)
                yield Final(utterance=utterance.number, text=text, start=utterance.start, end=end)

    def _hypothesise(
        self, utterance: _Utterance, end: int, backlog: float
    ) -> Iterator[EngineEvent]:
        schedule = self._schedule
        heard = (end - utterance.start) / SAMPLE_RATE
        wanted = schedule.interval if heard < schedule.long else schedule.long_interval
        wanted += schedule.patience * backlog
        if not utterance.credibility.believed and heard < schedule.doubt:
            wanted = min(wanted, schedule.doubt_interval)
        if heard < schedule.first or end - utterance.asked < wanted * SAMPLE_RATE:
            return
        utterance.asked = end
        utterance.questions += 1
        doubted = not utterance.credibility.believed
        text = self._ask(
            utterance.start,
            end,
            lead=schedule.lead if doubted and utterance.questions % 2 == 0 else 0.0,
            tail=schedule.tail,
        )
        utterance.credibility.hear(text)
        utterance.answers = [*utterance.answers[1 - _ANSWERS :], (end, text)]
        if utterance.credibility.believed and not is_filler(text):
            yield Partial(utterance=utterance.number, text=text, start=utterance.start, end=end)

    def _final(self, utterance: _Utterance, end: int, voiced: float, quiet: int) -> str:
        """The final text of an utterance, or nothing if it does not stand.

        A few seconds of speech in bad sound may be badly understood, but they are no music.
        """
        text = self._ask(utterance.start, end)
        # Those that were made in the pause at the end; the newest comes first.
        others = [answer for heard, answer in reversed(utterance.answers) if heard >= quiet]
        filler = is_filler(text)
        if not text or (filler and voiced < _FILLER):
            return ""
        if utterance.credibility.believed and not filler:
            return self._best(utterance.start, end, text, others)
        again = self._ask(utterance.start, end, lead=self._schedule.lead)
        if likeness(text, again) < (_STANDS if voiced < _SPEECH else _HARDLY_STANDS):
            return ""
        if not filler:
            return self._best(utterance.start, end, text, others, again)
        late = min(end, utterance.start + _LATE)
        return text if likeness(text, self._ask(late, end)) >= _STANDS else ""

    def _best(
        self, start: int, end: int, text: str, others: list[str], again: str | None = None
    ) -> str:
        """The best of at least three answers to the same speech.

        Args:
            start: Where the utterance begins.
            end: Where it ends.
            text: The answer to just that.
            others: Answers that are there already.
            again: The answer with silence before it, if it is there.
        """
        if again is not None:
            others = [*others, again]
        if not others:
            others = [self._ask(start, end, tail=self._schedule.tail)]
        if likeness(text, others[0]) == 1:
            return text  # it is easy to understand: be done sooner
        if again is None:
            others = [*others, self._ask(start, end, lead=self._schedule.lead)]
        if len(others) == 1:
            others = [*others, self._ask(start, end, tail=self._schedule.tail)]
        return most_agreed([*others, text])

    def _advance(self) -> Iterator[EngineEvent]:
        """Let go of sound that no utterance can reach any more."""
        settled = self._endpointer.settled if self._utterance is None else self._utterance.start
        settled = min(settled, self._scored)
        if settled > self._kept:
            del self._sound[: 2 * (settled - self._kept)]
            self._kept = settled
        if settled > self._progress:
            self._progress = settled
            yield Progress(position=settled)

    def _cut(self, start: int, end: int) -> bytes:
        return bytes(self._sound[2 * (start - self._kept) : 2 * (end - self._kept)])

    def _ask(self, start: int, end: int, *, lead: float = 0.0, tail: float = 0.0) -> str:
        sound = _silence(lead) + self._cut(start, end) + _silence(tail)
        return _STUTTER.sub(r"\1", without_loops(self._transcribe(sound)))


_STANDS = 0.45
"""Likeness of a final and its repetition below which it was invented."""
_SPEECH = 2.5
"""Seconds of speech from which on an utterance is given the benefit of the doubt."""
_HARDLY_STANDS = 0.2
_FILLER = 0.35
"""Seconds of speech that even the shortest of these words takes; a breath or a knock is less."""
_ANSWERS = 8
"""Hypotheses that are remembered; in the longest pause there are no more."""
_LATE = SAMPLE_RATE // 10
"""Samples left out at the beginning for another repetition."""


def _silence(seconds: float) -> bytes:
    return bytes(2 * int(seconds * SAMPLE_RATE))


def without_loops(text: str) -> str:
    """The text with a phrase that repeats four times or more said once.

    Models that lose the thread repeat themselves without end; people seldom do.
    """
    return _LOOP.sub(r"\1", text).strip()
