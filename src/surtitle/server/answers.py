"""What the SageMaker runtime says when it does not open a stream."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Refusal", "RefusedError", "container_refused", "invalid_input", "refusal_of"]

_USUAL = {
    400: ("InputValidationError", "The request is not valid."),
    403: ("AccessDeniedException", "The caller may not invoke this endpoint."),
    424: ("ModelError", "The model container refused the connection."),
    429: ("ThrottlingException", "Rate exceeded"),
    500: ("InternalServerError", "The request failed because of an unknown error."),
    503: ("ServiceUnavailableError", "The service is temporarily unavailable."),
}
_TEXTS = {
    "ExpiredTokenException": "The security token included in the request is expired",
    "ThrottlingException": "Rate exceeded",
    "UnrecognizedClientException": "The security token included in the request is invalid.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer without a stream, as status, name of the error and text."""

    status: int
    error: str
    message: str
    details: Mapping[str, object] = field(default_factory=dict)
    """More members of the error, as the service names them."""
    retry_after: float | None = None
    """Seconds."""

    def headers(self, request_id: str) -> list[tuple[str, str]]:
        """The header fields of the answer."""
        fields = [
            (":status", str(self.status)),
            ("content-type", "application/json"),
            ("x-amzn-requestid", request_id),
            ("x-amzn-errortype", self.error),
        ]
        if self.retry_after is not None:
            fields.append(("x-amz-retry-after", str(round(self.retry_after * 1000))))
        return fields

    def body(self) -> bytes:
        """The error as JSON."""
        return json.dumps(
            {"Message": self.message, "ErrorCode": self.error, **self.details}
        ).encode()


class RefusedError(Exception):
    """The request, or an event of it, cannot be accepted."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.error}: {refusal.message}")
        self.refusal = refusal


def invalid_input(message: str) -> RefusedError:
    """Something about the request itself is wrong."""
    return RefusedError(Refusal(status=400, error="InputValidationError", message=message))


def container_refused(message: str, *, status: int | None = None) -> Refusal:
    """The container did not take the connection.

    Args:
        message: What it did instead.
        status: The HTTP status it answered with, if it answered.
    """
    details: dict[str, object] = {"OriginalMessage": message}
    if status is not None:
        details["OriginalStatusCode"] = status
    return Refusal(
        status=424,
        error="ModelError",
        message=_USUAL[424][1],
        details=details | {"LogStreamArn": ""},
    )


def refusal_of(status: int, error: str = "") -> Refusal:
    """The usual refusal with this HTTP status, or the one named `error`."""
    usual, text = _USUAL.get(status, ("UnknownError", "The request failed."))
    name = error or usual
    if error:
        text = _TEXTS.get(error, "The request failed.")
    if name == "ModelError":
        return container_refused("No more connections.", status=503)
    throttled = name == "ThrottlingException"
    return Refusal(status=status, error=name, message=text, retry_after=1.0 if throttled else None)
