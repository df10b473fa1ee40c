"""`surtitle caption`, ended in every way in mid-sentence."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pysubs2

from fakes.recording import plain, raw_recording, recording
from fakes.running import Running, until
from surtitle.storage.places import Places
from surtitle.storage.transcripts import TranscriptStore


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


def shown_settled(program: Running) -> bool:
    return any(each.get("settled") for each in records(program.said))


def test_standard_input_that_ends_in_mid_sentence_is_captioned_to_the_last_word(
    tmp_path: Path,
) -> None:
    with captioning(tmp_path, "-", "--format", "json", open_input=True) as program:
        program.hears(raw_recording(seconds=4))
        until(lambda: "it was the" in heard(program), "the first words")
        program.input.close()
        program.ends(0)
        program.leaves_nothing()
        assert program.complained == ""
        finals = [each for each in records(program.said) if each["type"] == "final"]
        shown = heard(program)
    assert "best of times it was the worst of" in shown.replace(" and ", " ")
    assert plain(" ".join(str(each["text"]) for each in finals)) == shown == kept_words()


def test_interrupted_in_mid_sentence_it_leaves_the_words_so_far_in_a_sound_file(
    tmp_path: Path,
) -> None:
    speech = recording(tmp_path / "speech.wav", seconds=20)
    output = tmp_path / "captions.srt"
    options = ("--pace", "real-time", "--output", str(output))
    with captioning(tmp_path, str(speech), *options) as program:
        until(lambda: kept_words().startswith("it was the"), "settled words")
        program.tell(signal.SIGINT)
        program.ends(130)
        program.leaves_nothing()
        assert program.complained == ""
    cues = list(pysubs2.load(str(output)))
    assert cues
    assert plain(" ".join(cue.plaintext for cue in cues)) == kept_words()
    assert kept_words().startswith("it was the best of")
    assert all(0 <= cue.start < cue.end for cue in cues)


def test_interrupted_twice_it_quits_at_once(tmp_path: Path) -> None:
    with captioning(tmp_path, "-", "--format", "json", open_input=True) as program:
        program.hears(raw_recording(seconds=4))
        until(lambda: "it was the" in heard(program), "the first words")
        # Now the first signal alone would take 20 s.
        os.kill(program.engine(), signal.SIGSTOP)
        program.tell(signal.SIGINT)
        program.tell(signal.SIGINT)
        program.ends(130, within=12)
        program.leaves_nothing()
        assert program.complained == ""


def test_killed_it_leaves_whole_lines(tmp_path: Path) -> None:
    with captioning(tmp_path, "-", "--format", "json", open_input=True) as program:
        program.hears(raw_recording(seconds=6))
        until(lambda: shown_settled(program), "settled words")
        until(lambda: kept_words().startswith("it was the"), "settled words in the transcript")
        program.tell(signal.SIGKILL)
        program.ends(-signal.SIGKILL)
        program.leaves_nothing()
        assert program.said.endswith("\n")
        assert all("type" in json.loads(line) for line in program.said.splitlines())
    assert kept_words().startswith("it was the")
