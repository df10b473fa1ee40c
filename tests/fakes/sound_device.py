"""A stand-in for the module sounddevice, with the behaviour of the real one.

Its streams call back on a real thread. What a test pushes into a stream arrives
as PortAudio would hand it over; nothing depends on the speed of the computer.
"""

import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["FakeFlags", "FakeSoundDevice", "FakeStream", "FakeTimes", "PortAudioError", "entry"]

WAIT_LIMIT = 10.0
"""Seconds after which a test that waits has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeTimes:
    """As sounddevice's time information."""

    inputBufferAdcTime: float = 0.0  # noqa: N815 - PortAudio's name


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeFlags:
    """As sounddevice's callback flags."""

    input_overflow: bool = False


class StreamServer(Protocol):
    """What ALSA's way to a sound server leads to."""

    def connect_stream(self, stream: "FakeStream") -> None:
        """Start to record what the stream's environment says."""

    def disconnect_stream(self, stream: "FakeStream") -> None:
        """Stop to record."""


class PortAudioError(Exception):
    """As sounddevice's: a text and PortAudio's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    pcm: bytes
    times: FakeTimes
    flags: FakeFlags


class FakeStream:
    """As `sounddevice.RawInputStream` with a callback."""

    def __init__(
        self,
        owner: "FakeSoundDevice",
        *,
        samplerate: int,
        blocksize: int,
        device: int,
        channels: int,
        dtype: str,
        latency: float,
        callback: Callable[[bytes, int, FakeTimes, FakeFlags], None],
        finished_callback: Callable[[], None],
    ) -> None:
        self.rate, self.blocksize, self.channels = samplerate, blocksize, channels
        self.device, self.dtype, self.latency = device, dtype, latency
        self.environment = {k: v for k, v in os.environ.items() if k.startswith("P")}
        self.closed = False
        self.shut = threading.Event()
        """Set when it is closed."""
        self._owner = owner
        self._callback = callback
        self._finished = finished_callback
        self._calls: queue.Queue[_Call | threading.Event | None] = queue.Queue(1000)
        self._thread = threading.Thread(target=self._run, name="fake portaudio", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._owner.started(self)

    def abort(self) -> None:
        if self.closed:
            raise PortAudioError("Invalid stream pointer", -9988)
        self.end()

    def close(self) -> None:
        self._owner.pause("close")
        self.end()
        self.closed = True
        self.shut.set()
        self._owner.closed(self)

    # What a test does to it.

    def push(self, pcm: bytes, *, recorded: float = 0.0, overflow: bool = False) -> None:
        """Have the device deliver a block."""
        self._calls.put_nowait(
            _Call(
                pcm=pcm,
                times=FakeTimes(inputBufferAdcTime=recorded),
                flags=FakeFlags(input_overflow=overflow),
            )
        )

    def settle(self) -> None:
        """Wait until all that was pushed has been called back."""
        done = threading.Event()
        self._calls.put_nowait(done)
        assert done.wait(WAIT_LIMIT)

    def end(self) -> None:
        """Have the stream end, as when the device is pulled out, and wait until it has."""
        self._calls.put_nowait(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(WAIT_LIMIT)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            if isinstance(call, threading.Event):
                call.set()
                continue
            try:
                frames = len(call.pcm) // (2 * self.channels)
                self._callback(call.pcm, frames, call.times, call.flags)
            except Exception:  # noqa: BLE001 - the real one ends without telling the program
                break
        self._finished()


@dataclass(kw_only=True)
class FakeSoundDevice:
    """As the module `sounddevice`."""

    entries: list[dict[str, Any] | Exception] = field(default_factory=list)
    accepted: Callable[[int, int], bool] = lambda _rate, _channels: True
    """Which rates and channel counts the devices take."""
    refuse_with: PortAudioError | None = None
    """Why nothing opens at all."""
    hang: dict[str, threading.Event] = field(default_factory=dict)
    """`open` or `close`: that call waits for the event."""
    host: str = "ALSA"
    server: "StreamServer | None" = None
    streams: list[FakeStream] = field(default_factory=list)
    opened: threading.Event = field(default_factory=threading.Event)
    """Set when the first stream is open."""
    attempts: list[tuple[int, int]] = field(default_factory=list)
    refreshed: int = 0
    on_start: Callable[[FakeStream], None] = lambda _stream: None
    """What the device does as soon as it is started."""

    PortAudioError = PortAudioError

    def query_hostapis(self) -> tuple[dict[str, Any], ...]:
        host = {
            "name": self.host,
            "devices": list(range(len(self.entries))),
            "default_input_device": 0 if self.entries else -1,
        }
        return (host,)

    def query_devices(self, index: int) -> dict[str, Any]:
        entry = self.entries[index]
        if isinstance(entry, Exception):
            raise entry
        return entry

    def RawInputStream(self, **arguments: Any) -> FakeStream:  # noqa: ANN401, N802 - as the real one
        self.pause("open")
        self.attempts.append((arguments["samplerate"], arguments["channels"]))
        if self.refuse_with is not None:
            raise self.refuse_with
        if not self.accepted(arguments["samplerate"], arguments["channels"]):
            raise PortAudioError("Invalid sample rate", -9997)
        stream = FakeStream(self, **arguments)
        self.streams.append(stream)
        self.opened.set()
        return stream

    def _terminate(self) -> None:
        assert all(stream.closed for stream in self.streams), "this would kill an open stream"

    def _initialize(self) -> None:
        self.refreshed += 1

    def pause(self, where: str) -> None:
        if where in self.hang:
            self.hang[where].wait(WAIT_LIMIT)

    def started(self, stream: FakeStream) -> None:
        if self.server is not None:
            self.server.connect_stream(stream)
        self.on_start(stream)

    def closed(self, stream: FakeStream) -> None:
        if self.server is not None:
            self.server.disconnect_stream(stream)


def entry(name: str, *, channels: int = 2, rate: float = 44_100.0) -> dict[str, Any]:
    """Return a device as sounddevice describes it."""
    return {"name": name, "max_input_channels": channels, "default_samplerate": rate}
