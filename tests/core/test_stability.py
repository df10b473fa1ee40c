import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.choices import Choices, any_text, choices, made, thorough
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.stability import Enough, Stability, WordStream, agreed_form, words_of

RULES = Stability(show=(Enough(2, 0.2),), settle=(Enough(4, 0.8), Enough(1, 3.0)))


def at(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def heard(*hypotheses: tuple[float, str], rules: Stability = RULES) -> WordStream:
    stream = WordStream(rules)
    for seconds, text in hypotheses:
        stream.hear(text, end=at(seconds))
    return stream


def read(stream: WordStream) -> tuple[str, str]:
    return stream.settled, stream.tentative


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n\t", []),
        ("hello", ["hello"]),
        ("  hello \n world ", ["hello", " world"]),
        ("don't stop", ["don't", " stop"]),
        ("日本語", ["日", "本", "語"]),
        ("私はiPhoneを", ["私", "は", "iPhone", "を"]),
        ("です。はい", ["で", "す", "。", "は", "い"]),
        ("say 日本 now", ["say", " 日", "本", " now"]),
        ("안녕 세상", ["안녕", " 세상"]),
        ("สวัสดี", list("สวัสดี")),
    ],
)
def test_text_is_cut_into_words_that_bring_their_space(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(made(any_text, 120))
def test_words_joined_are_the_text_with_its_space_evened_out(text: str) -> None:
    assert "".join(words_of(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Hello,", " hello", True),
        ("world.", "World!", True),
        ("STRASSE", "straße", True),
        ("don't", "dont", False),
        ("there", "their", False),
        ("…", "...", False),
        ("-", " -", True),
    ],
)
def test_case_and_punctuation_do_not_matter(one: str, other: str, agree: bool) -> None:  # noqa: FBT001 - a table
    assert (agreed_form(one) == agreed_form(other)) == agree


@pytest.mark.parametrize(
    ("steadiness", "show", "settle"),
    [(0.0, 2, 4), (0.33, 2, 4), (0.34, 3, 5), (0.5, 3, 5), (0.66, 3, 5), (0.67, 5, 6), (1, 5, 6)],
)
def test_steadier_asks_for_more_agreement(steadiness: float, show: int, settle: int) -> None:
    rules = Stability.of(steadiness)
    assert (rules.show[0].agreed, rules.settle[0].agreed) == (show, settle)
    # The longer something is agreed on, the fewer times it has to be.
    for rule in (rules.show, rules.settle):
        assert list(rule) == sorted(rule, key=lambda enough: (-enough.agreed, enough.age))
    assert rules.show[0].age < rules.settle[0].age
    assert rules.settle[-1].agreed == 1


@pytest.mark.parametrize(
    ("hypotheses", "settled", "tentative"),
    [
        pytest.param([(0.5, "one")], "", "", id="once is held back"),
        pytest.param([(0.5, "one"), (0.8, "one")], "", "one", id="twice is shown"),
        pytest.param([(0.5, "one"), (0.6, "one")], "", "", id="twice, but too soon"),
        pytest.param([(0.5, "one"), (0.8, "won")], "", "", id="not agreed"),
        pytest.param([(0.5, "one"), (0.8, "One,")], "", "One,", id="new capital, new comma"),
        pytest.param([(0.5, "one"), (0.8, "one two")], "", "one", id="new word is held back"),
        pytest.param(
            [(0.5, "one"), (0.8, "one"), (1.1, "one"), (1.4, "one two")],
            *("one", ""),
            id="four times is settled",
        ),
        pytest.param(
            [(0.5, "one"), (0.6, "one"), (0.7, "one"), (0.8, "one")],
            *("", "one"),
            id="four times, but too soon to settle",
        ),
        pytest.param(
            [(0.5, "a"), (1.0, "b"), (1.5, "a"), (2.0, "b"), (3.4, "a"), (3.5, "b")],
            *("b", ""),
            id="a place is not undecided for ever",
        ),
        pytest.param(
            [(0.5, "one two"), (0.8, "one two"), (1.1, "one"), (1.4, "one two")],
            *("one", " two"),
            id="settled and shown",
        ),
    ],
)
def test_when_words_are_shown_and_settled(
    hypotheses: list[tuple[float, str]], settled: str, tentative: str
) -> None:
    assert read(heard(*hypotheses)) == (settled, tentative)


@pytest.mark.parametrize("stray", ["", "one", "won to", "and one two", "something else now"])
def test_a_hypothesis_that_strays_once_changes_nothing_on_screen(stray: str) -> None:
    stream = heard((0.5, "one two"), (0.8, "one two"))
    assert read(stream) == ("", "one two")
    stream.hear(stray, end=at(0.9))
    assert read(stream) == ("", "one two")


def test_what_is_agreed_on_takes_the_place_of_what_was_shown() -> None:
    stream = heard((0.5, "ice cream"), (0.8, "ice cream"), (1.0, "I scream"), (1.2, "I scream"))
    assert read(stream) == ("", "I scream")


def test_what_stood_behind_what_was_replaced_goes_with_it() -> None:
    stream = heard((0.5, "ice cream"), (0.8, "ice cream"), (1.0, "I scream"), (1.2, "I shout"))
    assert read(stream) == ("", "I")


def test_words_after_a_change_keep_their_standing() -> None:
    stream = heard((0.5, "a b c"), (0.8, "a b c"), (1.0, "x b c"), (1.2, "x b c"))
    assert read(stream) == ("", "x b c")
    stream.hear("x b c", end=at(1.4))
    stream.hear("x b c", end=at(1.6))
    assert read(stream) == ("x b c", "")


@pytest.mark.parametrize(
    ("text", "stable_until", "settled"),
    [
        ("know it", 0, ""),
        ("know it", 2, ""),
        ("know it", 4, "know"),
        ("know it", 5, "know"),
        ("know it", 6, "know"),
        pytest.param("know", 4, "", id="may become knowing"),
        pytest.param("know it", 7, "know", id="may become its"),
        ("know it ", 8, "know it"),
        ("know, it", 4, ""),
        ("know, it", 5, "know,"),
        ("know it", 99, "know"),
        ("日本語", 2, "日本"),
        ("日本語", 3, "日本語"),
        ("abc日", 3, "abc"),
        ("日abc", 1, "日"),
        ("日abc", 2, "日"),
    ],
)
def test_what_the_engine_promises_is_settled_word_by_word(
    text: str, stable_until: int, settled: str
) -> None:
    stream = WordStream(RULES)
    stream.hear(text, end=at(0.5), stable_until=stable_until)
    assert stream.settled == settled


@given(choices(18))
def test_an_engine_that_only_appends_loses_nothing(choose: Choices) -> None:
    words = ["know", "knowing", "日本", "a", "it's"]
    text = " ".join(choose.several(lambda: choose.of(words), most=8))
    stream = WordStream(RULES)
    cuts = sorted(choose.several(lambda: choose.between(0, len(text)), most=8))
    for number, cut in enumerate(cuts, 1):
        stream.hear(text[:cut], end=at(0.08 * number), stable_until=cut)
        assert text.startswith(stream.settled)
    stream.finish(text)
    assert stream.settled == text


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("hello", "hello world", "hello world"),
        ("hello ", "hello  world ", "hello world"),
        ("hello", "hello, world", "hello world"),
        ("hello", "", "hello"),
        ("don't", "don't you", "don't you"),
        ("hello", "world", "hello"),
        ("私は", "私はiPhoneを", "私はiPhoneを"),
        ("です", "です。", "です。"),
        ("hello 日", "hello 日本 now", "hello 日本 now"),
    ],
)
def test_what_follows_settled_words_is_joined_by_one_space_or_none(
    before: str, after: str, joined: str
) -> None:
    stream = WordStream(RULES)
    stream.hear(before + " ", end=at(0.5), stable_until=len(before) + 1)
    assert stream.settled == before.strip()
    stream.finish(after)
    assert read(stream) == (joined, "")


