import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.core.errors import Decision, EngineError
from surtitle.core.recovery import Again, GiveUp, Judge, PassOver, Verdict, backoff

DELAYS = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def error(decision: Decision = Decision.RETRY, *, retry_after: float | None = None) -> EngineError:
    return EngineError("It broke.", decision=decision, retry_after=retry_after)


def failures(
    judge: Judge, count: int, *, hearing: bool = False, chance: float = 0.0
) -> list[Verdict]:
    return [judge.failed(error(), hearing=hearing, chance=chance) for _ in range(count)]


def test_it_waits_longer_each_time_and_never_gives_up() -> None:
    judge = Judge()
    assert failures(judge, 8) == [Again(delay=delay) for delay in DELAYS]
    assert judge.failures == 8
    assert failures(judge, 500)[-1] == Again(delay=8.0)


def test_progress_makes_it_begin_anew() -> None:
    judge = Judge()
    failures(judge, 4)
    judge.progress()
    assert judge.failures == 0
    assert failures(judge, 2) == [Again(delay=0.0), Again(delay=0.5)]


@pytest.mark.parametrize(
    ("patience", "kinds"),
    [
        (0, [GiveUp]),
        (1, [Again, GiveUp]),
        (2, [Again, Again, GiveUp, GiveUp]),
        (5, [Again, Again, Again, Again, Again, GiveUp]),
        (None, [Again] * 20),
    ],
)
def test_patience_is_for_failures_in_a_row(patience: int | None, kinds: list[type]) -> None:
    judge = Judge(patience=patience)
    assert [type(verdict) for verdict in failures(judge, len(kinds))] == kinds
    judge.progress()
    assert [type(verdict) for verdict in failures(judge, len(kinds))] == kinds


@pytest.mark.parametrize("decision", [Decision.RECONFIGURE, Decision.FATAL])
def test_what_does_not_pass_by_itself_is_given_up_at_once(decision: Decision) -> None:
    fault = error(decision, retry_after=1.0)
    assert Judge().failed(fault, hearing=True, chance=0.5) == GiveUp(error=fault)


def test_the_error_given_up_with_is_the_last_one() -> None:
    judge = Judge(patience=1)
    judge.failed(error(), hearing=False, chance=0)
    last = error()
    verdict = judge.failed(last, hearing=False, chance=0)
    assert isinstance(verdict, GiveUp)
    assert verdict.error is last


def test_sound_that_breaks_three_sessions_is_passed_over() -> None:
    kinds = [type(verdict) for verdict in failures(Judge(), 7, hearing=True)]
    assert kinds == [Again, Again, PassOver, Again, Again, PassOver, Again]


def test_a_session_that_heard_nothing_does_not_speak_against_the_sound() -> None:
    judge = Judge()
    verdicts = [
        *failures(judge, 2, hearing=True),
        *failures(judge, 3),
        *failures(judge, 1, hearing=True),
    ]
    assert [type(verdict) for verdict in verdicts] == [Again] * 5 + [PassOver]
    assert verdicts[-1] == PassOver(delay=8.0)


def test_words_that_are_not_settled_make_it_wait_less_but_do_not_speak_for_the_sound() -> None:
    judge = Judge(patience=3)
    verdicts: list[Verdict] = []
    for _ in range(4):
        verdicts += failures(judge, 1, hearing=True)
        judge.alive()
        assert judge.failures == 0
    assert [type(verdict) for verdict in verdicts] == [Again, Again, PassOver, Again]
    assert verdicts[1] == Again(delay=0.0)


@pytest.mark.parametrize(
    ("number", "chance", "delay"),
    [(0, 1, 0), (1, 0, 0.5), (1, 1, 0.625), (5, 0, 8), (5, 0.5, 9), (10**6, 0, 8)],
)
def test_how_long_to_wait(number: int, chance: float, delay: float) -> None:
    assert backoff(number, chance) == pytest.approx(delay)


def test_progress_speaks_for_the_sound() -> None:
    judge = Judge()
    failures(judge, 2, hearing=True)
    judge.progress()
    assert Again in {type(v) for v in failures(judge, 2, hearing=True)}
    assert isinstance(failures(judge, 1, hearing=True)[0], PassOver)


def test_patience_ends_before_sound_is_passed_over() -> None:
    kinds = [type(verdict) for verdict in failures(Judge(patience=2), 3, hearing=True)]
    assert kinds == [Again, Again, GiveUp]


@pytest.mark.parametrize(
    ("number", "retry_after", "delay"),
    [
        (1, None, 0.0),
        (1, 0.0, 0.0),
        (1, 3.0, 3.0),
        (2, 0.1, 0.5),
        (6, 3.0, 8.0),
        (6, 60.0, 60.0),
    ],
)
def test_it_does_not_come_back_before_it_was_asked_to(
    number: int, retry_after: float | None, delay: float
) -> None:
    judge = Judge()
    failures(judge, number - 1)
    fault = error(retry_after=retry_after)
    assert judge.failed(fault, hearing=False, chance=0) == Again(delay=delay)


@given(chances=st.lists(st.floats(0, 1), min_size=1, max_size=len(DELAYS)))
def test_chance_adds_a_quarter_at_most(chances: list[float]) -> None:
    judge = Judge()
    for delay, chance in zip(DELAYS, chances, strict=False):
        verdict = judge.failed(error(), hearing=False, chance=chance)
        assert isinstance(verdict, Again)
        assert verdict.delay == pytest.approx(delay * (1 + chance / 4))
