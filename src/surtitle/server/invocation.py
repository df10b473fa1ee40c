"""What a request to the bidirectional stream may say: path, header fields, parts of the body."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from surtitle.server.answers import Refusal, RefusedError, invalid_input
from surtitle.server.container import Part
from surtitle.server.event_stream import BrokenMessageError, Decoder, Message
from surtitle.server.sigv4 import SIGNED_EVENTS

__all__ = ["CONTENT_TYPE", "Invocation", "read_invocation", "read_part", "response_part"]

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_TARGET = re.compile(r"/endpoints/([^/?]*)/invocations-bidirectional-stream\??")
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
_PATH = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_QUERY_TOKEN = r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"  # noqa: S105 - a part of a pattern
_QUERY = re.compile(rf"{_QUERY_TOKEN}+={_QUERY_TOKEN}*(&{_QUERY_TOKEN}+={_QUERY_TOKEN}*)*")
_PREFIX = "x-amzn-sagemaker-"
_MEMBERS = {
    "target-variant": ("TargetVariant", _NAME, 63),
    "model-invocation-path": ("ModelInvocationPath", _PATH, 100),
    "model-query-string": ("ModelQueryString", _QUERY, 2048),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A request that can be meant."""

    endpoint: str
    variant: str | None = None
    path: str | None = None
    """Of the container, without the leading slash."""
    query: str | None = None


def read_invocation(
    headers: Sequence[tuple[str, str]], *, endpoint: str | None = None
) -> Invocation:
    """Check a request by all rules but the signature's.

    Args:
        headers: With the pseudo-headers of HTTP/2.
        endpoint: The only one there is; None if every name will do.

    Raises:
        RefusedError: As the service would refuse it.
    """
    fields = dict(headers)
    target = _TARGET.fullmatch(fields.get(":path", ""))
    if target is None or fields.get(":method") != "POST":
        raise RefusedError(
            Refusal(status=404, error="UnknownOperationException", message="No such operation.")
        )
    if fields.get("content-type") != CONTENT_TYPE:
        raise invalid_input(f"Content-Type must be {CONTENT_TYPE}.")
    if fields.get("x-amz-content-sha256") != SIGNED_EVENTS:
        raise invalid_input(f"X-Amz-Content-Sha256 must be {SIGNED_EVENTS}.")
    name = target[1]
    if not _fits(name, _NAME, 63):
        raise invalid_input(_unfit("EndpointName", _NAME))
    if endpoint is not None and name != endpoint:
        raise invalid_input(f"Endpoint {name} of account 000000000000 not found.")
    found: dict[str, str | None] = {}
    for header, (member, pattern, most) in _MEMBERS.items():
        value = found[header] = fields.get(_PREFIX + header)
        if value is not None and not _fits(value, pattern, most):
            raise invalid_input(_unfit(member, pattern))
    return Invocation(
        endpoint=name,
        variant=found["target-variant"],
        path=found["model-invocation-path"],
        query=found["model-query-string"],
    )


def read_part(event: bytes) -> Part:
    """Read an event of the client, unwrapped: what is to be sent to the container.

    Raises:
        RefusedError: It is none.
    """
    decoder = Decoder()
    try:
        messages = list(decoder.receive(event))
    except BrokenMessageError as error:
        raise invalid_input(str(error)) from error
    if len(messages) != 1 or decoder.pending:
        raise invalid_input("A signed event must hold exactly one event.")
    [message] = messages
    if (message.text(":message-type"), message.text(":event-type")) != ("event", "PayloadPart"):
        raise invalid_input("An event must be a PayloadPart.")
    kind, state = message.text("DataType"), message.text("CompletionState")
    if kind not in {"", "UTF8", "BINARY"} or state not in {"", "PARTIAL", "COMPLETE"}:
        raise invalid_input("DataType or CompletionState has a value that does not exist.")
    return Part(text=kind == "UTF8", data=message.payload, final=state != "PARTIAL")


def response_part(part: Part) -> Message:
    """The event that tells the client of a frame of the container."""
    headers = {
        ":message-type": "event",
        ":event-type": "PayloadPart",
        "DataType": "UTF8" if part.text else "BINARY",
        "CompletionState": "COMPLETE" if part.final else "PARTIAL",
    }
    if part.data:
        headers[":content-type"] = "application/octet-stream"
    return Message(headers=headers, payload=part.data)


def _fits(value: str, pattern: re.Pattern[str], most: int) -> bool:
    return len(value) <= most and pattern.fullmatch(value) is not None


def _unfit(member: str, pattern: re.Pattern[str]) -> str:
    return (
        f"1 validation error detected: Value at '{member}' failed to satisfy constraint: "
        f"Member must satisfy regular expression pattern: {pattern.pattern}"
    )
