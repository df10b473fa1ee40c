"""What each failure of the service, the network and the SDK is told as."""

import pytest
from aws_sdk_sagemaker_runtime_http2.models import (
    InputValidationError,
    InternalServerError,
    InternalStreamFailure,
    ModelError,
    ModelStreamError,
    ServiceUnavailableError,
)
from awscrt.exceptions import AwsCrtError
from smithy_aws_core.config.exceptions import ConfigValidationError, ProfileNotFoundError
from smithy_aws_event_stream.exceptions import (
    ChecksumMismatch,
    InvalidEventBytes,
    UnmodeledEventError,
)
from smithy_core.exceptions import (
    CallError,
    ClientTimeoutError,
    SerializationError,
    SmithyError,
    SmithyIdentityError,
)
from smithy_core.response import ResponseMetadata
from smithy_http.exceptions import SmithyHTTPError

from surtitle.core.errors import Decision, EngineError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.aws_errors import (
    Answer,
    Situation,
    Stage,
    certificate_refused,
    meaning,
    over,
    timed_out,
)

TARGET = SageMakerTarget(endpoint="voxtral", region="eu-west-1", profile="work")
LOCAL = SageMakerTarget(
    endpoint="voxtral", region="eu-west-1", endpoint_url="https://localhost:9443"
)
RENEWAL = "Run: aws sso login --profile work"
HOST = "runtime.sagemaker.eu-west-1.amazonaws.com"
SAID = "words that somebody said"
"""Stands for whatever a service or a model tells in its own words."""

RETRY, RECONFIGURE, FATAL = Decision.RETRY, Decision.RECONFIGURE, Decision.FATAL


def situation(answer: Answer | None = None, target: SageMakerTarget = TARGET) -> Situation:
    return Situation(target=target, answer=answer, renewal=RENEWAL)


def status(number: int) -> ResponseMetadata:
    return ResponseMetadata(http_status_code=number)


def call_error(
    number: int, kind: str = "", *, throttled: bool = False, retry_after: float | None = None
) -> CallError:
    """As the SDK makes them of answers it has no class for: the server's words are lost."""
    message = f"Unknown error for operation com.amazonaws.x#Invoke - status: {number}"
    if kind:
        message += f" - id: com.amazonaws.sagemakerruntimehttp2#{kind}"
    return CallError(
        message,
        response_metadata=status(number),
        is_throttling_error=throttled,
        retry_after=retry_after,
    )


def network(name: str) -> SmithyError:
    """As the SDK wraps what AWS's C library reports."""
    inner = AwsCrtError(1, name, "some words")
    error = SmithyError(inner)
    error.__cause__ = inner
    return error


def network_timeout(name: str) -> ClientTimeoutError:
    wrapped = Exception(f"CRT {name}: some words")
    wrapped.__cause__ = AwsCrtError(1, name, "some words")
    error = ClientTimeoutError(message="A timeout error occurred.")
    error.__cause__ = wrapped
    return error


def lost() -> OSError:
    error = OSError("Failed to read from stream.")
    error.__cause__ = AwsCrtError(1, "AWS_IO_SOCKET_CLOSED", "socket is closed.")
    return error


