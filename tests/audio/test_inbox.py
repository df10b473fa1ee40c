"""The callback copies, notes, wakes and returns; what does not fit is never lost unseen."""

import statistics
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from fakes.sound_device import FakeFlags, FakeTimes
from surtitle.audio.inbox import Inbox

TIMES, FLAGS = FakeTimes(), FakeFlags()


def inbox(*, blocks: int = 100, wakes: list[int] | None = None) -> Inbox:
    counted: list[int] = [] if wakes is None else wakes
    return Inbox(blocks=blocks, clock=lambda: 5.0, wake=lambda: counted.append(1))


def test_what_is_put_comes_out_as_a_copy() -> None:
    box = inbox()
    pcm = bytearray(b"\x01\x02\x03\x04")
    box.deliver(pcm, 2, FakeTimes(inputBufferAdcTime=1.5), FakeFlags(input_overflow=True))
    pcm[:] = bytes(4)  # PortAudio uses its buffer again
    delivery = box.take()
    assert delivery is not None
    assert (delivery.pcm, delivery.frames, delivery.position) == (b"\x01\x02\x03\x04", 2, 0)
    assert (delivery.time, delivery.recorded, delivery.overflow) == (5.0, 1.5, True)
    assert box.take() is None


@given(st.lists(st.booleans(), max_size=200), st.integers(min_value=1, max_value=10))
def test_positions_tell_what_was_dropped(puts: list[bool], blocks: int) -> None:
    box = inbox(blocks=blocks)
    put = taken = lost = expected = 0
    for is_put in puts:
        if is_put:
            box.deliver(bytes(20), 10, TIMES, FLAGS)
            put += 10
        elif (delivery := box.take()) is not None:
            lost += delivery.position - expected
            expected = delivery.position + 10
            taken += 10
    waiting = 0
    while (delivery := box.take()) is not None:
        lost += delivery.position - expected
        expected = delivery.position + 10
        waiting += 10
    assert taken + waiting + lost == put
    assert waiting <= 10 * blocks


def test_it_wakes_once_until_asked_again() -> None:
    wakes: list[int] = []
    box = inbox(wakes=wakes)
    for _ in range(5):
        box.deliver(bytes(4), 2, TIMES, FLAGS)
    assert len(wakes) == 1
    box.rearm()
    box.deliver(bytes(4), 2, TIMES, FLAGS)
    assert len(wakes) == 2


def test_an_error_on_portaudios_thread_is_kept_and_told() -> None:
    wakes: list[int] = []

    def clock() -> float:
        raise OSError("no clock")

    box = Inbox(blocks=3, clock=clock, wake=lambda: wakes.append(1))
    box.deliver(bytes(4), 2, TIMES, FLAGS)
    assert isinstance(box.error, OSError)
    assert wakes == [1]


def test_the_end_is_told() -> None:
    wakes: list[int] = []
    box = inbox(wakes=wakes)
    box.finish()
    assert box.ended
    assert wakes == [1]


def test_a_callback_takes_next_to_no_time() -> None:
    box = Inbox(blocks=100, clock=time.monotonic, wake=lambda: None)
    block = memoryview(bytes(960 * 2 * 2))  # 20 ms of 48 kHz stereo
    taken: list[float] = []

    def call_back() -> None:
        for _ in range(2_000):
            start = time.perf_counter()
            box.deliver(block, 960, TIMES, FLAGS)
            taken.append(time.perf_counter() - start)

    thread = threading.Thread(target=call_back)
    thread.start()
    thread.join(timeout=30)
    assert len(taken) == 2_000
    assert statistics.median(taken) < 0.000_2


def test_exact_zeros_wake_it_seldom_and_the_first_sound_at_once() -> None:
    now, wakes = [100.0], list[float]()
    box = Inbox(
        blocks=100,
        quiet_batch=25,
        clock=lambda: now[0],
        wake=lambda: wakes.append(now[0]),
    )

    def hear(*blocks: bytes) -> list[float]:
        wakes.clear()
        for block in blocks:
            now[0] += 0.02
            box.deliver(block, len(block) // 2, TIMES, FLAGS)
        return wakes

    assert len(hear(*[bytes(4)] * 24)) == 0
    assert len(hear(bytes(4))) == 1
    box.rearm()
    assert hear(b"\x00\x01\x00\x00") == [now[0]]
    while box.take():
        pass
    box.rearm()
    assert len(hear(bytes(4))) == 1, "a short pause is no silence"
    assert not box.quiet
    now[0] += 3.1
    assert box.quiet
