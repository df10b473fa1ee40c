import pytest
from hypothesis import given

from fakes.choices import Choices, made
from surtitle.core.credibility import Credibility, is_filler, likeness, most_agreed

WORDS = ["the", "cat", "sat", "on", "Mat."]


def any_text(choose: Choices, *, least: int = 0) -> str:
    return " ".join(choose.several(lambda: choose.of(WORDS), least=least, most=8))


def any_texts(choose: Choices) -> list[str]:
    return choose.several(lambda: any_text(choose, least=1), least=2, most=6)


@pytest.mark.parametrize(
    "text",
    ["Thank you.", "thank you", "Thanks for watching!", "you", "Bye.", " Oh,", "Uh", "So..."],
)
def test_what_models_say_to_nothing_is_a_filler(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize(
    "text", ["", "thank", "Thank you all.", "you know", "oh no", "bye bye", "theory"]
)
def test_what_people_say_is_none(text: str) -> None:
    assert not is_filler(text)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("", "", 1.0),
        ("a", "", 0.0),
        ("a b", "a b", 1.0),
        ("A, b.", "a b", 1.0),
        ("a b", "c d", 0.0),
        ("a b c d", "a b", 2 / 3),
        ("a b", "b a", 0.5),
    ],
)
def test_likeness_counts_words_in_order(one: str, other: str, expected: float) -> None:
    assert likeness(one, other) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        (["a"], "a"),
        (["a b", "a c"], "a b"),
        (["x y z", "a b c", "a b d"], "a b c"),
        (["a b c d", "a b x d", "y b c d"], "a b c d"),
        (["a b", "A, b.", "a c"], "a b"),
        (["", "", "a"], ""),
        (["a b c", "", "a b d"], "a b c"),
    ],
)
def test_the_best_answer_is_the_one_that_the_others_are_most_like(
    texts: list[str], best: str
) -> None:
    assert most_agreed(texts) == best


@given(made(any_texts, 55))
def test_what_most_answers_say_wins(texts: list[str]) -> None:
    assert most_agreed(texts) in texts
    assert most_agreed([*texts, *["the same"] * (len(texts) + 1)]) == "the same"


@given(made(any_text, 9), made(any_text, 9))
def test_likeness_is_a_share(one: str, other: str) -> None:
    assert 0.0 <= likeness(one, other) <= 1.0
    assert likeness(one, one) == 1.0


@pytest.mark.parametrize(
    ("hypotheses", "believed"),
    [
        pytest.param([], False, id="nothing heard"),
        pytest.param(["the cat sat"], False, id="heard once"),
        pytest.param(["the cat sat", "the cat sat"], True, id="came back"),
        pytest.param(["The cat.", "the cat sat on"], True, id="came back and went on"),
        pytest.param(["cat", "cat"], False, id="one word may come back by chance"),
        pytest.param(["cat", "cat", "cat sat"], True, id="but not twice"),
        pytest.param(["a b c d", "a b x y"], True, id="the last word may be cut short"),
        pytest.param(["a b c d", "e f g h"], False, id="another answer"),
        pytest.param(["a b c d", "a x y z"], False, id="little came back"),
        pytest.param(["", ""], False, id="no words"),
        pytest.param(["you", "you", "you", "you"], False, id="a filler is no evidence"),
        pytest.param(["a b c d", "e f g h", "e f g h", "e f g h"], True, id="belief can be won"),
        pytest.param(
            ["a b c", "a b c", *(word * 9 for word in ("x ", "y ", "z "))], False, id="and lost"
        ),
    ],
)
def test_words_that_come_back_are_believed(
    hypotheses: list[str],
    believed: bool,  # noqa: FBT001 - a table
) -> None:
    credibility = Credibility()
    for text in hypotheses:
        credibility.hear(text)
    assert credibility.believed == believed


@given(made(any_texts, 55))
def test_who_only_adds_words_is_believed(texts: list[str]) -> None:
    credibility = Credibility()
    said = "yesterday the"
    for text in texts:
        credibility.hear(said)
        said = f"{said} {text}"
    assert credibility.believed
