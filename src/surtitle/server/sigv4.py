"""Signature Version 4 of AWS, from the side that verifies: a request, and its chain of events."""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import parse_qsl, quote

from surtitle.server.answers import Refusal, RefusedError
from surtitle.server.event_stream import Message, Timestamp, encode_headers

__all__ = [
    "SIGNED_EVENTS",
    "STANDIN_CREDENTIALS",
    "Credentials",
    "EventChain",
    "sign",
    "verify_request",
]

SIGNED_EVENTS = "STREAMING-AWS4-HMAC-SHA256-EVENTS"
"""The value of `x-amz-content-sha256` that announces a chain of signed events."""

_ALGORITHM = "AWS4-HMAC-SHA256"
_EVENT_ALGORITHM = "AWS4-HMAC-SHA256-PAYLOAD"
_SKEW = 300.0
"""Seconds that a signature may be older or younger than the clock here."""
_MOMENT = "%Y%m%dT%H%M%SZ"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=(?P<credential>[^, ]+) *, *"
    r"SignedHeaders=(?P<signed>[^, ]+) *, *Signature=(?P<signature>[0-9a-f]{64})"
)
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your AWS Secret Access Key and signing method."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who may come in."""

    access_key: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


STANDIN_CREDENTIALS = Credentials(
    access_key="AKIDLOCALSTANDIN",
    secret="surtitle-local-stand-in",  # noqa: S106 - public, and opens nothing but the stand-in
)
"""What the stand-in accepts unless it is told otherwise."""


class EventChain:
    """Verifies the events of one request: each signature builds on the one before.

    Args:
        secret: The secret access key.
        region: As in the scope of the request.
        service: The same.
        seed: The signature of the request, in hexadecimal.
    """

    def __init__(self, *, secret: str, region: str, service: str, seed: str) -> None:
        self._secret = secret
        self._region = region
        self._service = service
        self._prior = seed
        self._key_of: tuple[str, bytes] = ("", b"")

    def verify(self, outer: Message, *, now: float) -> None:
        """Check the next event as it came, still wrapped.

        Args:
            outer: Its headers are `:date` and `:chunk-signature`; its payload is the event.
            now: Seconds since 1970-01-01, UTC.

        Raises:
            RefusedError: It is not signed, not by who made the request, not in this place, or
                not lately.
        """
        match outer.headers.get(":date"), outer.headers.get(":chunk-signature"):
            case Timestamp() as signed_at, bytes() as signature:
                pass
            case _:
                raise _refused("An event carries no signature.")
        _check_age(signed_at.milliseconds / 1000, now)
        # The scope names the day of the event, not of the request: a session may pass midnight.
        moment = datetime.fromtimestamp(signed_at.milliseconds / 1000, UTC).strftime(_MOMENT)
        expected = sign(
            self._key(moment[:8]),
            _EVENT_ALGORITHM,
            moment,
            _scope(moment[:8], self._region, self._service),
            self._prior,
            sha256(encode_headers({":date": signed_at})).hexdigest(),
            sha256(outer.payload).hexdigest(),
        )
        if not hmac.compare_digest(expected, signature):
            raise _refused(_MISMATCH)
        self._prior = signature.hex()

    def _key(self, day: str) -> bytes:
        if self._key_of[0] != day:
            self._key_of = (day, _signing_key(self._secret, day, self._region, self._service))
        return self._key_of[1]


def verify_request(
    *,
    method: str,
    target: str,
    headers: Sequence[tuple[str, str]],
    credentials: Credentials,
    now: float,
    service: str = "sagemaker",
) -> EventChain:
    """Check the signature of a request; gives the chain that its events must continue.

    Args:
        method: Of the request.
        target: Its path, with the query if there is one, as it stands on the wire.
        headers: Names in lower case; with `host`.
        credentials: Those that are accepted.
        now: Seconds since 1970-01-01, UTC.
        service: The service whose scope the signature must have.

    Raises:
        RefusedError: As the service would refuse it.
    """
    fields = _joined(headers)
    found = _AUTHORIZATION.fullmatch(fields.get("authorization", ""))
    if found is None:
        raise _malformed(fields)
    access_key, _, scope = found["credential"].partition("/")
    day, _, rest = scope.partition("/")
    region, _, rest = rest.partition("/")
    if not region or rest != f"{service}/aws4_request":
        raise _refused(f"Credential should be scoped to correct service: '{service}'.")
    _check_identity(access_key, fields, credentials)
    signed = found["signed"].split(";")
    must = {"host", "x-amz-date"} | {name for name in fields if name.startswith("x-amz-")}
    if not must <= set(signed) or not set(signed) <= fields.keys():
        raise _refused("'Host', 'X-Amz-Date' and every other 'X-Amz-*' header must be signed.")
    moment = fields["x-amz-date"]
    try:
        signed_at = datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)
    except ValueError as error:
        raise _refused("Date must be in ISO-8601 'basic format'.") from error
    if not moment.startswith(f"{day}T"):
        raise _refused("Date in Credential scope does not match YYYYMMDD from 'X-Amz-Date'.")
    _check_age(signed_at.timestamp(), now)
    canonical = _canonical_request(method, target, fields, signed)
    expected = sign(
        _signing_key(credentials.secret, day, region, service),
        _ALGORITHM,
        moment,
        scope,
        sha256(canonical.encode()).hexdigest(),
    ).hex()
    if not hmac.compare_digest(expected, found["signature"]):
        raise _refused(_MISMATCH)
    return EventChain(secret=credentials.secret, region=region, service=service, seed=expected)


def sign(key: bytes, *lines: str) -> bytes:
    """The signature of these lines."""
    return _hmac(key, "\n".join(lines))


def _malformed(fields: dict[str, str]) -> RefusedError:
    if "authorization" not in fields:
        return _refused("Missing Authentication Token", "MissingAuthenticationTokenException")
    return _refused(
        "The Authorization header has not the form of Signature Version 4.",
        "IncompleteSignatureException",
    )


def _check_identity(access_key: str, fields: dict[str, str], credentials: Credentials) -> None:
    token = fields.get("x-amz-security-token", "")
    same_key = hmac.compare_digest(access_key.encode(), credentials.access_key.encode())
    same_token = hmac.compare_digest(token.encode(), (credentials.session_token or "").encode())
    if not (same_key and same_token):
        raise _refused(
            "The security token included in the request is invalid.", "UnrecognizedClientException"
        )


def _refused(message: str, error: str = "InvalidSignatureException") -> RefusedError:
    return RefusedError(Refusal(status=403, error=error, message=message))


def _check_age(signed_at: float, now: float) -> None:
    if signed_at < now - _SKEW:
        raise _refused("Signature expired: it is more than 5 minutes old.")
    if signed_at > now + _SKEW:
        raise _refused("Signature not yet current: it is more than 5 minutes ahead.")


def _joined(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in headers:
        trimmed = " ".join(value.split())
        fields[name] = f"{fields[name]},{trimmed}" if name in fields else trimmed
    return fields


def _canonical_request(
    method: str, target: str, fields: dict[str, str], signed: Sequence[str]
) -> str:
    path, _, query = target.partition("?")
    pairs = sorted(
        (quote(name, safe=""), quote(value, safe=""))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "\n".join(
        (
            method,
            quote(path, safe="/"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{fields[name]}" for name in signed),
            "",
            ";".join(signed),
            fields.get("x-amz-content-sha256", ""),
        )
    )


def _scope(day: str, region: str, service: str) -> str:
    return f"{day}/{region}/{service}/aws4_request"


def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), sha256).digest()
