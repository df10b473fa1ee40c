"""How an open stream ends, and what the client is told of it."""

import json
from dataclasses import dataclass, field

from surtitle.server.container import Part
from surtitle.server.event_stream import Message
from surtitle.server.faults import Cut, Fault, FaultKind
from surtitle.server.invocation import response_part

__all__ = [
    "POLITE_CODES",
    "Ending",
    "ending_of_close",
    "ending_of_fault",
    "ending_of_limit",
    "refused_ending",
    "stray_event",
]

POLITE_CODES = {1000, 1005}
"""Close codes of a container that has nothing to complain of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a stream."""

    how: str
    """As `SessionRecord.ended` says it."""
    data: bytes = field(default=b"", repr=False)
    """Sent before the end."""
    cut: Cut = Cut.END
    code: int | None = None
    """With which the container closed, if that is what ended it."""


def ending_of_close(code: int, reason: str, *, report_normal: bool) -> Ending:
    """The container has closed: with this code and reason.

    Args:
        code: 1005 if it gave none, 1006 if it just went.
        reason: May be empty.
        report_normal: Tell the client of 1000 too.
    """
    how = f"container {code}"
    if code in POLITE_CODES and not report_normal:
        return Ending(how=how, code=code)
    message = reason or f"The model container closed the connection with code {code}."
    return Ending(how=how, data=_exception("ModelStreamError", message, str(code)), code=code)


def ending_of_limit(how: str, cut: Cut) -> Ending:
    """The session has lasted as long as one may."""
    data = b""
    if cut is Cut.ERROR:
        message = "The session has lasted too long."
        data = _exception("ModelStreamError", message, "ModelInvocationTimeExceeded")
    return Ending(how=how, data=data, cut=cut)


def refused_ending(error: str, message: str) -> Ending:
    """What the client sent is refused, when the answer has begun: as a message of type error."""
    return Ending(how=f"refused {error}", data=_error(error, message))


def stray_event(kind: FaultKind) -> bytes | None:
    """The event that this fault puts between the others; None if it is not of that sort."""
    names = {
        FaultKind.UNKNOWN_EVENT: "EventOfTheFuture",
        FaultKind.INITIAL_RESPONSE: "initial-response",
    }
    if kind not in names:
        return None
    return Message(headers={":message-type": "event", ":event-type": names[kind]}).encode()


def ending_of_fault(fault: Fault) -> Ending:
    """What this fault of a stream does to it."""
    kind, how = fault.kind, f"fault {fault.kind}"
    if kind in {FaultKind.RST, FaultKind.GOAWAY, FaultKind.ABORT}:
        return Ending(how=how, cut=Cut(kind))
    if kind is FaultKind.CLOSE:
        return Ending(
            how=how, data=ending_of_close(int(fault.number), "", report_normal=False).data
        )
    return Ending(how=how, data=_last_words(fault))


def _last_words(fault: Fault) -> bytes:
    event = response_part(Part(text=True, data=b"{}")).encode()
    words = {
        FaultKind.MODEL_ERROR: _exception("ModelStreamError", "The model failed.", fault.word),
        FaultKind.INTERNAL_FAILURE: _exception("InternalStreamFailure", "The platform failed."),
        FaultKind.UNKNOWN_EXCEPTION: _exception("ExceptionOfTheFuture", "Nobody knows this one."),
        FaultKind.ERROR_EVENT: _error("InternalError", "An unexpected error."),
        FaultKind.BAD_CRC: event[:-1] + bytes([event[-1] ^ 0xFF]),
        FaultKind.CUT_EVENT: event[: len(event) // 2],
    }
    return words.get(fault.kind, b"")


def _error(code: str, message: str) -> bytes:
    headers = {":message-type": "error", ":error-code": code, ":error-message": message}
    return Message(headers=headers).encode()


def _exception(name: str, message: str, code: str = "") -> bytes:
    headers = {
        ":message-type": "exception",
        ":exception-type": name,
        ":content-type": "application/json",
    }
    members = {"Message": message} | ({"ErrorCode": code} if code else {})
    return Message(headers=headers, payload=json.dumps(members).encode()).encode()
