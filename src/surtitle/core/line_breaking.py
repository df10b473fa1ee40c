"""Where text may be cut into lines, by simple rules.

The full rules (UAX #14, UAX #29) need tables that Python does not carry; these
are the parts of them that captions meet most.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

__all__ = ["clusters", "has_words", "simple_breaks", "words"]

# White space that may become the end of a line. The no-break spaces belong to the word.
_WORD = re.compile(r"[\S\u00a0\u2007\u202f]+")

# Chinese and Japanese. Korean is written with spaces and is cut there.
_IDEOGRAPHIC = re.compile(
    "[\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff01-\uff60\uff65-\uff9f\U00020000-\U0003ffff]"
)
_NOT_FIRST = frozenset(
    "!%),.:;?]}\u2019\u201d\u2026"  # Latin closers among ideographs
    "\u3001\u3002\u3005\u3009\u300b\u300d\u300f\u3011\u3015\u3017\u3019\u301f\u303b"
    "\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308e\u3095\u3096\u309d\u309e"
    "\u30a1\u30a3\u30a5\u30a7\u30a9\u30c3\u30e3\u30e5\u30e7\u30ee\u30f5\u30f6"
    "\u30fb\u30fc\u30fd\u30fe"
    "\uff01\uff05\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d\uff60"
)
_NOT_LAST = frozenset(
    "$([{\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\u3016\u3018\u301d\uff08\uff3b\uff5b\uff5f"
)

_HYPHENS = frozenset("-\u2010\u2013\u2014")
_ZERO_WIDTH_JOINER = "\u200d"
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")


def words(text: str) -> Iterator[tuple[int, int]]:
    """Beginning and end of each run without breakable white space."""
    return (match.span() for match in _WORD.finditer(text))


def has_words(text: str) -> bool:
    """Whether anything is to be read in the text."""
    return _WORD.search(text) is not None


def simple_breaks(word: str) -> Iterator[int]:
    """Offsets within a word before which a line may end: around ideographs, and after hyphens.

    A comma or closing bracket never begins a line there; an opening one never ends it.
    """
    for offset, (left, right) in enumerate(pairwise(word), start=1):
        if right in _NOT_FIRST or left in _NOT_LAST or _is_glued(left, right):
            continue
        hyphen = left in _HYPHENS and right.isalpha() and word[offset - 2 : offset - 1].isalpha()
        if hyphen or _IDEOGRAPHIC.match(left) or _IDEOGRAPHIC.match(right):
            yield offset


def _is_glued(before: str, character: str) -> bool:
    """Whether the character belongs to the end of the text before it, as an accent does."""
    return bool(before) and (
        character == _ZERO_WIDTH_JOINER
        or before[-1] == _ZERO_WIDTH_JOINER
        or unicodedata.category(character).startswith("M")
        or _SKIN.match(character) is not None
    )


def clusters(text: str) -> Iterator[str]:
    """What a reader takes for single characters: letters with accents, flags, joined emoji."""
    cluster = ""
    for character in text:
        flag = _REGIONAL.fullmatch(cluster) and _REGIONAL.match(character)
        if cluster and not flag and not _is_glued(cluster, character):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster
