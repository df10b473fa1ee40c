"""The whole program on a real screen, with real sound and the real engine."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from fakes.pulse import SINK, PrivatePulse, private_pulse
from fakes.recording import plain, recording
from fakes.running import Running, until
from fakes.x11 import PrivateScreen, private_screen
from surtitle.core.transcript import Entry
from surtitle.storage.places import Places
from surtitle.storage.transcripts import TranscriptStore

WATCHED = str(Path(__file__).parent / "programs" / "watched.py")
CAPTIONS = "Surtitle captions"
CONTROLS = "Surtitle"

pytestmark = pytest.mark.screen


@pytest.fixture(scope="module")
def screen() -> Iterator[PrivateScreen]:
    with private_screen() as screen:
        yield screen


@pytest.fixture(scope="module")
def pulse() -> Iterator[PrivatePulse]:
    with private_pulse() as server:
        yield server


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    return recording(tmp_path / "speech.wav", seconds=10)


class App(Running):
    """The program in its window, and what a reader of that window has seen."""

    @property
    def readings(self) -> list[dict[str, str]]:
        lines = self.said.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def shows(self, words: str, *, seconds: float = 30) -> None:
        """Wait until these words have stood in the window."""
        until(
            lambda: any(words in plain(reading["text"]) for reading in self.readings),
            f"“{words}” in the window; it has shown {self.readings[-3:]}",
            seconds=seconds,
        )

    def is_in_state(self, words: str, *, after: int = 0, seconds: float = 30) -> int:
        """Wait until the status line has said this; return the number of readings so far."""
        until(
            lambda: any(words in reading["status"] for reading in self.readings[after:]),
            f"the status “{words}”; it was {self.readings[-3:]}",
            seconds=seconds,
        )
        return len(self.readings)


@contextmanager
def started(screen: PrivateScreen, folder: Path, *arguments: str) -> Iterator[App]:
    with App(*(arguments or (WATCHED,)), folder=folder, environment=screen.environment) as app:
        yield app


@contextmanager
def playing(pulse: PrivatePulse, speech: Path) -> Iterator[None]:
    player = pulse.play(speech, sink=SINK)
    try:
        yield
    finally:
        player.terminate()
        player.wait(timeout=10)


def kept() -> list[Entry]:
    """Return the entries of the newest transcript."""
    store = TranscriptStore(Places.find(os.environ).transcripts)
    sessions = store.sessions()
    return store.entries(sessions[0].id) if sessions else []


def kept_words() -> str:
    return plain(" ".join(entry.text for entry in kept()))


def light_and_dark(picture: QImage, part: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return which shares of a part of a picture are nearly white and nearly black."""
    left, top, width, height = part
    grey = picture.copy(left, top, width, height).convertToFormat(QImage.Format.Format_Grayscale8)
    pixels = [grey.pixelColor(x, y).lightness() for x in range(width) for y in range(height)]
    return (
        sum(pixel > 200 for pixel in pixels) / len(pixels),
        sum(pixel < 60 for pixel in pixels) / len(pixels),
    )


def test_what_is_played_is_read_in_the_window_and_kept(
    screen: PrivateScreen, pulse: PrivatePulse, speech: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "screen.png"
    with started(screen, tmp_path) as app:
        app.is_in_state("Listening")
        with playing(pulse, speech):
            app.shows("best of times")
            app.shows("worst of times")
            screen.photograph(picture)
            left, top, width, height = screen.rectangle(screen.window(CAPTIONS))
            app.tell(signal.SIGINT)
            app.ends(0, within=8)
        app.leaves_nothing()
        assert app.complained == ""
    # The lines of text stand above the status line.
    light, dark = light_and_dark(QImage(str(picture)), (left, top, width, height * 2 // 3))
    assert 0.01 < light < 0.3, "no text in the picture"
    assert dark > 0.5, "no plate behind the text in the picture"
    words = kept_words()
    assert "best of times" in words
    assert "worst of times" in words
    assert all(entry.closed for entry in kept())
    assert not [entry for entry in kept() if entry.gap]


@pytest.mark.parametrize("title", [CAPTIONS, CONTROLS])
def test_without_a_tray_there_are_two_windows_and_closing_either_ends_the_program(
    title: str, screen: PrivateScreen, pulse: PrivatePulse, tmp_path: Path
) -> None:
    del pulse  # so that there is something to listen to
    with started(screen, tmp_path, "-m", "surtitle") as app:
        windows = {each: screen.window(each) for each in (CAPTIONS, CONTROLS)}
        screen.close(windows[title])
        app.ends(0, within=8)
        app.leaves_nothing()
        assert app.complained == ""


def test_killed_in_mid_sentence_it_has_kept_what_was_settled_and_starts_again(
    screen: PrivateScreen, pulse: PrivatePulse, speech: Path, tmp_path: Path
) -> None:
    with started(screen, tmp_path) as app:
        app.is_in_state("Listening")
        with playing(pulse, speech):
            until(lambda: "best of times" in kept_words(), "settled words in the transcript")
            app.tell(signal.SIGKILL)
            app.ends(-signal.SIGKILL)
        app.leaves_nothing(within=3)
    assert "best of times" in kept_words()
    assert not kept()[-1].closed, "the sentence was over: this test has proved nothing"
    with started(screen, tmp_path) as app:
        app.is_in_state("Listening")
        app.tell(signal.SIGTERM)
        app.ends(0, within=8)
    assert "best of times" in kept_words()


def test_when_the_engine_is_killed_in_mid_sentence_no_word_is_lost_or_doubled(
    screen: PrivateScreen, pulse: PrivatePulse, speech: Path, tmp_path: Path
) -> None:
    with started(screen, tmp_path) as app:
        app.is_in_state("Listening")
        engine = app.engine()
        with playing(pulse, speech):
            app.shows("best of times")
            os.kill(engine, signal.SIGKILL)
            recovering = app.is_in_state("ended by itself. Trying again; nothing is lost")
            assert app.engine(but=engine)
            app.is_in_state("Captioning", after=recovering)
            app.shows("age of wisdom")
            app.tell(signal.SIGTERM)
            app.ends(0, within=8)
    words = kept_words()
    for phrase in ("best of times", "worst of times"):
        assert words.count(phrase) == 1, f"{phrase} in: {words}"
    # Once or more: of words cut short by the end the model sometimes makes the last ones again.
    assert "age of wisdom" in words
    assert not [entry for entry in kept() if entry.gap]


def test_an_engine_that_is_stuck_does_not_keep_the_program_from_ending(
    screen: PrivateScreen, pulse: PrivatePulse, tmp_path: Path
) -> None:
    del pulse  # so that there is something to listen to
    with started(screen, tmp_path) as app:
        app.is_in_state("Listening")
        os.kill(app.engine(), signal.SIGSTOP)
        app.tell(signal.SIGTERM)
        app.ends(0, within=12)
        app.leaves_nothing()
        assert app.complained == ""
