"""Whom to trust over TLS, and why somebody is not trusted."""

import asyncio
import ssl
from pathlib import Path

from surtitle.core.errors import Decision, SettingsError

__all__ = ["certificate_fault", "read_authorities"]


def read_authorities(path: str) -> bytes | None:
    """Certificates to trust in place of the system's, as PEM; None for an empty path. Blocks.

    Raises:
        SettingsError: The file cannot be read, or has no certificates in it.
    """
    if not path:
        return None
    try:
        pem = Path(path).expanduser().read_bytes()
        if b"BEGIN CERTIFICATE" not in pem:
            raise ValueError(path)  # noqa: TRY301 - the same as what OpenSSL cannot read
        _trusting(pem)
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(
            f"The file {path} has no certificates in it.",
            remedy="Give a PEM file, with BEGIN CERTIFICATE in it: --ca-bundle FILE",
            decision=Decision.RECONFIGURE,
            field="--ca-bundle",
        ) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no such user's home
        raise SettingsError(
            f"The file of authorities {path} cannot be read.",
            remedy="Give a PEM file: --ca-bundle FILE",
            decision=Decision.RECONFIGURE,
            field="--ca-bundle",
        ) from error
    return pem


def _trusting(authorities: bytes | None) -> ssl.SSLContext:
    # Comments between the certificates may be in any language; OpenSSL wants ASCII.
    return ssl.create_default_context(
        cadata=authorities.decode("ascii", "ignore") if authorities else None
    )


async def certificate_fault(
    host: str, port: int, authorities: bytes | None, *, within: float
) -> str:
    """Why OpenSSL does not trust the other side, or empty if that is not what is wrong.

    Args:
        host: Whom to ask for its certificate.
        port: Where.
        authorities: What to trust in place of the system's, as PEM.
        within: Seconds this may take.
    """
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(host, port, ssl=_trusting(authorities))
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.rstrip(".")
    except OSError:  # TimeoutError is one
        return ""
    writer.transport.abort()
    return ""
