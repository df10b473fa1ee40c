"""The desktop program: builds all parts, starts them from the inside out, stops them in order."""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from surtitle.audio.capture import open_source
from surtitle.audio.devices import (
    SOUND_SYSTEM,
    Device,
    Kind,
    SoundSystem,
    choose,
    list_devices,
)
from surtitle.captioner import Captioner, Engine
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.errors import Decision, SurtitleError
from surtitle.core.health import Look, State, Status
from surtitle.core.placement import Place
from surtitle.core.settings import Settings
from surtitle.core.stability import Stability
from surtitle.qt_loop import ask_for_display, run_in_qt
from surtitle.relay import Engines
from surtitle.speech_engines import chosen_engines
from surtitle.storage.places import Places
from surtitle.storage.session import Session
from surtitle.storage.settings_file import SettingsFile
from surtitle.storage.state_file import StateFile
from surtitle.storage.transcripts import TranscriptStore
from surtitle.ui.commands import Commands, SourceChoice
from surtitle.ui.controls import ControlWindow
from surtitle.ui.face import style_of
from surtitle.ui.overlay import Overlay
from surtitle.ui.tray import Tray, tray_available
from surtitle.ui.window_system import WindowSystem

__all__ = ["Desktop", "run"]

_TRY_AGAIN = 2.0
"""Seconds until a device that was lost is asked for again."""
_STOP_WITHIN = 4.0
"""Seconds that the last words may take when the program ends."""
_KEEP_WITHIN = 3.0
"""Seconds that the transcript may take to reach the disk when the program ends."""
_SOUND_WITHIN = 2.0
"""Seconds that a call into the sound libraries may take when the program ends."""
_NOTICE = 6.0
"""Seconds that a notice stands in the status line."""


def run() -> int:
    """Run the caption window until the user quits. Returns the exit code."""
    window_system = ask_for_display()
    if not window_system.visible:
        raise SurtitleError(
            "There is no display for the caption window.",
            remedy="Use: surtitle caption system",
        )
    return run_in_qt(lambda: Desktop(window_system).run())


