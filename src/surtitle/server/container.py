"""The WebSocket of a model container, frame by frame: nothing is joined, nothing is split."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidURI, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import SEND_EOF, State
from websockets.uri import parse_uri

from surtitle.core.errors import UsageError
from surtitle.server.event_stream import MAX_PAYLOAD

__all__ = ["Container", "ContainerClosedError", "ContainerRefusedError", "Part", "address"]

_READ = 65_536
_SEND_WITHIN = 60.0
"""Seconds in which the container must take what was sent."""
_CLOSE_WITHIN = 3.0
"""Seconds in which it must answer the close frame of a session that is over."""
_MAX_UNANSWERED = 5
"""Pings without an answer after which it counts as dead."""
_SWITCHING_PROTOCOLS = 101

# The library writes frames into its log when it may: speech does not belong there.
_SILENT = logging.getLogger("surtitle.server.container")
_SILENT.disabled = True


class ContainerRefusedError(Exception):
    """The container did not take the connection.

    Args:
        message: What it did instead.
        status: The HTTP status it answered with, if it answered.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class ContainerClosedError(Exception):
    """Nothing more can be sent to the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One data frame."""

    text: bool
    """Of a text message; otherwise of a binary one."""
    data: bytes = field(repr=False)
    final: bool = True
    """It ends its message."""


