import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.choices import Choices, made, thorough
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.endpointing import Begin, End, Endpoint, Endpointer, Rules

WINDOW = 512
SHORT = Rules(longest=4.0, search=1.0, pauses=((0.0, 0.6), (2.0, 0.3), (3.0, 0.16)))
"""As the default, but nobody has to talk so long."""

type Run = tuple[float, float]
"""(probability, seconds)"""


def windows(runs: list[Run]) -> list[float]:
    return [p for p, seconds in runs for _ in range(round(seconds * SAMPLE_RATE / WINDOW))]


def heard(runs: list[Run], *, rules: Rules | None = None, position: int = 0) -> list[Endpoint]:
    endpointer = Endpointer(rules or Rules(), position=position)
    endpoints: list[Endpoint] = []
    for p in windows(runs):
        endpoints += endpointer.push(position, position + WINDOW, p)
        position += WINDOW
    return endpoints + endpointer.close(position)


def spans(endpoints: list[Endpoint]) -> list[tuple[float, float]]:
    """Beginnings and ends in seconds."""
    times = [e.start if isinstance(e, Begin) else e.end for e in endpoints]
    return [
        (a / SAMPLE_RATE, b / SAMPLE_RATE) for a, b in zip(times[::2], times[1::2], strict=True)
    ]


@pytest.mark.parametrize(
    ("length", "pause"),
    [
        *[(0, 1.0), (2, 1.0), (3, 1.0), (4.5, 0.8), (6, 0.6), (8, 0.5), (10, 0.4)],
        *[(12, 0.325), (14, 0.25), (15.5, 0.205), (17, 0.16), (99, 0.16)],
    ],
)
def test_the_longer_the_utterance_the_shorter_the_pause(length: float, pause: float) -> None:
    assert Rules().pause(length) == pytest.approx(pause)


def test_one_pause_for_all_lengths_is_a_rule_too() -> None:
    rules = Rules(pauses=((0.0, 0.5),))
    assert (rules.pause(0), rules.pause(7)) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([(0.0, 5)], [], id="silence"),
        pytest.param([(0.1, 1), (0.9, 0.07), (0.1, 1)], [], id="a click"),
        pytest.param([(0.4, 5)], [], id="doubtful from the beginning"),
        pytest.param([(0.1, 1), (0.4, 5)], [], id="doubtful after silence"),
        pytest.param(
            [(0.1, 1), (0.9, 0.5), (0.2, 1), (0.9, 0.5), (0.1, 2)],
            [(0.5, 3.3)],
            id="half covered by noise after speech",
        ),
        pytest.param([(0.1, 1), (0.9, 1), (0.1, 2)], [(0.5, 2.3)], id="one utterance"),
        pytest.param([(0.9, 1), (0.1, 2)], [(0.0, 1.3)], id="from the first sample"),
        pytest.param([(0.1, 0.3), (0.9, 1), (0.1, 2)], [(0.0, 1.6)], id="less pre-roll"),
        pytest.param([(0.1, 1), (0.9, 1)], [(0.5, 2.0)], id="the sound stops in it"),
        pytest.param([(0.1, 1), (0.9, 1), (0.1, 0.1)], [(0.5, 2.1)], id="or right behind it"),
        pytest.param(
            [(0.1, 1), (0.9, 0.2), (0.4, 1), (0.1, 2)],
            [(0.5, 2.5)],
            id="doubtful after speech is speech",
        ),
        pytest.param(
            [(0.1, 1), (0.9, 1), (0.1, 0.5), (0.9, 1), (0.1, 2)],
            [(0.5, 3.8)],
            id="a short pause ends nothing",
        ),
        pytest.param(
            [(0.1, 1), (0.9, 1), (0.1, 1.1), (0.9, 1), (0.1, 2)],
            [(0.5, 2.3), (2.6, 4.4)],
            id="a long one does",
        ),
        pytest.param(
            [(0.1, 1), (0.9, 14), (0.1, 0.25), (0.9, 1), (0.1, 2)],
            [(0.5, 15.25), (15.25, 16.55)],
            id="a short one ends a long utterance, and nothing is in both",
        ),
        pytest.param(
            [(0.9, 16.5), (0.6, 0.1), (0.9, 5), (0.1, 2)],
            [(0.0, 16.55), (16.55, 21.9)],
            id="nobody pauses: cut at the least likely speech",
        ),
    ],
)
def test_where_utterances_begin_and_end(
    runs: list[Run], expected: list[tuple[float, float]]
) -> None:
    got = spans(heard(runs))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one == pytest.approx(other, abs=0.06)  # windows are 32 ms


def test_the_cut_is_not_further_back_than_allowed() -> None:
    rules = Rules(longest=10.0, search=2.0)
    (first, _) = spans(heard([(0.9, 6), (0.51, 0.1), (0.9, 5)], rules=rules))
    assert first[1] >= 10.0 - 2.0 - 0.04


