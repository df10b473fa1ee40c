import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.choices import Choices, choices, made
from surtitle.core.audio import CHUNK_SAMPLES, Chunk, Format
from surtitle.core.intake import SILENCE, Intake, level_of
from surtitle.core.resampling import position

RATES = [4_000, 8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000]
FORMATS = made(lambda choose: Format(rate=choose.of(RATES), channels=choose.of([1, 2, 3, 6])), 2)
LONGEST = 9_000
NOISE = np.random.default_rng(1).integers(-9000, 9000, LONGEST * 6).astype("<i2").tobytes()


def sound(form: Format, frames: int) -> bytes:
    return NOISE[: 2 * form.channels * frames]


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.pcm for chunk in chunks)


def pairs_in_order(chunks: list[Chunk]) -> bool:
    return all(a.end == b.start for a, b in itertools.pairwise(chunks))


@given(form=FORMATS, frames=st.integers(0, LONGEST), choose=choices(28))
def test_any_cutting_gives_the_same_bytes(form: Format, frames: int, choose: Choices) -> None:
    pcm = sound(form, frames)
    cuts = sorted(choose.several(lambda: choose.between(0, len(pcm)), most=8))
    whole, pieces = Intake(form), Intake(form)
    expected = whole.push(pcm) + whole.flush()
    got: list[Chunk] = []
    for start, end in zip([0, *cuts], [*cuts, len(pcm)], strict=True):
        got += pieces.push(pcm[start:end])
    got += pieces.flush()
    assert got == expected
    assert sum(chunk.samples for chunk in got) == position(frames, form.rate)
    assert pairs_in_order(got)
    assert all(chunk.samples == CHUNK_SAMPLES for chunk in got[:-1])


def any_steps(choose: Choices) -> list[tuple[str, int]]:
    kinds = ["push", "skip", "flush"]
    return choose.several(
        lambda: (choose.of(kinds), choose.of([0, 1, choose.between(0, 6_000)])), most=8
    )


@given(form=FORMATS, steps=made(any_steps, 33))
def test_every_frame_is_in_exactly_one_chunk_or_gap(
    form: Format, steps: list[tuple[str, int]]
) -> None:
    intake = Intake(form)
    frames = 0
    spans: list[tuple[int, int]] = []
    for step, count in steps:
        match step:
            case "push":
                frames += count
                chunks, gap = intake.push(sound(form, count)), None
            case "skip":
                before = position(frames, form.rate)
                frames += count
                chunks, gap = intake.skip(count)
                assert gap == (before, position(frames, form.rate))
            case _:
                chunks, gap = intake.flush(), None
        spans += [(chunk.start, chunk.end) for chunk in chunks]
        if gap is not None and count:
            spans.append(gap)
        assert intake.position == position(frames, form.rate)
    spans += [(chunk.start, chunk.end) for chunk in intake.flush()]
    covered = 0
    for start, end in spans:
        assert start == covered
        assert end >= start
        covered = end
    assert covered == position(frames, form.rate)


def test_time_stays_true_over_many_short_stretches() -> None:
    intake = Intake(Format(rate=44_100, channels=1))
    for _ in range(200):
        intake.push(bytes(2 * 101))
        intake.skip(1)
    chunk = (intake.push(bytes(2 * 101)) + intake.flush())[0]
    assert chunk.start == round(200 * 102 * 16_000 / 44_100)


def test_a_pause_in_the_middle_of_a_sample_drops_the_half() -> None:
    intake = Intake(Format(rate=16_000, channels=1))
    assert joined(intake.push(b"\1\2\3") + intake.skip(10)[0]) == b"\1\2"
    chunks = intake.push(b"\5\6") + intake.flush()
    assert [(chunk.start, chunk.pcm) for chunk in chunks] == [(11, b"\5\6")]


def test_mono_at_the_working_rate_is_untouched() -> None:
    form = Format(rate=16_000, channels=1)
    pcm = sound(form, 5_000)
    intake = Intake(form)
    assert joined(intake.push(pcm) + intake.flush()) == pcm


def test_sound_before_a_gap_is_given_at_once_and_short() -> None:
    intake = Intake(Format(rate=16_000, channels=2))
    assert intake.push(sound(Format(rate=16_000, channels=2), 100)) == []
    chunks, gap = intake.skip(16_000)
    assert [chunk.samples for chunk in chunks] == [100]
    assert gap == (100, 16_100)


def test_no_gap_disturbs_nothing() -> None:
    intake = Intake(Format(rate=48_000, channels=1))
    intake.push(bytes(600))
    assert intake.skip(0) == ([], (100, 100))
    with pytest.raises(ValueError, match="negative"):
        intake.skip(-1)


@pytest.mark.parametrize(
    ("rate", "channels"), [(3_999, 1), (384_001, 1), (16_000, 0), (0, 1), (-1, 2)]
)
def test_formats_that_cannot_be_are_refused(rate: int, channels: int) -> None:
    with pytest.raises(ValueError, match="limits"):
        Intake(Format(rate=rate, channels=channels))


@pytest.mark.parametrize(
    ("samples", "level"),
    [
        ([], SILENCE),
        ([0] * 100, SILENCE),
        ([-32768] * 100, 0.0),
        ([16384, -16384] * 50, -6.02),
        ([1] + [0] * 65535, SILENCE),  # below the floor
    ],
)
def test_level(samples: list[int], level: float) -> None:
    assert level_of(np.array(samples, np.int16)) == pytest.approx(level, abs=0.01)


def test_a_chunk_tells_its_level() -> None:
    intake = Intake(Format(rate=16_000, channels=1))
    sine = (10_000 * np.sin(np.arange(CHUNK_SAMPLES) / 5)).astype("<i2")
    (chunk,) = intake.push(sine.tobytes())
    assert chunk.level == pytest.approx(20 * math.log10(10_000 / math.sqrt(2) / 32_768), abs=0.1)