class Container:
    """A connection to a container, made by `connect`."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        protocol: ClientProtocol,
        unread: Sequence[object],
        ping_every: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = protocol
        self._unread = unread
        self._ping_every = ping_every
        self._unanswered = 0
        self._continuing = False
        """A message to the container has begun and not ended."""
        self._pinger = asyncio.create_task(self._ping(), name="container-ping")

    @classmethod
    async def connect(
        cls, url: str, *, within: float = 5.0, ping_every: float = 60.0
    ) -> "Container":
        """Connect to a container and wait until it has accepted.

        Args:
            url: A `ws://` address.
            within: Seconds it may take.
            ping_every: Seconds between the pings that it must answer.

        Raises:
            ContainerRefusedError: It is not there, refuses, or does not answer in time.
        """
        uri = parse_uri(url)
        protocol = ClientProtocol(uri, max_size=(None, MAX_PAYLOAD), logger=_SILENT)
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(within):
                reader, writer = await asyncio.open_connection(uri.host, uri.port)
                protocol.send_request(protocol.connect())
                await _write(writer, protocol)
                while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
                    if data := await reader.read(_READ):
                        protocol.receive_data(data)
                    else:
                        protocol.receive_eof()
                        break
        except TimeoutError as error:
            _abort(writer)
            raise ContainerRefusedError("The container does not answer.") from error
        except OSError as error:
            _abort(writer)
            raise ContainerRefusedError("The container cannot be reached.") from error
        except BaseException:
            _abort(writer)
            raise
        events = protocol.events_received()
        answer = events[0] if events and isinstance(events[0], Response) else None
        # Frames, even a close frame, may have come together with a good answer.
        if protocol.handshake_exc is not None or answer is None:
            _abort(writer)
            if answer is not None and answer.status_code != _SWITCHING_PROTOCOLS:
                status = answer.status_code
                raise ContainerRefusedError(
                    f"The container answered with status {status}.", status=status
                )
            raise ContainerRefusedError("The container does not speak WebSocket there.")
        return cls(reader, writer, protocol, events[1:], ping_every)

    @property
    def close_code(self) -> int:
        """How the container closed: its code, 1005 if it gave none, 1006 if it just went."""
        received = self._protocol.close_rcvd
        return 1006 if received is None else received.code

    @property
    def close_reason(self) -> str:
        """The reason it gave."""
        received = self._protocol.close_rcvd
        return "" if received is None else received.reason

    async def send(self, part: Part) -> None:
        """Send a frame; the first of a message says what kind of message it is.

        Raises:
            ContainerClosedError: The container takes no more.
        """
        if self._protocol.state is not State.OPEN:
            raise ContainerClosedError
        if self._continuing:
            self._protocol.send_continuation(part.data, part.final)
        elif part.text:
            self._protocol.send_text(part.data, part.final)
        else:
            self._protocol.send_binary(part.data, part.final)
        self._continuing = not part.final
        await self._flush()

    async def parts(self) -> AsyncIterator[Part]:
        """The data frames that come, until the container has closed."""
        text = True
        while True:
            unread, self._unread = self._unread, ()
            for event in unread:
                if (part := self._part(event, text=text)) is not None:
                    text = part.text
                    yield part
            try:
                await self._flush()
            except ContainerClosedError:
                return
            if self._protocol.close_rcvd is not None or self._protocol.state is State.CLOSED:
                return
            try:
                data = await self._reader.read(_READ)
            except OSError:
                data = b""
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._unread = self._protocol.events_received()

    async def close(self, code: Literal[1000, 1001]) -> None:
        """Send a close frame, unless one has been sent; what still comes can be read."""
        if self._protocol.state is State.OPEN:
            try:
                self._protocol.send_close(code)
                await self._flush()
            except (WebSocketException, ContainerClosedError):
                self._writer.transport.abort()

    async def leave(self) -> None:
        """Close with 1001 if it is still open, wait shortly, and let go. Never raises."""
        self._pinger.cancel()
        try:
            async with asyncio.timeout(_CLOSE_WITHIN):
                await self.close(1001)
                while self._protocol.close_rcvd is None and self._protocol.state is State.CLOSING:
                    async for _ in self.parts():
                        pass
        except TimeoutError:
            pass
        finally:
            self._writer.transport.abort()
            await asyncio.wait([self._pinger], timeout=_CLOSE_WITHIN)

    def _part(self, event: object, *, text: bool) -> Part | None:
        match event:
            case Frame(opcode=Opcode.TEXT, data=data, fin=fin):
                return Part(text=True, data=bytes(data), final=fin)
            case Frame(opcode=Opcode.BINARY, data=data, fin=fin):
                return Part(text=False, data=bytes(data), final=fin)
            case Frame(opcode=Opcode.CONT, data=data, fin=fin):
                return Part(text=text, data=bytes(data), final=fin)
            case Frame(opcode=Opcode.PONG):
                self._unanswered = 0
            case _:
                pass
        return None

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(_SEND_WITHIN):
                await _write(self._writer, self._protocol)
        except (OSError, TimeoutError) as error:
            self._writer.transport.abort()
            raise ContainerClosedError from error

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_every)
            if self._protocol.state is not State.OPEN:
                return
            if self._unanswered == _MAX_UNANSWERED:
                self._writer.transport.abort()
                return
            self._unanswered += 1
            self._protocol.send_ping(b"")
            try:
                await self._flush()
            except ContainerClosedError:
                return


def address(base: str, *, path: str | None = None, query: str | None = None) -> str:
    """The address of a container, with another path or query if a request names them.

    Raises:
        UsageError: `base` is no `ws://` address.
    """
    try:
        parts = urlsplit(base)
        parse_uri(base)
        sound = parts.scheme == "ws"
    except (InvalidURI, ValueError):
        sound = False
    if not sound:
        raise UsageError(
            f"{base!r} is no address of a container.",
            remedy="Give one such as ws://127.0.0.1:8080/invocations-bidirectional-stream",
            field="--container",
        )
    return urlunsplit(
        (
            parts.scheme,
            parts.netloc,
            parts.path if path is None else f"/{path}",
            parts.query if query is None else query,
            "",
        )
    )


async def _write(writer: asyncio.StreamWriter, protocol: ClientProtocol) -> None:
    for data in protocol.data_to_send():
        if data != SEND_EOF:
            writer.write(data)
        elif writer.can_write_eof():
            writer.write_eof()
    await writer.drain()


def _abort(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        writer.transport.abort()
