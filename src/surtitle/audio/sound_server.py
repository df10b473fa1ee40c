"""What a Linux sound server (PipeWire or PulseAudio) says and does, through libpulse.

The server knows the names people recognise, the defaults, and what each stream
is really connected to. The sound itself comes through PortAudio.
"""

import asyncio
import importlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from surtitle.core.errors import Decision, SourceError

__all__ = [
    "Endpoint",
    "Kind",
    "PulseServer",
    "Recording",
    "SoundServer",
    "Survey",
    "connect",
]

_ANSWER_LIMIT = 2.0
"""Seconds a sound server may take for one answer."""


class Kind(StrEnum):
    """What a device lets us hear."""

    MIC = "mic"
    SYSTEM = "system"
    """What this computer plays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Something the server lets us record: an input, or what goes to an output."""

    kind: Kind
    name: str
    """The server's own name for the input or output; stays the same over restarts."""
    description: str
    """What a person recognises."""
    source: str
    """The server's name for what is recorded; for an output, its monitor."""
    rate: int
    channels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A stream that records, of whatever program."""

    index: int
    source: str
    """What it is connected to; empty if unknown."""
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The state of the server at one moment."""

    server: str
    """What the server calls itself."""
    endpoints: tuple[Endpoint, ...] = ()
    defaults: Mapping[Kind, str] = field(default_factory=dict)
    """Name of the default input and output."""
    recordings: tuple[Recording, ...] = ()

    @property
    def is_pipewire(self) -> bool:
        """Whether it is PipeWire speaking PulseAudio's protocol."""
        return "pipewire" in self.server.lower()

    def default(self, kind: Kind) -> Endpoint | None:
        """Return the default of a kind, if there is one that can be recorded."""
        return self.endpoint(kind, self.defaults.get(kind, ""))

    def endpoint(self, kind: Kind, name: str) -> Endpoint | None:
        """Return what the server calls `name`, if it is there."""
        return next((e for e in self.endpoints if e.kind is kind and e.name == name), None)


class SoundServer(Protocol):
    """A connection to a sound server. Every method raises SourceError when it is gone."""

    async def survey(self) -> Survey:
        """Ask what there is and what is connected to what."""

    async def move(self, recording: int, source: str) -> bool:
        """Connect a recording to another source; False when the server would not."""

    def changes(self, *, at_least_every: float) -> AsyncGenerator[None]:
        """Tell when something may have changed, and after so many seconds in any case.

        When the iteration ends, for whatever reason, so does the connection.
        """

    async def close(self) -> None:
        """Hang up. Safe in every state, more than once."""


async def connect() -> SoundServer | None:
    """Connect to the user's sound server; None where there is none that answers."""
    if sys.platform != "linux":
        return None
    try:
        pulsectl_asyncio = importlib.import_module("pulsectl_asyncio")
        pulsectl = importlib.import_module("pulsectl.pulsectl")
    except (ImportError, OSError):  # OSError: libpulse is not installed
        return None
    _keep_rates(pulsectl)
    errors = (pulsectl.PulseError, pulsectl.PulseDisconnected, pulsectl.c.pa.CallError)
    pulse = pulsectl_asyncio.PulseAsync("Surtitle")
    pulse.waiting_futures = _Waiting()
    try:
        await pulse.connect(timeout=_ANSWER_LIMIT)
    except (*errors, TimeoutError):
        pulse.close()
        return None
    except BaseException:
        pulse.close()
        raise
    return PulseServer(pulse=pulse, errors=errors)


def _keep_rates(pulsectl: Any) -> None:  # noqa: ANN401 - the library has no types
    """Have pulsectl copy the sample rate while libpulse still holds it.

    What it keeps by itself as `sample_spec` points into memory that libpulse takes back
    as soon as its callback returns. Its hook for further fields is called before that.
    """

    def copy(info: Any, struct: Any) -> None:  # noqa: ANN401 - see above
        info.rate = int(struct.sample_spec.rate)

    for info in (pulsectl.PulseSinkInfo, pulsectl.PulseSourceInfo):
        info._init_from_struct = copy  # noqa: SLF001 - made for subclasses; the lists use these


class _Waiting(set[asyncio.Future[None]]):
    """What pulsectl waits for, so that it can tell all of them when the server is gone.

    It tells at once, also those whose answer has come in but is not handed out yet, and
    asyncio refuses a second result. Here they are told a moment later, if still needed.
    """

    def __iter__(self) -> Iterator[Any]:
        return iter([_Gentle(waiting) for waiting in super().__iter__()])


class _Gentle:
    def __init__(self, waiting: asyncio.Future[None]) -> None:
        self._waiting = waiting

    def set_exception(self, error: Exception) -> None:
        def tell() -> None:
            if not self._waiting.done():
                self._waiting.set_exception(error)

        self._waiting.get_loop().call_soon(tell)


