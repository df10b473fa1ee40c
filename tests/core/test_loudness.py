import numpy as np
import pytest

from surtitle.core.loudness import Lift, Samples, lifted

WINDOW = 512


def noise(rms: float, seconds: float = 1.0) -> Samples:
    rng = np.random.default_rng(1)
    return (rng.normal(0, rms, int(16_000 * seconds)).clip(-1, 1)).astype(np.float32)


def rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.3, 0.3), (0.1, 0.1), (0.02, 0.05), (0.005, 0.05), (0.0002, 0.02), (0.0, 0.0)],
)
def test_faint_utterances_are_made_as_loud_as_usual_and_loud_ones_are_left(
    before: float, after: float
) -> None:
    result = lifted(noise(before))
    assert rms(result) == pytest.approx(after, rel=0.1)
    assert np.abs(result).max() <= 1
    assert result.dtype == np.float32


def test_exact_silence_around_an_utterance_does_not_make_it_louder() -> None:
    speech = noise(0.01)
    padded = np.concatenate([np.zeros(16_000, np.float32), speech])
    np.testing.assert_allclose(lifted(padded)[16_000:], lifted(speech), rtol=0.05, atol=1e-3)


def test_a_sound_shorter_than_a_frame_is_lifted_too() -> None:
    assert rms(lifted(noise(0.01, 0.01))) > 0.04


def test_a_pause_in_loud_speech_is_not_made_loud() -> None:
    lift = Lift()
    for window in np.split(noise(0.2, 0.512), 16):
        lift.push(window)
    assert rms(lift.push(noise(0.001)[:WINDOW])) < 0.01


def test_a_faint_speaker_is_lifted_after_a_while() -> None:
    lift = Lift()
    last = noise(0.0)
    for _ in range(20):
        for window in np.split(noise(0.0005, 1.024), 32):
            last = lift.push(window)
    assert rms(last) == pytest.approx(0.05, rel=0.3)


def test_loud_speech_after_a_long_silence_is_not_clipped() -> None:
    lift = Lift()
    for _ in range(2_000):
        lift.push(np.zeros(WINDOW, np.float32))
    assert rms(lift.push(noise(0.2)[:WINDOW])) == pytest.approx(0.2, rel=0.2)
