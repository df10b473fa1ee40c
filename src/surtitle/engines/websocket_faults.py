"""What goes wrong between us and a speech server on a WebSocket, in sentences."""

import socket
import ssl
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from websockets import exceptions as ws
from websockets.datastructures import Headers
from websockets.proxy import Proxy

from surtitle.core.errors import Decision, EngineError, UsageError
from surtitle.core.server_address import ServerAddress, parse_server_address

__all__ = [
    "BINARY",
    "BROKEN",
    "CLOSED",
    "FLOOD",
    "PROXY_SOCKS",
    "PROXY_WRONG",
    "SLOW",
    "STUCK",
    "Explainer",
    "Fault",
    "wrong_bundle",
]

_REASON = 120
"""Characters of a reason that are passed on."""
_TELLING = 6
"""Characters from which on a value in the address may be a secret."""
_LONGEST_WAIT = 600.0
"""Seconds that a server may ask to be left alone."""


class Fault(NamedTuple):
    """What goes on in a sentence about the server, and what follows from it.

    `{path}` and `{host}` stand for those of its address.
    """

    what: str
    remedy: str
    decision: Decision = Decision.RETRY
    field: str = ""
    retry_after: float | None = None


_URL = "--url"
_KEY = "--api-key-env"
_CA = "--ca-bundle"
_PROXY = "https_proxy"
_CHANGE = Decision.RECONFIGURE
_REACH = "Check that it is running, and that this computer's network is up."
_LATER = "It is tried again by itself."
_NOT_REALTIME = "Check --url; the usual path is /v1/realtime."
_AROUND = "Correct https_proxy in the environment, or set no_proxy={host} to go around it."

CLOSED = Fault("cannot be used: the connection has been closed here", "Open a new one.")
SLOW = Fault("does not answer", _REACH, field=_URL)
_HUNG_UP = Fault(
    "closed the connection instead of answering",
    "It may still be starting; if it expects encryption, write wss:// in --url.",
)
STUCK = Fault("no longer takes what is sent", _LATER)
BROKEN = Fault("is cut off: the connection broke", _LATER)
_SILENT = Fault("no longer answers", _LATER)
FLOOD = Fault("sent more than can be taken in", _LATER)
BINARY = Fault("sends what is no Realtime message", _NOT_REALTIME, _CHANGE, _URL)
_NO_SOCKET = Fault("does not answer like a WebSocket server", _NOT_REALTIME, _CHANGE, _URL)
_NO_TLS = Fault(
    "does not speak TLS", "If it has no encryption, write ws:// in --url.", _CHANGE, _URL
)
_TLS = Fault("agrees on no encryption with this computer", "Check its TLS settings.", _CHANGE, _URL)
_UNKNOWN_NAME = Fault(
    "cannot be found: its name is not known",
    "Check the host in --url, and that this computer's network is up.",
    field=_URL,
)
_REFUSED = Fault(
    "refuses connections: nothing listens there",
    "Start it, or check the host and the port in --url.",
    field=_URL,
)
_UNREACHABLE = Fault("cannot be reached", _REACH, field=_URL)

_DATED = Fault(
    "has a certificate that is not valid today",
    "Renew it; if it is in order, set this computer's clock.",
    *(_CHANGE, _URL),
)
_OTHER_NAME = Fault(
    "has a certificate for another name",
    "Write a name in --url that its certificate is for.",
    *(_CHANGE, _URL),
)
_UNTRUSTED = Fault(
    "has a certificate that no known authority signed",
    "If it is one of yours, name the file with its authority's certificate with --ca-bundle.",
    *(_CHANGE, _CA),
)
_CERTIFICATES = {  # by the codes of OpenSSL's X509_V_ERR
    **dict.fromkeys((9, 10), _DATED),
    **dict.fromkeys((2, 18, 19, 20, 21), _UNTRUSTED),
    **dict.fromkeys((62, 64), _OTHER_NAME),
}
_NO_TLS_REASONS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")

