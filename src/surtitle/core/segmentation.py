"""Utterances out of an endless stream of words, for services that never end one themselves.

Two clocks run side by side: the voice detector has heard the sound long before the
words of it come. So where an utterance ends is decided from the sound, and is
carried out once the words have come that far.
"""

from collections import deque
from collections.abc import Callable

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.endpointing import Begin, Endpoint, Endpointer, Rules
from surtitle.core.speech import EngineEvent, Final, Partial, Progress

__all__ = ["RULES", "Segmenter"]

RULES = Rules(
    # Words carry the time of their last sound, give or take a frame: the end lies in the
    # middle of a pause, so that each falls on its own side.
    hangover=0.4,
    pauses=((0.0, 0.9), (4.0, 0.7), (10.0, 0.5), (18.0, 0.3)),
    longest=22.0,
)
"""For services to which long utterances cost nothing."""

_SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff1f", "\uff01", "\u061f", "\u0964")
_CLOSERS = "\"'\u00bb\u201d\u2019)]"
_SENTENCE = 3.0
"""Seconds from which on an utterance ends with a sentence."""
_SENTENCE_PAUSE = 0.25
"""Seconds of silence that must follow the sentence."""
_NEAR = 0.5
"""Seconds that this silence may begin before or after where the last word lies."""
_QUIET = 1.5
"""Seconds without a word that end an utterance in which the voice detector heard no voice."""
_SILENCES = 64
"""Stretches of silence that are remembered; the words are never so far behind."""
_PROGRESS = 0.2
"""Seconds between two tellings of how far everything is done."""


