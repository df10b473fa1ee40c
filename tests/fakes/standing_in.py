"""A stand-in with a scripted container behind it, and a client before it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection

from fakes.container import ContainerServer, echo
from fakes.h2_client import Client
from surtitle.server.event_stream import Message
from surtitle.server.sagemaker import Standin

__all__ = ["WITHIN", "client", "ended", "eventually", "kinds", "standin"]

WITHIN = 20.0
"""Seconds that a test may take; none should."""


@asynccontextmanager
async def standin(
    script: Callable[[ServerConnection], Awaitable[None]] = echo,
    *,
    faults: tuple[str | None, ...] = (),
    **arguments: object,
) -> AsyncIterator[tuple[Standin, ContainerServer]]:
    async with (
        asyncio.timeout(WITHIN),
        ContainerServer(script) as container,
        Standin(container.url, faults=faults, **arguments) as server,  # type: ignore[arg-type] # passed on
    ):
        yield server, container


def client(server: Standin, *, takes: bool = True) -> Client:
    return Client(server.port, server.ca_pem, takes=takes)


def kinds(messages: list[Message | None]) -> list[str]:
    """What each message is, in a word."""
    return [
        "broken"
        if message is None
        else message.text(":exception-type")
        or message.text(":error-code")
        or message.text(":event-type")
        for message in messages
    ]


def ended(server: Standin) -> list[str]:
    return [record.ended for record in server.sessions]


async def eventually(true: Callable[[], bool]) -> None:
    """Wait for what nothing announces; each test has a limit of its own."""
    while not true():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
