"""HTTP/2 on one connection, from the server's side: requests that are streams both ways."""

import asyncio
import logging
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Protocol

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import H2Error

__all__ = ["Connection", "Stream", "reset_on_close"]

logging.getLogger("hpack").setLevel(logging.INFO)  # it would log header fields, tokens too

_READ = 65_536
_CONNECTION_WINDOW = 8 * 1024 * 1024
"""Bytes under way for all streams together, so that a slow one does not stop the others.
Each has the 65,535 bytes that HTTP/2 begins with."""
_DRAIN_WITHIN = 60.0
"""Seconds in which a client must take what was written."""
_IDLE = 600.0
"""Seconds after which a connection without a request is closed."""
_GONE_WITHIN = 5.0
"""Seconds for what is at work to end when the connection does."""

type Handler = Callable[["Stream"], Coroutine[object, object, None]]


class Stream:
    """One request and its answer. Raises ConnectionResetError when it is written to in vain."""

    def __init__(
        self, connection: "Connection", number: int, headers: Sequence[tuple[str, str]]
    ) -> None:
        self.headers = headers
        """Of the request, with the pseudo-headers."""
        self.lost = False
        """The client has reset it or is gone; whoever handles it is being cancelled."""
        self.complete = False
        """All of the request has come, whether read or not."""
        self._connection = connection
        self._number = number
        self._chunks: deque[tuple[bytes, int]] = deque()  # bounded by the stream's window
        self._arrived = asyncio.Event()

    async def read(self) -> bytes:
        """The next bytes of the request; none at its end.

        Only now may the client send as many more.
        """
        while not self._chunks:
            if self.complete:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data, size = self._chunks.popleft()
        await self._connection.acknowledge(size, self._number)
        return data

    async def start(self, headers: Sequence[tuple[str, str]], *, end: bool = False) -> None:
        """Send the header fields of the answer."""
        await self._connection.start(self._number, headers, end=end)

    async def write(self, data: bytes) -> None:
        """Send a part of the answer; waits until the client has room for it."""
        await self._connection.write(self._number, data)

    async def end(self) -> None:
        """End the answer."""
        await self._connection.end(self._number)

    async def reset(self) -> None:
        """Break this stream off."""
        await self._connection.reset(self._number)

    async def go_away(self) -> None:
        """Break off the whole connection, politely."""
        await self._connection.go_away()

    def abort(self) -> None:
        """Break off the whole connection by a TCP reset."""
        self._connection.abort()

    def arrived(self, data: bytes, size: int) -> None:
        """Take what the connection has received for this stream."""
        self._chunks.append((data, size))
        self._arrived.set()

    def ended(self) -> None:
        """Note that the request is complete."""
        self.complete = True
        self._arrived.set()

    def discard(self) -> int:
        """Throw away what nobody has read, and say how many bytes it took of the window."""
        unread = sum(size for _, size in self._chunks)
        self._chunks.clear()
        return unread