def test_the_cut_leaves_a_first_half_that_is_worth_something() -> None:
    rules = Rules(longest=4.0, search=9.0)
    (first, _) = spans(heard([(0.9, 1), (0.51, 0.1), (0.9, 5)], rules=rules))
    assert first[1] > 2.0


def test_speech_is_counted_on_its_own_side_of_the_cut() -> None:
    ends = [e for e in heard([(0.9, 16.5), (0.6, 0.1), (0.9, 5)]) if isinstance(e, End)]
    assert [e.voiced for e in ends] == pytest.approx([16.55, 5.05], abs=0.06)


@pytest.mark.parametrize("seconds", [0.2, 1.0, 3.0])
def test_seconds_of_speech_leave_pauses_out(seconds: float) -> None:
    (end,) = [e for e in heard([(0.1, 1), (0.9, seconds), (0.1, 2)]) if isinstance(e, End)]
    assert end.voiced == pytest.approx(seconds, abs=0.04)


@pytest.mark.parametrize(
    ("runs", "end", "quiet"),
    [
        pytest.param([(0.1, 1), (0.9, 1), (0.1, 2)], 2.3, 2.0, id="a pause"),
        pytest.param([(0.1, 1), (0.9, 1), (0.1, 0.1)], 2.1, 2.0, id="the sound stops behind it"),
        pytest.param([(0.1, 1), (0.9, 1)], 2.0, 2.0, id="the sound stops in it"),
        pytest.param(
            [(0.9, 16.5), (0.6, 0.1), (0.9, 1.41)], 16.55, 18.0, id="cut in the midst of speech"
        ),
    ],
)
def test_from_where_on_nobody_spoke(runs: list[Run], end: float, quiet: float) -> None:
    ended = next(e for e in heard(runs) if isinstance(e, End))
    assert ended.end / SAMPLE_RATE == pytest.approx(end, abs=0.06)
    assert ended.quiet / SAMPLE_RATE == pytest.approx(quiet, abs=0.06)


PROBABILITIES = [0.0, 0.1, 0.2, 0.36, 0.49, 0.5, 0.8, 0.95]
LENGTHS = [0.032, 0.064, 0.1, 0.2, 0.4, 0.7, 1.5, 5.0]


def any_runs(choose: Choices) -> list[Run]:
    return choose.several(lambda: (choose.of(PROBABILITIES), choose.of(LENGTHS)), most=20)


RUNS = made(any_runs, 41)


@thorough
@given(RUNS, st.sampled_from([0, 7, 123_456]))
def test_utterances_are_in_order_apart_and_not_too_long(runs: list[Run], position: int) -> None:
    endpoints = heard(runs, rules=SHORT, position=position)
    floor = position
    for begin, end in zip(endpoints[::2], endpoints[1::2], strict=True):
        assert isinstance(begin, Begin)
        assert isinstance(end, End)
        assert floor <= begin.start < end.end
        assert end.end - begin.start <= SHORT.longest * SAMPLE_RATE + WINDOW
        assert 0 <= end.voiced <= (end.end - begin.start + WINDOW) / SAMPLE_RATE
        floor = end.end
    assert floor <= position + WINDOW * len(windows(runs))


@given(RUNS)
def test_all_speech_is_in_an_utterance(runs: list[Run]) -> None:
    endpoints = heard(runs, rules=SHORT)
    inside: set[int] = set()  # windows of which every sample is in an utterance or at a cut
    times = [e.start if isinstance(e, Begin) else e.end for e in endpoints]
    covered = list(zip(times[::2], times[1::2], strict=True))
    heard_windows = windows(runs)
    for number in range(len(heard_windows)):
        samples = range(number * WINDOW, (number + 1) * WINDOW, WINDOW // 4)
        if all(any(a <= sample < b for a, b in covered) for sample in samples):
            inside.add(number)
    for run in voiced_runs(heard_windows):
        if len(run) * WINDOW >= SHORT.onset * SAMPLE_RATE:
            assert set(run) <= inside


def voiced_runs(probabilities: list[float]) -> list[range]:
    """Stretches in which somebody certainly speaks."""
    runs: list[range] = []
    begin = 0
    for number, p in enumerate([*probabilities, 0.0]):
        if p < SHORT.speech:
            runs.append(range(begin, number))
            begin = number + 1
    return runs


@given(RUNS)
def test_what_is_settled_stays_settled(runs: list[Run]) -> None:
    endpointer = Endpointer(SHORT, position=0)
    settled = [endpointer.settled]
    silent = True
    for number, p in enumerate(windows(runs)):
        start = number * WINDOW
        for endpoint in endpointer.push(start, start + WINDOW, p):
            if isinstance(endpoint, Begin):
                assert endpoint.start >= settled[-1]
        settled.append(endpointer.settled)
        assert settled[-1] >= settled[-2]
        assert settled[-1] <= start + WINDOW
        silent = silent and p == 0.0
        if silent:
            assert settled[-1] >= start + WINDOW - SHORT.pre_roll * SAMPLE_RATE
    assert len(endpointer._recent) <= (SHORT.search * SAMPLE_RATE) / WINDOW + 2  # bounded
