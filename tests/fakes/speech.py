"""Speech as it lies in the sound: each word with its place, so that none can be lost unseen."""

from dataclasses import dataclass

from surtitle.core.audio import SAMPLE_RATE

__all__ = ["Spoken", "Word", "numbered", "say", "seconds"]


def seconds(time: float) -> int:
    """Samples in so much sound."""
    return round(time * SAMPLE_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """From `start` to `end`, in samples."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """An utterance: words that follow each other."""

    words: tuple[Word, ...]

    @property
    def start(self) -> int:
        return self.words[0].start

    @property
    def end(self) -> int:
        """Some time after the last word, as a recogniser hears that it was the last."""
        return self.words[-1].end + seconds(0.4)

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


def say(text: str, *, at: float, each: float = 0.3) -> Spoken:
    """Speak from `at` seconds on, `each` seconds a word."""
    return Spoken(
        words=tuple(
            Word(text=word, start=seconds(at + i * each), end=seconds(at + (i + 1) * each))
            for i, word in enumerate(text.split())
        )
    )


def numbered(lengths: list[int], *, pause: float = 1.0) -> tuple[Spoken, ...]:
    """Utterances of so many words, no two alike, with pauses between."""
    at, number, result = pause, 0, []
    for length in lengths:
        text = " ".join(f"word{number + i}" for i in range(length))
        result.append(say(text, at=at))
        number += length
        at += 0.3 * length + pause
    return tuple(result)