class Desktop:
    """Everything the program has while it runs. Is its own audience.

    Args:
        window_system: What `ask_for_display` decided.
        make_engine: Makes an engine session, whatever the settings say.
        system: What to list and capture devices through.
        try_again: Seconds until a device that was lost is asked for again.
    """

    def __init__(
        self,
        window_system: WindowSystem,
        *,
        make_engine: Callable[[], Engine] | None = None,
        system: SoundSystem = SOUND_SYSTEM,
        try_again: float = _TRY_AGAIN,
    ) -> None:
        self._make_engine = make_engine
        self._system = system
        self._try_again = try_again
        places = Places.find(os.environ)
        self._settings_file = SettingsFile(places.settings)
        self._settings, problems = self._settings_file.read()
        self._state = StateFile(places.window_state)
        self._store = TranscriptStore(places.transcripts)
        self._commands = Commands()
        self._overlay = Overlay(
            self._commands,
            window_system=window_system,
            place=self._state.window_place(),
            style=style_of(self._settings),
        )
        self._captions = Captions(Stability.of(self._settings.captions_steadiness))
        self._session: Session | None = None
        self._began = 0.0
        self._position = 0
        self._captioner: Captioner | None = None
        self._listening: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._status = self._shown = self._commands.status
        self._notice = ""
        self._notice_over: asyncio.TimerHandle | None = None
        self._first_notices = [str(problem) for problem in problems] + [window_system.notice]

    async def run(self) -> int:
        """Run until the user quits."""
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        # From the inside out: the window is there before anything can go wrong.
        self._overlay.show()
        presence = Tray(self._commands) if tray_available() else ControlWindow(self._commands)
        presence.show()
        self._connect()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: closing the window is the way
                loop.add_signal_handler(number, self._over.set)
        self.notice(" ".join(notice for notice in self._first_notices if notice))
        self._do(self._start())
        try:
            await self._over.wait()
        finally:
            # First no more sound, then the last words, then the file; the window goes last.
            async with self._changing:
                await self._stop()
            await self._end_transcript()
            await self._system.control.finish(limit=_SOUND_WITHIN)
            presence.hide()
            self._overlay.hide()
            self._forget_notice()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return 0

    # -- audience ------------------------------------------------------------------

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:  # noqa: ARG002 - the window wants all
        """Show the text."""
        self._overlay.show_snapshot(snapshot)

    def status(self, status: Status) -> None:
        """Show the state of things."""
        self._status = status
        self._show_status()

    def notice(self, text: str) -> None:
        """Say something that stops nothing."""
        if text:
            self._forget_notice()
            self._notice = text
            self._show_status()

    def _show_status(self) -> None:
        """Show the status; a notice stands in place of its words for a while.

        What is wrong and what to do about it stands above any notice, which then waits.
        """
        status = self._status
        if self._notice and status.look is not Look.FAILED:
            status = replace(status, message=self._notice)
            if self._notice_over is None:
                loop = asyncio.get_running_loop()
                self._notice_over = loop.call_later(_NOTICE, self._end_notice)
        status = replace(status, level=0.0, behind=0.0)  # neither is shown
        if status != self._shown:
            self._shown = status
            self._overlay.show_status(status)
            self._commands.show_status(status)

    def _end_notice(self) -> None:
        self._forget_notice()
        self._show_status()

    def _forget_notice(self) -> None:
        self._notice = ""
        if self._notice_over is not None:
            self._notice_over.cancel()
            self._notice_over = None

    # -- wishes --------------------------------------------------------------------

    def _connect(self) -> None:
        commands = self._commands
        commands.quit_requested.connect(self._over.set)
        commands.show_hide_requested.connect(
            lambda: self._overlay.setVisible(not self._overlay.isVisible())
        )
        commands.start_pause_requested.connect(lambda: self._do(self._start_or_pause()))
        commands.source_requested.connect(lambda id_: self._do(self._listen_to(id_)))
        self._overlay.placed.connect(self._keep_place)

    def _do(self, work: Coroutine[object, object, None]) -> None:
        """Run something that a signal asks for."""
        if self._over.is_set():
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start_or_pause(self) -> None:
        async with self._changing:
            if self._listening is not None and not self._listening.done():
                await self._stop()
                self._show_state(State.PAUSED, "Paused; nothing is listened to.")
            else:
                await self._start()

    async def _listen_to(self, source: str) -> None:
        kind, _, device = source.partition(":")
        settings = self._settings.with_value("audio.source", kind)
        self._settings = settings.with_value("audio.device", device)
        try:
            self._settings_file.write(self._settings)
        except SurtitleError as error:
            self.notice(str(error))
        async with self._changing:
            await self._stop()
            await self._start()

    def _keep_place(self, place: Place) -> None:
        try:
            self._state.keep_window_place(place)
        except SurtitleError as error:
            self.notice(str(error))

    # -- listening -----------------------------------------------------------------

    async def _start(self) -> None:
        self._listening = asyncio.get_running_loop().create_task(self._listen(), name="listen")

    async def _stop(self) -> None:
        """Stop listening and bring the last words, within bounds."""
        listening, self._listening = self._listening, None
        if listening is None:
            return
        if self._captioner is None:
            listening.cancel()
        else:
            await self._captioner.stop()
        await asyncio.wait([listening], timeout=_STOP_WITHIN)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        """Listen to the chosen source; take a lost device back when it returns."""
        while True:
            try:
                await self._caption_once()
            except SurtitleError as error:
                if error.decision is not Decision.RETRY:
                    self._show_state(State.FAILED, error.message, error.remedy)
                    return
                # Not as failed for good: what the user can do is to pause, not to start.
                self._show_state(State.RECOVERING, error.message, error.remedy)
                await asyncio.sleep(error.retry_after or self._try_again)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not look like silence
                self._show_state(
                    State.FAILED,
                    f"Surtitle has a fault ({type(error).__name__}).",
                    "Start captioning again; if it comes back, run: surtitle doctor",
                )
                return
            else:
                return

    async def _caption_once(self) -> None:
        settings = self._settings
        kind = Kind(settings.audio_source)
        devices = await list_devices(system=self._system)
        self._commands.show_sources(_choices(devices, settings))
        device = choose(devices, kind, settings.audio_device or None)
        source = open_source(device, follow_default=not settings.audio_device, system=self._system)
        engines = await self._engines()
        loop = asyncio.get_running_loop()
        self._captioner = Captioner(
            source,
            engines,
            self._captions,
            self,
            chance=random.random,
            keeper=self._transcript(source.name, engines.chosen().name),
            # One clock for the session: what is said after a pause has its true time,
            # but not one that has been given out already, by a device that runs fast.
            origin=max(int((loop.time() - self._began) * SAMPLE_RATE), self._position),
            microphone=kind is Kind.MIC,
        )
        try:
            await self._captioner.run()
        finally:
            self._position = self._captioner.position
            self._captioner = None

    async def _engines(self) -> Engines[Engine]:
        if self._make_engine is not None:
            return Engines(chosen=self._make_engine)
        return await chosen_engines(self._settings, stand_in=self._settings.engine_stand_in)

    def _show_state(self, state: State, message: str, remedy: str = "") -> None:
        self.status(replace(self._status, state=state, message=message, remedy=remedy, behind=0.0))

    # -- transcript ----------------------------------------------------------------

    def _transcript(self, source: str, engine: str) -> Session | None:
        if not self._settings.transcript_save:
            return None
        if self._session is None:
            loop = asyncio.get_running_loop()
            age = timedelta(seconds=loop.time() - self._began)

            def tell(error: SurtitleError) -> None:
                with suppress(RuntimeError):  # the program is ending
                    loop.call_soon_threadsafe(self.notice, str(error))

            self._session = self._store.begin_session(
                datetime.now(UTC).astimezone() - age, source, engine, tell
            )
        return self._session

    async def _end_transcript(self) -> None:
        if self._session is not None:
            await asyncio.to_thread(self._session.close, _KEEP_WITHIN)


def _choices(devices: Sequence[Device], settings: Settings) -> list[SourceChoice]:
    """The source menu: each kind's default first, then the devices by name."""
    chosen = f"{settings.audio_source}:{settings.audio_device}"
    titles = {Kind.SYSTEM: "What this computer plays", Kind.MIC: "Microphone"}
    choices: list[SourceChoice] = []
    for kind, title in titles.items():
        listed = [device for device in devices if device.kind is kind]
        for id_, name in [
            (f"{kind}:", title),
            *((f"{kind}:{device.id}", f"{title}: {device.name}") for device in listed),
        ]:
            choices.append(SourceChoice(id=id_, name=name, chosen=id_ == chosen))
    return choices
