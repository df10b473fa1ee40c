"""The desktop program with a computer, sound and engine that do as they are told."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton, QWidget

from fakes.engine import Plan, ScriptedEngines
from fakes.sound import Machine, block
from fakes.sound_device import FakeStream
from fakes.sound_server import microphone, output
from fakes.speech import numbered
from surtitle.app import Desktop
from surtitle.captioner import Engine
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.errors import EngineError
from surtitle.core.transcript import Entry
from surtitle.qt_loop import run_in_qt
from surtitle.storage.places import Places
from surtitle.storage.settings_file import SettingsFile
from surtitle.storage.transcripts import TranscriptStore
from surtitle.ui.controls import ControlWindow
from surtitle.ui.overlay import Overlay
from surtitle.ui.window_system import WindowSystem

LIMIT = 20.0
LOUDSPEAKERS = output("speakers", "Loudspeakers")
TABLE = microphone("table", "Table microphone")
SPEECH = numbered([2] * 60, pause=0.3)
"""Two words, a pause, two words: always something to say, and each word has its place."""

type Scene = Callable[["Stage"], Awaitable[None]]

pytestmark = [
    # Off screen nothing can be raised or grabbed, and Qt says so.
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
    pytest.mark.usefixtures("qapp"),
]


class Stage:
    """A running program, as the user has it before their eyes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.overlay = _visible(Overlay)
        self.controls = _visible(ControlWindow)

    @property
    def text(self) -> str:
        return self.overlay.caption_text()

    @property
    def status(self) -> str:
        return self.controls.status_text

    @property
    def heard_from(self) -> list[str]:
        """Return the sound server's sources that were recorded, one after the other."""
        return [stream.environment["PULSE_SOURCE"] for stream in self.machine.module.streams]

    def button(self, text: str) -> QPushButton:
        buttons = {each.text(): each for each in self.controls.findChildren(QPushButton)}
        return buttons[text]

    def press(self, text: str) -> None:
        QTest.mouseClick(self.button(text), Qt.MouseButton.LeftButton)

    def choose(self, source: str) -> None:
        [box] = self.controls.findChildren(QComboBox)
        box.setCurrentText(source)
        assert box.currentText() == source
        box.activated.emit(box.currentIndex())

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(LIMIT):
                while not condition():  # noqa: ASYNC110 - what a window shows has no event
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"waited for {what}; the window says: {self.text} / {self.status}")


def _visible[W: QWidget](kind: type[W]) -> W:
    [widget] = [
        each
        for each in QApplication.topLevelWidgets()
        if isinstance(each, kind) and each.isVisible()
    ]
    return widget


def speak(stream: FakeStream) -> None:
    """Deliver a second of sound at once; after that the computer plays nothing."""
    for _ in range(50):
        stream.push(block(1))


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Machine(LOUDSPEAKERS, TABLE) as machine:
        machine.module.on_start = speak
        yield machine


def play(machine: Machine, scene: Scene, *, engines: Callable[[], Engine] | None = None) -> None:
    """Run the program, the scene in it, and then quit it as the user would."""

    async def run() -> int:
        desktop = Desktop(
            WindowSystem(platform=None),
            make_engine=engines or ScriptedEngines(SPEECH),
            system=machine.system,
            try_again=0.05,
        )
        running = asyncio.create_task(desktop.run())
        await asyncio.sleep(0)
        stage = Stage(machine)
        try:
            await scene(stage)
        finally:
            stage.press("&Quit Surtitle")
            async with asyncio.timeout(LIMIT):
                code = await running
        return code

    assert run_in_qt(run) == 0
    # One that was just being opened is closed a moment later.
    assert all(stream.shut.wait(LIMIT) for stream in machine.module.streams)
    assert machine.server is not None
    assert machine.server.open_connections == 0


def places() -> Places:
    return Places.find(os.environ)


def kept() -> list[Entry]:
    """Return the entries of the only transcript, none before it has any."""
    store = TranscriptStore(places().transcripts)
    sessions = store.sessions()
    assert len(sessions) <= 1
    return store.entries(sessions[0].id) if sessions else []


def test_after_a_pause_the_text_goes_on_and_every_word_has_its_true_time(machine: Machine) -> None:
    pauses: list[float] = []

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: "word" in stage.text, "the first words")
        await stage.until(lambda: stage.status == "Captioning", "captioning")
        stage.press("&Pause captioning")
        await stage.until(lambda: stage.status.startswith("Paused"), "the pause")
        assert machine.module.streams[-1].closed
        before = stage.text
        assert "word" in before
        await stage.until(lambda: bool(kept()) and kept()[-1].closed, "it on the disk")
        pauses.append(kept()[-1].end)
        stage.press("&Start captioning")
        await stage.until(lambda: before in stage.text and stage.text != before, "more words")

    play(machine, scene)
    times = {word.text: word for spoken in SPEECH for word in spoken.words}
    entries = kept()
    assert entries[-1].start >= pauses[0]
    words = [word for entry in entries for word in entry.text.split()]
    assert len(words) == len(set(words)), "a word was said twice"
    for entry in entries:
        for word in entry.text.split():
            assert entry.start * SAMPLE_RATE <= times[word].start + 1
            assert times[word].end - 1 <= entry.end * SAMPLE_RATE


