"""What the failures of a SageMaker stream mean, and what to do about each.

Pure: the SDK's exceptions are told apart by the names of their classes and codes, so
that this needs no SDK. What a service or a model says in its own words is not
repeated, for it may hold speech; codes are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from surtitle.core.errors import Decision, EngineError
from surtitle.core.sagemaker_target import SageMakerTarget

__all__ = ["Answer", "Situation", "Stage", "certificate_refused", "meaning", "over", "timed_out"]

_SKEW = 240.0
"""Seconds that a clock may be wrong before signatures are refused; AWS allows five minutes."""
_BUSY_FOR = 5.0
"""Seconds after which a model that was busy may have a slot."""
_ACTION = "sagemaker:InvokeEndpointWithBidirectionalStream"
_CODE = re.compile(r"- id: \S*#(\w+)")
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_THROTTLED = re.compile(r"Throttl|TooManyRequests|LimitExceeded|SlowDown", re.IGNORECASE)
_EXPIRED = re.compile(r"ExpiredToken|TokenRefreshRequired")
_UNKNOWN_KEY = re.compile(r"UnrecognizedClient|InvalidClientTokenId|InvalidAccessKey|MissingAuth")
_SIGNATURE = re.compile(r"Signature|RequestTimeTooSkewed|RequestExpired|NotYetCurrent")
_DENIED = re.compile(r"AccessDenied|NotAuthorized|OptIn|Forbidden")

_GOING_AWAY = {"1000", "1001"}
_TOO_LONG = re.compile(r"TimeExceeded|TimedOut|Timeout", re.IGNORECASE)

_FAULTS = {
    "InternalStreamFailure": "SageMaker broke the stream by a fault of its own.",
    "ClientTimeoutError": "SageMaker does not answer.",
}


class Stage(StrEnum):
    """What was being waited for."""

    CONNECT = "connect"
    """A TCP connection and TLS over it."""
    ANSWER = "answer"
    """The head of the service's answer; it waits for the model's container."""
    SEND = "send"
    """Room for what is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of the head of the service's answer.

    Args:
        status: Its HTTP status.
        code: The kind of error it names; may be empty.
        clock_ahead: Seconds by which this computer's clock is ahead of the service's.
    """

    status: int
    code: str = ""
    clock_ahead: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """In what circumstances something failed.

    Args:
        target: What was called.
        answer: The head of the answer, once there is one.
        renewal: What to do when the credentials are refused.
    """

    target: SageMakerTarget
    answer: Answer | None = None
    renewal: str = ""


def meaning(error: BaseException, situation: Situation) -> EngineError:
    """Say what an exception of the SDK means."""
    if isinstance(error, EngineError):
        return error
    chain = [*_chain(error)]
    classes = {cls.__name__ for each in chain for cls in type(each).__mro__}
    for each in chain:
        name = getattr(each, "name", None)
        if isinstance(name, str) and name.startswith("AWS_"):
            return _connection(name, situation)
    if (status := _status(error, situation)) is not None:
        return _refused(status, _code(error, situation), error, situation)
    if "SmithyHTTPError" in classes:
        return _no_http2(situation)
    return _in_stream(error, classes, situation)


def over(situation: Situation) -> EngineError:
    """Say that the stream has ended, politely or not: the SDK does not tell which."""
    return _again(f"The connection to {_place(situation)} has ended.")


def timed_out(stage: Stage, seconds: float, situation: Situation) -> EngineError:
    """Say what it means that nothing happened for so long."""
    answer = situation.answer
    match stage:
        case Stage.CONNECT:
            return _no_tls(Decision.RETRY, situation)
        case Stage.ANSWER if answer is not None and answer.status >= 300:  # noqa: PLR2004 - HTTP
            # An error whose text never comes to its end; its head says enough.
            return _refused(answer.status, answer.code, TimeoutError(), situation)
        case Stage.ANSWER:
            return _again(
                f"{_place(situation)} does not answer: nothing came for {seconds:.0f} s.",
                f"See whether the endpoint is InService: {_describe(situation.target)}",
            )
        case Stage.SEND:
            return _again(f"{_place(situation)} has taken no sound for {seconds:.0f} s.")


def certificate_refused(reason: str, situation: Situation) -> EngineError:
    """Say that the other side's certificate is not trusted; the reason is OpenSSL's."""
    return _no_tls(Decision.RECONFIGURE, situation, f": its certificate is not trusted ({reason})")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__


def _connection(name: str, situation: Situation) -> EngineError:
    """The network's part, by the name that AWS's C library gives it."""
    target = situation.target
    where = f"{target.host}, port {target.port}"
    field = "--endpoint-url" if target.endpoint_url else "--region"
    if "_DNS_" in name:
        return _again(
            f"The address {target.host} cannot be found.",
            "Check the network connection, and the address."
            if target.endpoint_url
            else f"Check the network connection, and whether {target.region} is the right region.",
            field=field,
        )
    if "_TLS_" in name:
        return _no_tls(Decision.RECONFIGURE, situation)
    if name == "AWS_IO_SOCKET_CONNECTION_REFUSED":
        return _again(
            f"{where} refuses connections.",
            f"Check the address; a firewall must let TCP port {target.port} through.",
            field=field,
        )
    if name in (
        *("AWS_IO_SOCKET_TIMEOUT", "AWS_IO_SOCKET_NO_ROUTE_TO_HOST", "AWS_IO_SOCKET_NETWORK_DOWN"),
        "AWS_IO_SOCKET_CONNECT_ABORTED",
    ):
        return _again(
            f"{where} cannot be reached.",
            f"Check the network connection; a firewall must let TCP port {target.port} through,"
            " not only 443.",
            field=field,
        )
    return _again(
        f"The connection to {_place(situation)} broke ({name}).",
        f"Check the network connection, and that TCP port {target.port} leads to the service.",
    )


def _no_tls(decision: Decision, situation: Situation, because: str = "") -> EngineError:
    target = situation.target
    return EngineError(
        f"No secure connection to {target.host}, port {target.port}, could be made{because}.",
        remedy="A proxy or firewall may stand in between: let TCP port"
        f" {target.port} through, or trust its authority with --ca-bundle FILE.",
        decision=decision,
        field="--ca-bundle",
    )


def _no_http2(situation: Situation) -> EngineError:
    target = situation.target
    return EngineError(
        f"{target.host}, port {target.port}, does not speak HTTP/2.",
        remedy="A proxy may stand in between: let connections to it through unopened."
        if not target.endpoint_url
        else "Check the address; a proxy in between must let HTTP/2 through.",
        decision=Decision.RECONFIGURE,
        field="--endpoint-url" if target.endpoint_url else "",
    )


def _status(error: BaseException, situation: Situation) -> int | None:
    """The HTTP status of a refusal, if it is one."""
    status = getattr(getattr(error, "response_metadata", None), "http_status_code", None)
    if isinstance(status, int):
        return status
    answer = situation.answer
    return answer.status if answer is not None and answer.status >= 300 else None  # noqa: PLR2004 - HTTP


def _code(error: BaseException, situation: Situation) -> str:
    """What kind of error the service names: the SDK hides it in a text, or drops it."""
    if found := _CODE.search(str(getattr(error, "message", ""))):
        return found[1]
    return situation.answer.code if situation.answer is not None else ""


def _refused(status: int, code: str, error: BaseException, situation: Situation) -> EngineError:
    """The service answered with an error, by its status and the code it gives."""
    target = situation.target
    if (
        status == 429  # noqa: PLR2004 - HTTP
        or _THROTTLED.search(code)
        or getattr(error, "is_throttling_error", False)
    ):
        return _again(
            "SageMaker takes no more calls for now (throttled).",
            retry_after=getattr(error, "retry_after", None),
        )
    if status in (401, 403) or any(
        kind.search(code) for kind in (_EXPIRED, _UNKNOWN_KEY, _SIGNATURE, _DENIED)
    ):
        return _forbidden(status, code, situation)
    if status == 424:  # noqa: PLR2004 - HTTP
        path = ", and check --invocation-path" if target.invocation_path else ""
        return _again(
            f"The model behind {target.endpoint} did not accept the session.",
            f"If it stays so, read the log group {_log(target)}{path}.",
        )
    if status in (400, 404, 405):
        return EngineError(
            f"SageMaker refuses the call: there is no endpoint {target.endpoint} in service"
            f" in {target.region}, or one of its options is wrong.",
            remedy=f"See whether it is InService: {_describe(target)}",
            decision=Decision.RECONFIGURE,
            field="--endpoint",
        )
    if status < 500 and status not in (408, 425):  # noqa: PLR2004 - HTTP
        return EngineError(
            f"{target.host} refuses the call with status {status}.",
            remedy="Check the address and whether a proxy stands in between.",
            decision=Decision.RECONFIGURE,
            field="--endpoint-url" if target.endpoint_url else "",
        )
    return _again(
        f"SageMaker is not available (status {status}).",
        retry_after=getattr(error, "retry_after", None),
    )


def _forbidden(status: int, code: str, situation: Situation) -> EngineError:
    """Who calls is not known, not allowed, or signs wrongly."""
    target, answer = situation.target, situation.answer
    ahead = answer.clock_ahead if answer is not None else None
    wrong_clock = ahead is not None and abs(ahead) > _SKEW
    field = "--profile"
    if _EXPIRED.search(code):
        message, remedy = "The AWS credentials have expired.", situation.renewal
    elif _UNKNOWN_KEY.search(code):
        message = "AWS does not know the access key."
        remedy = f"It may be deleted, or of another kind of account. {situation.renewal}"
    elif _DENIED.search(code):
        message = f"The AWS user or role may not use the endpoint {target.endpoint}."
        remedy = f"Ask for a policy that allows {_ACTION} on {target.arn}"
    elif wrong_clock and ahead is not None:
        minutes = round(abs(ahead) / 60)
        message = (
            f"This computer's clock is {minutes} min {'fast' if ahead > 0 else 'slow'},"
            " and AWS refuses what is signed at another time."
        )
        remedy, field = "Set the clock, best by switching on automatic time.", ""
    elif _SIGNATURE.search(code):
        message = "AWS refuses the signature."
        remedy = f"Check the secret access key and this computer's clock. {situation.renewal}"
    else:
        message = f"AWS refuses the credentials (status {status})."
        remedy = (
            f"{situation.renewal} If they are fresh, ask for a policy that allows"
            f" {_ACTION} on {target.arn}"
        )
    return EngineError(message, remedy=remedy.strip(), decision=Decision.RECONFIGURE, field=field)


def _in_stream(  # noqa: PLR0911 - one for each kind
    error: BaseException, classes: set[str], situation: Situation
) -> EngineError:
    """Something that came, or did not, in a stream that was open."""
    target = situation.target
    if "ModelStreamError" in classes:
        return _model_closed(_plain(getattr(error, "error_code", None)), situation)
    if classes & {"UnmodeledEventError", "KeyError"}:
        # The SDK tells of an exception that it does not know by a KeyError with its name.
        code = _plain(getattr(error, "code", None) or (error.args or ("",))[0])
        if _EXPIRED.search(code):
            # They were good when the stream began: the next one asks for fresh ones.
            return _again("The AWS credentials expired while captioning.", situation.renewal)
        if any(kind.search(code) for kind in (_UNKNOWN_KEY, _SIGNATURE, _DENIED)):
            return _forbidden(403, code, situation)
        return _again(f"SageMaker reported a fault in the stream ({code or 'without a name'}).")
    if classes & {"SmithyIdentityError", "ConfigError"}:
        return EngineError(
            "The AWS settings of this computer cannot be used.",
            remedy=f"See what this says: aws configure list{_profile(target)}",
            decision=Decision.RECONFIGURE,
            field="--profile",
        )
    if "SerializationError" in classes:
        return EngineError(
            "SageMaker answers in a way that this version of the AWS SDK cannot read.",
            remedy="Look for a newer version of Surtitle.",
            decision=Decision.FATAL,
        )
    if "EventError" in classes:
        return _again(f"What came from {_place(situation)} was damaged.")
    return _again(
        _FAULTS.get(type(error).__name__) or f"The connection to {_place(situation)} broke."
    )


def _model_closed(code: str, situation: Situation) -> EngineError:
    """The model's container closed its WebSocket, or SageMaker did so for it."""
    if code in _GOING_AWAY:
        return over(situation)
    if code == "1013":
        return _again(
            "The model is busy: all its sessions are taken.",
            "More instances of the endpoint serve more sessions.",
            retry_after=_BUSY_FOR,
        )
    if _TOO_LONG.search(code):
        return _again("The session has lasted as long as SageMaker allows.")
    return _again(
        f"The model closed the session ({code or 'no code'}).",
        f"If it stays so, read the log group /aws/sagemaker/Endpoints/{situation.target.endpoint}.",
    )


def _again(
    message: str, remedy: str = "", *, field: str = "", retry_after: float | None = None
) -> EngineError:
    return EngineError(
        message, remedy=remedy, decision=Decision.RETRY, field=field, retry_after=retry_after
    )


def _plain(value: object) -> str:
    """A code that came over the wire, if it looks like one."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""


def _place(situation: Situation) -> str:
    target = situation.target
    return f"{target.endpoint} at {target.host}" if target.endpoint_url else target.endpoint


def _describe(target: SageMakerTarget) -> str:
    return (
        f"aws sagemaker describe-endpoint --endpoint-name {target.endpoint}"
        f" --region {target.region}{_profile(target)}"
    )


def _log(target: SageMakerTarget) -> str:
    return f"/aws/sagemaker/Endpoints/{target.endpoint}"


def _profile(target: SageMakerTarget) -> str:
    return f' --profile "{target.profile}"' if target.profile else ""
