"""Text frames over a WebSocket, as vLLM and those like it take them at `/v1/realtime`."""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from websockets import exceptions as ws
from websockets.asyncio.client import ClientConnection, connect
from websockets.protocol import State
from websockets.proxy import get_proxy, parse_proxy
from websockets.uri import parse_uri

from surtitle.core.errors import EngineError
from surtitle.core.server_address import ServerAddress, parse_server_key
from surtitle.engines.dialling import aside, dial, tls_context
from surtitle.engines.websocket_faults import (
    BINARY,
    BROKEN,
    CLOSED,
    FLOOD,
    PROXY_SOCKS,
    PROXY_WRONG,
    SLOW,
    STUCK,
    Explainer,
)

__all__ = ["WebSocketLimits", "WebSocketTransport"]

# The library would write the request's head, with the key in it, into a log that is open for
# debugging, and tracebacks of what is told here in a sentence. So it gets a log of its own.
_MUTE = logging.Logger("websockets", logging.CRITICAL + 1)  # noqa: LOG001 - see above


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketLimits:
    """How long and how much at most. Seconds, unless said otherwise."""

    opening: float = 10.0
    """From the name to the accepted upgrade."""
    sending: float = 5.0
    """For which the other side may take nothing."""
    closing: float = 2.0
    ping_every: float = 20.0
    pong_within: float = 20.0
    message: int = 2**24
    """Bytes of one message that comes in."""
    frames: int = 2048
    """Frames that may wait to be received: at one for 80 ms, more than two minutes."""
    characters: int = 2**25
    """Characters of all frames that wait."""
    send_buffer: int = 2**17
    """Bytes on their way, in each of the system's buffer and our own: some seconds of sound.
    More would hide for long that nobody takes them."""


