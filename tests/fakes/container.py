"""A model container as SageMaker sees it: a WebSocket server on loopback that does as scripted."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

__all__ = ["ContainerServer", "counting", "echo"]

type Script = Callable[[ServerConnection], Awaitable[None]]


async def echo(connection: ServerConnection) -> None:
    """Send every message back as it came, whole."""
    async for message in connection:
        await connection.send(message)


async def counting(connection: ServerConnection) -> None:
    """Say numbers without being asked."""
    for number in range(5):
        await connection.send(f"Nummer {number}: äöü")
    await connection.wait_closed()


class ContainerServer:
    """Runs `script` for each connection and remembers how each ended.

    Args:
        script: What the container does; when it returns, the connection is closed with 1000.
        max_message: Bytes of a message.
    """

    def __init__(self, script: Script = echo, *, max_message: int = 20_000_000) -> None:
        self._script = script
        self._max_message = max_message
        self._server: Server | None = None
        self.targets: list[str] = []
        """Path and query of each connection."""
        self.closed: list[int | None] = []
        """Close codes that came from the other side, in the order the connections ended."""
        self.ended = asyncio.Event()
        """One has ended since this was last cleared."""

    @property
    def url(self) -> str:
        assert self._server is not None
        port = next(iter(self._server.sockets)).getsockname()[1]
        return f"ws://127.0.0.1:{port}/invocations-bidirectional-stream"

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._handle,
            "127.0.0.1",
            0,
            compression=None,
            ping_interval=None,
            close_timeout=1,
            max_size=self._max_message,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close(code=1001)
        await self._server.wait_closed()

    async def _handle(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.targets.append(connection.request.path)
        try:
            with suppress(ConnectionClosed):
                await self._script(connection)
        finally:
            await connection.close()
            received = connection.protocol.close_rcvd
            self.closed.append(None if received is None else received.code)
            self.ended.set()
