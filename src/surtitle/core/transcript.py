"""What was said, when: entries and gaps, and the forms in which they leave the program.

SubRip and WebVTT are written here and not by pysubs2: it writes whole files
only, reads braces and backslashes in speech as styling, and does not escape
WebVTT. The tests read what is written here with it.
"""

import itertools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "CUE_LINES",
    "LINE_COLUMNS",
    "MIN_CUE_MS",
    "Cue",
    "Entry",
    "Form",
    "Transcript",
    "Writer",
    "cues",
    "gap_mark",
    "to_json",
    "to_srt",
    "to_text",
    "to_vtt",
]

LINE_COLUMNS = 42
"""Columns of a line in a cue; wide East Asian characters take two."""

CUE_LINES = 2
"""Lines in a cue, at most."""

MIN_CUE_MS = 1_000
"""A cue shorter than this cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One utterance or one gap in a transcript."""

    key: int
    """Identifies the entry within its session; an entry with the same key replaces it."""
    start: float
    """Seconds of audio since the session began."""
    end: float
    """Seconds of audio since the session began; never before `start`."""
    text: str
    """What was said; empty for a gap."""
    gap: bool = False
    """Sound between `start` and `end` was lost; there is no text for it."""
    source: str = ""
    """Whose sound it is, such as `Me`; empty while there is one source only."""
    closed: bool = True
    """False while the utterance is still growing."""


class Transcript:
    """The entries of one session in the order of their start.

    Adding costs the same however long the transcript is. Beyond `limit` entries
    the one that came first goes, and `dropped` counts it.
    """

    def __init__(self, limit: int = 50_000) -> None:
        self.dropped = 0
        self._limit = limit
        self._entries: dict[int, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Take an entry, in place of the one with the same key."""
        self._entries[entry.key] = entry
        if len(self._entries) > self._limit:
            del self._entries[next(iter(self._entries))]
            self.dropped += 1

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(_ordered(self._entries.values()))


class Form(StrEnum):
    """How a transcript can be written."""

    TEXT = "text"
    """One line an entry."""
    SRT = "srt"
    VTT = "vtt"
    JSON = "json"
    """One object a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """What a video player shows at a time."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]
    """One to `CUE_LINES` lines, without line ends."""


def cues(entries: Iterable[Entry]) -> list[Cue]:
    """Cut entries into cues: in order, never two at a time, each `MIN_CUE_MS` or longer.

    A cue starts with its speech, later only where the one before must still be
    shown. No word is lost.
    """
    pieces = itertools.chain.from_iterable(map(_pieces, entries))
    return _laid(sorted(pieces, key=lambda piece: piece.start_ms), after_ms=0)


def to_text(entries: Iterable[Entry], *, times: bool = False) -> str:
    """Write one line an entry; with `times`, its start before it as hours:minutes:seconds."""
    return "".join(_text_line(entry, times=times) for entry in _ordered(entries))


def to_srt(entries: Iterable[Entry]) -> str:
    """Write a SubRip file."""
    return "".join(_srt_cue(number, cue) for number, cue in enumerate(cues(entries), 1))


def to_vtt(entries: Iterable[Entry]) -> str:
    """Write a WebVTT file."""
    return _VTT_HEAD + "".join(map(_vtt_cue, cues(entries)))


def to_json(entries: Iterable[Entry]) -> str:
    """Write one JSON object a line, as `surtitle caption --format json` does."""
    return "".join(map(_json_line, _ordered(entries)))


class Writer:
    """Writes a transcript while it grows: what it returns is to be appended to one file.

    An entry is written once, when it is closed. With one source the result is what
    the `to_` functions write in one go; where two sources speak at once, the cues
    of the one that ended later are shifted behind the other's.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self._open: dict[int, Entry] = {}
        self._head = _VTT_HEAD if form is Form.VTT else ""
        self._cue_number = 0
        self._cue_end_ms = 0

    def entry(self, entry: Entry) -> str:
        """Take an entry and return what is to be appended now; empty while it is open."""
        if not entry.closed:
            self._open[entry.key] = entry
            return ""
        self._open.pop(entry.key, None)
        head, self._head = self._head, ""
        return head + self._chunk(entry)

    def close(self) -> str:
        """Return the rest: the head, if nothing came, and the entries that are still open."""
        rest = _ordered(self._open.values())
        self._open = {}
        head, self._head = self._head, ""
        return head + "".join(map(self._chunk, rest))

    def _chunk(self, entry: Entry) -> str:
        match self._form:
            case Form.TEXT:
                return _text_line(entry)
            case Form.JSON:
                return _json_line(entry)
            case Form.SRT | Form.VTT:
                return "".join(map(self._cue, _laid(_pieces(entry), after_ms=self._cue_end_ms)))

    def _cue(self, cue: Cue) -> str:
        self._cue_number += 1
        self._cue_end_ms = cue.end_ms
        return _srt_cue(self._cue_number, cue) if self._form is Form.SRT else _vtt_cue(cue)


def gap_mark(seconds: float) -> str:
    """Say how much sound is missing, such as `[12 s missing]`."""
    if seconds < 1:
        return f"[{max(seconds, 0.1):.1f} s missing]"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"[{hours} h {minutes} min missing]"
    return f"[{minutes} min {whole % 60} s missing]" if minutes else f"[{whole} s missing]"


# Text.

_NOT_WRITTEN = {code: None for code in (*range(32), *range(127, 160)) if not chr(code).isspace()}
"""Control characters: they would steer a terminal or end a file early."""


def _words(text: str) -> list[str]:
    """Split at white space and line ends, without what no file can hold."""
    return text.encode("utf-8", "replace").decode().translate(_NOT_WRITTEN).split()


def _said(entry: Entry) -> str:
    """Return the text of an entry on one line."""
    return gap_mark(entry.end - entry.start) if entry.gap else " ".join(_words(entry.text))


def _label(entry: Entry) -> str:
    source = " ".join(_words(entry.source))
    return f"{source}: " if source else ""


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.start)


