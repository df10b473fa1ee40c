"""PortAudio through sounddevice: which inputs there are, and opening one.

Everything here blocks and belongs on the control thread, except that PortAudio
calls back on a thread of its own.
"""

import importlib
import itertools
import os
import sys
import threading
from collections.abc import Buffer, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from surtitle.audio.inbox import Flags, Times
from surtitle.core.audio import Format
from surtitle.core.errors import Decision, SourceError

__all__ = [
    "HUSH",
    "Callback",
    "Hush",
    "Input",
    "Opened",
    "PortAudio",
    "Request",
    "Stream",
    "find",
    "formats",
    "preferred",
]

_HOSTS = ("Windows WASAPI", "MME", "Core Audio", "ALSA")
"""Host APIs in the order we want them; never Windows WDM-KS, which takes devices for itself."""
_RATES = (48_000, 44_100, 16_000)
_LOWEST_RATE, _HIGHEST_RATE = 8_000, 96_000
_MOST_CHANNELS = 8
_BLOCKS_PER_SECOND = 50
_LATENCY = 0.15
"""Seconds of sound the system keeps for us while Python is busy elsewhere."""
_OTHER_FORMAT_MAY_DO = {-9994, -9997, -9998}  # sample format, sample rate, channel count
_EXCLUSIVE = -9985
_ENVIRONMENT_LIMIT = 4.0


type Callback = Callable[[Buffer, int, Times, Flags], None]
"""PortAudio's: sound that is gone when it returns, frames, when and how it was recorded."""


class Stream(Protocol):
    """The part of `sounddevice.RawInputStream` that we use."""

    def start(self) -> None:
        """Begin to call back."""

    def abort(self) -> None:
        """Stop without waiting for buffers."""

    def close(self) -> None:
        """Let go of the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Something PortAudio can record from."""

    name: str
    host: str
    index: int
    """Good until the list is refreshed; name and host stay the same."""
    rate: int
    channels: int
    default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which input to open, and how."""

    label: str
    """What a person calls it."""
    names: tuple[str, ...]
    """PortAudio's names that will do, best first."""
    absent: SourceError
    """What to raise when there is none of them."""
    host: str = ""
    """Host API; empty for any."""
    rate: int = 0
    """Hertz; 0 for the input's own."""
    channels: int = 0
    """0 for the input's own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the libraries below shall read from the environment while they open it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A running stream."""

    stream: Stream
    format: Format
    number: int
    """Tells it from all others of this process."""


class Hush:
    """Keeps the C libraries from writing to standard error, which they do on every error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._saved: int | None = None
        self._owner: object = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Send file descriptor 2 nowhere, for the whole process, until the end of the block."""
        owner = object()
        self._silence(owner)
        try:
            yield
        finally:
            self.restore(owner)

    def restore(self, owner: object = None) -> None:
        """End the quiet of `owner`, or whoever's it is: the owner may hang for good."""
        with self._lock:
            if self._saved is None or (owner is not None and owner is not self._owner):
                return
            os.dup2(self._saved, 2)
            os.close(self._saved)
            self._saved = None

    def _silence(self, owner: object) -> None:
        # OSError: there is no standard error, as in a windowed program.
        with self._lock, suppress(OSError):
            if self._saved is not None:
                return
            saved = os.dup(2)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
            self._saved, self._owner = saved, owner


HUSH = Hush()
"""The process has one standard error."""

_ENVIRONMENT = threading.Lock()
"""And one environment."""


