"""Signatures made by the SDK's own signer are accepted, and nothing else."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aws_sdk_signers import (
    URI,
    AsyncEventSigner,
    AsyncSigV4Signer,
    AWSCredentialIdentity,
    AWSRequest,
    Field,
    Fields,
    SigV4SigningProperties,
)
from smithy_aws_event_stream.events import EventHeaderEncoder, EventMessage

from surtitle.server.answers import RefusedError
from surtitle.server.event_stream import Decoder, Message, Timestamp
from surtitle.server.sigv4 import SIGNED_EVENTS, Credentials, EventChain, verify_request

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC).timestamp()
CREDENTIALS = Credentials(access_key="AKIDEXAMPLE", secret="the secret")  # noqa: S106 - a test's
TEMPORARY = replace(CREDENTIALS, session_token="a token")  # noqa: S106 - a test's
PATH = "/endpoints/my-endpoint/invocations-bidirectional-stream"
Headers = list[tuple[str, str]]


def signed(
    *,
    credentials: Credentials = CREDENTIALS,
    service: str = "sagemaker",
    at: float = NOON,
    more: Sequence[tuple[str, str]] = (),
) -> Headers:
    """The header fields of a request as the SDK signs it."""
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
    fields = [
        ("host", "localhost:8443"),
        ("content-type", "application/vnd.amazon.eventstream"),
        ("x-amz-content-sha256", SIGNED_EVENTS),
        ("x-amz-date", moment),
        *more,
    ]
    request = AWSRequest(
        destination=URI(host="localhost", port=8443, path=PATH, query=""),
        method="POST",
        body=None,
        fields=Fields([Field(name=name, values=[value]) for name, value in fields]),
    )
    answer = asyncio.run(
        AsyncSigV4Signer().sign(
            request=request,
            identity=AWSCredentialIdentity(
                access_key_id=credentials.access_key,
                secret_access_key=credentials.secret,
                session_token=credentials.session_token,
            ),
            properties=SigV4SigningProperties(region="eu-west-1", service=service, date=moment),
        )
    )
    return [(field.name.lower(), field.as_string()) for field in answer.fields]


def verify(
    headers: Headers,
    *,
    credentials: Credentials = CREDENTIALS,
    method: str = "POST",
    target: str = f"{PATH}?",
    now: float = NOON,
) -> EventChain:
    return verify_request(
        method=method, target=target, headers=headers, credentials=credentials, now=now
    )


def refused(headers: Headers, **arguments: object) -> str:
    with pytest.raises(RefusedError) as caught:
        verify(headers, **arguments)  # type: ignore[arg-type] # passed on
    assert caught.value.refusal.status == 403
    return caught.value.refusal.error


def changed(headers: Headers, name: str, old: str, new: str) -> Headers:
    found = dict(headers)
    assert old in found[name]
    return [(key, value.replace(old, new) if key == name else value) for key, value in headers]


@pytest.mark.parametrize("target", [PATH, f"{PATH}?"])
def test_a_request_of_the_sdk_is_accepted(target: str) -> None:
    verify(signed(), target=target)
    verify(signed(more=[("x-amzn-sagemaker-model-query-string", "a=b&c=%20")]), target=target)


def test_a_session_token_is_part_of_who_comes() -> None:
    verify(signed(credentials=TEMPORARY), credentials=TEMPORARY)
    assert refused(signed(credentials=TEMPORARY)) == "UnrecognizedClientException"
    assert refused(signed(), credentials=TEMPORARY) == "UnrecognizedClientException"


def test_another_access_key_is_not_known() -> None:
    other = Credentials(access_key="AKIDOTHER", secret="the secret")  # noqa: S106 - a test's
    assert refused(signed(credentials=other)) == "UnrecognizedClientException"


def test_another_secret_makes_another_signature() -> None:
    other = Credentials(access_key="AKIDEXAMPLE", secret="the Secret")  # noqa: S106 - a test's
    assert refused(signed(credentials=other)) == "InvalidSignatureException"


def test_another_service_is_another_scope() -> None:
    assert refused(signed(service="transcribe")) == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("seconds", "accepted"), [(-301, False), (-300, True), (0, True), (300, True), (301, False)]
)
def test_clocks_may_differ_by_five_minutes(seconds: float, *, accepted: bool) -> None:
    headers = signed()
    if accepted:
        verify(headers, now=NOON + seconds)
    else:
        assert refused(headers, now=NOON + seconds) == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("host", "8443", "8444"),
        ("content-type", "amazon", "amazone"),
        ("x-amz-date", "120000", "120001"),
        ("x-amz-date", "20260517", "20260518"),
        ("x-amz-date", "T", " "),
        ("x-amz-content-sha256", "EVENTS", "EVENT"),
        ("authorization", "eu-west-1", "eu-west-2"),
        ("authorization", "/20260517/", "/20260516/"),
        ("authorization", "x-amz-date", "x-amz-dote"),
        ("authorization", "host;", ""),
        ("authorization", "aws4_request", "aws5_request"),
    ],
)
def test_nothing_of_what_was_signed_can_be_changed(name: str, old: str, new: str) -> None:
    assert refused(changed(signed(), name, old, new)) == "InvalidSignatureException"


def test_method_path_and_query_are_signed_too() -> None:
    for arguments in ({"method": "GET"}, {"target": f"{PATH}x"}, {"target": f"{PATH}?a=b"}):
        assert refused(signed(), **arguments) == "InvalidSignatureException"


def test_an_amz_header_that_is_not_signed_is_not_accepted() -> None:
    assert refused([*signed(), ("x-amz-target", "a")]) == "InvalidSignatureException"


def test_a_request_without_a_signature_is_told_so() -> None:
    bare = [pair for pair in signed() if pair[0] != "authorization"]
    assert refused(bare) == "MissingAuthenticationTokenException"
    assert refused([*bare, ("authorization", "Bearer x")]) == "IncompleteSignatureException"


def test_secrets_are_not_in_the_repr() -> None:
    assert "the secret" not in repr(TEMPORARY)
    assert "a token" not in repr(TEMPORARY)


def wrapped(seed: str, payloads: Sequence[bytes]) -> list[Message]:
    """Events as the SDK signs them, ending with the empty one."""
    properties = SigV4SigningProperties(region="eu-west-1", service="sagemaker")
    identity = AWSCredentialIdentity(
        access_key_id=CREDENTIALS.access_key, secret_access_key=CREDENTIALS.secret
    )

    async def sign_all() -> bytes:
        signer = AsyncEventSigner(
            initial_signature=seed.encode(), event_encoder_cls=EventHeaderEncoder
        )
        events = [
            await signer.sign(
                event=EventMessage(headers={"DataType": "UTF8"}, payload=payload),
                identity=identity,
                properties=properties,
            )
            for payload in payloads
        ]
        events.append(
            await signer.sign_empty(event=EventMessage(), identity=identity, properties=properties)
        )
        return b"".join(event.encode() for event in events)

    return list(Decoder().receive(asyncio.run(sign_all())))


def chain() -> tuple[EventChain, str]:
    headers = signed()
    return verify(headers), dict(headers)["authorization"].rpartition("=")[2]


PAYLOADS = [b"one", b"", "zwölf".encode(), bytes(range(256))]


def test_the_events_of_the_sdk_are_a_chain() -> None:
    verifier, seed = chain()
    for event in wrapped(seed, PAYLOADS):
        verifier.verify(event, now=time.time())


def verdict(verifier: EventChain, event: Message, now: float | None = None) -> str:
    with pytest.raises(RefusedError) as caught:
        verifier.verify(event, now=time.time() if now is None else now)
    return caught.value.refusal.error


@pytest.mark.parametrize(("before", "wrong"), [([], 1), ([0], 2), ([0], 0), ([0, 1], 0)])
def test_no_event_can_be_left_out_swapped_or_told_again(before: list[int], wrong: int) -> None:
    verifier, seed = chain()
    events = wrapped(seed, PAYLOADS)
    for place in before:
        verifier.verify(events[place], now=time.time())
    assert verdict(verifier, events[wrong]) == "InvalidSignatureException"


def test_no_event_can_be_changed() -> None:
    verifier, seed = chain()
    event = wrapped(seed, PAYLOADS)[0]
    later = Timestamp(milliseconds=int(time.time() * 1000) + 1)
    for spoilt in (
        Message(headers=event.headers, payload=event.payload + b"!"),
        Message(headers={**event.headers, ":date": later}, payload=event.payload),
        Message(headers={**event.headers, ":chunk-signature": bytes(32)}, payload=event.payload),
        Message(headers={":date": event.headers[":date"]}, payload=event.payload),
        Message(headers={}, payload=event.payload),
    ):
        assert verdict(verifier, spoilt) == "InvalidSignatureException"
    verifier.verify(event, now=time.time())  # and after all this the right one is still accepted


def test_another_seed_is_another_chain() -> None:
    verifier, _ = chain()
    assert verdict(verifier, wrapped("00" * 32, PAYLOADS)[0]) == "InvalidSignatureException"


def test_an_event_is_good_for_five_minutes() -> None:
    for seconds in (-302, 302):
        verifier, seed = chain()
        event = wrapped(seed, PAYLOADS)[0]
        assert verdict(verifier, event, time.time() + seconds) == "InvalidSignatureException"
        verifier.verify(event, now=time.time() + seconds * 0.97)
