from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given

from fakes.choices import Choices, made, thorough
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE
from surtitle.core.segmentation import RULES, Segmenter
from surtitle.core.speech import EngineEvent, Final, Partial, Progress

WINDOW = 512
FRAME = CHUNK_SAMPLES

type Run = tuple[float, float]
"""(probability, seconds)"""
type Said = tuple[str, float]
"""(text, seconds): a word, and where its last sound lies."""


def at(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def frame_of(seconds: float) -> int:
    """The end of the frame in which that lies."""
    return -(-at(seconds) // FRAME) * FRAME


@dataclass
class Service:
    """The sound is scored at once; its words come `lag` seconds later, frame by frame."""

    runs: list[Run]
    said: list[Said]
    lag: float = 0.6
    segmenter: Segmenter = field(default_factory=lambda: Segmenter(position=0))
    events: list[EngineEvent] = field(default_factory=list)
    scored: int = 0
    clock: int = 0

    def __post_init__(self) -> None:
        self.words: dict[int, str] = {}
        for text, seconds in self.said:
            place = frame_of(seconds)
            self.words[place] = self.words.get(place, "") + text

    def hear(self) -> None:
        """Everything that is in `runs`."""
        for probability, seconds in self.runs:
            for _ in range(round(seconds * SAMPLE_RATE / WINDOW)):
                self.segmenter.voice(self.scored, self.scored + WINDOW, probability)
                self.scored += WINDOW
                self.catch_up(self.scored - at(self.lag))

    def catch_up(self, position: int) -> None:
        while self.clock + FRAME <= position:
            self.clock += FRAME
            if text := self.words.get(self.clock):
                self.events += self.segmenter.words(text, self.clock)
            else:
                self.events += self.segmenter.beat(self.clock)

    def finish(self) -> None:
        self.catch_up(self.scored)
        self.events += self.segmenter.finished(self.scored)


def segmented(runs: list[Run], said: list[Said], *, lag: float = 0.6) -> list[EngineEvent]:
    service = Service(runs, said, lag)
    service.hear()
    service.finish()
    return service.events


def finals(events: Iterable[EngineEvent]) -> list[Final]:
    return [event for event in events if isinstance(event, Final)]


def texts(events: Iterable[EngineEvent]) -> list[str]:
    return [event.text for event in finals(events)]


def spread(text: str, begin: float, end: float) -> list[Said]:
    """The words of a text, evenly from one moment to another."""
    words = text.split()
    each = (end - begin) / len(words)
    return [(f" {word}", begin + each * (n + 1)) for n, word in enumerate(words)]


LONG = " ".join(f"w{n}" for n in range(90))


@pytest.mark.parametrize("lag", [0.0, 0.6, 3.0, 12.0])
@pytest.mark.parametrize(
    ("runs", "said", "expected"),
    [
        pytest.param([(0.0, 5)], [], [], id="silence"),
        pytest.param([(0.0, 1), (0.9, 2), (0.0, 3)], [], [], id="a voice without words"),
        pytest.param(
            [(0.0, 1), (0.9, 2), (0.0, 2), (0.9, 2), (0.0, 2)],
            [*spread("one two", 1, 3), *spread("three four", 5, 7)],
            ["one two", "three four"],
            id="a pause",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 2), (0.0, 0.6), (0.9, 2), (0.0, 2)],
            [*spread("one two", 1, 3), *spread("three four", 3.6, 5.6)],
            ["one two three four"],
            id="a breath",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 3.2), (0.0, 0.4), (0.9, 2), (0.0, 2)],
            [*spread("It is so. ", 1, 4.2), *spread("Then on", 4.6, 6.6)],
            ["It is so.", "Then on"],
            id="a sentence and a breath",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 3.2), (0.0, 0.4), (0.9, 2), (0.0, 2)],
            [*spread('He said "so."', 1, 4.2), *spread("Then on", 4.6, 6.6)],
            ['He said "so."', "Then on"],
            id="a quoted sentence and a breath",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 3.2), (0.0, 0.4), (0.9, 2), (0.0, 2)],
            [*spread("\u3053\u308c\u3067\u3059\u3002", 1, 4.2), *spread("\u6b21", 4.6, 6.6)],
            ["\u3053\u308c\u3067\u3059\u3002", "\u6b21"],
            id="a sentence of another script",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 4), (0.0, 2)],
            spread("Ask Dr. Smith or Mr. Jones about No. 7", 1, 5),
            ["Ask Dr. Smith or Mr. Jones about No. 7"],
            id="abbreviations",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 1.2), (0.0, 0.4), (0.9, 2), (0.0, 2)],
            [*spread("So. ", 1, 2.2), *spread("Then on", 2.6, 4.6)],
            ["So. Then on"],
            id="a sentence too short to stand alone",
        ),
        pytest.param(
            [(0.0, 1), (0.9, 3.2), (0.0, 0.3), (0.9, 2), (0.0, 2)],
            [*spread("He said", 1, 4.2), (" no.", 4.6), *spread("Then on", 4.8, 6.5)],
            ["He said no. Then on"],
            id="a breath before the last word is none behind it",
        ),
        pytest.param(
            [(0.0, 9)],
            [*spread("one two", 1, 2), *spread("three", 6, 6.5)],
            ["one two", "three"],
            id="words without a voice",
        ),
    ],
)
def test_where_utterances_end(
    runs: list[Run], said: list[Said], expected: list[str], lag: float
) -> None:
    assert texts(segmented(runs, said, lag=lag)) == expected