@pytest.mark.parametrize(
    ("final", "text", "overhang"),
    [
        ("one two three four", "one two three four", ()),
        ("one two three", "one two three", ()),
        ("one", "one two three", (" two", " three")),
        ("", "one two three", ("one", " two", " three")),
        ("one too three", "one two three", ()),
        ("two three four", "one two three four", ()),
    ],
)
def test_the_final_takes_nothing_back(final: str, text: str, overhang: tuple[str, ...]) -> None:
    stream = WordStream(RULES)
    stream.hear("one two three ", end=at(1), stable_until=14)
    stream.finish(final)
    assert read(stream) == (text, "")
    assert stream.overhang == overhang


def test_what_is_dropped_was_not_settled() -> None:
    stream = WordStream(RULES)
    stream.hear("one two", end=at(0.5), stable_until=4)
    stream.hear("one two", end=at(0.8), stable_until=4)
    assert read(stream) == ("one", " two")
    stream.abandon()
    assert read(stream) == ("one", "")
    assert stream.overhang == ("one",)


def test_words_that_were_read_before_are_not_repeated() -> None:
    stream = WordStream(RULES, already_settled=("c", " d"))
    stream.hear("c", end=at(0.5))
    assert read(stream) == ("", "")
    stream.hear("c d e", end=at(0.8))
    stream.hear("c d e", end=at(1.1))
    assert read(stream) == ("", "e")
    stream.finish("c d e f")
    assert read(stream) == ("e f", "")


VOCABULARY = ["the", "The,", "no", "a", "日本", "語。", "know-how"]


def any_words(choose: Choices) -> str:
    return " ".join(choose.several(lambda: choose.of(VOCABULARY), most=6))


def any_hypotheses(choose: Choices) -> list[tuple[str, int, int]]:
    """Text, how many characters of it are stable, and steps since the last."""

    def one() -> tuple[str, int, int]:
        return any_words(choose), choose.between(0, 30), choose.between(-3, 8)

    return choose.several(one, most=12)


HYPOTHESES = made(any_hypotheses, 80)
FINALS = made(any_words, 7)


@thorough
@given(HYPOTHESES, FINALS, st.sampled_from([(), ("no",), ("the", " a")]))
def test_settled_text_only_grows_at_its_end(
    hypotheses: list[tuple[str, int, int]], final: str, already: tuple[str, ...]
) -> None:
    stream, settled, end = WordStream(RULES, already_settled=already), "", 0
    for text, stable_until, step in hypotheses:
        end = max(0, end + step * SAMPLE_RATE // 5)
        stream.hear(text, end=end, stable_until=stable_until)
        assert stream.settled.startswith(settled)
        settled, now = stream.settled, read(stream)
        stream.hear(text, end=end, stable_until=stable_until)
        assert read(stream) == now, "the same hypothesis again changes nothing"
    stream.finish(final)
    assert stream.settled.startswith(settled)
    assert stream.tentative == ""


@given(HYPOTHESES, FINALS)
def test_white_space_is_one_space_or_none(
    hypotheses: list[tuple[str, int, int]], final: str
) -> None:
    stream, end = WordStream(RULES), 0
    for text, _, step in hypotheses:
        end += max(1, step) * SAMPLE_RATE // 5
        stream.hear(text, end=end)
        whole = stream.settled + stream.tentative
        assert whole == " ".join(whole.split())
    stream.finish(final)
    assert stream.settled == " ".join(stream.settled.split())
