"""Entries and the forms in which they leave the program."""

import io
import itertools
import json
import re
from dataclasses import replace

import pysubs2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.choices import Choices, choices, made, thorough
from surtitle.core.transcript import (
    CUE_LINES,
    LINE_COLUMNS,
    MIN_CUE_MS,
    Cue,
    Entry,
    Form,
    Transcript,
    Writer,
    cues,
    gap_mark,
    to_json,
    to_srt,
    to_text,
    to_vtt,
)


def entry(key: int, start: float, end: float, text: str = "", *, source: str = "") -> Entry:
    return Entry(key=key, start=start, end=end, text=text, source=source)


def gap(key: int, start: float, end: float) -> Entry:
    return Entry(key=key, start=start, end=end, text="", gap=True)


ODD_WORDS = [
    *("", "a", "It's", "12", "-->", "<i>", "&amp;", "{\\an8}", "\\N", "\x1b[2J", "\n\n", "0\x00"),
    *(
        "日本語の字幕です" * 4,
        "e\u0301" * 50,
        "x\u200d" * 30,
        "Donaudampfschifffahrt" * 3,
        "a\u00a0b",
    ),
]


def one_source(choose: Choices) -> list[Entry]:
    """What one source says: one utterance or gap after the other."""

    def word() -> str:
        return choose.text(most=8) if choose.seldom(2) else choose.of(ODD_WORDS)

    entries, now = [], 0.0
    for key in range(choose.between(0, 4)):
        start = now + choose.number(5)
        now = start + choose.number(30)
        mark = choose.seldom(3)
        text = "" if mark else " ".join(choose.several(word, most=10))
        entries.append(Entry(key=key, start=start, end=now, text=text, gap=mark))
    return entries


def sources(choose: Choices) -> list[list[Entry]]:
    return choose.several(lambda: one_source(choose), least=1, most=2)


SOURCE = made(one_source, 120)


# The collection.


def test_an_entry_replaces_the_one_with_its_key_and_order_is_by_start() -> None:
    transcript = Transcript()
    for each in (entry(2, 5, 6, "b"), entry(1, 1, 2, "a"), entry(2, 5, 7, "b c")):
        transcript.add(each)
    assert [(e.key, e.text) for e in transcript] == [(1, "a"), (2, "b c")]
    assert len(transcript) == 2


def test_the_collection_is_bounded_and_counts_what_it_dropped() -> None:
    transcript = Transcript(limit=3)
    for key in range(5):
        transcript.add(entry(key, key, key + 1, "x"))
    assert [e.key for e in transcript] == [2, 3, 4]
    assert transcript.dropped == 2


# Marks for gaps.


@pytest.mark.parametrize(
    ("seconds", "mark"),
    [
        (0, "[0.1 s missing]"),
        (0.42, "[0.4 s missing]"),
        (1, "[1 s missing]"),
        (12.3, "[12 s missing]"),
        (59.7, "[1 min 0 s missing]"),
        (125, "[2 min 5 s missing]"),
        (3720, "[1 h 2 min missing]"),
    ],
)
def test_gap_mark_says_the_length(seconds: float, mark: str) -> None:
    assert gap_mark(seconds) == mark


# Plain text and JSON.


def test_text_is_one_line_an_entry() -> None:
    entries = [
        entry(1, 0, 2, "  two\nlines \x1b[31m", source="Me"),
        gap(2, 2, 14),
        entry(3, 3700, 3701, "x"),
        entry(4, 3702, 3703, " \n"),
    ]
    assert to_text(entries) == "Me: two lines [31m\n[12 s missing]\nx\n"
    assert to_text(entries, times=True).splitlines()[-1] == "1:01:40 x"


def test_json_is_one_object_a_line() -> None:
    lines = to_json([entry(7, 0.5, 2.12345, 'say "ü"', source="Me"), gap(8, 3, 4)]).splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "type": "final",
            "source": "Me",
            "utterance": 7,
            "start": 0.5,
            "end": 2.123,
            "text": 'say "ü"',
        },
        {"type": "gap", "source": "", "utterance": 8, "start": 3, "end": 4, "text": ""},
    ]


# Cues.