MODELLED = [
    (
        InputValidationError(message=SAID, error_code="x", response_metadata=status(400)),
        RECONFIGURE,
        "--endpoint",
        ["voxtral", "eu-west-1", "aws sagemaker describe-endpoint", '--profile "work"'],
    ),
    (
        ModelError(message=SAID, response_metadata=status(424)),
        RETRY,
        "",
        ["did not accept the session", "/aws/sagemaker/Endpoints/voxtral"],
    ),
    (
        InternalServerError(message=SAID, response_metadata=status(500)),
        RETRY,
        "",
        ["not available (status 500)"],
    ),
    (
        ServiceUnavailableError(message=SAID, response_metadata=status(503)),
        RETRY,
        "",
        ["not available (status 503)"],
    ),
]
UNMODELLED = [
    (call_error(503), RETRY, "", ["not available (status 503)"]),
    (call_error(502), RETRY, "", ["status 502"]),
    (call_error(408), RETRY, "", ["status 408"]),
    (call_error(429, throttled=True), RETRY, "", ["throttled"]),
    (call_error(400, "ThrottlingException"), RETRY, "", ["throttled"]),
    (call_error(400, "ServiceQuotaLimitExceeded"), RETRY, "", ["throttled"]),
    (call_error(403, "ExpiredTokenException"), RECONFIGURE, "--profile", ["expired", RENEWAL]),
    (call_error(400, "ExpiredTokenException"), RECONFIGURE, "--profile", ["expired", RENEWAL]),
    (
        call_error(403, "UnrecognizedClientException"),
        RECONFIGURE,
        "--profile",
        ["does not know the access key", RENEWAL],
    ),
    (
        call_error(403, "AccessDeniedException"),
        RECONFIGURE,
        "--profile",
        [
            "sagemaker:InvokeEndpointWithBidirectionalStream",
            "arn:aws:sagemaker:eu-west-1:*:endpoint/voxtral",
        ],
    ),
    (
        call_error(403, "InvalidSignatureException"),
        RECONFIGURE,
        "--profile",
        ["signature", "secret access key", "clock"],
    ),
    (call_error(403), RECONFIGURE, "--profile", ["status 403", RENEWAL, "policy"]),
    (call_error(401), RECONFIGURE, "--profile", ["status 401", RENEWAL]),
    (call_error(404, "UnknownOperationException"), RECONFIGURE, "--endpoint", ["in service"]),
    (call_error(400), RECONFIGURE, "--endpoint", ["one of its options"]),
    (call_error(407), RECONFIGURE, "", ["status 407", "proxy"]),
]
NETWORK = [
    (network("AWS_IO_DNS_INVALID_NAME"), RETRY, "--region", [HOST, "right region"]),
    (network("AWS_IO_DNS_QUERY_FAILED"), RETRY, "--region", ["cannot be found"]),
    (network("AWS_IO_SOCKET_CONNECTION_REFUSED"), RETRY, "--region", ["refuses", "8443"]),
    (network_timeout("AWS_IO_SOCKET_TIMEOUT"), RETRY, "--region", ["firewall", "8443", "443"]),
    (network("AWS_IO_SOCKET_NO_ROUTE_TO_HOST"), RETRY, "--region", ["cannot be reached"]),
    (network("AWS_IO_TLS_ERROR_NEGOTIATION_FAILURE"), RECONFIGURE, "--ca-bundle", ["proxy"]),
    (network("AWS_ERROR_HTTP_RST_STREAM_RECEIVED"), RETRY, "", ["broke", "RST_STREAM"]),
    (network("AWS_ERROR_HTTP_GOAWAY_RECEIVED"), RETRY, "", ["broke", "GOAWAY"]),
    (network_timeout("AWS_IO_SOCKET_CLOSED"), RETRY, "", ["broke"]),
    (lost(), RETRY, "", ["broke"]),
    (
        SmithyHTTPError("HTTP/2 could not be negotiated: Http1_1"),
        RECONFIGURE,
        "",
        ["does not speak HTTP/2", "proxy"],
    ),
]
IN_STREAM = [
    (ModelStreamError(message=SAID, error_code="1000"), RETRY, "", ["has ended"]),
    (ModelStreamError(message=SAID, error_code="1001"), RETRY, "", ["has ended"]),
    (ModelStreamError(message=SAID, error_code="1011"), RETRY, "", ["(1011)", "log group"]),
    (ModelStreamError(message=SAID, error_code="1013"), RETRY, "", ["busy"]),
    (
        ModelStreamError(message=SAID, error_code="ModelInvocationTimeExceeded"),
        RETRY,
        "",
        ["as long as SageMaker allows"],
    ),
    (ModelStreamError(message=SAID, error_code="StreamBroken"), RETRY, "", ["(StreamBroken)"]),
    (ModelStreamError(message=SAID, error_code=SAID), RETRY, "", ["no code"]),
    (ModelStreamError(message=SAID), RETRY, "", ["no code"]),
    (InternalStreamFailure(message=SAID), RETRY, "", ["fault of its own"]),
    (KeyError("ExceptionOfTheFuture"), RETRY, "", ["(ExceptionOfTheFuture)"]),
    (KeyError(SAID), RETRY, "", ["without a name"]),
    (KeyError(), RETRY, "", ["without a name"]),
    (UnmodeledEventError("InternalError", SAID), RETRY, "", ["(InternalError)"]),
    (UnmodeledEventError("ExpiredTokenException", SAID), RETRY, "", ["expired", RENEWAL]),
    (UnmodeledEventError("InvalidSignatureException", SAID), RECONFIGURE, "--profile", ["clock"]),
    (ChecksumMismatch(1, 2), RETRY, "", ["damaged"]),
    (InvalidEventBytes(), RETRY, "", ["damaged"]),
    (SerializationError("Unions must have"), FATAL, "", ["version of the AWS SDK"]),
    (SmithyIdentityError("no"), RECONFIGURE, "--profile", ["aws configure list"]),
    (ConfigValidationError("max_attempts"), RECONFIGURE, "--profile", ["aws configure list"]),
    (ProfileNotFoundError("work"), RECONFIGURE, "--profile", ["aws configure list"]),
    (ClientTimeoutError(message=SAID), RETRY, "", ["does not answer"]),
    (RuntimeError(SAID), RETRY, "", ["broke"]),
]


