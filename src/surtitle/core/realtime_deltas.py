"""What an engine hears, told as a Realtime server tells it: one delta for every 80 ms.

A word is told once, when it is settled, in the delta of the frame in which it was
first heard or of a later one. Frames whose words are not settled yet wait, but no
longer than a client may take for the server's death.
"""

from surtitle.core.audio import CHUNK_SAMPLES
from surtitle.core.realtime_generation import due_deltas, total_deltas
from surtitle.core.realtime_messages import Delta
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.core.stability import Stability, WordStream, words_of

__all__ = ["DeltaWriter"]

_HELD_BACK = 31
"""Frames, 2.5 s, that may wait for their words: by then any word is settled."""


class DeltaWriter:
    """The deltas of one generation.

    Args:
        rules: When a word is settled.
        most: Deltas that the context window has room for; None for any number.
    """

    def __init__(self, rules: Stability, *, most: int | None = None) -> None:
        self._rules = rules
        self._most = most
        self._samples = 0
        self._heard = 0
        """Samples that the engine has heard."""
        self._clear = 0
        """Samples before which it has nothing more to say."""
        self._over = False
        self._deltas = 0
        self._text: list[str] = []
        self._waiting: list[tuple[int, str]] = []
        """Words that are settled, each with the first frame it may stand in."""
        self._utterance: int | None = None
        self._stream = WordStream(rules)
        self._told = 0
        """Words of the utterance that are settled."""
        self._first_heard: list[int] = []
        """For each of its words the end of the first hypothesis that had so many."""

    @property
    def heard(self) -> int:
        """Samples that the engine has heard."""
        return self._heard

    @property
    def deltas(self) -> int:
        """How many have been written."""
        return self._deltas

    @property
    def text(self) -> str:
        """All text of them."""
        return "".join(self._text)

    @property
    def full(self) -> bool:
        """Whether the context window has no room for another delta."""
        return self._most is not None and self._deltas >= self._most

    def sound(self, samples: int) -> None:
        """Note that the engine was given more sound."""
        self._samples += samples

    def hear(self, event: EngineEvent) -> list[Delta]:
        """Take what the engine says; gives the deltas that can be told now."""
        match event:
            case Partial(utterance=utterance, text=text, end=end):
                self._turn_to(utterance)
                missing = len(words_of(text)) - len(self._first_heard)
                self._first_heard += [end] * missing
                self._stream.hear(text, end=end, stable_until=event.stable_until)
                self._settle(end)
                self._heard = max(self._heard, end)
            case Final(utterance=utterance, text=text, end=end):
                self._turn_to(utterance)
                self._stream.finish(text)
                self._first_heard = []  # the words that are left belong to its end
                self._settle(end)
                self._heard = max(self._heard, end)
                self._clear = max(self._clear, end)
                self._utterance = None
            case Progress(position=position):
                self._heard = max(self._heard, position)
                self._clear = max(self._clear, position)
            case Voice(end=end):
                self._heard = max(self._heard, end)
        return self._write()

    def finish(self) -> list[Delta]:
        """The engine has said everything: the deltas that are left, the closing ones too."""
        self._over = True
        return self._write()

    def _turn_to(self, utterance: int) -> None:
        if self._utterance != utterance:
            self._utterance = utterance
            self._stream = WordStream(self._rules)
            self._told = 0
            self._first_heard = []

    def _settle(self, end: int) -> None:
        """Let the words wait that have been settled by a hypothesis up to sample `end`."""
        words = words_of(self._stream.settled)
        for number in range(self._told, len(words)):
            known = number < len(self._first_heard)
            place = min(self._first_heard[number] if known else end, self._samples)
            frame = max(0, -(-place // CHUNK_SAMPLES) - 1)
            if self._waiting:
                frame = max(frame, self._waiting[-1][0])
            self._waiting.append((frame, words[number] if number else f" {words[number]}"))
        self._told = max(self._told, len(words))

    def _write(self) -> list[Delta]:
        heard = min(self._heard, self._samples)
        due = total_deltas(self._samples) if self._over else due_deltas(heard)
        most = due if self._most is None else min(due, self._most)
        open_until = most if self._over else max(self._clear // CHUNK_SAMPLES, due - _HELD_BACK)
        written: list[Delta] = []
        while self._deltas < most:
            words = self._take(self._deltas)
            if not words and self._deltas >= max(open_until, self._next_frame()):
                break
            self._deltas += 1
            self._text.append(words)
            end = min(self._deltas * CHUNK_SAMPLES, self._samples)
            written.append(Delta(delta=words, end=end))
        return written

    def _take(self, frame: int) -> str:
        """The words that may stand in this frame."""
        count = sum(first <= frame for first, _ in self._waiting)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return "".join(word for _, word in taken)

    def _next_frame(self) -> int:
        return self._waiting[0][0] if self._waiting else 0
