import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.core.resampling import Resampler, position

RATES = [4_000, 8_000, 11_025, 16_000, 22_050, 44_056, 44_100, 48_000, 96_000, 384_000]


def test_the_working_rate_passes_through() -> None:
    samples = np.random.default_rng(1).integers(-32768, 32767, 4000, dtype=np.int16)
    resampler = Resampler(16_000)
    assert np.array_equal(resampler.push(samples.astype(np.float32)), samples)
    assert len(resampler.finish(0)) == 0


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_stays_where_it_is(rate: int) -> None:
    hertz = 700.0
    time = np.arange(rate // 2) / rate
    resampler = Resampler(rate)
    first = resampler.push((9000 * np.sin(2 * np.pi * hertz * time)).astype(np.float32))
    whole = np.concatenate((first, resampler.finish(8000 - len(first))))
    expected = 9000 * np.sin(2 * np.pi * hertz * np.arange(8000) / 16_000)
    assert np.abs(whole - expected)[500:-500].max() < 30  # in phase and at level


def test_too_loud_is_clipped() -> None:
    loud = np.array([40_000, -40_000, 32_767.4, -32_768.4], np.float32)
    assert Resampler(16_000).push(loud).tolist() == [32767, -32768, 32767, -32768]


def test_a_stretch_can_follow_a_stretch() -> None:
    sound = np.random.default_rng(2).normal(0, 3000, 4800).astype(np.float32)
    again, fresh = Resampler(48_000), Resampler(48_000)
    again.push(np.ones(999, np.float32))
    again.finish(333)
    got = np.concatenate((again.push(sound), again.finish(400)))
    assert np.array_equal(got, np.concatenate((fresh.push(sound), fresh.finish(400))))


@pytest.mark.parametrize("wanted", [0, 1, 332, 333, 334])
def test_the_end_is_as_long_as_asked(wanted: int) -> None:
    resampler = Resampler(48_000)
    given_already = len(resampler.push(np.ones(999, np.float32)))
    assert len(resampler.finish(wanted - given_already)) == max(0, wanted - given_already)


@given(rate=st.integers(4_000, 384_000), frames=st.integers(0, 10**12))
def test_positions_are_true_to_half_a_sample_for_ever(rate: int, frames: int) -> None:
    assert abs(position(frames, rate) * rate - frames * 16_000) * 2 <= rate
    assert position(frames, rate) <= position(frames + 1, rate)