def _text_line(entry: Entry, *, times: bool = False) -> str:
    said = _said(entry)
    if not said:
        return ""
    minutes, seconds = divmod(max(0, int(entry.start)), 60)
    time = f"{minutes // 60}:{minutes % 60:02}:{seconds:02} " if times else ""
    return f"{time}{_label(entry)}{said}\n"


def _json_line(entry: Entry) -> str:
    text = "" if entry.gap else _said(entry)
    if not text and not entry.gap:
        return ""
    record = {
        "type": "gap" if entry.gap else "final",
        "source": " ".join(_words(entry.source)),
        "utterance": entry.key,
        "start": round(entry.start, 3),
        "end": round(entry.end, 3),
        "text": text,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


# Cues.


def _pieces(entry: Entry) -> list[Cue]:
    """Cut an entry into cues that share its time by the width of their text."""
    label = _label(entry)
    # A very long label may stick out; it must not squeeze the words into a column.
    columns = max(LINE_COLUMNS // 2, LINE_COLUMNS - _width(label))
    texts = list(itertools.batched(_lines(_said(entry).split(" "), columns), CUE_LINES))
    if not texts or not texts[0][0]:
        return []
    start_ms = max(0, round(entry.start * 1000))
    duration_ms = max(0, round(entry.end * 1000) - start_ms)
    weights = [sum(map(_width, lines)) + 1 for lines in texts]
    before = [0, *itertools.accumulate(weights)]
    times = [start_ms + duration_ms * part // before[-1] for part in before]
    return [
        Cue(start_ms=start, end_ms=end, lines=(label + lines[0], *lines[1:]))
        for (start, end), lines in zip(itertools.pairwise(times), texts, strict=True)
    ]


def _laid(pieces: Sequence[Cue], *, after_ms: int) -> list[Cue]:
    """Shift and stretch cues so that each can be read and none covers the next."""
    laid = []
    for piece, following in itertools.zip_longest(pieces, pieces[1:]):
        start = max(piece.start_ms, after_ms)
        readable = start + MIN_CUE_MS
        end = max(piece.end_ms, readable)
        if following is not None:
            end = max(readable, min(end, following.start_ms))
        laid.append(Cue(start_ms=start, end_ms=end, lines=piece.lines))
        after_ms = end
    return laid


def _lines(words: Sequence[str], columns: int) -> list[str]:
    """Break words into lines that fill as few cues as possible and are of even length."""
    lines = _wrapped(words, columns)
    if len(lines) == 1:
        return lines
    rows = -(-len(lines) // CUE_LINES) * CUE_LINES
    widths = [_width(word) for word in words]
    least = max(min(max(widths), columns), sum(widths) // rows)
    for narrower in range(least, columns):
        even = _wrapped(words, narrower)
        if len(even) <= rows:
            return even
    return lines


def _wrapped(words: Sequence[str], columns: int) -> list[str]:
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _width(longer) <= columns:
            lines[-1] = longer
            continue
        parts = _broken(word, columns)
        if lines[-1]:
            lines.extend(parts)
        else:
            lines[-1:] = parts
    return lines


def _broken(word: str, columns: int) -> list[str]:
    """Break a word only if it is wider than a line, and not inside a combined character."""
    parts = [""]
    for character in word:
        joined = parts[-1] + character
        if _width(joined) <= columns or not _width(character) or parts[-1].endswith("\u200d"):
            parts[-1] = joined
        else:
            parts.append(character)
    return parts


def _width(text: str) -> int:
    """Count columns: two for wide characters, none for those that combine."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(character) in {"Mn", "Me", "Cf"}
        else 2
        if unicodedata.east_asian_width(character) in {"W", "F"}
        else 1
        for character in text
    )


# SubRip and WebVTT.

_VTT_HEAD = "WEBVTT\n\n"

_VTT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

# SubRip has no escapes. Players read <i> and {\an8} as styling and --> as a
# time line, so these become single guillemets and parentheses.
_SRT_LIKENESSES = str.maketrans({"<": "\u2039", ">": "\u203a", "{": "(", "}": ")"})


def _srt_cue(number: int, cue: Cue) -> str:
    text = "\n".join(cue.lines).translate(_SRT_LIKENESSES)
    return f"{number}\n{_time(cue.start_ms, ',')} --> {_time(cue.end_ms, ',')}\n{text}\n\n"


def _vtt_cue(cue: Cue) -> str:
    text = "\n".join(cue.lines).translate(_VTT_ESCAPES)
    return f"{_time(cue.start_ms, '.')} --> {_time(cue.end_ms, '.')}\n{text}\n\n"


def _time(milliseconds: int, mark: str) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{mark}{milliseconds:03}"
