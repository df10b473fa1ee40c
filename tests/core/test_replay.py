from dataclasses import dataclass, field

import pytest
from hypothesis import given

from fakes.choices import Choices, choices, thorough
from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.replay import ReplayBuffer

BOUND = 20
"""Samples that the buffers here keep."""


def chunk(start: int, samples: int) -> Chunk:
    """Sound in which every sample says where it is."""
    pcm = b"".join((n % 0x8000).to_bytes(2, "little") for n in range(start, start + samples))
    return Chunk(start=start, pcm=pcm, level=-20.0)


def positions(sound: Chunk | None) -> list[int]:
    return [] if sound is None else list(range(sound.start, sound.end))


def drained(buffer: ReplayBuffer) -> list[int]:
    found: list[int] = []
    while (sound := buffer.take()) is not None:
        assert sound == chunk(sound.start, sound.samples)
        found += positions(sound)
    return found


def filled(*chunks: tuple[int, int]) -> ReplayBuffer:
    buffer = ReplayBuffer(bound=BOUND / SAMPLE_RATE)
    for start, samples in chunks:
        assert buffer.put(chunk(start, samples)) is None
    return buffer


def test_sound_comes_out_as_it_went_in() -> None:
    buffer = filled((0, 4), (4, 4), (9, 2))
    assert (buffer.kept, buffer.waiting, buffer.end) == (10, 10, 11)
    assert drained(buffer) == [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]
    assert (buffer.kept, buffer.waiting, buffer.end) == (10, 0, 11)
    assert buffer.take() is None


def test_what_is_settled_is_let_go_and_the_rest_comes_again() -> None:
    buffer = filled((0, 4), (4, 4), (8, 4))
    drained(buffer)
    buffer.release(3)
    assert buffer.kept == 12
    buffer.release(4)
    assert buffer.kept == 8
    buffer.rewind(5)
    assert (buffer.kept, buffer.waiting) == (7, 7)
    assert drained(buffer) == [5, 6, 7, 8, 9, 10, 11]


def test_what_was_not_taken_is_not_let_go() -> None:
    buffer = filled((0, 4), (4, 4))
    buffer.release(100)
    buffer.rewind(2)
    assert drained(buffer) == list(range(8))


def test_the_oldest_goes_when_there_is_no_room() -> None:
    buffer = filled((0, 8), (8, 8))
    assert buffer.put(chunk(16, 8)) == (0, 8)
    assert buffer.put(chunk(24, 20)) == (8, 24)
    assert drained(buffer) == list(range(24, 44))
    assert buffer.put(chunk(44, 21)) == (24, 65)
    assert (buffer.kept, buffer.waiting, buffer.end) == (0, 0, 65)


def test_giving_up_takes_all_that_was_heard_or_one_chunk() -> None:
    buffer = filled((0, 4), (4, 4), (8, 4))
    buffer.take()
    buffer.take()
    assert buffer.skip() == (0, 8)
    assert buffer.skip() == (8, 12)
    assert buffer.skip() is None
    assert (buffer.kept, buffer.waiting) == (0, 0)


def test_leaving_out_spares_what_was_taken_and_what_comes_later() -> None:
    buffer = filled((0, 4), (4, 4), (8, 4), (14, 4))
    buffer.take()
    assert buffer.leave_out(13) == (4, 12)
    assert (buffer.kept, buffer.waiting, buffer.end) == (8, 4, 18)
    assert drained(buffer) == [14, 15, 16, 17]
    buffer.rewind(0)
    assert drained(buffer) == [0, 1, 2, 3, 14, 15, 16, 17]


@pytest.mark.parametrize(("taken", "position"), [(0, 3), (1, 7), (3, 12), (3, 99), (0, -5)])
def test_leaving_out_nothing(taken: int, position: int) -> None:
    buffer = filled((0, 4), (4, 4), (8, 4))
    for _ in range(taken):
        buffer.take()
    assert buffer.leave_out(position) is None
    assert (buffer.kept, buffer.waiting) == (12, 12 - 4 * taken)


@dataclass
class _Model:
    """The same as lists of positions, one a chunk."""

    kept: list[list[int]] = field(default_factory=list)
    taken: int = 0

    def drop(self) -> list[int]:
        self.taken = max(0, self.taken - 1)
        return self.kept.pop(0)


class Sound:
    """A buffer and its model, to which the same things happen."""

    def __init__(self) -> None:
        self.buffer = ReplayBuffer(bound=BOUND / SAMPLE_RATE)
        self.model = _Model()
        self.end = 0

    def put(self, samples: int, hole: int) -> None:
        lost = self.buffer.put(chunk(self.end + hole, samples))
        self.model.kept.append(list(range(self.end + hole, self.end + hole + samples)))
        self.end += hole + samples
        gone: list[int] = []
        while sum(map(len, self.model.kept)) > BOUND:
            gone += self.model.drop()
        assert lost == ((gone[0], gone[-1] + 1) if gone else None)

    def take(self) -> None:
        sound = self.buffer.take()
        if self.model.taken == len(self.model.kept):
            assert sound is None
            return
        assert sound is not None
        assert sound == chunk(sound.start, sound.samples)
        assert positions(sound) == self.model.kept[self.model.taken]
        self.model.taken += 1

    def _release(self, position: int) -> None:
        while self.model.taken and self.model.kept[0][-1] < position:
            self.model.drop()

    def release(self, back: int) -> None:
        self.buffer.release(self.end - back)
        self._release(self.end - back)

    def rewind(self, back: int) -> None:
        position = self.end - back
        self.buffer.rewind(position)
        self._release(position)
        if self.model.taken:
            self.model.kept[0] = [n for n in self.model.kept[0] if n >= position]
        self.model.taken = 0

    def skip(self) -> None:
        lost = self.buffer.skip()
        gone: list[int] = self.model.drop() if self.model.kept else []
        while gone and self.model.taken:
            gone += self.model.drop()
        assert lost == ((gone[0], gone[-1] + 1) if gone else None)

    def leave_out(self, back: int) -> None:
        position = self.end - back
        taken, rest = self.model.kept[: self.model.taken], self.model.kept[self.model.taken :]
        out = [sound for sound in rest if sound[-1] < position]
        assert self.buffer.leave_out(position) == ((out[0][0], out[-1][-1] + 1) if out else None)
        self.model.kept = [*taken, *rest[len(out) :]]

    def take_all(self) -> None:
        rest = [n for sound in self.model.kept[self.model.taken :] for n in sound]
        assert drained(self.buffer) == rest
        self.model.taken = len(self.model.kept)

    def counts_agree(self) -> None:
        kept = [len(sound) for sound in self.model.kept]
        assert self.buffer.kept == sum(kept) <= BOUND
        assert self.buffer.waiting == sum(kept[self.model.taken :])
        assert self.buffer.end == self.end


@thorough
@given(choices(130))
def test_every_sample_is_kept_told_as_lost_or_was_taken_and_let_go(choose: Choices) -> None:
    sound = Sound()
    for _ in range(choose.between(1, 40)):
        back = choose.of([0, choose.between(-2, BOUND)])
        match choose.of(("put", "take", "release", "rewind", "skip", "take all", "leave out")):
            case "put":
                sound.put(choose.between(1, BOUND + 2), choose.of([0, 0, 0, 3]))
            case "take":
                sound.take()
            case "release":
                sound.release(back)
            case "rewind":
                sound.rewind(back)
            case "skip":
                sound.skip()
            case "leave out":
                sound.leave_out(back)
            case _:
                sound.take_all()
        sound.counts_agree()