class PulseServer:
    """A sound server through libpulse.

    Args:
        pulse: A connected `pulsectl_asyncio.PulseAsync`.
        errors: What it raises when the server refuses or is gone.
    """

    def __init__(
        self,
        *,
        pulse: Any,  # noqa: ANN401 - the library has no types
        errors: tuple[type[Exception], ...],
    ) -> None:
        self._pulse = pulse
        self._errors = errors
        self._closed = False

    async def survey(self) -> Survey:
        """Ask what there is and what is connected to what."""
        info = await self._ask(self._pulse.server_info)
        sinks = await self._ask(self._pulse.sink_list)
        sources = await self._ask(self._pulse.source_list)
        recordings = await self._ask(self._pulse.source_output_list)
        source_names = {source.index: source.name for source in sources}
        return Survey(
            server=str(info.server_name or ""),
            endpoints=(*_understood(_output, sinks), *_understood(_input, sources)),
            defaults={
                Kind.SYSTEM: str(info.default_sink_name or ""),
                Kind.MIC: str(info.default_source_name or ""),
            },
            recordings=tuple(
                Recording(
                    index=recording.index,
                    source=source_names.get(recording.source, ""),
                    properties=dict(recording.proplist),
                )
                for recording in recordings
            ),
        )

    async def move(self, recording: int, source: str) -> bool:
        """Connect a recording to another source; False when the server would not."""
        sources = await self._ask(self._pulse.source_list)
        index = next((each.index for each in sources if each.name == source), None)
        if index is None:
            return False
        try:
            await self._ask(lambda: self._pulse.source_output_move(recording, index))
        except SourceError:
            if self._pulse.connected:
                return False
            raise
        return True

    async def changes(self, *, at_least_every: float) -> AsyncGenerator[None]:
        """Tell when something may have changed, and after so many seconds in any case."""
        news = asyncio.Event()
        listener = asyncio.create_task(self._listen(news), name="sound server events")
        try:
            while not listener.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(at_least_every):
                        await news.wait()
                news.clear()
                if not listener.done():
                    yield
            raise _gone()
        finally:
            # Cancelling the listener instead could free a callback that libpulse still holds;
            # hanging up ends it.
            await self.close()
            await asyncio.wait([listener], timeout=_ANSWER_LIMIT)
            if not listener.done():
                listener.cancel()

    async def close(self) -> None:
        """Hang up. Safe in every state, more than once."""
        if not self._closed:
            self._closed = True
            self._pulse.close()

    async def _listen(self, news: asyncio.Event) -> None:
        subjects = ("server", "sink", "source", "source_output")
        if self._closed:  # before this began: libpulse ends the program if it is asked then
            news.set()
            return
        try:
            async for _ in self._pulse.subscribe_events(*subjects):
                news.set()
        except self._errors:
            pass  # `changes` tells that the server is gone
        finally:
            news.set()

    async def _ask[T](self, question: Callable[[], Awaitable[T]]) -> T:
        if self._closed:
            raise _gone()
        try:
            async with asyncio.timeout(_ANSWER_LIMIT):
                return await question()
        except self._errors as error:
            raise _gone() from error
        except (TimeoutError, asyncio.CancelledError) as error:
            # The library forgets its callback now while libpulse still holds it: the answer
            # must never come, so the connection has to go at once.
            await self.close()
            if isinstance(error, TimeoutError):
                raise _gone() from error
            raise


def _gone() -> SourceError:
    return SourceError(
        "The sound server (PipeWire or PulseAudio) has ended or does not answer.",
        remedy="Surtitle goes on by itself when it is back.",
        decision=Decision.RETRY,
    )


def _understood(read: Callable[[Any], Endpoint | None], entries: list[Any]) -> Iterator[Endpoint]:
    """Read what can be read: one odd entry must not hide the others."""
    for entry in entries:
        with suppress(AttributeError, TypeError, ValueError):
            endpoint = read(entry)
            if endpoint is not None:
                yield endpoint


def _output(sink: Any) -> Endpoint | None:  # noqa: ANN401 - the library has no types
    if not sink.monitor_source_name:
        return None
    return Endpoint(
        kind=Kind.SYSTEM,
        name=sink.name,
        description=sink.description or sink.name,
        source=sink.monitor_source_name,
        rate=sink.rate,
        channels=sink.channel_count,
    )


def _input(source: Any) -> Endpoint | None:  # noqa: ANN401 - the library has no types
    if source.monitor_of_sink_name:
        return None
    return Endpoint(
        kind=Kind.MIC,
        name=source.name,
        description=source.description or source.name,
        source=source.name,
        rate=source.rate,
        channels=source.channel_count,
    )