class _Connect(connect):
    """Follows no redirect: sound goes where the user said, and the key with it."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class WebSocketTransport:
    """A `surtitle.engines.transport.Transport` over `ws://` and `wss://`.

    Args:
        address: The server.
        key: Sent as a bearer token; empty if the server wants none.
        ca_bundle: PEM file of the authorities to trust instead of the system's.
        limits: For tests.
    """

    def __init__(
        self,
        address: ServerAddress,
        *,
        key: str = "",
        ca_bundle: Path | None = None,
        limits: WebSocketLimits | None = None,
    ) -> None:
        self._address = address
        self._key = key
        self._ca_bundle = ca_bundle
        self._limits = limits or WebSocketLimits()
        self._explain = Explainer(address, key)
        self._connection: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._opening: asyncio.Timeout | None = None
        self._opened = asyncio.Event()
        """Not being opened any more, whatever came of it."""
        self._inbox: deque[str] = deque()
        self._characters = 0
        self._news = asyncio.Event()
        self._ended: EngineError | None = None

    @property
    def place(self) -> str:
        """Where the sound goes, such as `to gpu.home`."""
        return self._address.place

    async def open(self) -> None:
        """Connect; 10 s for all of it.

        Raises:
            EngineError: It cannot be done now, or not in this way.
            UsageError: The key cannot be sent, or the CA file not be used.
        """
        self._check()
        headers = {}
        if self._key:
            headers["Authorization"] = f"Bearer {parse_server_key(self._key)}"
        try:
            async with asyncio.timeout(self._limits.opening) as self._opening:
                connection = await self._connect(headers)
        except TimeoutError as error:
            raise self._ended or self._explain.error(SLOW) from error
        finally:
            self._opening = None
            self._opened.set()
        try:
            self._check()
        except EngineError:  # closed in the last moment
            connection.transport.abort()
            raise
        self._connection = connection
        self._reader = asyncio.create_task(self._read(connection), name="websocket reader")

    async def send(self, frame: str) -> None:
        """Send a text frame; waits up to 5 s while the other side takes none.

        Raises:
            EngineError: It takes none for too long, or the connection is over.
        """
        connection = self._in_use()
        try:
            async with asyncio.timeout(self._limits.sending):
                await connection.send(frame)
        except TimeoutError as error:
            ended = self._end(self._explain.error(STUCK), error)
            connection.transport.abort()
        except ws.ConnectionClosed as error:
            ended = self._end(self._explain.closed(error), error)
        else:
            return
        raise ended

    async def receive(self) -> str:
        """The next text frame. May be cancelled.

        Raises:
            EngineError: The connection is over, and all that came has been received.
        """
        while not self._inbox:
            self._in_use()
            self._news.clear()
            await self._news.wait()
        frame = self._inbox.popleft()
        self._characters -= len(frame)
        return frame

    async def close(self) -> None:
        """Say goodbye if there is time for it, and let go of everything in at most 2 s."""
        self._end(self._explain.error(CLOSED))
        half = self._limits.closing / 2
        if self._opening is not None:
            if not self._opening.expired():
                self._opening.reschedule(asyncio.get_running_loop().time())
            with suppress(TimeoutError):
                async with asyncio.timeout(half):
                    await self._opened.wait()
        if self._connection is None:
            return
        try:
            with suppress(TimeoutError, OSError, ws.WebSocketException):
                async with asyncio.timeout(half):
                    await self._connection.close()
        finally:
            self._connection.transport.abort()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=half)
            self._reader.cancel()

    async def _connect(self, headers: Mapping[str, str]) -> ClientConnection:
        """Open the connection; whatever goes wrong is one of our errors, or TimeoutError."""
        address, limits = self._address, self._limits
        proxy_url = self._find_proxy()
        tls = None
        if address.secure:
            tls = await aside(partial(tls_context, self._ca_bundle))
        nearest = self._explain.proxy or address
        try:
            # The loop looks names up in threads that the program waits for when it ends, and
            # that can take long. Where a proxy leaves it to the loop, it has been done just now.
            found = await aside(
                partial(
                    socket.getaddrinfo,
                    nearest.host,
                    nearest.port,
                    type=socket.SOCK_STREAM,
                    proto=socket.IPPROTO_TCP,
                )
            )
            line = await dial(found, limits.opening) if proxy_url is None else None
            connection = await _Connect(
                address.url,
                compression=None,  # sound does not get smaller by it
                additional_headers=headers,
                user_agent_header="Surtitle",
                proxy=proxy_url,
                open_timeout=None,
                ping_interval=limits.ping_every,
                ping_timeout=limits.pong_within,
                close_timeout=limits.closing / 2,
                max_size=limits.message,
                max_queue=None,  # the reader always reads; it has a limit of its own
                write_limit=limits.send_buffer,
                logger=_MUTE,
                ssl=tls,
                sock=line,
            )
        except TimeoutError:
            raise
        except (OSError, ws.WebSocketException, ValueError) as error:
            explained = self._explain.not_opened(error)
            raise explained from (None if self._explain.tells_secret(repr(error)) else error)
        inner: socket.socket = connection.transport.get_extra_info("socket")
        with suppress(OSError):  # it works without, only less well
            inner.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer)
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _find_proxy(self) -> str | None:
        """Find out which proxy the system wants for this server, if any. Raises EngineError."""
        if self._address.loopback:
            return None
        url = get_proxy(parse_uri(self._address.url))
        if url is None:
            return None
        try:
            proxy = parse_proxy(url)
        except (ValueError, ws.InvalidProxy):
            # Not chained: the library repeats the address, which may hold a password.
            raise self._explain.error(PROXY_WRONG) from None
        if proxy.scheme.startswith("socks"):
            raise self._explain.error(PROXY_SOCKS)
        self._explain.proxy = proxy
        return url

    async def _read(self, connection: ClientConnection) -> None:
        """Take in what comes, also while nobody receives: pings are answered only meanwhile."""
        look_every = self._limits.closing / 2
        try:
            while self._ended is None:
                try:
                    async with asyncio.timeout(look_every):
                        self._take(await connection.recv())
                except TimeoutError:
                    if connection.state is not State.OPEN:
                        await connection.close()  # it said goodbye, but does not hang up
            await connection.close()
        except ws.ConnectionClosed as error:
            self._end(self._explain.closed(error), error)
        finally:
            self._end(self._explain.error(BROKEN))

    def _take(self, frame: str | bytes) -> None:
        """Keep a frame until it is received, if it is one and there is room."""
        limits = self._limits
        if not isinstance(frame, str):
            self._end(self._explain.error(BINARY))
        elif len(self._inbox) >= limits.frames or self._characters + len(frame) > limits.characters:
            self._end(self._explain.error(FLOOD))
        else:
            self._inbox.append(frame)
            self._characters += len(frame)
            self._news.set()

    def _in_use(self) -> ClientConnection:
        """The connection, if it is open as far as is known. Raises EngineError."""
        self._check()
        if self._connection is None:
            raise self._explain.error(CLOSED)
        return self._connection

    def _check(self) -> None:
        """Raise what ended it, if anything has."""
        if self._ended is not None:
            raise self._ended

    def _end(self, error: EngineError, cause: Exception | None = None) -> EngineError:
        """Note why nothing more will come or go. The first reason stays, and is returned."""
        if self._ended is None:
            if cause is not None and not self._explain.tells_secret(repr(cause)):
                error.__cause__ = cause
            self._ended = error
        self._news.set()
        return self._ended