class Segmenter:
    """One engine session.

    Args:
        position: First sample of the session.
        rules: Where utterances end.
        clean: Applied to the text of an utterance before anybody sees it.
    """

    def __init__(
        self,
        *,
        position: int,
        rules: Rules = RULES,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._rules = rules
        self._clean = clean
        self._endpointer = Endpointer(rules, position=position)
        self._ends: deque[int] = deque()
        """Where the sound says that utterances end; the words have not come so far."""
        self._begins: deque[int] = deque()
        self._silences: deque[tuple[int, int]] = deque(maxlen=_SILENCES)
        """Stretches without a voice, long enough for the end of a sentence."""
        self._silent_since = self._voiced_until = position
        self._scored = position
        self._window = 0
        """Samples that are scored at a time."""
        self._number = 1
        self._pieces: list[tuple[str, int]] = []
        """Text of the utterance that is going on, with its place in the sound."""
        self._told = ""
        self._cleaned = False
        self._start = self._position = self._progress = position
        self._again = -1
        """Text of the sound before this position has its finals; if it comes again, it is old."""
        self._retold = -1
        """Up to here words may come again that belong to what goes on."""

    @property
    def settled(self) -> int:
        """Everything before this position has its final, or needs none."""
        if self._going_on:
            return min(self._start, self._position)
        return max(self._start, min(self._position, self._endpointer.settled, *self._begins))

    @property
    def looping(self) -> bool:
        """Whether the text of the utterance that is going on had to be cleaned."""
        return bool(self._pieces) and self._cleaned

    @property
    def waiting(self) -> bool:
        """Whether an utterance has ended whose words may not all have come."""
        return bool(self._ends)

    @property
    def pausing(self) -> bool:
        """Whether nobody speaks at the moment, by the newest sound."""
        return self._scored - self._voiced_until >= self._rules.hangover * SAMPLE_RATE

    def voice(self, start: int, end: int, probability: float) -> None:
        """Hear how likely it is that somebody speaks from `start` to `end`."""
        self._scored = end
        self._window = end - start
        if probability >= self._rules.silence:
            if start - self._silent_since >= _SENTENCE_PAUSE * SAMPLE_RATE:
                self._silences.append((self._silent_since, start))
            self._silent_since = end
            self._voiced_until = end
        for endpoint in self._endpointer.push(start, end, probability):
            self._note(endpoint)

    def hole(self, position: int) -> None:
        """Sound is missing up to `position`: nothing goes on across it."""
        # What is too short to be scored lies before the hole and may hold the last word.
        self._ends.append(min(position, self._scored + self._window))
        self._endpointer = Endpointer(self._rules, position=position)
        self._silent_since = self._voiced_until = self._scored = position

    def words(self, text: str, position: int, *, exact: bool = True) -> list[EngineEvent]:
        """More text has come; it speaks of the sound before `position`.

        Unless that is `exact`, more text of sound before it may follow: then nothing
        ends before a `beat` says so.
        """
        if exact and position <= self._again:
            return []
        events = self._pass(position - 1) if exact else []
        if not self._going_on:
            self._open(position)
        self._pieces.append((text, position))
        if exact:
            self._position = max(self._position, position)
        events += self._partial()
        return events + self._advance()

    def beat(self, position: int) -> list[EngineEvent]:
        """No more text comes for the sound before `position`."""
        events = self._pass(position)
        self._position = max(self._position, position)
        if self._going_on and not self._begins and not self._ends:
            # No voice tells where it ends.
            last = max([self._retold, *(place for _, place in self._pieces)])
            quiet, length = (position - since for since in (last, self._start))
            if quiet >= _QUIET * SAMPLE_RATE or length >= self._rules.longest * SAMPLE_RATE:
                events += self._final(position)
        return events + self._advance()

    def restarted(self, position: int) -> None:
        """Everything from `position` on is told once more.

        What had been told of the utterance that is going on stays with it: its final comes,
        whether or not the words come again.
        """
        self._again = self._start
        self._retold = max([self._retold, *(place for _, place in self._pieces)])
        self._pieces = [piece for piece in self._pieces if piece[1] <= position]
        self._position = position

    def finished(self, position: int) -> list[EngineEvent]:
        """No more sound and no more text comes."""
        events = self._pass(position)
        if self._going_on:
            events += self._final(position)
        return [*events, Progress(position=position)]

    @property
    def _going_on(self) -> bool:
        """Whether an utterance has been told of that has no final yet."""
        return bool(self._pieces or self._told)

    def _note(self, endpoint: Endpoint) -> None:
        if isinstance(endpoint, Begin):
            self._begins.append(endpoint.start)
        else:
            self._ends.append(endpoint.end)

    def _pass(self, position: int) -> list[EngineEvent]:
        """Carry out the ends that the words have come to."""
        events: list[EngineEvent] = []
        while (end := self._next_end(position)) is not None:
            if self._going_on:
                events += self._final(end)
            while self._begins and self._begins[0] < end:
                self._begins.popleft()
        return events

    def _next_end(self, position: int) -> int | None:
        sentence = self._sentence_end(position)
        if self._ends and self._ends[0] <= position:
            if sentence is not None and sentence < self._ends[0]:
                return sentence
            return self._ends.popleft()
        return sentence

    def _sentence_end(self, position: int) -> int | None:
        """Where in a silence a sentence ended, up to `position`."""
        if not self._pieces:
            return None
        said, last = self._pieces[-1]
        if last - self._start < _SENTENCE * SAMPLE_RATE or not _ends_sentence(said):
            return None
        near = _NEAR * SAMPLE_RATE
        while self._silences and self._silences[0][1] < last - near:
            self._silences.popleft()
        silences = [*self._silences]
        if self._scored - self._silent_since >= _SENTENCE_PAUSE * SAMPLE_RATE:
            silences.append((self._silent_since, self._scored))
        for begin, end in silences:
            if abs(begin - last) <= near and last <= end:
                middle = min((begin + end) // 2, begin + int(self._rules.hangover * SAMPLE_RATE))
                cut = max(last, middle)
                return cut if cut <= position else None
        return None

    def _open(self, position: int) -> None:
        voiced = bool(self._begins) and self._begins[0] <= position
        begin = self._begins[0] if voiced else position - SAMPLE_RATE
        # Nothing begins in sound that is done with.
        self._start = max(self._start, self._progress, begin)

    def _partial(self) -> list[EngineEvent]:
        text = self._text()
        if not text or text == self._told:
            return []
        self._told = text
        return [
            Partial(
                utterance=self._number,
                text=text,
                stable_until=len(text),
                start=self._start,
                end=max(self._position, self._pieces[-1][1]),
            )
        ]

    def _final(self, end: int) -> list[EngineEvent]:
        # Whoever never pauses is cut some way back: the words that came since belong to it.
        known = (place for _, place in self._pieces if place <= self._position)
        end = max(end, self._start, *known)
        final = Final(utterance=self._number, text=self._text(), start=self._start, end=end)
        self._number += 1
        self._pieces = []
        self._told = ""
        self._start = final.end
        self._position = max(self._position, final.end)
        return [final]

    def _text(self) -> str:
        said = "".join(piece for piece, _ in self._pieces).strip()
        text = self._clean(said)
        self._cleaned = text != said
        return text

    def _advance(self) -> list[EngineEvent]:
        settled = self.settled
        if settled - self._progress < _PROGRESS * SAMPLE_RATE:
            return []
        self._progress = settled
        return [Progress(position=settled)]


def _ends_sentence(text: str) -> bool:
    return text.rstrip().rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)