def test_a_pause_is_cut_in_its_middle() -> None:
    first, second = finals(
        segmented(
            [(0.0, 1), (0.9, 2), (0.0, 2), (0.9, 2), (0.0, 2)],
            [*spread("one two", 1, 3), *spread("three four", 5, 7)],
        )
    )
    assert first.end == pytest.approx(at(3.4), abs=FRAME)
    assert second.start == pytest.approx(at(4.5), abs=FRAME)


@pytest.mark.parametrize("off", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("other", [-2, 0, 2])
def test_words_may_come_a_little_early_or_late(off: int, other: int) -> None:
    """Each lies on its own side of the pause all the same."""
    early, late = off * FRAME / SAMPLE_RATE, other * FRAME / SAMPLE_RATE
    said = [*spread("one two", 1, 3 + early), *spread("three four", 5 + late, 7 + late)]
    runs: list[Run] = [(0.0, 1), (0.9, 2), (0.0, 2), (0.9, 2), (0.0, 3)]
    assert texts(segmented(runs, said)) == ["one two", "three four"]


def test_whoever_never_pauses_is_cut_and_no_word_is_in_two() -> None:
    said = spread(LONG, 0, 45)
    events = segmented([(0.9, 20), (0.6, 0.2), (0.9, 24.8), (0.0, 2)], said)
    assert " ".join(texts(events)) == LONG
    assert len(finals(events)) >= 3
    assert all(f.end - f.start <= at(RULES.longest) for f in finals(events))
    assert all(a.end <= b.start for a, b in pairwise(finals(events)))
    # Were it heard again from a final's end, no word of that final would come again.
    place = {text.strip(): frame_of(seconds) for text, seconds in said}
    assert all(place[word] <= f.end for f in finals(events) for word in f.text.split())


def test_whoever_never_pauses_and_is_not_taken_for_a_voice_is_cut_too() -> None:
    events = segmented([(0.1, 47.0)], spread(LONG, 0, 45))
    assert " ".join(texts(events)) == LONG
    assert all(f.end - f.start <= at(RULES.longest + 1) for f in finals(events))


@pytest.mark.parametrize("lag", [0.1, 2.0])
@pytest.mark.parametrize("voiced", [True, False])
@pytest.mark.parametrize("unscored", [0, 300])
def test_nothing_goes_on_across_a_hole(lag: float, unscored: int, *, voiced: bool) -> None:
    """Not even the last word in what is too short to be scored."""
    segmenter = Segmenter(position=0)
    service = Service([(0.9 * voiced, 1.6)], [(" one", 0.8), (" two", 1.6)], lag, segmenter)
    service.hear()
    behind = service.scored + unscored
    hole = behind + at(0.5)
    segmenter.hole(hole)
    for n in range(50):
        segmenter.voice(hole + n * WINDOW, hole + (n + 1) * WINDOW, 0.9 * voiced)
    events = service.events
    service.catch_up(service.scored - FRAME)
    if " two" not in "".join(e.text for e in events if isinstance(e, Partial)):
        events += segmenter.words(" two", behind)
    events += segmenter.words(" three", hole + FRAME)
    events += segmenter.finished(hole + 50 * WINDOW)
    assert texts(events) == ["one two", "three"]
    assert finals(events)[0].end <= hole <= finals(events)[1].end


# What the service does.


def test_a_word_grows_and_the_partial_with_it() -> None:
    segmenter = Segmenter(position=0)
    events = [
        *segmenter.words(" know", FRAME),
        *segmenter.words("ing", 2 * FRAME),
        *segmenter.words(" ", 3 * FRAME),
        *segmenter.words(" it", 4 * FRAME),
    ]
    partials = [event for event in events if isinstance(event, Partial)]
    assert [p.text for p in partials] == ["know", "knowing", "knowing  it"]
    assert all(p.stable_until == len(p.text) for p in partials)


def test_the_text_is_made_clean() -> None:
    segmenter = Segmenter(position=0, clean=lambda text: text.replace("la la la", "la"))
    segmenter.words(" la la la", FRAME)
    assert texts(segmenter.finished(2 * FRAME)) == ["la"]


def test_an_end_without_an_utterance_says_how_far_it_is() -> None:
    assert Segmenter(position=100).finished(500) == [Progress(position=500)]


def test_a_service_whose_words_have_no_place_ends_when_it_has_said_everything() -> None:
    segmenter = Segmenter(position=0)
    runs: list[Run] = [(0.0, 1), (0.9, 2), (0.0, 2)]
    Service(runs, [], 10.0, segmenter).hear()
    assert segmenter.waiting
    events = [
        *segmenter.words(" one", at(4.0), exact=False),
        *segmenter.beat(0),
        *segmenter.words(" two", at(4.5), exact=False),
        *segmenter.beat(0),
    ]
    assert finals(events) == []
    assert not [event for event in events if isinstance(event, Progress)]
    done = segmenter.beat(at(5.0))
    assert texts(done) == ["one two"]
    assert finals(done)[0].end == pytest.approx(at(3.4), abs=WINDOW)
    assert not segmenter.waiting


def test_a_service_that_turns_out_to_have_places_for_its_words() -> None:
    """What came before that has the place of the newest sound, and may not be cut off there."""
    segmenter = Segmenter(position=0)
    Service([(0.9, 0.6), (0.0, 2)], [], 10.0, segmenter).hear()
    segmenter.words(" one", at(2.0), exact=False)
    events = segmenter.words(" two", at(1.2))
    assert texts(events) == ["one"]
    assert finals(events)[0].end < at(1.2)


@pytest.mark.parametrize("again", [True, False])
def test_a_generation_that_is_told_once_more(*, again: bool) -> None:
    service = Service(
        [(0.0, 1), (0.9, 2), (0.0, 4)],
        [*spread("one two three four", 1, 3), (" five", 6.6)],
    )
    segmenter = service.segmenter
    for probability, seconds in service.runs[:2]:
        service.runs = [(probability, seconds)]
        service.hear()
    told = "".join(e.text for e in service.events[-1:] if isinstance(e, Partial | Final))
    assert not told or told == "one two"
    segmenter.restarted(segmenter.settled)
    service.clock = segmenter.settled // FRAME * FRAME
    if not again:
        service.words = {frame_of(6.6): " five"}
    service.runs = [(0.0, 4)]
    service.hear()
    service.finish()
    assert texts(service.events) == ["one two three four" if again else "", "five"]
    assert [final.utterance for final in finals(service.events)] == [1, 2]


def test_what_has_its_final_is_not_taken_again() -> None:
    service = Service(
        [(0.0, 1), (0.9, 2), (0.0, 2)], [*spread("one two", 1, 3), (" three", 4.8)], lag=0.1
    )
    service.hear()
    assert texts(service.events) == ["one two"]
    service.segmenter.restarted(at(1.2) // FRAME * FRAME)
    service.clock = at(1.2) // FRAME * FRAME
    service.finish()
    assert texts(service.events) == ["one two", "three"]


@pytest.mark.parametrize(("seconds", "pausing"), [(0.3, False), (0.5, True)])
def test_when_nobody_speaks(seconds: float, *, pausing: bool) -> None:
    service = Service([(0.9, 1), (0.0, seconds)], [])
    service.hear()
    assert service.segmenter.pausing is pausing


# Any speech, any delay.


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Stretches of sound with holes between them: what is likely speech, and what is said."""

    starts: list[int]
    """Of the stretches, in samples."""
    voices: list[list[float]]
    """For each stretch the probability of each frame."""
    words: list[list[tuple[int, str]]]
    """For each stretch the words, each with the frame that tells it; several may share one."""


def any_recording(choose: Choices) -> Recording:
    starts: list[int] = []
    voices: list[list[float]] = []
    words: list[list[tuple[int, str]]] = []
    start = choose.of((0, 7, 160_000))
    number = 0
    for _ in range(choose.between(1, 3)):
        voice: list[float] = []
        told: list[tuple[int, str]] = []
        for _ in range(choose.between(1, 5)):
            voice += [choose.of((0.0, 0.3))] * choose.between(0, 25)
            heard = choose.of((0.9, 0.9, 0.9, 0.4, 0.1))
            for _ in range(choose.between(0, 40 if choose.seldom(5) else 8)):
                voice += [heard] * choose.between(1, 8)
                if choose.seldom(6):
                    continue  # no words come of it
                number += 1
                place = max(len(voice) - 1 + choose.between(-2, 2), told[-1][0] if told else 0)
                told.append((place, f" w{number}{choose.of(('', '', ',', '.', '?'))}"))
        voice += [0.0] * choose.between(3, 20)
        starts.append(start)
        voices.append(voice)
        words.append([(max(0, place), text) for place, text in told])
        start += len(voice) * FRAME + choose.of((1, FRAME, at(2)))
    return Recording(starts=starts, voices=voices, words=words)


class Told:
    """What a segmenter has told, and that it kept its promises."""

    def __init__(self, segmenter: Segmenter) -> None:
        self.segmenter = segmenter
        self.finals: list[Final] = []
        self.progress = -1
        self.open: Partial | None = None
        self.waiting: list[tuple[int, str]] = []
        """Words that are in no final, each with its place."""

    def hear(self, events: list[EngineEvent]) -> None:
        for event in events:
            match event:
                case Partial():
                    assert event.utterance == len(self.finals) + 1
                    assert event.start <= event.end
                    assert self.open is None or event.start == self.open.start
                    self.open = event
                case Final():
                    assert event.utterance == len(self.finals) + 1
                    assert event.start <= event.end
                    assert not self.finals or self.finals[-1].end <= event.start
                    for word in event.text.split():
                        assert self.waiting.pop(0)[1].strip() == word
                    self.finals.append(event)
                    self.open = None
                case Progress(position=position):
                    assert position >= self.progress
                    self.progress = position
        assert self.open is None or self.progress <= self.open.start
        assert self.open is None or self.segmenter.settled <= self.open.start
        assert not self.finals or self.finals[-1].end <= self.segmenter.settled
        for place, _ in self.waiting:
            assert self.progress < place


class Session:
    """A segmenter between the sound, which is scored at once, and the words, which come late.

    Args:
        recording: What is heard and said.
        choose: Decides how far the words are behind, at each moment anew.
        restarts: Whether the service now and then tells something once more.
    """

    def __init__(self, recording: Recording, choose: Choices, *, restarts: bool) -> None:
        self.segmenter = Segmenter(position=recording.starts[0])
        self.told = Told(self.segmenter)
        self.frames = [
            (start + (number + 1) * FRAME, likely, [t for place, t in words if place == number])
            for start, voice, words in zip(
                recording.starts, recording.voices, recording.words, strict=True
            )
            for number, likely in enumerate(voice)
        ]
        self._starts = recording.starts
        self._choose = choose
        self._most = choose.of((1, 8, 40, 400))
        """Frames that the words may be behind."""
        self._restarts = restarts
        self._heard = self._clock = self._furthest = 0
        """In frames."""
        self._scored = recording.starts[0]

    def run(self) -> None:
        while self._clock < len(self.frames):
            ahead = self._heard - self._clock
            wanted = not ahead or self._choose.between(0, self._most) > ahead
            if wanted and self._heard < len(self.frames):
                self._score()
            else:
                self._tell()
                if self._restarts and self._choose.seldom(20):
                    self._restart()
        self.told.hear(self.segmenter.finished(self.frames[-1][0]))

    def _score(self) -> None:
        end, likely, _ = self.frames[self._heard]
        self._heard += 1
        start = end - FRAME
        if self._scored < start and start in self._starts:
            self.segmenter.hole(start)
            self._scored = start
        while self._scored + WINDOW <= end:
            self.segmenter.voice(self._scored, self._scored + WINDOW, likely)
            self._scored += WINDOW

    def _tell(self) -> None:
        position, _, said = self.frames[self._clock]
        self._clock += 1
        if self._clock > self._furthest:
            self._furthest = self._clock
            self.told.waiting += [(position, text) for text in said]
        for text in said:
            self.told.hear(self.segmenter.words(text, position))
        if not said:
            self.told.hear(self.segmenter.beat(position))

    def _restart(self) -> None:
        settled = self.segmenter.settled
        places = [end for end, _, _ in self.frames[: self._clock]]
        back = [number for number, end in enumerate(places, 1) if end >= settled]
        if back:
            self._clock = self._choose.of(back)
            self.segmenter.restarted(places[self._clock - 1])


def any_session(choose: Choices) -> tuple[Recording, Session]:
    recording = any_recording(choose)
    return recording, Session(recording, choose, restarts=choose.seldom(3))


@thorough
@given(made(any_session, 700))
def test_every_word_is_in_one_final_whenever_it_comes(run: tuple[Recording, Session]) -> None:
    recording, session = run
    session.run()
    assert session.told.waiting == []
    assert session.told.open is None
    said = [text.strip() for words in recording.words for _, text in words]
    assert " ".join(final.text for final in session.told.finals).split() == said
    stretch = {t.strip(): n for n, words in enumerate(recording.words) for _, t in words}
    for final in session.told.finals:
        assert len({stretch[word] for word in final.text.split()}) <= 1, "across a hole"