def test_a_cue_starts_when_its_speech_starts_not_when_the_last_one_ended() -> None:
    first, second = cues([entry(1, 1, 3, "before"), entry(2, 63, 65, "after a minute")])
    assert first == Cue(start_ms=1000, end_ms=3000, lines=("before",))
    assert second == Cue(start_ms=63_000, end_ms=65_000, lines=("after a minute",))


def test_a_short_cue_is_shown_long_enough_and_the_next_one_waits_for_it() -> None:
    assert [
        (c.start_ms, c.end_ms) for c in cues([entry(1, 1, 1.2, "a"), entry(2, 1.5, 3, "b")])
    ] == [
        (1000, 2000),
        (2000, 3000),
    ]


def test_an_entry_that_goes_on_while_another_speaks_makes_way() -> None:
    both = [entry(1, 0, 10, "long", source="Me"), entry(2, 4, 6, "in between", source="Others")]
    assert [(c.start_ms, c.end_ms, c.lines) for c in cues(both)] == [
        (0, 4000, ("Me: long",)),
        (4000, 6000, ("Others: in between",)),
    ]


def test_a_long_utterance_becomes_several_even_cues_over_its_time() -> None:
    text = " ".join(["word"] * 40)  # 199 columns: five lines of 42, three cues
    result = cues([entry(1, 10, 22, text)])
    assert len(result) == 3
    assert (result[0].start_ms, result[-1].end_ms) == (10_000, 22_000)
    lengths = [cue.end_ms - cue.start_ms for cue in result]
    assert max(lengths) - min(lengths) <= 1500
    assert [len(cue.lines) for cue in result] == [2, 2, 2]


def test_an_utterance_one_word_too_long_does_not_leave_that_word_alone() -> None:
    text = " ".join(["abcdefgh"] * 10)  # 89 columns: 36 + 36 + 17
    result = cues([entry(1, 0, 8, text)])
    assert [len(" ".join(cue.lines).split()) for cue in result] == [6, 4]


def test_wide_characters_take_two_columns_and_break_anywhere() -> None:
    result = cues([entry(1, 0, 8, "日" * 50)])
    assert [[len(line) for line in cue.lines] for cue in result] == [[21, 21], [8]]


def test_a_break_does_not_part_a_letter_from_its_accent() -> None:
    result = cues([entry(1, 0, 8, "e\u0301" * 50)])
    assert [line.count("e") for cue in result for line in cue.lines] == [42, 8]
    assert all(line[0] == "e" for cue in result for line in cue.lines)