@pytest.mark.parametrize(
    ("error", "decision", "field", "words"),
    [*MODELLED, *UNMODELLED, *NETWORK, *IN_STREAM],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_meaning(error: Exception, decision: Decision, field: str, words: list[str]) -> None:
    meant = meaning(error, situation())
    assert (meant.decision, meant.field) == (decision, field)
    for word in words:
        assert word in str(meant)
    assert SAID not in str(meant)
    assert "\n" not in str(meant)
    assert meant.message.endswith(".")
    assert meant.remedy or decision is Decision.RETRY


def test_our_own_errors_stay_as_they_are() -> None:
    error = EngineError("Something.")
    assert meaning(error, situation()) is error


@pytest.mark.parametrize("retry_after", [None, 1.5])
def test_how_long_a_throttled_client_has_to_wait(retry_after: float | None) -> None:
    error = call_error(429, throttled=True, retry_after=retry_after)
    assert meaning(error, situation()).retry_after == retry_after


def test_a_busy_model_is_left_alone_for_a_while() -> None:
    error = meaning(ModelStreamError(message=SAID, error_code="1013"), situation())
    assert error.retry_after is not None
    assert error.retry_after >= 1


def test_the_code_that_the_sdk_drops_is_taken_from_the_head_of_the_answer() -> None:
    head = Answer(status=403, code="AccessDeniedException")
    assert "policy" in str(meaning(call_error(403), situation(head)))
    head = Answer(status=400, code="ThrottlingException")
    assert meaning(call_error(400), situation(head)).decision is Decision.RETRY


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(600.0, "10 min fast"), (-3600.0, "60 min slow"), (100.0, "signature"), (None, "signature")],
)
def test_a_wrong_clock_is_seen_by_the_date_of_the_answer(ahead: float | None, words: str) -> None:
    head = Answer(status=403, code="InvalidSignatureException", clock_ahead=ahead)
    meant = meaning(call_error(403, "InvalidSignatureException"), situation(head))
    assert words in str(meant)
    assert meant.decision is Decision.RECONFIGURE


def test_a_wrong_clock_does_not_hide_that_a_token_has_expired() -> None:
    head = Answer(status=403, code="ExpiredTokenException", clock_ahead=600.0)
    assert RENEWAL in str(meaning(call_error(403, "ExpiredTokenException"), situation(head)))


def test_with_an_address_given_it_is_that_which_may_be_wrong() -> None:
    here = situation(target=LOCAL)
    refused = meaning(network("AWS_IO_SOCKET_CONNECTION_REFUSED"), here)
    assert refused.field == "--endpoint-url"
    assert "localhost, port 9443" in str(refused)
    assert meaning(network("AWS_IO_DNS_INVALID_NAME"), here).field == "--endpoint-url"
    assert meaning(SmithyHTTPError("no"), here).field == "--endpoint-url"
    assert "localhost" in str(over(here))


def test_a_path_given_may_be_what_the_model_does_not_accept() -> None:
    target = SageMakerTarget(endpoint="voxtral", region="eu-west-1", invocation_path="v1/x")
    error = ModelError(message=SAID, response_metadata=status(424))
    assert "--invocation-path" in str(meaning(error, situation(target=target)))


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage.CONNECT, ["No secure connection", "8443", "--ca-bundle"]),
        (Stage.ANSWER, ["does not answer", "10 s", "describe-endpoint"]),
        (Stage.SEND, ["no sound for 10 s"]),
    ],
)
def test_waiting_too_long(stage: Stage, words: list[str]) -> None:
    meant = timed_out(stage, 10.0, situation())
    assert meant.decision is Decision.RETRY
    for word in words:
        assert word in str(meant)


def test_our_limit_says_the_same_as_the_error_that_comes_too_late() -> None:
    late = meaning(network("AWS_IO_TLS_ERROR_NEGOTIATION_FAILURE"), situation())
    assert str(timed_out(Stage.CONNECT, 6.0, situation())) == str(late)


def test_an_error_whose_text_does_not_end_is_known_by_its_head() -> None:
    head = Answer(status=403, code="ExpiredTokenException")
    meant = timed_out(Stage.ANSWER, 10.0, situation(head))
    assert (meant.decision, meant.remedy) == (Decision.RECONFIGURE, RENEWAL)
    accepted = timed_out(Stage.ANSWER, 10.0, situation(Answer(status=200)))
    assert "does not answer" in str(accepted)


def test_a_certificate_that_is_not_trusted_has_to_be_seen_to() -> None:
    meant = certificate_refused("self-signed certificate in certificate chain", situation())
    assert (meant.decision, meant.field) == (Decision.RECONFIGURE, "--ca-bundle")
    assert "self-signed" in str(meant)


def test_an_end_is_never_the_last_word() -> None:
    assert over(situation()).decision is Decision.RETRY
