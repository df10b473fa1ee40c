"""Everything that can go wrong with a speech service, each with the error that is made of it.

Of statuses and codes that are told in the same words there is one here; the tests of
`surtitle.engines` have them all.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from aws_sdk_sagemaker_runtime_http2.models import (
    InputValidationError,
    InternalServerError,
    InternalStreamFailure,
    ModelError,
    ModelStreamError,
    ServiceUnavailableError,
)
from awscrt.exceptions import AwsCrtError
from smithy_aws_event_stream.exceptions import (
    ChecksumMismatch,
    InvalidEventBytes,
    UnmodeledEventError,
)
from smithy_core.exceptions import CallError, SmithyError
from smithy_core.response import ResponseMetadata
from websockets import exceptions as ws
from websockets.datastructures import Headers
from websockets.frames import Close
from websockets.http11 import Response

from fakes.realtime_service import Connection, Mistake, Opening
from surtitle.core.errors import EngineError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.core.server_address import parse_server_address
from surtitle.engines import aws_errors
from surtitle.engines.aws_errors import Situation, Stage
from surtitle.engines.websocket_faults import SLOW, STUCK, Explainer

__all__ = ["FAULTS", "Fault", "by_name", "ended", "unreachable"]

_ADDRESS = parse_server_address("wss://gpu.test/v1/realtime", allow_plaintext=False)
_TARGET = SageMakerTarget(endpoint="voxtral", region="eu-west-1")
_PING = 40.0
"""Seconds after which a WebSocket that gives no sign counts as dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong once.

    Either something becomes of attempts to connect, after the connection before has been
    reset; or something happens to a connection that is open.
    """

    name: str
    openings: tuple[Opening, ...] = ()
    does: Callable[[Connection], None] | None = None
    hidden: bool = False
    """Nothing tells of it: it is found out by waiting, which takes long."""
    mute: bool = False
    """It is found out by what is said and gets no words."""
    for_user: bool = False
    """Only somebody can put it right."""

    def strike(self, connection: Connection) -> None:
        """Let it happen to this connection, or after it."""
        if self.does is not None:
            self.does(connection)
        else:
            self.prepare(connection)
            connection.reset(_closed(None, None))

    def prepare(self, connection: Connection) -> None:
        """Let it happen to the attempts that follow."""
        connection.service.openings.extend(self.openings)


def _not_opened(error: Exception, *, key: str = "a-key") -> EngineError:
    return Explainer(_ADDRESS, key).not_opened(error)


def _answered(status: int, **headers: str) -> EngineError:
    fields = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    # A key that is given turns a 500 into a fault of old servers' key check.
    return _not_opened(ws.InvalidStatus(Response(status, "", fields)), key="")


def _closed(code: int | None, reason: str | None) -> EngineError:
    close = None if code is None else Close(code, reason or "")
    error = ws.ConnectionClosedError(close, close, None if close is None else True)
    return Explainer(_ADDRESS, "").closed(error)


def ended() -> EngineError:
    """The session is cut as SageMaker cuts it after 30 minutes."""
    return _aws(ModelStreamError(message="", error_code="ModelInvocationTimeExceeded"))


def unreachable() -> EngineError:
    """Nothing listens there."""
    return _not_opened(ConnectionRefusedError())


def _aws(error: BaseException) -> EngineError:
    return aws_errors.meaning(error, Situation(target=_TARGET, renewal="Run: aws sso login"))


def _waited(stage: Stage, seconds: float) -> EngineError:
    return aws_errors.timed_out(stage, seconds, Situation(target=_TARGET))


def _call(status: int, kind: str = "", *, throttled: bool = False) -> EngineError:
    text = f"Unknown error - status: {status} - id: com.amazonaws.x#{kind}"
    return _aws(CallError(text, response_metadata=_status(status), is_throttling_error=throttled))


def _status(number: int) -> ResponseMetadata:
    return ResponseMetadata(http_status_code=number)


def _network(name: str) -> EngineError:
    inner = AwsCrtError(1, name, "")
    error = SmithyError(inner)
    error.__cause__ = inner
    return _aws(error)


def _certificate() -> EngineError:
    error = ssl.SSLCertVerificationError()
    error.verify_code = 19
    return _not_opened(error)


def _opening(name: str, *openings: Opening, for_user: bool = False, hidden: bool = False) -> Fault:
    return Fault(name=name, openings=openings, for_user=for_user, hidden=hidden)


def _at_opening() -> Iterator[Fault]:
    refused = Opening(error=unreachable)
    yield _opening("refuse", refused)
    yield _opening("refuse-thrice", refused, refused, refused)
    yield _opening("no-name", Opening(error=lambda: _not_opened(socket.gaierror())))
    yield _opening("hung-up", Opening(error=lambda: _not_opened(ConnectionResetError())))
    slow = Explainer(_ADDRESS, "").error(SLOW)
    yield _opening("stall-before-headers", Opening(takes=10.0, error=lambda: slow))
    yield _opening("stall-after-headers", Opening(mute=True))
    yield _opening("certificate", Opening(error=_certificate), for_user=True)
    for status in (301, 400, 401, 404):
        yield _opening(f"http-{status}", _answers(status), for_user=True)
    for status in (429, 500, 503):
        yield _opening(f"http-{status}", _answers(status))
    again = Opening(error=lambda: _answered(503, Retry_After="2"))
    yield _opening("http-503-retry-after", again)
    for stage, takes in ((Stage.CONNECT, 6.0), (Stage.ANSWER, 10.0)):
        yield _opening(
            f"aws-stall-{stage}",
            Opening(takes=takes, error=lambda s=stage, t=takes: _waited(s, t)),  # type: ignore[misc] # bound per turn
        )
    for name, mistake in _AWS_REFUSALS.items():
        yield _opening(f"aws-{name}", Opening(error=mistake))
    for name, mistake in _AWS_REFUSALS_FOR_USER.items():
        yield _opening(f"aws-{name}", Opening(error=mistake), for_user=True)
    yield _opening("model-not-found", Opening(no_model=True), for_user=True)


def _answers(status: int) -> Opening:
    return Opening(error=lambda: _answered(status))


_AWS_REFUSALS: dict[str, Mistake] = {
    "throttled": lambda: _call(429, throttled=True),
    "424": lambda: _aws(ModelError(message="", response_metadata=_status(424))),
    "500": lambda: _aws(InternalServerError(message="", response_metadata=_status(500))),
    "503": lambda: _aws(ServiceUnavailableError(message="", response_metadata=_status(503))),
    "goaway-early": lambda: _network("AWS_ERROR_HTTP_GOAWAY_RECEIVED"),
}
_AWS_REFUSALS_FOR_USER: dict[str, Mistake] = {
    "400": lambda: _aws(InputValidationError(message="", response_metadata=_status(400))),
    "403-expired": lambda: _call(403, "ExpiredTokenException"),
    "403-denied": lambda: _call(403, "AccessDeniedException"),
}
_ENDS: dict[str, Mistake] = {
    "close-1000": lambda: _closed(1000, "bye"),
    "close-1001": lambda: _closed(1001, "going away"),
    "close-1011": lambda: _closed(1011, "internal error"),
    "close-1012": lambda: _closed(1012, "service restart"),
    "close-1013": lambda: _closed(1013, "try again later"),
    "goaway-polite": lambda: aws_errors.over(Situation(target=_TARGET)),
    "session-cut": ended,
    "model-1011": lambda: _aws(ModelStreamError(message="", error_code="1011")),
    "model-1013": lambda: _aws(ModelStreamError(message="", error_code="1013")),
    "internal-stream-failure": lambda: _aws(InternalStreamFailure(message="")),
    "unknown-exception": lambda: _aws(KeyError("ExceptionOfTheFuture")),
    "error-event": lambda: _aws(UnmodeledEventError("InternalError", "")),
}
_BREAKS: dict[str, Mistake] = {
    "reset-1006": lambda: _closed(None, None),
    "rst-stream": lambda: _network("AWS_ERROR_HTTP_RST_STREAM_RECEIVED"),
    "goaway": lambda: _network("AWS_ERROR_HTTP_GOAWAY_RECEIVED"),
    "bad-crc": lambda: _aws(ChecksumMismatch(1, 2)),
    "cut-event": lambda: _aws(InvalidEventBytes()),
    "expired-in-stream": lambda: _aws(UnmodeledEventError("ExpiredTokenException", "")),
}
_ENDS_FOR_USER: dict[str, Mistake] = {
    "close-1008": lambda: _closed(1008, "policy"),
}


def _on_connection() -> Iterator[Fault]:
    for name, mistake in _ENDS.items():
        yield Fault(name=name, does=lambda c, m=mistake: c.end(m()))  # type: ignore[misc] # bound per turn
    for name, mistake in _ENDS_FOR_USER.items():
        yield Fault(name=name, does=lambda c, m=mistake: c.end(m()), for_user=True)  # type: ignore[misc] # same
    for name, mistake in _BREAKS.items():
        yield Fault(name=name, does=lambda c, m=mistake: c.reset(m()))  # type: ignore[misc] # same
    yield Fault(name="half-open", does=_half_open, hidden=True)
    yield Fault(name="silent", does=_silent, hidden=True)
    yield Fault(name="blank-deltas", does=_blank, hidden=True, mute=True)
    yield Fault(name="unsolicited-done", does=_end_generation)
    yield Fault(name="context-limit", does=_context)
    yield Fault(name="processing-error", does=Connection.fail)
    yield Fault(name="late-done", does=lambda c: _done_after(c, 3.0))
    yield Fault(name="never-done", does=lambda c: _done_after(c, inf))
    yield Fault(name="busy", does=lambda c: _busy(c, 6.0), hidden=True)
    yield Fault(name="busy-for-long", does=lambda c: _busy(c, 13.0), hidden=True)
    yield Fault(name="slow-reader", does=lambda c: _slow(c, takes=0.3, lasts=4.0))
    yield Fault(name="stuck-reader", does=lambda c: _slow(c, takes=inf, lasts=inf), hidden=True)


def _half_open(connection: Connection) -> None:
    _silent(connection)
    connection.later(_PING, lambda: connection.end(_closed(None, None)))


def _silent(connection: Connection) -> None:
    connection.silent = connection.faulty = True


def _blank(connection: Connection) -> None:
    connection.blank = connection.faulty = True


def _end_generation(connection: Connection) -> None:
    connection.end_generation()
    connection.service.clear()


def _context(connection: Connection) -> None:
    """From now on the context has an end, and this generation has come to it."""
    service = connection.service
    service.context = max(160, connection.tokens)
    service.clear()


def _done_after(connection: Connection, seconds: float) -> None:
    """The client is made to end a generation, and done comes late."""
    connection.done_after = seconds
    connection.faulty = seconds == inf
    connection.service.clear()


def _busy(connection: Connection, seconds: float) -> None:
    """All slots are taken for a while when the client comes back."""
    connection.reset(_closed(None, None))
    connection.service.busy_for(seconds)


def _slow(connection: Connection, *, takes: float, lasts: float) -> None:
    connection.slow(takes, lasts, Explainer(_ADDRESS, "").error(STUCK))
    connection.faulty = takes == inf


FAULTS = (*_at_opening(), *_on_connection())
_NAMES = {fault.name: fault for fault in FAULTS}


def by_name(name: str) -> Fault:
    """Find one."""
    return _NAMES[name]