_NO_KEY = Fault("wants a key", "Name the variable that holds it with --api-key-env.", _CHANGE, _KEY)
_WRONG_KEY = Fault(
    "does not accept the key",
    "Check it: in the variable that --api-key-env names, or else in the keyring.",
    *(_CHANGE, _KEY),
)
_OLD_VLLM = Fault(
    "failed when it was to check the key",
    "Old versions of vLLM cannot: update it, or run it without a key.",
    *(_CHANGE, _KEY),
)
_BUSY = Fault("has no room now", _LATER)
_NOT_READY = Fault("is not ready", "It may still be starting; it is tried again by itself.")
_FAILED = Fault("failed", "It is tried again by itself; its log says more.")
_ANSWERS: dict[int, Fault] = {
    400: Fault(
        "does not understand the request",
        "If it expects encryption, write wss:// in --url; else check the path.",
        *(_CHANGE, _URL),
    ),
    401: _WRONG_KEY,
    403: Fault(
        "allows no captions at {path}",
        "Check the path, usually /v1/realtime without a slash behind it, that its model "
        "supports Realtime, and the key if there is one.",
        *(_CHANGE, _URL),
    ),
    404: Fault(
        "has nothing at {path}",
        "Check the path, usually /v1/realtime, and that its model supports Realtime.",
        *(_CHANGE, _URL),
    ),
    429: _BUSY,
    **dict.fromkeys((408, 425, 502, 503, 504), _NOT_READY),
}
_PROXY_ANSWERS: dict[int, Fault] = {
    407: Fault("asks for a name and a password", _AROUND, _CHANGE, _PROXY),
    **dict.fromkeys((500, 502, 503, 504), Fault("does not reach the server", _REACH)),
}
_PROXY_DENIES = Fault("does not let the connection through", _AROUND, _CHANGE, _PROXY)
_PROXY_AWAY = Fault("cannot be reached", _AROUND, Decision.RETRY, _PROXY)
PROXY_WRONG = Fault("has a proxy before it whose address is wrong", _AROUND, _CHANGE, _PROXY)
PROXY_SOCKS = Fault("has a SOCKS proxy before it, which is not supported", _AROUND, _CHANGE, _PROXY)
_FAILURES: tuple[tuple[type[Exception], Fault], ...] = (
    (socket.gaierror, _UNKNOWN_NAME),
    (ConnectionRefusedError, _REFUSED),
    (ConnectionError, _HUNG_UP),
    (OSError, _UNREACHABLE),
    (Exception, _NO_SOCKET),
)
"""What is left, the first that fits."""

_ENDED = Fault("ended the session", _LATER)
_NOT_ALLOWED = Fault(
    "does not allow the session", "Check the key and what it is allowed to use.", _CHANGE, _KEY
)
_CLOSES: dict[int, Fault] = {
    **dict.fromkeys((1000, 1001, 1005), _ENDED),
    **dict.fromkeys((1002, 1003, 1007), Fault("does not understand what was sent", _LATER)),
    **dict.fromkeys((1008, 3000, 3003, 4401, 4403), _NOT_ALLOWED),
    1009: Fault("does not take that much at once", _LATER),
    1011: _FAILED,
    1012: Fault("is being restarted", _LATER, retry_after=3.0),
    1013: _BUSY._replace(retry_after=5.0),
    1014: _NOT_READY,
    4404: _ANSWERS[404],
    4429: _BUSY._replace(retry_after=5.0),
}
_CLOSES_BY_US: dict[int, Fault] = {
    **dict.fromkeys((1002, 1007), BINARY),
    1009: FLOOD,
    1011: _SILENT,
}


