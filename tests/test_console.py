import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.statuses import WORKING
from surtitle.console import Console
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Passage, Snapshot
from surtitle.core.errors import OutputError, SurtitleError
from surtitle.core.health import State, Status
from surtitle.core.transcript import Form

ERASE = "\r\x1b[2K"


class Terminal(io.StringIO):
    """Remembers what is written, or fails to."""

    trouble: Exception | None = None

    def write(self, text: str, /) -> int:
        if self.trouble is not None:
            raise self.trouble
        return super().write(text)

    def take(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Desk:
    """A console with everything around it."""

    def __init__(
        self, form: Form = Form.TEXT, *, live: bool = False, duration: float | None = None
    ) -> None:
        self.sink, self.aside, self.live = Terminal(), Terminal(), Terminal()
        self.troubles = 0
        self.revision = 0
        self.console = Console(
            self.sink,
            form,
            aside=self.aside,
            live=self.live if live else None,
            duration=lambda: duration,
            on_trouble=self._trouble,
        )

    def _trouble(self) -> None:
        self.troubles += 1

    def hear(self, *passages: Passage) -> None:
        self.revision += 1
        self.console.captions(Snapshot(revision=self.revision, passages=passages), list(passages))


def passage(
    settled: str = "",
    tentative: str = "",
    *,
    key: int = 1,
    closed: bool = False,
    gap: bool = False,
    until: float = 2.0,
) -> Passage:
    return Passage(
        key=key,
        settled=settled,
        tentative=tentative,
        start=SAMPLE_RATE,
        end=int(until * SAMPLE_RATE),
        closed=closed,
        gap=gap,
    )


def said(text: str, *, key: int = 1) -> Passage:
    return passage(text, key=key, closed=True)


MISSING = passage("[12 s missing]", key=2, closed=True, gap=True, until=13.0)


def status(state: State, remedy: str = "") -> Status:
    return Status(state=state, message=f"It is {state}.", remedy=remedy, source="Headset")


def test_text_comes_an_utterance_at_a_time() -> None:
    desk = Desk()
    desk.hear(passage("Hello", " there"))
    assert desk.sink.take() == ""
    desk.hear(said("Hello there."))
    assert desk.sink.take() == "Hello there.\n"
    desk.hear(MISSING)
    assert desk.sink.take() == "[12 s missing]\n"
    desk.hear(passage("", key=3, closed=True))
    assert desk.sink.take() == ""
    assert desk.console.entries == 2
    assert desk.aside.take() == ""


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (Form.SRT, "1\n00:00:01,000 --> 00:00:02,000\nHello.\n\n"),
        (Form.VTT, "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nHello.\n\n"),
    ],
)
def test_cues_come_an_utterance_at_a_time(form: Form, written: str) -> None:
    desk = Desk(form)
    desk.hear(passage("Hel"))
    desk.hear(said("Hello."))
    assert desk.sink.take() == written
    desk.console.close()
    assert desk.sink.take() == ""


def test_what_is_open_at_the_end_is_written() -> None:
    desk = Desk()
    desk.hear(passage("Hello", " th"))
    desk.console.close()
    assert desk.sink.take() == "Hello\n"


def test_an_empty_subtitle_file_has_its_head() -> None:
    desk = Desk(Form.VTT)
    desk.console.close()
    assert desk.sink.take() == "WEBVTT\n\n"


def test_json_tells_everything_a_line_each() -> None:
    desk = Desk(Form.JSON)
    desk.console.status(status(State.LISTENING))
    desk.hear(passage("Hello", " thé"))
    desk.hear(said("Hello there."), MISSING)
    lines = [json.loads(line) for line in desk.sink.take().splitlines()]
    assert [line["type"] for line in lines] == ["status", "partial", "final", "gap"]
    times = {"source": "", "start": 1.0, "end": 2.0}
    assert lines[0] == {
        "type": "status",
        "state": "listening",
        "look": "silent",
        "message": "It is listening.",
        "remedy": "",
        "source": "Headset",
        "engine": "",
        "place": "",
        "behind": 0.0,
        "lost": 0.0,
        "breaks": 0,
    }
    assert lines[1] == {
        "type": "partial", "utterance": 1, "text": "Hello thé", "settled": 5, **times
    }  # fmt: skip
    assert lines[2] == {"type": "final", "utterance": 1, "text": "Hello there.", **times}
    assert (lines[3]["start"], lines[3]["end"], lines[3]["text"]) == (1.0, 13.0, "")


def test_json_survives_half_a_character() -> None:
    desk = Desk(Form.JSON)
    desk.hear(passage("", "half \ud83d"))
    written = desk.sink.take()
    written.encode("utf-8")
    assert json.loads(written)["text"] == "half ?"


def test_a_state_is_told_once() -> None:
    desk = Desk(Form.JSON)
    for _ in range(3):
        desk.console.status(status(State.WORKING))
    desk.console.status(status(State.DELAYED))
    desk.console.status(status(State.WORKING))
    assert len(desk.sink.take().splitlines()) == 3


