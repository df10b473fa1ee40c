"""Beginning a connection without a wait that nobody can end."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from surtitle.engines.websocket_faults import wrong_bundle

__all__ = ["Found", "aside", "dial", "tls_context"]

_ADDRESS_WITHIN = 2.0
"""Seconds after which a host's next address is tried: IPv6 often leads nowhere."""

type Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[object, ...]]
"""One answer of `getaddrinfo`."""


async def dial(found: Sequence[Found], limit: float) -> socket.socket:
    """Connect to the first of a host's addresses that lets itself be connected to.

    Args:
        found: What the system knows of the host, the best first.
        limit: Seconds for all of them.

    Raises:
        OSError: None does; why, of the one that says most. Also TimeoutError.
    """
    loop = asyncio.get_running_loop()
    share = min(_ADDRESS_WITHIN, limit / len(found)) if len(found) > 1 else None
    errors: list[OSError] = []
    for family, kind, protocol, _, address in found:
        try:
            line = socket.socket(family, kind, protocol)
        except OSError as error:  # such as a system without IPv6
            errors.append(error)
            continue
        try:
            line.settimeout(0)
            async with asyncio.timeout(share):
                await loop.sock_connect(line, address)
        except OSError as error:
            line.close()
            errors.append(error)
        except BaseException:
            line.close()
            raise
        else:
            return line
    raise min(errors, key=lambda error: not isinstance(error, ConnectionRefusedError))


async def aside[T](work: Callable[[], T]) -> T:
    """Do what may block in a thread that nobody waits for when it takes too long."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: Exception | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type] # there is one if no error

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as caught:  # noqa: BLE001 - handed to whoever waits
            error = caught
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="websocket aside", daemon=True).start()
    return await done


def tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Make what checks the server's certificate. Raises UsageError."""
    try:
        context = ssl.create_default_context(cafile=ca_bundle)
    except ssl.SSLError as error:
        raise wrong_bundle(ca_bundle, "holds no certificate in PEM form") from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise wrong_bundle(ca_bundle, f"cannot be read: {reason}") from error
    except ValueError as error:
        raise wrong_bundle(ca_bundle, "cannot exist") from error
    if ca_bundle is not None:
        # Home-made authorities often miss formal details, and some people have only the
        # server's own certificate. The user vouches for the file.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    return context