class Connection:
    """Speaks HTTP/2 over an open connection and gives each request to a task of its own.

    Args:
        reader: From the client.
        writer: To the client.
        handler: What is done with a request. It is cancelled when the client is gone.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: Handler,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._streams: dict[int, tuple[Stream, asyncio.Task[None]]] = {}
        self._window = asyncio.Event()

    async def run(self) -> None:
        """Serve until the client or somebody here has ended the connection."""
        stopped = False
        try:
            self._h2.initiate_connection()
            self._h2.increment_flow_control_window(_CONNECTION_WINDOW)
            await self._flush()
            while data := await self._read():
                events = self._h2.receive_data(data)
                for event in events:
                    self._handle(event)
                await self._flush()
        except (OSError, EOFError, TimeoutError):
            pass
        except asyncio.CancelledError:
            stopped = True
            raise
        except H2Error:
            with suppress(OSError, TimeoutError):
                await self._flush()  # says what was wrong
        finally:
            tasks = [task for _, task in self._streams.values()]
            for stream, task in self._streams.values():
                stream.lost = not stopped
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=_GONE_WITHIN)
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_GONE_WITHIN):
                    await self._writer.wait_closed()

    async def acknowledge(self, size: int, number: int) -> None:
        """Let the client send as many bytes more."""
        with suppress(H2Error):  # the stream has ended meanwhile: nothing more will come
            self._h2.acknowledge_received_data(size, number)
        await self._flush()

    async def start(self, number: int, headers: Sequence[tuple[str, str]], *, end: bool) -> None:
        """Send the header fields of an answer."""
        try:
            self._h2.send_headers(number, headers, end_stream=end)
        except H2Error as error:
            raise ConnectionResetError("The stream is closed.") from error
        await self._flush()

    async def write(self, number: int, data: bytes) -> None:
        """Send data as fast as the windows of stream and connection allow."""
        rest = memoryview(data)
        try:
            while rest:
                room = min(
                    self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size
                )
                if room <= 0:
                    self._window.clear()
                    await self._window.wait()
                    continue
                self._h2.send_data(number, bytes(rest[:room]))
                rest = rest[room:]
                await self._flush()
        except H2Error as error:
            raise ConnectionResetError("The stream is closed.") from error

    async def end(self, number: int) -> None:
        """End an answer."""
        try:
            self._h2.end_stream(number)
        except H2Error as error:
            raise ConnectionResetError("The stream is closed.") from error
        await self._flush()

    async def reset(self, number: int) -> None:
        """Break a stream off."""
        with suppress(H2Error):
            self._h2.reset_stream(number, ErrorCodes.INTERNAL_ERROR)
        await self._flush()

    async def go_away(self) -> None:
        """Say that nothing more will come, then close."""
        with suppress(H2Error):
            self._h2.close_connection(ErrorCodes.NO_ERROR)
        await self._flush()
        self._writer.close()

    def abort(self) -> None:
        """Reset the TCP connection."""
        reset_on_close(self._writer.get_extra_info("socket"))
        self._writer.transport.abort()

    async def _read(self) -> bytes:
        while True:
            try:
                async with asyncio.timeout(_IDLE):
                    return await self._reader.read(_READ)
            except TimeoutError:
                if not self._streams:
                    await self.go_away()
                    return b""

    async def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._writer.write(data)
        try:
            async with asyncio.timeout(_DRAIN_WITHIN):
                await self._writer.drain()
        except TimeoutError:
            self.abort()
            raise

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(number), headers=headers):
                self._begin(number, [(_text(name), _text(value)) for name, value in headers or ()])
            case DataReceived(stream_id=int(number), data=data, flow_controlled_length=size):
                if (found := self._streams.get(number)) is not None:
                    found[0].arrived(data or b"", size or 0)
                else:  # its answer is complete: what still comes is thrown away
                    self._drop(size or 0, number)
            case StreamEnded(stream_id=int(number)):
                if (found := self._streams.get(number)) is not None:
                    found[0].ended()
            case StreamReset(stream_id=int(number)):
                if (found := self._streams.get(number)) is not None:
                    found[0].lost = True
                    found[1].cancel()
            case WindowUpdated() | RemoteSettingsChanged():
                self._window.set()
            case _:
                pass

    def _begin(self, number: int, headers: Sequence[tuple[str, str]]) -> None:
        stream = Stream(self, number, headers)
        task = asyncio.create_task(self._serve(stream), name=f"http2-stream-{number}")
        self._streams[number] = (stream, task)
        task.add_done_callback(lambda _: self._forget(number))

    def _forget(self, number: int) -> None:
        stream, _ = self._streams.pop(number)
        self._drop(stream.discard(), number)
        if not self._writer.is_closing():
            self._writer.write(self._h2.data_to_send())

    def _drop(self, size: int, number: int) -> None:
        """Let the client go on although nobody reads what it has sent."""
        if size:
            with suppress(H2Error):
                self._h2.acknowledge_received_data(size, number)

    async def _serve(self, stream: Stream) -> None:
        try:
            await self._handler(stream)
        except (OSError, TimeoutError):
            stream.abort()


class _Socket(Protocol):
    """A socket, or what a transport shows of one."""

    def setsockopt(self, level: int, name: int, value: bytes, /) -> None: ...


def reset_on_close(connection: _Socket) -> None:
    """Have a TCP connection end by a reset when it is closed."""
    linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
    with suppress(OSError):  # it is closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
