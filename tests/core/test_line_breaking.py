"""Words, cuts and whole characters."""

from itertools import pairwise

import pytest
from hypothesis import given

from fakes.choices import any_text, made
from surtitle.core.line_breaking import clusters, has_words, simple_breaks, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \t\n", []),
        ("one", ["one"]),
        (" one  two\u2028three ", ["one", "two", "three"]),
        ("10\u00a0kg left", ["10\u00a0kg", "left"]),
    ],
)
def test_words_end_at_breakable_white_space(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == expected
    assert has_words(text) is bool(expected)


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("plain", ["plain"]),
        ("well-known", ["well-", "known"]),
        ("-5", ["-5"]),
        ("3-4", ["3-4"]),
        ("--verbose", ["--verbose"]),
        ("\u65e5\u672c\u8a9e", ["\u65e5", "\u672c", "\u8a9e"]),
        ("\u306f\u3044\u3002\u300c\u3046\u300d", ["\u306f", "\u3044\u3002", "\u300c\u3046\u300d"]),
        ("\u30ab\u30fc\u30c9", ["\u30ab\u30fc", "\u30c9"]),
        ("Qt\u306e6", ["Qt", "\u306e", "6"]),
        ("\ud55c\uad6d\uc5b4", ["\ud55c\uad6d\uc5b4"]),
    ],
)
def test_a_word_is_cut_where_readers_expect_it(word: str, pieces: list[str]) -> None:
    edges = [0, *simple_breaks(word), len(word)]
    assert [word[a:b] for a, b in pairwise(edges)] == pieces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("ab", ["a", "b"]),
        ("e\u0301a", ["e\u0301", "a"]),
        (
            "\U0001f1eb\U0001f1f7\U0001f1ea\U0001f1f8",
            ["\U0001f1eb\U0001f1f7", "\U0001f1ea\U0001f1f8"],
        ),
        ("\U0001f469\u200d\U0001f4bbx", ["\U0001f469\u200d\U0001f4bb", "x"]),
        ("\U0001f44d\U0001f3fd\u2764\ufe0f", ["\U0001f44d\U0001f3fd", "\u2764\ufe0f"]),
        ("\u0301a", ["\u0301", "a"]),
    ],
)
def test_characters_stay_whole(text: str, expected: list[str]) -> None:
    assert list(clusters(text)) == expected


@given(made(any_text, 120))
def test_clusters_lose_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text