def squeezed(text: str) -> str:
    """Return the text without white space and without what no form keeps."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", "", text)


@thorough
@given(made(sources, 200))
def test_cues_are_in_order_readable_apart_and_complete(sources: list[list[Entry]]) -> None:
    entries = [each for source in sources for each in source]
    result = cues(entries)
    assert all(cue.end_ms - cue.start_ms >= MIN_CUE_MS for cue in result)
    assert all(a.end_ms <= b.start_ms for a, b in itertools.pairwise(result))
    assert all(1 <= len(cue.lines) <= CUE_LINES for cue in result)
    assert all(line.strip() == line != "" for cue in result for line in cue.lines)
    shown = sorted(squeezed("".join(line for cue in result for line in cue.lines)))
    said = "".join(gap_mark(e.end - e.start) if e.gap else e.text for e in entries)
    assert shown == sorted(squeezed(said))


@given(SOURCE)
def test_the_cues_of_one_source_keep_its_words_in_order(entries: list[Entry]) -> None:
    shown = "".join(line for cue in cues(entries) for line in cue.lines)
    said = "".join(gap_mark(e.end - e.start) if e.gap else e.text for e in entries)
    assert squeezed(shown) == squeezed(said)


def short_words(choose: Choices) -> list[str]:
    letters = "abcdefgh" * LINE_COLUMNS
    return choose.several(lambda: letters[: choose.between(1, LINE_COLUMNS)], least=1, most=20)


@given(made(short_words, 41))
def test_no_line_is_too_long_and_no_word_is_broken_that_fits(words: list[str]) -> None:
    lines = [line for cue in cues([entry(1, 0, 60, " ".join(words))]) for line in cue.lines]
    assert all(len(line) <= LINE_COLUMNS for line in lines)
    assert " ".join(lines).split(" ") == words


# SubRip and WebVTT, read by somebody else.


ENTRIES = [
    entry(1, 0.5, 2, "Hello there.", source="Me"),
    gap(2, 2, 14),
    entry(3, 3600.25, 3602, "So --> that was <b>it</b> & {\\i1} {all}."),
]


def test_srt_as_a_player_reads_it() -> None:
    assert to_srt(ENTRIES).startswith("1\n00:00:00,500 --> 00:00:02,000\nMe: Hello there.\n\n2\n")
    read = pysubs2.SSAFile.from_string(to_srt(ENTRIES), format_="srt")
    assert [(e.start, e.end, e.plaintext) for e in read] == [
        (500, 2000, "Me: Hello there."),
        (2000, 14_000, "[12 s missing]"),
        (
            3_600_250,
            3_602_000,
            "So --\u203a that was \u2039b\u203ait\u2039/b\u203a & (\\i1) (all).",
        ),
    ]


def test_vtt_as_a_player_reads_it() -> None:
    assert to_vtt([]) == "WEBVTT\n\n"
    assert to_vtt(ENTRIES).startswith(
        "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nMe: Hello there.\n\n"
    )
    assert "So --&gt; that was &lt;b&gt;it&lt;/b&gt; &amp;" in to_vtt(ENTRIES)
    read = pysubs2.SSAFile.from_string(to_vtt(ENTRIES), format_="vtt")
    assert [(e.start, e.end) for e in read] == [(500, 2000), (2000, 14_000), (3_600_250, 3_602_000)]


def test_times_beyond_a_hundred_hours_stay_true() -> None:
    assert to_srt([entry(1, 360_000, 360_002, "x")]).startswith(
        "1\n100:00:00,000 --> 100:00:02,000"
    )


@given(SOURCE)
@example([entry(1, 0, 2, "-->\n\n2\n00:00:01,000 --> 00:00:02,000\nx")])
def test_speech_cannot_forge_a_cue(entries: list[Entry]) -> None:
    count = len(cues(entries))
    for text in (to_srt(entries), to_vtt(entries)):
        assert text.count("-->") == count
        blocks = [block for block in re.split(r"\n\n", text) if block not in {"", "WEBVTT"}]
        assert len(blocks) == count
        assert text.encode().decode() == text


# Writing while it grows.


def one_go(form: Form, entries: list[Entry]) -> str:
    match form:
        case Form.TEXT:
            return to_text(entries)
        case Form.SRT:
            return to_srt(entries)
        case Form.VTT:
            return to_vtt(entries)
        case Form.JSON:
            return to_json(entries)


@given(st.sampled_from(Form), SOURCE, choices(5))
def test_growing_gives_what_one_go_gives(form: Form, entries: list[Entry], choose: Choices) -> None:
    writer, text = Writer(form), io.StringIO()
    for each in entries:
        for _ in range(choose.between(0, 2)):
            assert not writer.entry(replace(each, text=each.text[:5], closed=False))
        text.write(writer.entry(each))
    text.write(writer.close())
    assert text.getvalue() == one_go(form, entries)


@pytest.mark.parametrize("form", Form)
def test_a_settled_entry_is_written_at_once(form: Form) -> None:
    assert "Hello" in Writer(form).entry(entry(1, 0, 1, "Hello"))


def test_closing_writes_what_is_still_open_in_its_last_wording() -> None:
    writer = Writer(Form.TEXT)
    writer.entry(replace(entry(1, 0, 1, "Hel"), closed=False))
    writer.entry(replace(entry(1, 0, 2, "Hello th"), closed=False))
    assert writer.close() == "Hello th\n"
    assert not writer.close()


def test_two_sources_that_end_out_of_order_still_give_cues_in_order() -> None:
    writer = Writer(Form.SRT)
    text = writer.entry(entry(2, 25, 29, "short", source="Others"))
    text += writer.entry(entry(1, 0, 30, "long", source="Me")) + writer.close()
    read = pysubs2.SSAFile.from_string(text, format_="srt")
    assert [(e.start, e.end, e.text) for e in read] == [
        (25_000, 29_000, "Others: short"),
        (29_000, 30_000, "Me: long"),
    ]


@pytest.mark.parametrize("form", Form)
def test_what_utf8_cannot_hold_is_replaced(form: Form) -> None:
    assert "a?b" in Writer(form).entry(entry(1, 0, 1, "a\ud800b"))