def test_the_source_that_is_chosen_is_listened_to_now_and_after_the_next_start(
    machine: Machine,
) -> None:
    async def choose(stage: Stage) -> None:
        await stage.until(lambda: stage.heard_from == ["speakers.monitor"], "the computer's sound")
        stage.choose("Microphone: Table microphone")
        await stage.until(lambda: stage.heard_from[-1] == "table", "the microphone")
        await stage.until(lambda: "Table" in stage.overlay.whatsThis(), "its name in the window")
        [box] = stage.controls.findChildren(QComboBox)
        assert box.currentText() == "Microphone: Table microphone"

    play(machine, choose)
    settings, problems = SettingsFile(places().settings).read()
    assert not problems
    assert (settings.audio_source, settings.audio_device) == ("mic", "table")

    async def look(stage: Stage) -> None:
        await stage.until(lambda: len(stage.heard_from) == 3, "sound")
        assert stage.heard_from[-1] == "table"

    play(machine, look)


def test_a_source_that_is_lost_is_asked_for_again_until_it_is_back(machine: Machine) -> None:
    server = machine.server
    assert server is not None

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: "word" in stage.text, "the first words")
        before = stage.text.split()[0]
        server.remove(LOUDSPEAKERS)
        await stage.until(lambda: "cannot be heard" in stage.status, "the failure")
        assert "caption a microphone" in stage.status, "no remedy"
        assert stage.button("&Pause captioning").isEnabled(), "it is not given up"
        streams = len(stage.heard_from)
        server.add(LOUDSPEAKERS)
        server.make_default(LOUDSPEAKERS)
        await stage.until(lambda: len(stage.heard_from) > streams, "sound again")
        await stage.until(lambda: stage.status == "Captioning", "captions again")
        assert before in stage.text

    play(machine, scene)


def refusing() -> Callable[[], Engine]:
    error = EngineError("There is no model.", remedy="Get one.")
    return ScriptedEngines(SPEECH, then=Plan(refuses=error))


def faulty() -> Engine:
    raise ValueError("secret words")


@pytest.mark.parametrize(
    ("engines", "settings", "words"),
    [
        (refusing(), "", "There is no model. Get one."),
        (None, '[audio]\ndevice = "Nothing"\n', "There is no output called “Nothing”."),
        (faulty, "", "Surtitle has a fault (ValueError). Start captioning again"),
    ],
)
def test_what_cannot_go_on_says_what_to_do_and_can_be_started_again(
    engines: Callable[[], Engine] | None, settings: str, words: str, machine: Machine
) -> None:
    write_settings(settings)

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: words in stage.status, "the failure")
        assert "secret" not in stage.status
        assert stage.overlay.whatsThis() == "" or "secret" not in stage.overlay.whatsThis()
        stage.press("&Start captioning")
        await stage.until(lambda: words in stage.status, "the failure again")

    play(machine, scene, engines=engines)


def test_what_is_wrong_with_the_settings_is_said_in_the_window(machine: Machine) -> None:
    write_settings("[captions]\nlines = 99\n")

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: "captions.lines cannot be 99" in stage.status, "the notice")
        await stage.until(lambda: "word" in stage.text, "captions all the same")

    play(machine, scene)


def test_a_failure_stands_above_a_notice(machine: Machine) -> None:
    write_settings("[captions]\nlines = 99\n")

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: stage.status == "There is no model. Get one.", "the failure")

    play(machine, scene, engines=refusing())


def test_the_window_is_where_it_was_put(machine: Machine) -> None:
    where: list[QPoint] = []

    async def put(stage: Stage) -> None:
        overlay = stage.overlay
        at = QPoint(overlay.width() // 2, overlay.height() // 2)
        QTest.mousePress(overlay, Qt.MouseButton.LeftButton, pos=at)
        QTest.mouseMove(overlay, at - QPoint(30, 60))
        QTest.mouseRelease(overlay, Qt.MouseButton.LeftButton, pos=at)
        where.append(overlay.pos())

    async def look(stage: Stage) -> None:
        where.append(stage.overlay.pos())

    play(machine, look)
    play(machine, put)
    play(machine, look)
    assert where[1] == where[2] != where[0]


def write_settings(content: str) -> None:
    file = places().settings
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
