"""Where a server listens and within what limits: what cannot be meant, and why it cannot be."""

import asyncio
import errno
import ipaddress
import socket
import sys

from surtitle.core.errors import Decision, SurtitleError, UsageError

__all__ = ["cannot_listen", "check_limit", "check_place", "is_loopback", "listen"]

_LAST_PORT = 65_535
_BACKLOG = 128


def check_place(host: str, port: int) -> None:
    """See that a host and a port can be meant; an empty host would be the whole network.

    Raises:
        UsageError: They cannot.
    """
    if not 0 <= port <= _LAST_PORT:
        raise UsageError(
            f"There is no port {port}.",
            remedy=f"Give a number from 0 to {_LAST_PORT}.",
            field="--port",
        )
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise UsageError(
            f"{host!r} is no host.",
            remedy="Give an address of this computer, such as 127.0.0.1, with --host.",
            field="--host",
        )


def check_limit(field: str, value: float, *, least: float | None = None) -> None:
    """See that a number is at least so much, or above 0.

    Raises:
        UsageError: It is not.
    """
    if value >= least if least is not None else value > 0:
        return
    raise UsageError(
        f"{field[2:].replace('-', ' ').capitalize()} cannot be {value}.",
        remedy="Give a number above 0." if least is None else f"Give {least} or more.",
        field=field,
    )


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach what listens at a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def listen(host: str, port: int) -> socket.socket:
    """Listen at the first address that a host has. Raises OSError or UnicodeError."""
    loop = asyncio.get_running_loop()
    [(family, kind, protocol, _, place), *_] = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_BACKLOG)
        listener.setblocking(False)  # noqa: FBT003 - its name says it
    except BaseException:
        listener.close()
        raise
    return listener


def cannot_listen(error: OSError | UnicodeError, host: str, port: int) -> SurtitleError:
    """Say why nothing can listen there."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, socket.gaierror | UnicodeError):
        return UsageError(
            f"The host {host} is not known.",
            remedy="Give an address of this computer with --host.",
            field="--host",
        )
    if number == errno.EADDRINUSE:
        return SurtitleError(
            f"Port {port} of {host} is taken: another program listens there.",
            remedy="End it, or choose another port with --port.",
            decision=Decision.RECONFIGURE,
            field="--port",
        )
    if number in (errno.EADDRNOTAVAIL, None):  # asyncio tells of it without its number
        return UsageError(
            f"{host} is no address of this computer.",
            remedy="Give another with --host, or leave it out.",
            field="--host",
        )
    if number in (errno.EACCES, errno.EPERM):
        return UsageError(
            f"You may not listen at port {port}.",
            remedy="Choose a port from 1024 on with --port.",
            field="--port",
        )
    return SurtitleError(
        f"Nothing can listen at {host}, port {port}: {(error.strerror or 'no reason').lower()}.",
        remedy="Choose another place with --host and --port.",
        decision=Decision.RECONFIGURE,
        field="--port",
    )
