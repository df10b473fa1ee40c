"""Captions without a window: wires one source to one engine and to the console."""

import asyncio
import random
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import TextIO

from surtitle.audio.capture import open_source
from surtitle.audio.devices import SOUND_SYSTEM, Device, Kind, choose, list_devices
from surtitle.audio.files import MediaFile, Pace
from surtitle.audio.raw import RawStream
from surtitle.captioner import Captioner, Engine, Source
from surtitle.console import Console, StandardOutput
from surtitle.core.captions import Captions
from surtitle.core.errors import UsageError
from surtitle.core.settings import Settings, Value
from surtitle.core.stability import Stability
from surtitle.core.transcript import Form
from surtitle.relay import Engines
from surtitle.speech_engines import chosen_engines
from surtitle.storage.output import OutputFile
from surtitle.storage.places import Places
from surtitle.storage.session import Session
from surtitle.storage.settings_file import SettingsFile
from surtitle.storage.transcripts import TranscriptStore

__all__ = ["caption", "describe_devices", "find_device"]

_KINDS = {str(kind): kind for kind in Kind}
_TITLES = {Kind.SYSTEM: "What this computer plays", Kind.MIC: "Microphones"}
_TELLING = {Settings.engine_url.key: "vllm", Settings.engine_endpoint.key: "sagemaker"}
_PATIENCE = 5
"""Failures of the engine in a row after which a command gives up."""
_SOUND_WITHIN = 2.0
"""Seconds that a call into the sound libraries may take at the end."""


def caption(
    source: str,
    *,
    form: str | None,
    output: Path | None,
    pace: str,
    device: str | None,
    engine: Mapping[str, Value],
) -> int:
    """Caption `source` to standard output or to the file `output`. Returns the exit code.

    Args:
        source: A file, or one of the words that the command line knows.
        form: Of the results; None for what the name of the output says.
        output: A file for the results.
        pace: Of a file.
        device: Name of a device, or a part of it.
        engine: Settings of the engine that are meant in place of the stored ones.

    Raises:
        SurtitleError: Something about the request, the source, the engine or the output.
    """
    if device is not None and source not in _KINDS:
        raise UsageError(
            "--device goes with 'mic' or 'system' only.", remedy="Leave it out.", field="--device"
        )
    with ExitStack() as stack:
        sink = StandardOutput() if output is None else stack.enter_context(OutputFile(output))
        work = _listen(
            source, sink, form=_form(form, output), pace=pace, device=device, engine=engine
        )
        return asyncio.run(_with_sound(work))


def describe_devices() -> str:
    """What can be listened to, for people. Raises SourceError if that cannot be found out."""
    devices = asyncio.run(_with_sound(list_devices()))
    lines: list[str] = []
    for kind, title in _TITLES.items():
        listed = [device for device in devices if device.kind is kind]
        lines.append(f"{title} ({kind}):")
        for device in listed:
            mark = "*" if device.default else " "
            lines.append(f"  {mark} {device.name}   {device.rate} Hz, {device.channels} ch")
            lines.append(f"      {device.id}")
        if not listed:
            lines.append("    none")
    if devices:
        lines.append("* is used unless --device names another, by its name or a part of it.")
    return "\n".join(lines)


async def find_device(kind: Kind, wanted: str | None) -> Device:
    """The device that is meant. Raises UsageError or SourceError."""
    return choose(await list_devices(), kind, wanted or None)


async def _with_sound[T](work: Coroutine[object, object, T]) -> T:
    """Do something with the sound libraries and see that nothing is left running in them."""
    try:
        return await work
    finally:
        await SOUND_SYSTEM.control.finish(limit=_SOUND_WITHIN)


async def _listen(
    source_name: str,
    sink: StandardOutput | OutputFile,
    *,
    form: Form,
    pace: str,
    device: str | None,
    engine: Mapping[str, Value],
) -> int:
    places = Places.find(environ)
    settings, problems = SettingsFile(places.settings).read()
    engines = await _engines(settings, engine, source_name)
    source = await _source(source_name, pace, device)
    interruption = _Interruption()
    console = Console(
        sink,
        form,
        aside=sys.stderr,
        live=_terminal(isinstance(sink, StandardOutput), form),
        duration=lambda: source.duration if isinstance(source, MediaFile) else None,
        on_trouble=interruption.stop,
    )
    for problem in problems:
        console.notice(str(problem))
    name = engines.chosen().name
    keeper = _keeper(source, name, places, console) if settings.transcript_save else None
    captioner = Captioner(
        source,
        engines,
        Captions(Stability.of(settings.captions_steadiness)),
        console,
        chance=random.random,
        keeper=keeper,
        patience=_PATIENCE,
        microphone=source_name == "mic",
    )
    try:
        await interruption.guard(captioner)
    finally:
        console.close()
        if keeper is not None:
            await asyncio.to_thread(keeper.close)
    if console.trouble is not None:
        raise console.trouble
    if interruption.code == 0 and console.entries == 0:
        console.notice("No speech was found.")
    return interruption.code