@pytest.mark.parametrize("state", State)
def test_trouble_is_told_to_people(state: State) -> None:
    desk = Desk()
    desk.console.status(status(state, "Do this."))
    told = state in {State.RECOVERING, State.NO_SOUND}
    assert desk.aside.take() == (f"surtitle: It is {state}. Do this.\n" if told else "")
    assert desk.sink.take() == ""


def test_the_utterance_under_way_is_shown_in_place() -> None:
    desk = Desk(live=True)
    desk.hear(passage("Hello", " th"))
    assert desk.live.take() == f"{ERASE}Hello th"
    desk.hear(said("Hello there."))
    assert desk.live.take() == ERASE
    desk.console.close()
    assert desk.live.take() == ""


def test_progress_is_shown_where_the_length_is_known() -> None:
    desk = Desk(live=True, duration=4.0)
    desk.console.status(replace(WORKING, heard=2.0))
    assert desk.live.take() == f"{ERASE} 50 %  "
    desk.hear(passage("Hello"))
    assert desk.live.take() == f"{ERASE} 50 %  Hello"
    desk.hear(said("Hello."))
    assert desk.live.take() == f"{ERASE}{ERASE} 50 %  "
    desk.console.status(replace(WORKING, heard=9.0))
    desk.hear(passage("Longer than it said", key=2, until=9.0))
    assert desk.live.take() == f"{ERASE}100 %  {ERASE}100 %  Longer than it said"


def test_a_notice_does_not_mix_with_the_line_under_way() -> None:
    desk = Desk(live=True)
    desk.hear(passage("Hello"))
    desk.live.take()
    desk.console.notice("The cable is loose.")
    assert desk.live.take() == ERASE
    assert desk.aside.take() == "surtitle: The cable is loose.\n"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("short", 20, "short"),
        ("exactly so", 11, "exactly so"),
        ("one two three", 11, "…two three"),
        ("日本語字幕", 11, "日本語字幕"),
        ("日本語字幕", 10, "…本語字幕"),
        ("日本語字幕", 8, "…語字幕"),
        ("\x1b[31mred\x07\r\n", 40, "[31mred"),
        ("anything", 1, "…"),
    ],
)
def test_the_line_under_way_fits_and_steers_nothing(
    text: str, columns: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    desk = Desk(live=True)
    desk.hear(passage(text))
    assert desk.live.take() == ERASE + shown


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (NO_SPACE, "The output cannot be written: No space left on device."),
        (OSError("odd"), "The output cannot be written: odd."),
        (BrokenPipeError(), "Nobody reads the output any more."),
        (OutputError("Writing a.srt failed: disk full."), "Writing a.srt failed: disk full."),
    ],
)
def test_output_that_cannot_be_written_is_told_once(trouble: Exception, words: str) -> None:
    desk = Desk()
    desk.sink.trouble = trouble
    desk.hear(said("Hello."))
    desk.hear(said("Hello.", key=2))
    desk.console.close()
    assert desk.troubles == 1
    assert isinstance(desk.console.trouble, SurtitleError)
    assert str(desk.console.trouble) == words


@pytest.mark.parametrize("trouble", [NO_SPACE, BrokenPipeError(), ValueError("closed file")])
def test_a_terminal_that_is_gone_stops_nothing(trouble: Exception) -> None:
    desk = Desk(live=True)
    desk.live.trouble = desk.aside.trouble = trouble
    desk.hear(passage("Hello"))
    desk.console.notice("The cable is loose.")
    desk.hear(said("Hello."))
    assert desk.sink.take() == "Hello.\n"
    assert desk.console.trouble is None
    assert desk.troubles == 0


# Standard output itself, in a program of its own.

PROGRAM = """
import sys
from surtitle.console import StandardOutput
out = StandardOutput()
try:
    for _ in range(2000):
        out.write(sys.argv[1] + "\\n")
except OSError as error:
    sys.exit(type(error).__name__)
"""


def program(text: str, encoding: str, read: Callable[[int], None]) -> subprocess.Popen[bytes]:
    readable, writable = os.pipe()
    started = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, text],
        stdout=writable,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
    )
    os.close(writable)
    read(readable)
    os.close(readable)
    return started


def test_a_reader_that_goes_away_leaves_no_traceback() -> None:
    text = "x" * 100
    with program(text, "utf-8", lambda pipe: os.set_blocking(pipe, os.get_blocking(pipe))) as it:
        _, errors = it.communicate(timeout=60)
    assert errors == b"BrokenPipeError\n"
    assert it.returncode == 1


def test_words_that_the_output_cannot_hold_are_written_as_escapes() -> None:
    seen = bytearray()

    def read(pipe: int) -> None:
        while part := os.read(pipe, 65536):
            seen.extend(part)

    with program("字幕 ok", "ascii", read) as it:
        _, errors = it.communicate(timeout=60)
    assert errors == b""
    assert it.returncode == 0
    assert set(bytes(seen).splitlines()) == {rb"\u5b57\u5e55 ok"}
