"""Engine events in; settled text and a tentative tail out."""

from collections import deque
from dataclasses import dataclass

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.speech import Final, Partial
from surtitle.core.stability import Stability, WordStream
from surtitle.core.transcript import Entry, gap_mark

__all__ = ["Captions", "Passage", "Snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One utterance, or one gap mark, as the reader sees it.

    What is read is `settled + tentative`; each brings the white space it needs.
    """

    key: int
    """Grows from passage to passage and never changes."""
    settled: str
    """Only ever grows at its end."""
    tentative: str
    """May change, shrink or vanish until it is settled."""
    start: int
    """First sample."""
    end: int
    """One past the last sample heard so far."""
    closed: bool
    """Nothing more will be added, and `tentative` is empty."""
    gap: bool = False
    """Not speech but a mark for sound that was lost between `start` and `end`."""
    source: str = ""
    """Whose sound it is, such as `Me`; empty while there is one source only."""

    @property
    def entry(self) -> Entry:
        """What a transcript keeps of it: what is settled."""
        return Entry(
            key=self.key,
            start=self.start / SAMPLE_RATE,
            end=self.end / SAMPLE_RATE,
            text="" if self.gap else self.settled,
            gap=self.gap,
            source=self.source,
            closed=self.closed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the window needs to know about the text."""

    revision: int
    """Grows with each change, so that a painter can skip what it has shown."""
    passages: tuple[Passage, ...]
    """The latest ones, oldest first. A passage with no text at all is not among them."""


class Captions:
    """Folds what an engine says into passages.

    Every event gives the passages that it changed, so that whoever keeps the
    transcript sees the same text as whoever reads the window.

    Args:
        stability: When a word is shown and when it is settled.
        keep: How many passages a snapshot holds; older ones are forgotten here.
        source: Put on every passage.
    """

    def __init__(self, stability: Stability, *, keep: int = 40, source: str = "") -> None:
        self._stability = stability
        self._source = source
        self._closed: deque[Passage] = deque(maxlen=keep)
        self._open: _Open | None = None
        self._orphan = False
        """The open passage belongs to an engine session that broke."""
        self._done = -1
        """Up to this utterance the engine session has said everything."""
        self._overhang: tuple[str, ...] = ()
        self._overhang_until = 0
        """Sound before this position may bring these words again; they were read already."""
        self._keys = 0
        self._revision = 0

    @property
    def stability(self) -> Stability:
        """The rules for utterances that begin from now on."""
        return self._stability

    @stability.setter
    def stability(self, rules: Stability) -> None:
        self._stability = rules

    @property
    def between(self) -> bool:
        """Whether the engine session is in no utterance, as far as it has come."""
        return self._open is None or self._orphan

    def apply(self, event: Partial | Final) -> list[Passage]:
        """Take what the engine says about an utterance.

        What comes again, or after the utterance's final, changes nothing.
        """
        if event.utterance <= self._done:
            return []
        changed = self._adopt(event)
        current = self._open or self._begin(event)
        self._done = event.utterance - 1
        before = (current.words.settled, current.words.tentative)
        current.end = max(current.end, event.end)
        match event:
            case Partial(text=text, end=end, stable_until=stable_until):
                current.words.hear(text, end=end, stable_until=stable_until)
                if (current.words.settled, current.words.tentative) == before:
                    return changed
                self._revision += 1
                current.seen = True
                return [*changed, current.passage(closed=False, source=self._source)]
            case Final(text=text):
                self._done = event.utterance
                current.words.finish(text)
                return [*changed, *self._close()]

    def gap(self, start: int, end: int) -> list[Passage]:
        """Mark that sound from `start` to `end` is lost."""
        changed: list[Passage] = []
        if self._open is not None and self._open.start < end:
            # Should its utterance go on behind the mark, it does not begin anew there.
            self._open.words.abandon()
            self._open.reach = max(self._open.reach, self._open.end)
            changed = self._close()
            if changed and changed[0].settled:
                # Silence before words that were read is not missing, nor told behind them.
                start = max(start, changed[0].start)
        mark = Passage(
            key=self._next_key(),
            settled=gap_mark((end - start) / SAMPLE_RATE),
            tentative="",
            start=start,
            end=end,
            closed=True,
            gap=True,
            source=self._source,
        )
        self._closed.append(mark)
        self._revision += 1
        return [*changed, mark]

    def interrupted(self) -> None:
        """The engine session broke; a new one will hear the open utterance again.

        What is shown stays until the new session's text takes its place.
        """
        self._done = -1
        if self._open is not None:
            self._orphan = True
            self._open.reach = max(self._open.reach, self._open.end)

    def ended(self) -> list[Passage]:
        """Nothing more comes: what is not settled by now is dropped."""
        if self._open is not None:
            self._open.words.abandon()
        changed = self._close()
        self._done = -1
        self._overhang = ()
        return changed

    def snapshot(self) -> Snapshot:
        """The text as it is now."""
        passages = list(self._closed)
        if self._open is not None:
            current = self._open.passage(closed=False, source=self._source)
            if current.settled or current.tentative:
                passages.append(current)
        return Snapshot(revision=self._revision, passages=tuple(passages))

    def _adopt(self, event: Partial | Final) -> list[Passage]:
        """Decide whether the open passage goes on with `event`."""
        current = self._open
        if current is None or (not self._orphan and event.utterance == current.utterance):
            return []
        orphan, self._orphan = self._orphan, False
        if orphan and event.start < current.reach:
            current.utterance = event.utterance
            return []
        current.words.abandon()
        return self._close()

    def _close(self) -> list[Passage]:
        current, self._open = self._open, None
        if current is None:
            return []
        # The new session may have ended the utterance sooner than the broken one
        # would have: what was read already must not be said again.
        self._overhang, self._overhang_until = current.words.overhang, current.reach
        self._orphan = False
        passage = current.passage(closed=True, source=self._source)
        if not passage.settled and not current.seen:
            return []  # it was no speech, and nobody has seen it
        if passage.settled:
            self._closed.append(passage)
        self._revision += 1
        return [passage]

    def _begin(self, event: Partial | Final) -> "_Open":
        said = self._overhang if event.start < self._overhang_until else ()
        words = WordStream(self._stability, already_settled=said)
        self._open = _Open(self._next_key(), words, event.utterance, event.start)
        if said:
            self._open.reach = self._overhang_until
        self._overhang = ()
        return self._open

    def _next_key(self) -> int:
        self._keys += 1
        return self._keys


class _Open:
    """The passage that is still growing."""

    def __init__(self, key: int, words: WordStream, utterance: int, start: int) -> None:
        self.key = key
        self.words = words
        self.utterance = utterance
        self.start = start
        self.end = start
        self.reach = 0
        """How far the sound has been heard already in an earlier session, if it has been."""
        self.seen = False

    def passage(self, *, closed: bool, source: str) -> Passage:
        return Passage(
            key=self.key,
            settled=self.words.settled,
            tentative="" if closed else self.words.tentative,
            start=self.start,
            end=self.end,
            closed=closed,
            source=source,
        )