async def _source(name: str, pace: str, device: str | None) -> Source:
    if name == "-":
        if sys.stdin is None:
            raise UsageError(
                "Standard input is closed.",
                remedy="Pipe 16-bit, 16 kHz, mono sound into this command.",
            )
        return RawStream(sys.stdin.buffer)
    if name == "both":
        raise UsageError(
            "Captioning microphone and system sound at once is not in this version yet.",
            remedy="Run two: surtitle caption mic, and surtitle caption system.",
        )
    kind = _KINDS.get(name)
    if kind is None:
        return MediaFile(Path(name), pace=Pace(pace))
    return open_source(await find_device(kind, device), follow_default=device is None)


async def _engines(settings: Settings, wanted: Mapping[str, Value], source: str) -> Engines[Engine]:
    """Engine sessions as the command line asks for them, else as the settings do.

    For a file the chosen engine is worth waiting for, and mixed results are worth little.
    """
    for key, value in wanted.items():
        settings = settings.with_value(key, value)
    if Settings.engine_name.key not in wanted:
        # What only one engine has says which one is meant.
        for key, engine in _TELLING.items():
            if key in wanted:
                settings = settings.with_value(Settings.engine_name.key, engine)
    stand_in = wanted.get(Settings.engine_stand_in.key, source in _KINDS)
    return await chosen_engines(settings, stand_in=bool(stand_in) and settings.engine_stand_in)


def _keeper(source: Source, engine: str, places: Places, console: Console) -> Session:
    loop = asyncio.get_running_loop()

    def tell(error: Exception) -> None:
        with suppress(RuntimeError):  # the program is ending
            loop.call_soon_threadsafe(console.notice, str(error))

    return TranscriptStore(places.transcripts).begin_session(
        datetime.now(UTC).astimezone(), source.name, engine, tell
    )


class _Interruption:
    """Ends captioning when the user asks: once in order, twice at once."""

    def __init__(self) -> None:
        self.code = 0
        self._captioner: Captioner | None = None
        self._run: asyncio.Task[None] | None = None
        self._stop: asyncio.Task[None] | None = None

    async def guard(self, captioner: Captioner) -> None:
        """Run the captioner until it is done or interrupted."""
        self._captioner = captioner
        self._run = asyncio.create_task(captioner.run(), name="captioner")
        with _signals(self._interrupted):
            try:
                await self._run
            except asyncio.CancelledError:
                if not self.code:
                    raise
        if self._stop is not None:
            await self._stop

    def stop(self) -> None:
        """Let the captioner come to its end."""
        if self._stop is None and self._captioner is not None:
            self._stop = asyncio.create_task(self._captioner.stop(), name="stop")

    def _interrupted(self, number: int) -> None:
        again, self.code = self.code != 0, 128 + number
        if again and self._run is not None:
            self._run.cancel()
        else:
            self.stop()


class _signals:  # noqa: N801 - used as a statement
    """Calls `handler` with the number of SIGINT and SIGTERM meanwhile."""

    def __init__(self, handler: Callable[[int], None]) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._loop.add_signal_handler(number, self._handler, number)
            except NotImplementedError:  # Windows
                self._before[number] = signal.signal(number, self._from_anywhere)

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            if number in self._before:
                signal.signal(number, self._before[number])  # type: ignore[arg-type]  # as it was given
            else:
                self._loop.remove_signal_handler(number)

    def _from_anywhere(self, number: int, _frame: object) -> None:
        self._loop.call_soon_threadsafe(self._handler, number)


def _form(name: str | None, output: Path | None) -> Form:
    if name is not None:
        return Form(name)
    suffix = output.suffix.lower().removeprefix(".") if output is not None else ""
    if suffix in {"json", "jsonl"}:
        return Form.JSON
    return Form(suffix) if suffix in {"srt", "vtt"} else Form.TEXT


def _terminal(to_standard_output: bool, form: Form) -> TextIO | None:  # noqa: FBT001 - asked once, here
    """Where live text can be shown without getting into the results."""
    if to_standard_output and sys.stdout.isatty():
        return sys.stdout if form is Form.TEXT else None
    return sys.stderr if sys.stderr.isatty() else None
