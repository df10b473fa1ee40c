import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.audio.timestamps import Timestamps

RATE = 1_000


def stamps(*, at: int, origin: float = 0.0, length: float | None = None) -> Timestamps:
    timestamps = Timestamps(rate=RATE, origin=origin, length=length)
    timestamps.advance(at)
    return timestamps


@pytest.mark.parametrize(
    ("at", "origin", "length", "timestamp", "missing"),
    [
        pytest.param(1_000, 0.0, 10.0, 1.0, 0, id="on time"),
        pytest.param(1_000, 0.0, 10.0, None, 0, id="no timestamp"),
        pytest.param(1_000, 0.0, 10.0, 1.2, 0, id="a little late is imprecise"),
        pytest.param(1_000, 0.0, 10.0, 1.3, 300, id="hole"),
        pytest.param(1_000, 5.0, 10.0, 6.3, 300, id="hole, file begins at 5 s"),
        pytest.param(0, 0.0, 10.0, 4.0, 4_000, id="starts late"),
        pytest.param(1_000, 0.0, 10.0, 10.9, 9_900, id="hole to the end"),
        pytest.param(1_000, 0.0, 10.0, 11.1, 0, id="jump beyond the end"),
        pytest.param(1_000, 0.0, None, 60.9, 59_900, id="a minute, length unknown"),
        pytest.param(1_000, 0.0, None, 61.1, 0, id="more, length unknown"),
        pytest.param(5_000, 0.0, 10.0, 1.0, 0, id="jump back"),
    ],
)
def test_hole(
    at: int, origin: float, length: float | None, timestamp: float | None, missing: int
) -> None:
    timestamps = stamps(at=at, origin=origin, length=length)
    assert timestamps.hole(timestamp) == missing
    assert timestamps.frames == at + missing


@pytest.mark.parametrize("jump", [0.0, 500.0])
def test_after_a_jump_time_goes_on_from_there(jump: float) -> None:
    timestamps = stamps(at=5_000)
    assert timestamps.hole(jump) == 0
    timestamps.advance(1_000)
    assert timestamps.hole(jump + 1.0) == 0
    assert timestamps.hole(jump + 1.5) == 500


@given(st.lists(st.tuples(st.integers(0, 400), st.floats(-1e6, 1e6) | st.none()), max_size=20))
def test_no_timestamps_can_turn_time_back(steps: list[tuple[int, float | None]]) -> None:
    timestamps = stamps(at=0, length=100.0)
    for frames, timestamp in steps:
        before = timestamps.frames
        missing = timestamps.hole(timestamp)
        assert 0 <= missing <= 101_000
        timestamps.advance(frames)
        assert timestamps.frames == before + missing + frames
