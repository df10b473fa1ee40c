import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fakes.choices import Choices, choices
from surtitle.core.mixing import Mixer, Mono, window_frames

RATE = 16_000
WINDOW = 320

type Samples = NDArray[np.int16]


def noise(seconds: float, *, peak: int = 6000, seed: int = 1) -> Samples:
    generator = np.random.default_rng(seed)
    return generator.integers(-peak, peak, int(RATE * seconds), dtype=np.int16)


def silence(seconds: float) -> Samples:
    return np.zeros(int(RATE * seconds), np.int16)


def mix(*channels: Samples) -> Mono:
    mixer = Mixer(rate=RATE, channels=len(channels))
    return np.concatenate((mixer.push(np.stack(channels, axis=1)), mixer.flush()))


def rms(mono: NDArray[np.floating] | Samples) -> float:
    return float(np.sqrt(np.mean(np.square(mono, dtype=np.float64))))


VOICE = noise(1)
OTHER = noise(1, seed=2)
QUIET = silence(1)


@pytest.mark.parametrize(
    "channels",
    [
        pytest.param((VOICE,), id="mono"),
        pytest.param((VOICE, VOICE), id="twice the same"),
        pytest.param((QUIET, VOICE), id="right only"),
        pytest.param((VOICE, QUIET), id="left only"),
        pytest.param((QUIET, VOICE, QUIET), id="second of three"),
        pytest.param((QUIET, QUIET, VOICE, QUIET, QUIET, QUIET), id="centre of 5.1"),
        pytest.param((*[QUIET] * 63, VOICE), id="last of 64"),
        pytest.param((VOICE, noise(1, peak=3, seed=3)), id="other channel hisses inaudibly"),
    ],
)
def test_a_voice_in_some_channels_keeps_its_level(channels: tuple[Samples, ...]) -> None:
    assert np.array_equal(mix(*channels), VOICE.astype(np.float32))


@pytest.mark.parametrize(
    "channels",
    [
        pytest.param((VOICE, -VOICE), id="inverse"),
        pytest.param((-VOICE, VOICE), id="inverse, other way round"),
        pytest.param((VOICE, -VOICE, VOICE, -VOICE), id="two inverse pairs"),
        pytest.param((VOICE, (VOICE * -0.8).astype(np.int16)), id="nearly inverse"),
        pytest.param((VOICE, -VOICE + noise(1, peak=40, seed=4)), id="inverse and hiss"),
    ],
)
def test_channels_that_cancel_are_not_added(channels: tuple[Samples, ...]) -> None:
    mixed = mix(*channels)
    assert any(np.array_equal(mixed, channel.astype(np.float32)) for channel in channels)


def test_unrelated_channels_are_averaged() -> None:
    assert np.array_equal(mix(VOICE, OTHER), (VOICE.astype(np.float32) + OTHER) / 2)


def test_what_is_faint_in_all_channels_is_averaged_too() -> None:
    faint = noise(1, peak=8)
    assert np.array_equal(mix(faint, faint), faint.astype(np.float32))


def test_silence_stays_silence() -> None:
    assert not mix(QUIET, QUIET).any()


def test_a_change_of_mind_is_faded() -> None:
    steady = np.full(RATE, 8000, np.int16)
    # The right channel is the same, then suddenly the inverse, then the same again.
    right = np.concatenate((steady, np.negative(steady), steady))
    mixed = mix(np.tile(steady, 3), right)
    # When the inverse begins the sound itself jumps; within 20 ms the left one is heard alone.
    assert mixed[RATE + WINDOW] == 8000
    steps = np.abs(np.diff(mixed))
    assert np.flatnonzero(steps > 2 * 8000 / WINDOW).tolist() == [RATE - 1]
    assert (mixed[2 * RATE :] == 8000).all()


def test_a_voice_that_moves_to_the_other_channel_is_followed() -> None:
    # Cancelling all the time, but first the left and then the right one is much louder.
    left = np.concatenate((VOICE, VOICE // 8))
    right = -np.concatenate((VOICE // 8, VOICE))
    mixed = mix(left, np.asarray(right))
    assert rms(mixed[:RATE]) > 0.4 * rms(VOICE)
    assert rms(mixed[RATE + WINDOW :]) > 0.4 * rms(VOICE)


def test_one_choice_does_not_flap() -> None:
    inverse = np.concatenate([VOICE[:WINDOW], -VOICE[WINDOW : 2 * WINDOW]] * 20)
    same = np.concatenate([VOICE[:WINDOW], VOICE[WINDOW : 2 * WINDOW]] * 20)
    # Every other window cancels: once seen, the left channel speaks alone throughout.
    mixed = mix(same, inverse)
    assert np.array_equal(mixed[2 * WINDOW :], same[2 * WINDOW :].astype(np.float32))


@given(channels=st.integers(1, 8), choose=choices(17), seed=st.integers(0, 9))
def test_any_cutting_gives_the_same_sound(channels: int, choose: Choices, seed: int) -> None:
    cuts = sorted(choose.several(lambda: choose.between(0, 3 * WINDOW), most=8))
    generator = np.random.default_rng(seed)
    gains = generator.choice([-1.0, 0.0, 0.01, 1.0], (6, channels)).repeat(WINDOW // 2, axis=0)
    voice = generator.integers(-9000, 9000, (len(gains), 1))
    frames = (voice * gains).astype(np.int16)
    whole = Mixer(rate=RATE, channels=channels)
    expected = np.concatenate((whole.push(frames), whole.flush()))
    pieces = Mixer(rate=RATE, channels=channels)
    got = [pieces.push(piece) for piece in np.split(frames, cuts)]
    assert np.array_equal(np.concatenate((*got, pieces.flush())), expected)
    assert len(expected) == len(frames)


@pytest.mark.parametrize(("rate", "frames"), [(48_000, 960), (44_100, 882), (11_025, 220)])
def test_a_window_is_20_ms(rate: int, frames: int) -> None:
    assert window_frames(rate) == frames
