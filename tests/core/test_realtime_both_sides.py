"""Client and server talk to each other over lines with any delay: no word lost, none twice.

The sound carries its own place, and the engine understands a word only if it hears
the whole of it, so that sound that is sent twice, left out or cut is found out.
"""

from array import array
from collections import deque
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from fakes.speech import Spoken, Word, numbered
from surtitle.core.errors import Decision
from surtitle.core.realtime_actions import (
    Action,
    Beat,
    Fault,
    Finished,
    Limits,
    Restarted,
    Send,
    Words,
)
from surtitle.core.realtime_client import Client
from surtitle.core.realtime_server import (
    Answer,
    Begin,
    Close,
    Drop,
    End,
    Hear,
    ServerAction,
    ServerSession,
)
from surtitle.core.speech import EngineEvent, Final, Progress, Voice

FRAME = 1_280
UNIT = 320
"""Samples that carry the same number."""
PAUSE = 16_000


def sound(start: int, samples: int) -> bytes:
    units = range(start // UNIT, (start + samples) // UNIT)
    return b"".join(array("h", [1 + unit]).tobytes() * UNIT for unit in units)


class Ear:
    """Hears where in the sound it is, and so which word is said."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._next: int | None = None
        """Position that must follow for the word to be whole."""
        self._word: Word | None = None
        self._said = 0

    def hear(self, start: int, pcm: bytes) -> Iterator[EngineEvent]:
        for at, number in enumerate(array("h", pcm)[::UNIT]):
            position = (number - 1) * UNIT
            if self._word is not None and self._next != position:
                self._word = None if position != self._word.start else self._word
            if self._word is not None and position >= self._word.end:
                self._said += 1
                text = self._word.text
                yield Final(utterance=self._said, text=text, start=0, end=start + at * UNIT)
                self._word = None
            if self._word is None and number:
                self._word = next((w for w in self._words if w.start == position), None)
            self._next = position + UNIT
        end = start + len(pcm) // 2
        yield Voice(start=start, end=end, probability=0.5)
        if self._word is None:
            yield Progress(position=end)

    def close(self) -> Iterator[EngineEvent]:
        if self._word is not None and self._next == self._word.end:
            yield Final(utterance=self._said + 1, text=self._word.text, start=0, end=10**9)


class Talk:
    """Both sides, and the lines between them."""

    def __init__(self, speech: tuple[Spoken, ...], *, max_model_len: int | None) -> None:
        self.words = [word for spoken in speech for word in spoken.words]
        self.client = Client(model="m", limits=Limits())
        self.session = ServerSession(model="m", max_model_len=max_model_len)
        self.ear = Ear(self.words)
        self.up: deque[str] = deque()
        self.down: deque[str] = deque()
        self.settled: list[str] = []
        self.told: list[str] = []
        self.last_word = 0
        self.restarts = 0
        self.faults: list[Fault] = []
        self.finished: Finished | None = None
        self.end = 0
        self.server_does(self.session.opened(identity="s", created=0))
        self.client_does(self.client.opened(0.0))

    def append(self, frames: int) -> None:
        for _ in range(frames):
            if self.client.wants_renewal and self.quiet(self.end):
                self.client_does(self.client.renew(0.0))
            self.client_does(self.client.append(self.end, sound(self.end, FRAME), 0.0))
            self.end += FRAME

    def carry(self, up: int, down: int) -> None:
        for _ in range(up):
            if self.up:
                self.server_does(self.session.heard(self.up.popleft()))
        for _ in range(down):
            if self.down:
                self.client_does(self.client.heard(self.down.popleft(), 0.0))

    def finish(self) -> None:
        self.client_does(self.client.finish(0.0))
        while self.up or self.down:
            self.carry(1, 1)

    def server_does(self, actions: list[ServerAction]) -> None:  # noqa: C901 - one for each action
        pending = deque(actions)
        while pending:
            match pending.popleft():
                case Answer(frame=frame):
                    self.down.append(frame)
                case Begin():
                    self.ear = Ear(self.words)
                case Hear(start=start, pcm=pcm):
                    for event in self.ear.hear(start, pcm):
                        pending.extend(self.session.spoke(event))
                case End():
                    for event in self.ear.close():
                        pending.extend(self.session.spoke(event))
                    pending.extend(self.session.engine_ended())
                case Drop():
                    # What it was given and has not heard is gone.
                    while pending and isinstance(pending[0], Hear | End):
                        pending.popleft()
                case Close() as close:
                    raise AssertionError(close)

    def client_does(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame=frame):
                    self.up.append(frame)
                case Words(text=text, position=position):
                    assert text.startswith(" ")
                    assert len(text.split()) == 1
                    self.told += text.split()
                    self.last_word = position
                    self.in_time(text, position)
                case Beat(position=position):
                    assert position <= self.end
                    if position - self.last_word >= PAUSE and self.quiet(position):
                        self.settled, self.told = self.settled + self.told, []
                        self.client.keep_from(position)
                case Restarted():
                    self.told = []
                    self.restarts += 1
                case Finished():
                    assert self.finished is None
                    self.finished = action
                case Fault():
                    self.faults.append(action)

    def quiet(self, position: int) -> bool:
        """Whether nobody speaks there, as an engine's voice detector says."""
        return all(not w.start <= position <= w.end for w in self.words)

    def in_time(self, text: str, position: int) -> None:
        """A word is told with a place that is not before it."""
        last = next(w for w in self.words if w.text == text.strip())
        assert position >= last.end


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 80)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([None, 500]),
)
def test_every_word_comes_once(
    lengths: list[int], schedule: list[tuple[int, int, int]], max_model_len: int | None
) -> None:
    speech = numbered(lengths, pause=2.0)
    talk = Talk(speech, max_model_len=max_model_len)
    turn = 0
    while talk.end < speech[-1].end + PAUSE and not talk.client.done:
        frames, up, down = schedule[turn % len(schedule)]
        talk.append(frames)
        talk.carry(up, down)
        turn += 1
    talk.finish()
    expected = [word.text for word in talk.words]
    got = talk.settled + talk.told
    if talk.faults:
        # Only where a new session is the answer, which gets what is not settled.
        assert [f.error.decision for f in talk.faults] == [Decision.RETRY]
        assert talk.settled == expected[: len(talk.settled)]
        assert max_model_len is not None
    else:
        assert got == expected
        assert talk.finished is not None
        assert talk.finished.position == talk.end


def test_the_limit_is_run_into_once_and_then_avoided() -> None:
    speech = numbered([4] * 30, pause=2.0)
    talk = Talk(speech, max_model_len=400)
    while talk.end < speech[-1].end + PAUSE:
        talk.append(1)
        talk.carry(3, 3)
    talk.finish()
    assert talk.settled + talk.told == [word.text for word in talk.words]
    assert talk.restarts == 1
    assert not talk.faults