class PortAudio:
    """PortAudio, loaded when first asked.

    Args:
        module: What `import sounddevice` gives; None to import it when needed.
    """

    def __init__(self, module: object = None) -> None:
        self._module: Any = module
        self._fresh = False
        self._numbers = itertools.count()
        self._in_use: set[int] = set()  # streams that are open, or hang in opening or closing

    def inputs(self) -> list[Input]:
        """List what can be recorded from.

        Raises:
            SourceError: PortAudio is missing or does not work.
        """
        with HUSH.quiet():
            sounddevice = self._load()
            self._refresh()
            try:
                hosts = list(sounddevice.query_hostapis())
            except sounddevice.PortAudioError as error:
                raise _broken() from error
            return [found for host in hosts for found in self._inputs_of(host)]

    def open(
        self,
        request: Request,
        *,
        callback: Callback,
        finished: Callable[[], None],
    ) -> Opened:
        """Open and start an input, at the first rate and channel count it accepts.

        Raises:
            SourceError: It is not there, or does not open.
        """
        inputs = self.inputs()
        found = find(inputs, names=request.names, host=request.host)
        if found is None:
            raise request.absent
        number = next(self._numbers)
        self._in_use.add(number)  # also while it opens, which may hang
        try:
            with HUSH.quiet(), _environment(request.environment):
                stream, layout = self._first_accepted(found, request, callback, finished)
        except SourceError:
            self._in_use.discard(number)
            raise
        return Opened(stream=stream, format=layout, number=number)

    def close(self, opened: Opened) -> None:
        """Stop and let go. May hang where the device is gone; then leave it."""
        sounddevice = self._load()
        with HUSH.quiet():
            # PortAudioError: the stream had ended by itself; closing is still due.
            with suppress(sounddevice.PortAudioError):
                opened.stream.abort()
            with suppress(sounddevice.PortAudioError):
                opened.stream.close()
        self._in_use.discard(opened.number)

    def _load(self) -> Any:  # noqa: ANN401 - the library has no types
        if self._module is None:
            self._fresh = "sounddevice" not in sys.modules
            try:
                self._module = importlib.import_module("sounddevice")
            except OSError as error:
                raise SourceError(
                    "The PortAudio library is not installed, so no sound can be captured.",
                    remedy="Install it, for example: sudo apt install libportaudio2.",
                    decision=Decision.RECONFIGURE,
                ) from error
            except Exception as error:  # sounddevice raises its own error while it is imported
                raise _broken() from error
        return self._module

    def _refresh(self) -> None:
        """Have PortAudio look again: its list is the one of when it was initialised.

        Only while no stream is open, because that would end it without a word.
        """
        if self._fresh:
            self._fresh = False
            return
        if self._in_use:
            return
        # Private, but the only way, and what the library's own documentation names.
        try:
            self._module._terminate()  # noqa: SLF001
            self._module._initialize()  # noqa: SLF001
        except self._module.PortAudioError as error:
            raise _broken() from error

    def _inputs_of(self, host: Mapping[str, Any]) -> Iterator[Input]:
        for index in host["devices"]:
            # Whatever one entry is like, it must not hide the others.
            with suppress(self._module.PortAudioError, ValueError, KeyError, TypeError):
                device = self._module.query_devices(index)
                if int(device["max_input_channels"]) > 0:
                    yield Input(
                        name=str(device["name"]),
                        host=str(host["name"]),
                        index=index,
                        rate=int(device["default_samplerate"]),
                        channels=int(device["max_input_channels"]),
                        default=index == host["default_input_device"],
                    )

    def _first_accepted(
        self, found: Input, request: Request, callback: Callback, finished: Callable[[], None]
    ) -> tuple[Stream, Format]:
        failure: Exception | None = None
        for layout in formats(request.rate or found.rate, request.channels or found.channels):
            try:
                return self._start(found, layout, callback, finished), layout
            except self._module.PortAudioError as error:
                failure = error
                if _code(error) not in _OTHER_FORMAT_MAY_DO:
                    break
        raise _refused(request.label, failure) from failure

    def _start(
        self, found: Input, layout: Format, callback: Callback, finished: Callable[[], None]
    ) -> Stream:
        stream = cast(
            "Stream",
            self._module.RawInputStream(
                samplerate=layout.rate,
                blocksize=layout.rate // _BLOCKS_PER_SECOND,
                device=found.index,
                channels=layout.channels,
                dtype="int16",
                latency=_LATENCY,
                callback=callback,
                finished_callback=finished,
            ),
        )
        try:
            stream.start()
        except self._module.PortAudioError:
            stream.close()
            raise
        return stream


def find(inputs: Sequence[Input], *, names: Sequence[str], host: str = "") -> Input | None:
    """Return the first input of these names, in their order, and of that host API."""
    there = [each for name in names for each in inputs if each.name == name]
    return next((each for each in there if host in ("", each.host)), None)


def preferred(inputs: Sequence[Input]) -> list[Input]:
    """Return the inputs of the one host API that serves best here."""
    hosts = {each.host for each in inputs}
    best = next((host for host in (*_HOSTS, *sorted(hosts)) if host in hosts), "")
    return [each for each in inputs if each.host == best]


def formats(rate: int, channels: int) -> list[Format]:
    """Return the formats to try, best first, for a device's own rate and channel count."""
    own = min(max(rate, _LOWEST_RATE), _HIGHEST_RATE)
    most = min(max(channels, 1), _MOST_CHANNELS)
    # Two are enough to mix down; some devices open with all of theirs only.
    counts = dict.fromkeys((min(most, 2), 1, most))
    rates = dict.fromkeys((own, *_RATES))
    return [Format(rate=r, channels=c) for r in rates for c in counts]


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    if not _ENVIRONMENT.acquire(timeout=_ENVIRONMENT_LIMIT):
        raise SourceError(
            "The sound system does not answer.",
            remedy="Try again in a moment; restart the computer if it stays so.",
            decision=Decision.RETRY,
        )
    try:
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
    finally:
        _ENVIRONMENT.release()


def _code(error: Exception | None) -> int:
    """Return PortAudio's error code, 0 if the error carries none."""
    arguments = error.args if error is not None else ()
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else 0


def _refused(label: str, error: Exception | None) -> SourceError:
    if _code(error) == _EXCLUSIVE:
        return SourceError(
            f"{label} is busy: another program has it for itself alone.",
            remedy="Close that program, or choose another device.",
            decision=Decision.RETRY,
        )
    return SourceError(
        f"{label} cannot be opened (PortAudio error {_code(error)}).",
        remedy="Check that it is connected and that programs are allowed to record from it.",
        decision=Decision.RETRY,
    )


def _broken() -> SourceError:
    return SourceError(
        "The sound system of this computer cannot be started.",
        remedy="Check that sound works in other programs, then try again.",
        decision=Decision.RETRY,
    )
