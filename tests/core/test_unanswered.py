import pytest

from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE
from surtitle.core.unanswered import Doubts, Unanswered

S = SAMPLE_RATE


def spoken(*spans: tuple[float, float], words: float | None = None) -> Unanswered:
    unanswered = Unanswered()
    for start, end in spans:
        unanswered.voice(int(start * S), int(end * S))
    if words is not None:
        unanswered.words(int(words * S))
    return unanswered


@pytest.mark.parametrize(
    ("words", "seconds"), [(None, 3.0), (1.0, 3.0), (1.5, 2.5), (2.0, 2.0), (3.5, 1.5), (9.0, 0.0)]
)
def test_words_answer_the_speech_before_them(words: float | None, seconds: float) -> None:
    assert spoken((1.0, 2.0), (3.0, 4.0), (4.0, 5.0), words=words).seconds == seconds


@pytest.mark.parametrize(
    ("spans", "words", "position", "held"),
    [
        ((), None, 9.0, 9.0),
        (((3.0, 4.0),), None, 9.0, 2.5),
        (((3.0, 4.0),), 2.8, 9.0, 2.8),  # what has words is done with
        (((3.0, 4.0),), 4.0, 9.0, 9.0),
        (((3.0, 4.0),), None, 2.0, 2.0),
        (((3.0, 4.0),), None, 99.0, 59.0),  # it is not kept for ever
    ],
)
def test_speech_without_words_is_not_done_with(
    spans: tuple[tuple[float, float], ...], words: float | None, position: float, held: float
) -> None:
    assert spoken(*spans, words=words).held(int(position * S)) == int(held * S)


def test_a_final_ends_with_its_words_where_much_speech_follows_them() -> None:
    unanswered = spoken((1.0, 4.0), words=2.0)
    assert unanswered.final(S, 5 * S) == 2 * S - CHUNK_SAMPLES
    assert unanswered.seconds == 2.0


def test_a_final_ends_with_the_pause_where_little_does() -> None:
    unanswered = spoken((1.0, 4.0), words=3.5)
    assert unanswered.final(S, 5 * S) == 5 * S
    assert unanswered.seconds == 0.0


def test_speech_behind_a_final_is_none_of_its_business() -> None:
    unanswered = spoken((1.0, 4.0), (6.0, 9.0), words=4.0)
    assert unanswered.final(S, 5 * S) == 5 * S
    assert unanswered.seconds == 3.0


def test_forgiven_speech_was_none() -> None:
    unanswered = spoken((1.0, 4.0))
    unanswered.forgive()
    assert (unanswered.seconds, unanswered.held(9 * S)) == (0.0, 9 * S)


def test_a_session_that_gives_no_words_is_doubted_once_and_then_believed() -> None:
    doubts = Doubts()
    assert doubts.arise(15.0, settled=0, sent=20 * S) is None
    assert doubts.arise(15.1, settled=0, sent=20 * S) is True
    assert doubts.arise(15.1, settled=0, sent=20 * S) is None  # it is given twice the time
    assert doubts.arise(30.1, settled=0, sent=40 * S) is False
    # What comes later is another matter.
    assert doubts.arise(60.1, settled=20 * S, sent=90 * S) is True
    doubts.words()
    assert doubts.arise(15.1, settled=90 * S, sent=110 * S) is True


def test_at_the_end_a_second_of_speech_is_enough() -> None:
    doubts = Doubts()
    assert doubts.arise(1.0, settled=0, sent=S, ended=True) is None
    assert doubts.arise(1.1, settled=0, sent=S, ended=True) is True
    assert doubts.arise(1.1, settled=0, sent=S, ended=True) is False
