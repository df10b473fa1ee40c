"""Audio time stays true: whatever a device does, times match the clock or a gap says so."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.audio.inbox import Delivery
from surtitle.audio.timeline import (
    LOST_AFTER,
    PATIENCE,
    SILENT_AFTER,
    TOLERANCE,
    Timeline,
)
from surtitle.core.audio import Block, Format, Gap, Lost, Silent, SourceEvent

RATE = 1_000
FRAMES = 20  # 20 ms at RATE
FORMAT = Format(rate=RATE, channels=1)
SOUND = b"\x01\x00" * FRAMES
ZEROS = bytes(2 * FRAMES)


def frames_of(events: list[SourceEvent]) -> int:
    blocks = sum(len(e.pcm) // 2 for e in events if isinstance(e, Block))
    return blocks + sum(e.frames for e in events if isinstance(e, Gap))


@dataclass
class Bench:
    """A timeline and a device that delivers to it."""

    timeline: Timeline
    position: int = 0
    now: float = 100.0

    def deliver(
        self,
        *,
        pcm: bytes = SOUND,
        skip: int = 0,
        late: float = 0.0,
        recorded: float = 0.0,
        overflow: bool = False,
    ) -> list[SourceEvent]:
        self.position += skip
        events = self.timeline.deliver(
            Delivery(
                pcm=pcm,
                frames=len(pcm) // 2,
                position=self.position,
                time=self.now + late,
                recorded=recorded,
                overflow=overflow,
            )
        )
        self.position += len(pcm) // 2
        return events

    def play(self, seconds: float, *, pcm: bytes = SOUND) -> list[SourceEvent]:
        events: list[SourceEvent] = []
        for _ in range(round(seconds * RATE / FRAMES)):
            self.now += FRAMES / RATE
            events += self.deliver(pcm=pcm)
            events += self.timeline.tick(self.now)
        return events

    def wait(self, seconds: float) -> list[SourceEvent]:
        events: list[SourceEvent] = []
        for _ in range(round(seconds / 0.05)):
            self.now += 0.05
            events += self.timeline.tick(self.now)
        return events


def bench(*, loopback: bool = False) -> Bench:
    return Bench(Timeline(layout=FORMAT, loopback=loopback, name="Desk microphone"))


def test_before_the_first_delivery_time_does_not_run() -> None:
    assert bench(loopback=True).wait(10) == []
    assert bench().wait(10) == []


def test_what_was_dropped_before_the_first_delivery_is_a_gap_too() -> None:
    events = bench().deliver(skip=40)
    assert events == [Gap(frames=40, reason="this computer could not keep up"), Block(pcm=SOUND)]


def test_frames_before_the_start_do_not_count() -> None:
    desk = Bench(Timeline(layout=FORMAT, loopback=False, name="Desk microphone", start=40))
    assert desk.deliver(skip=40) == [Block(pcm=SOUND)]


def test_what_is_delivered_is_told() -> None:
    assert bench().play(0.1) == [Block(pcm=SOUND)] * 5


def test_dropped_frames_become_a_gap_of_that_many_frames_in_their_place() -> None:
    desk = bench()
    desk.play(0.1)
    events = desk.deliver(skip=60)
    assert events == [Gap(frames=60, reason="this computer could not keep up"), Block(pcm=SOUND)]


@pytest.mark.parametrize(
    ("recorded", "overflow", "gap"),
    [
        (7.08, True, 60),  # 60 ms later than the end of the block before
        (7.08, False, 0),  # the clock alone may lie
        (7.025, True, 0),  # jitter
        (0.0, True, 0),  # the clock is not known
        (6.0, True, 0),  # the clock went backwards
    ],
)
def test_an_overflow_with_missing_time_is_a_gap(
    *, recorded: float, overflow: bool, gap: int
) -> None:
    desk = bench()
    desk.deliver(recorded=7.0)
    events = desk.deliver(recorded=recorded, overflow=overflow)
    expected = [Gap(frames=gap, reason="the device lost sound")] if gap else []
    assert events == [*expected, Block(pcm=SOUND)]


@pytest.mark.parametrize("pcm", [None, ZEROS], ids=["nothing", "exact zeros"])
def test_a_silent_microphone_is_told_every_second_from_the_second_on(pcm: bytes | None) -> None:
    desk = bench()
    desk.play(1)
    events = desk.wait(4.5) if pcm is None else desk.play(4.5, pcm=pcm)
    told = [round(e.seconds) for e in events if isinstance(e, Silent)]
    assert told == [2, 3, 4]
    desk.play(0.1)
    assert [e for e in desk.play(1.9, pcm=ZEROS) if isinstance(e, Silent)] == []
    assert [e for e in desk.play(0.2, pcm=ZEROS) if isinstance(e, Silent)] != []


def test_a_microphone_that_delivers_nothing_for_long_is_lost() -> None:
    desk = bench()
    desk.play(1)
    assert not any(isinstance(e, Lost) for e in desk.wait(LOST_AFTER - 0.1))
    lost = desk.wait(0.2)[0]
    assert isinstance(lost, Lost)
    assert "Desk microphone" in str(lost.error)


def test_exact_zeros_never_lose_a_microphone() -> None:
    desk = bench()
    assert not any(isinstance(e, Lost) for e in desk.play(30, pcm=ZEROS))


def test_time_a_microphone_was_away_becomes_a_gap() -> None:
    desk = bench()
    desk.play(1)
    desk.wait(3)
    events = desk.play(2)
    assert [e.frames for e in events if isinstance(e, Gap)] == [3_000]
    assert desk.timeline.emitted == 6_000


def test_sound_that_was_only_late_leaves_no_gap() -> None:
    desk = bench()
    desk.play(1)
    desk.wait(3)
    burst = [event for _ in range(150) for event in desk.deliver()]
    events = burst + desk.play(2)
    assert [e for e in events if isinstance(e, Gap)] == []
    assert frames_of(events) == 5_000


def test_a_silent_loopback_gets_silence_by_the_clock_and_is_never_lost() -> None:
    speakers = bench(loopback=True)
    speakers.play(1)
    events = speakers.wait(60)
    assert {type(e) for e in events} == {Block}
    assert not any(any(e.pcm) for e in events if isinstance(e, Block))
    assert speakers.timeline.emitted == pytest.approx(61 * RATE, abs=TOLERANCE * RATE)


def test_a_loopback_that_is_a_little_late_gets_no_silence_put_in() -> None:
    speakers = bench(loopback=True)
    speakers.play(1)
    assert speakers.wait(PATIENCE - 0.05) == []


def test_after_a_late_burst_time_gets_back_in_step_by_leaving_out_silence_only() -> None:
    speakers = bench(loopback=True)
    speakers.play(1)
    speakers.wait(2)  # taken for silence
    burst = [event for _ in range(100) for event in speakers.deliver()]
    assert burst == [Block(pcm=SOUND)] * 100  # it was late: all is told
    speakers.play(4, pcm=ZEROS)
    assert speakers.timeline.emitted == pytest.approx(7 * RATE, abs=TOLERANCE * RATE + FRAMES)


def test_a_first_burst_of_old_sound_moves_the_start_not_the_pace() -> None:
    speakers = bench(loopback=True)
    for _ in range(50):
        speakers.deliver()
    speakers.play(1)
    speakers.wait(5)
    assert speakers.timeline.emitted == pytest.approx(7 * RATE, abs=TOLERANCE * RATE)


SEGMENTS = st.lists(
    st.tuples(
        st.booleans(),
        st.floats(min_value=0.02, max_value=3.0),
        st.floats(min_value=0.0, max_value=0.08),
    ),
    min_size=1,
    max_size=12,
)


@given(segments=SEGMENTS)
def test_a_loopback_keeps_to_the_clock_and_tells_every_sound(
    segments: list[tuple[bool, float, float]],
) -> None:
    speakers = bench(loopback=True)
    start = speakers.now
    told = speakers.play(0.1)
    played = 5
    last = speakers.now
    for playing, seconds, late in segments:
        if playing:
            for _ in range(max(1, round(seconds * RATE / FRAMES))):
                speakers.now += FRAMES / RATE
                told += speakers.deliver(late=late)
                last = speakers.now + late
                played += 1
            speakers.now += late
        else:
            for _ in range(round(seconds / 0.05)):
                speakers.now += 0.05
                told += speakers.timeline.tick(speakers.now)
                if speakers.now - last > PATIENCE:
                    off = speakers.timeline.emitted / RATE - (speakers.now - start)
                    assert abs(off) <= TOLERANCE
    assert [e for e in told if isinstance(e, Block) and any(e.pcm)] == [Block(pcm=SOUND)] * played
    assert frames_of(told) == speakers.timeline.emitted


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from([SOUND, ZEROS]),
            st.integers(min_value=0, max_value=300),
            st.floats(min_value=0.0, max_value=4.0),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_every_frame_of_a_microphone_is_told_or_in_a_gap(
    steps: list[tuple[bytes, int, float, bool]],
) -> None:
    desk = bench()
    events: list[SourceEvent] = []
    delivered = 0
    for pcm, skip, pause, overflow in steps:
        desk.now += pause
        events += desk.deliver(pcm=pcm, skip=skip, recorded=desk.now, overflow=overflow)
        delivered += FRAMES + skip
    assert desk.timeline.emitted == frames_of(events) >= delivered
    assert sum(isinstance(e, Block) for e in events) == len(steps)


def test_the_limits_are_in_order() -> None:
    assert TOLERANCE < PATIENCE < SILENT_AFTER < LOST_AFTER
