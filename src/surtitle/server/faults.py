"""Faults to order: what the stand-in is told to do wrong, and when."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from surtitle.core.errors import UsageError

__all__ = ["FAULTS", "Cut", "Fault", "FaultKind", "Stage", "describe", "parse_fault", "parse_plan"]


class Stage(StrEnum):
    """When a fault happens."""

    CONNECTION = "connection"
    """To a new TCP connection."""
    REQUEST = "request"
    """Before the response headers."""
    STREAM = "stream"
    """After them; `@N` says after how many events to the client."""


class Cut(StrEnum):
    """How a stream is ended before its time."""

    END = "end"
    ERROR = "error"
    RST = "rst"
    GOAWAY = "goaway"
    ABORT = "abort"


class FaultKind(StrEnum):
    """What goes wrong."""

    REFUSE = "refuse"
    STALL_TCP = "stall-tcp"
    STALL_TLS = "stall-tls"
    H1 = "h1"
    UNTRUSTED_CA = "untrusted-ca"
    ABORT_TCP = "abort-tcp"
    HTTP = "http"
    HTTP_OPEN = "http-open"
    EXPIRED_TOKEN = "expired-token"  # noqa: S105 - the name of a fault
    BUSY = "busy"
    STALL = "stall"
    RST_EARLY = "rst-early"
    GOAWAY_EARLY = "goaway-early"
    ABORT_EARLY = "abort-early"
    DELAY = "delay"
    RST = "rst"
    GOAWAY = "goaway"
    ABORT = "abort"
    END = "end"
    MODEL_ERROR = "model-error"
    INTERNAL_FAILURE = "internal-failure"
    UNKNOWN_EXCEPTION = "unknown-exception"
    ERROR_EVENT = "error-event"
    UNKNOWN_EVENT = "unknown-event"
    INITIAL_RESPONSE = "initial-response"
    BAD_CRC = "bad-crc"
    CUT_EVENT = "cut-event"
    CLOSE = "close"
    MUTE = "mute"
    SPLIT = "split"
    SLOW_READER = "slow-reader"
    CUT = "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    kind: FaultKind
    number: float = 0.0
    """Seconds, status, code or bytes a second, whichever the kind takes."""
    word: str = ""
    """A name that goes with it: of an error, or of a `Cut`."""
    after: int = 0
    """Events to the client after which it happens, for faults of a stream."""

    @property
    def stage(self) -> Stage:
        """When it happens."""
        return FAULTS[self.kind].stage


def _number(least: float, most: float) -> Callable[[str], tuple[float, str]]:
    def read(text: str) -> tuple[float, str]:
        number = float(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number, ""

    return read


def _status(text: str) -> tuple[float, str]:
    status, _, name = text.partition("/")
    number, _ = _number(400, 599)(status)
    return number, name


def _cut(text: str) -> tuple[float, str]:
    seconds, _, how = text.partition("/")
    number, _ = _number(0, 86_400)(seconds)
    return number, Cut(how or Cut.END).value


def _word(text: str) -> tuple[float, str]:
    if not text:
        raise ValueError(text)
    return 0.0, text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Description:
    stage: Stage
    meaning: str
    argument: Callable[[str], tuple[float, str]] | None = None
    default: str | None = None
    """The argument if none is given; None if one must be."""


def _connection(meaning: str) -> _Description:
    return _Description(stage=Stage.CONNECTION, meaning=meaning)


def _request(meaning: str) -> _Description:
    return _Description(stage=Stage.REQUEST, meaning=meaning)


def _stream(meaning: str) -> _Description:
    return _Description(stage=Stage.STREAM, meaning=meaning)


FAULTS = {
    FaultKind.REFUSE: _Description(
        stage=Stage.CONNECTION,
        meaning="listen to nobody for SECONDS",
        argument=_number(0.001, 86_400),
        default="5",
    ),
    FaultKind.STALL_TCP: _connection("accept the connection, then nothing"),
    FaultKind.STALL_TLS: _connection("finish the TLS handshake, then nothing"),
    FaultKind.H1: _connection("offer HTTP/1.1 only"),
    FaultKind.UNTRUSTED_CA: _connection("show a certificate of another authority"),
    FaultKind.ABORT_TCP: _connection("reset the connection at once"),
    FaultKind.HTTP: _Description(
        stage=Stage.REQUEST, meaning="answer with STATUS[/ERROR]", argument=_status
    ),
    FaultKind.HTTP_OPEN: _Description(
        stage=Stage.REQUEST,
        meaning="answer with STATUS[/ERROR], and do not end the answer",
        argument=_status,
    ),
    FaultKind.EXPIRED_TOKEN: _request("answer that the session token has expired"),
    FaultKind.BUSY: _request("answer as if there were no session left"),
    FaultKind.STALL: _request("take the request, then nothing"),
    FaultKind.RST_EARLY: _request("reset the stream instead of answering"),
    FaultKind.GOAWAY_EARLY: _request("send GOAWAY instead of answering"),
    FaultKind.ABORT_EARLY: _request("reset the connection instead of answering"),
    FaultKind.DELAY: _Description(
        stage=Stage.REQUEST,
        meaning="answer only after SECONDS",
        argument=_number(0, 86_400),
    ),
    FaultKind.RST: _stream("reset the stream"),
    FaultKind.GOAWAY: _stream("send GOAWAY and close the connection"),
    FaultKind.ABORT: _stream("reset the connection"),
    FaultKind.END: _stream("end the stream as if all were well"),
    FaultKind.MODEL_ERROR: _Description(
        stage=Stage.STREAM,
        meaning="raise ModelStreamError with CODE",
        argument=_word,
        default="ModelInvocationTimeExceeded",
    ),
    FaultKind.INTERNAL_FAILURE: _stream("raise InternalStreamFailure"),
    FaultKind.UNKNOWN_EXCEPTION: _stream("raise an exception that no client knows"),
    FaultKind.ERROR_EVENT: _stream("send a message of type error"),
    FaultKind.UNKNOWN_EVENT: _stream("send an event that no client knows, and go on"),
    FaultKind.INITIAL_RESPONSE: _stream("send an initial-response event, and go on"),
    FaultKind.BAD_CRC: _stream("send an event with a wrong checksum"),
    FaultKind.CUT_EVENT: _stream("send half an event and end the stream"),
    FaultKind.CLOSE: _Description(
        stage=Stage.STREAM,
        meaning="behave as if the container had closed with CODE",
        argument=_number(1000, 4999),
        default="1011",
    ),
    FaultKind.MUTE: _stream("send nothing more, end nothing"),
    FaultKind.SPLIT: _stream("split texts into PARTIAL parts inside a character"),
    FaultKind.SLOW_READER: _Description(
        stage=Stage.STREAM,
        meaning="take only BYTES a second from the client; 0 takes none",
        argument=_number(0, 1e9),
        default="8000",
    ),
    FaultKind.CUT: _Description(
        stage=Stage.STREAM,
        meaning="end the session after SECONDS[/HOW]",
        argument=_cut,
    ),
}
"""Every fault: when it happens, what it does, what its argument is."""


def parse_fault(text: str) -> Fault:
    """Read `NAME[:ARGUMENT][@EVENTS]`, such as `close:1011@5`.

    Raises:
        UsageError: There is no such fault, or it cannot have this argument.
    """
    body, at, events = text.partition("@")
    name, colon, argument = body.partition(":")
    try:
        kind = FaultKind(name)
    except ValueError:
        raise UsageError(
            f"There is no fault {name!r}.",
            remedy=f"Choose from: {', '.join(FaultKind)}.",
            field="--fault",
        ) from None
    described = FAULTS[kind]
    if at and (described.stage is not Stage.STREAM or not events.isdecimal()):
        raise _wrong(kind, f"the count of events {events!r}")
    number, word = 0.0, ""
    if described.argument is not None:
        given = argument if colon else described.default
        if given is None:
            raise _wrong(kind, "no argument")
        try:
            number, word = described.argument(given)
        except ValueError:
            raise _wrong(kind, f"the argument {given!r}") from None
    elif colon:
        raise _wrong(kind, f"the argument {argument!r}")
    return Fault(kind=kind, number=number, word=word, after=int(events or 0))


def parse_plan(text: str | None) -> tuple[Fault, ...]:
    """Read the faults of one attempt, joined by `+`; none for None or an empty text.

    Raises:
        UsageError: One of them cannot be read.
    """
    faults = tuple(parse_fault(part) for part in text.split("+")) if text else ()
    for fault in faults:
        if fault.stage is Stage.CONNECTION and len(faults) > 1:
            raise _wrong(fault.kind, "others beside it")
    return faults


def describe(kinds: Iterable[FaultKind] = FaultKind) -> str:
    """What faults there are, a line each, for people."""
    return "\n".join(f"{kind:18} {FAULTS[kind].meaning}" for kind in kinds)


def _wrong(kind: FaultKind, what: str) -> UsageError:
    return UsageError(
        f"The fault '{kind}' cannot have {what}.",
        remedy=f"It means: {FAULTS[kind].meaning}.",
        field="--fault",
    )