class Explainer:
    """Turns what the library and the system say into sentences about this server.

    Args:
        address: The server.
        key: Never to be repeated, whoever says it.
    """

    def __init__(self, address: ServerAddress, key: str) -> None:
        self._address = address
        values = (part.partition("=")[2] for part in address.query.split("&"))
        self._secrets = [key.strip(), address.query, *(v for v in values if len(v) >= _TELLING)]
        self._keyed = bool(key)
        self.proxy: Proxy | None = None
        """Through which the connection goes."""

    def error(self, fault: Fault, said: str = "", *, proxy: Proxy | None = None) -> EngineError:
        """Make the error; `said` is what the other side said, in a few words."""
        subject = f"The speech server {self._address.server}"
        if proxy is not None:
            subject = f"The proxy {proxy.host}:{proxy.port} before {self._address.server}"
        places = {"path": self._address.path, "host": self._address.host}
        said = f" ({said})" if said else ""
        return EngineError(
            f"{subject} {fault.what.format_map(places)}{said}.",
            remedy=fault.remedy.format_map(places),
            decision=fault.decision,
            field=fault.field,
            retry_after=fault.retry_after,
        )

    def closed(self, error: ws.ConnectionClosed) -> EngineError:
        """Say why the connection is over."""
        if error.rcvd is None or error.rcvd_then_sent is False:
            sent = error.sent.code if error.sent else 0
            return self.error(_CLOSES_BY_US.get(sent, BROKEN))
        code, reason = error.rcvd.code, error.rcvd.reason.strip()
        said = f"code {code}"
        if 0 < len(reason) <= _REASON and reason.isprintable() and not self.tells_secret(reason):
            said += f": “{reason}”"
        return self.error(_CLOSES.get(code, _ENDED), said)

    def not_opened(self, error: Exception) -> EngineError:
        """Say why there is no connection."""
        match error:
            case ws.InvalidStatus():
                return self._answered(error.response.status_code, error.response.headers)
            case ssl.SSLError():
                return self.error(_tls_fault(error))
            case ws.InvalidMessage() if isinstance(error.__cause__, EOFError):
                return self.error(_HUNG_UP)
            case ws.ProxyError() | OSError() if self.proxy is not None:
                return self._proxy_failed(error)
        said = (error.strerror or "").lower() if type(error) is OSError else ""
        return self.error(next(f for kind, f in _FAILURES if isinstance(error, kind)), said)

    def tells_secret(self, text: str) -> bool:
        """Whether a text repeats the key, or the part of the address that may hold one."""
        return any(secret and secret in text for secret in self._secrets)

    def _proxy_failed(self, error: Exception) -> EngineError:
        if isinstance(error, ws.InvalidProxyStatus):
            status = error.response.status_code
            fault = _PROXY_ANSWERS.get(status, _PROXY_DENIES)
            return self.error(fault, f"HTTP {status}", proxy=self.proxy)
        fault = _PROXY_AWAY if isinstance(error, OSError) else _PROXY_DENIES
        return self.error(fault, proxy=self.proxy)

    def _answered(self, status: int, headers: Headers) -> EngineError:
        """Say what an HTTP answer other than the upgrade means."""
        if status == HTTPStatus.UNAUTHORIZED and not self._keyed:
            fault = _NO_KEY
        elif status == HTTPStatus.INTERNAL_SERVER_ERROR and self._keyed:
            fault = _OLD_VLLM
        elif status in _ANSWERS:
            fault = _ANSWERS[status]
        elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            fault = Fault("has moved", self._moved_to(headers), _CHANGE, _URL)
        else:
            fault = _FAILED if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _NO_SOCKET
        wait = next(iter(headers.get_all("Retry-After")), "")
        if fault.decision is Decision.RETRY and wait.isascii() and wait.isdecimal():
            fault = fault._replace(retry_after=min(float(wait), _LONGEST_WAIT))
        return self.error(fault, f"HTTP {status}")

    def _moved_to(self, headers: Headers) -> str:
        """What to do about a redirect; what of it may be secret is left out."""
        where = next(iter(headers.get_all("Location")), "")
        where = f"ws{where.removeprefix('http')}" if where.startswith("http") else where
        with suppress(UsageError):
            there = parse_server_address(where, allow_plaintext=True)
            shown = f"{where.partition(':')[0]}://{there.server}{there.path}"
            if not self.tells_secret(shown) and len(shown) <= _REASON:
                return f"If you trust that server, write {shown} in --url."
        return "Check --url."


def wrong_bundle(path: Path | None, what: str) -> UsageError:
    """Say what is wrong with the file that --ca-bundle names."""
    shown = str(path).encode("utf-8", "backslashreplace").decode()
    return UsageError(
        f"The file of certificates {shown if shown.isprintable() else ascii(shown)} {what}.",
        remedy="Name a PEM file with the certificate of the server's authority.",
        decision=Decision.RECONFIGURE,
        field=_CA,
    )


def _tls_fault(error: ssl.SSLError) -> Fault:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATES.get(error.verify_code, _UNTRUSTED)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _HUNG_UP
    return _NO_TLS if error.reason in _NO_TLS_REASONS else _TLS
