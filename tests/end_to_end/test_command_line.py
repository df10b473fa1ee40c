"""`surtitle caption`, ended in every way in mid-sentence."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pysubs2
import pytest

from fakes.recording import plain, raw_recording, recording
from fakes.running import Running, until
from surtitle.storage.places import Places
from surtitle.storage.transcripts import TranscriptStore

REAL_TIME = ("--pace", "real-time")


@pytest.fixture
def speech(tmp_path: Path) -> str:
    return str(recording(tmp_path / "speech.wav", seconds=20))


@contextmanager
def captioning(
    folder: Path, source: str, *options: str, open_input: bool = False
) -> Iterator[Running]:
    arguments = ("-m", "surtitle", "caption", source, *options)
    with Running(*arguments, folder=folder, open_input=open_input) as program:
        yield program


def kept_words() -> str:
    store = TranscriptStore(Places.find(os.environ).transcripts)
    sessions = store.sessions()
    entries = store.entries(sessions[0].id) if sessions else []
    return plain(" ".join(entry.text for entry in entries))


def records(said: str) -> list[dict[str, object]]:
    """Return the JSON lines that are whole; the last one of a killed program may not be."""
    return [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith("\n")]


def heard(program: Running) -> str:
    """Return the text of the newest JSON record that has one."""
    texts = [str(each["text"]) for each in records(program.said) if each.get("text")]
    return plain(texts[-1]) if texts else ""


class Speaker:
    """Speaks raw sound into a program at the pace of real speech, until it is told to stop."""

    def __init__(self, program: Running, pcm: bytes) -> None:
        self._program = program
        self._pcm = pcm
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._speak, name="speaker")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Stop and close the program's input."""
        self._enough.set()
        self._thread.join(timeout=10)

    def _speak(self) -> None:
        began = time.monotonic()
        with suppress(BrokenPipeError), self._program.input as pipe:
            for position in range(0, len(self._pcm), 3200):  # a tenth of a second
                pipe.write(self._pcm[position : position + 3200])
                pipe.flush()
                if self._enough.wait(max(0.0, began + position / 32_000 - time.monotonic())):
                    return


def test_standard_input_that_ends_in_mid_sentence_is_captioned_to_the_last_word(
    tmp_path: Path,
) -> None:
    with captioning(tmp_path, "-", "--format", "json", open_input=True) as program:
        with Speaker(program, raw_recording(seconds=20)):
            until(lambda: "best of times" in heard(program), "the first words")
            until(lambda: "it was the" in heard(program).partition("times")[2], "a new sentence")
        program.ends(0)
        program.leaves_nothing()
        assert program.complained == ""
        finals = [each for each in records(program.said) if each["type"] == "final"]
        shown = heard(program)
    assert finals
    assert plain(str(finals[-1]["text"])) == shown
    assert "best of times it was the" in shown.replace(" and ", " ")
    assert plain(" ".join(str(each["text"]) for each in finals)) == kept_words()


def test_interrupted_in_mid_sentence_it_leaves_the_words_so_far_in_a_sound_file(
    tmp_path: Path, speech: str
) -> None:
    output = tmp_path / "captions.srt"
    with captioning(tmp_path, speech, *REAL_TIME, "--output", str(output)) as program:
        until(lambda: "best of times" in kept_words(), "settled words")
        program.tell(signal.SIGINT)
        program.ends(130, within=10)
        program.leaves_nothing()
        assert program.complained == ""
    cues = list(pysubs2.load(str(output)))
    assert cues
    assert plain(" ".join(cue.plaintext for cue in cues)) == kept_words()
    assert "best of times" in kept_words()
    assert all(0 <= cue.start < cue.end for cue in cues)


def test_interrupted_twice_it_quits_at_once(tmp_path: Path, speech: str) -> None:
    with captioning(tmp_path, speech, *REAL_TIME, "--format", "json") as program:
        until(lambda: "best of times" in heard(program), "the first words")
        # Without this the first signal alone might have done it.
        os.kill(program.engine(), signal.SIGSTOP)
        program.tell(signal.SIGINT)
        program.tell(signal.SIGINT)
        program.ends(130, within=5)
        program.leaves_nothing()
        assert program.complained == ""


def test_killed_it_leaves_whole_lines(tmp_path: Path, speech: str) -> None:
    with captioning(tmp_path, speech, *REAL_TIME, "--format", "json") as program:
        until(lambda: "best of times" in heard(program), "the first words")
        program.tell(signal.SIGKILL)
        program.ends(-signal.SIGKILL)
        program.leaves_nothing(within=3)
        assert program.said.endswith("\n")
        assert all("type" in json.loads(line) for line in program.said.splitlines())
    assert kept_words().startswith("it was the")
