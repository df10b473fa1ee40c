"""The messages of vLLM's Realtime API, both ways, as they lie on the wire.

Text frames of JSON, one message each. What cannot be read becomes a value, never
an exception: a server of another version must not break a running session, and
a client's mistake is answered in words.
"""

import base64
import binascii
from dataclasses import dataclass

import msgspec

__all__ = [
    "Append",
    "ClientMessage",
    "Commit",
    "Delta",
    "Done",
    "Failure",
    "Foreign",
    "Sendable",
    "ServerMessage",
    "SessionCreated",
    "SessionUpdate",
    "Unknown",
    "Unreadable",
    "Usage",
    "decode_client",
    "decode_server",
    "encode",
]


class SessionUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="session.update"):
    """Client: the model that is wanted. Success is not answered."""

    model: object
    """A name; from a client of ours always a string."""


class Append(msgspec.Struct, frozen=True, tag_field="type", tag="input_audio_buffer.append"):
    """Client: some sound, signed 16-bit little-endian at 16 kHz, one channel."""

    audio: bytes
    """On the wire in base64."""


class Commit(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="type",
    tag="input_audio_buffer.commit",
):
    """Client: begin a generation; if final, end it."""

    final: bool = False


class SessionCreated(msgspec.Struct, frozen=True, tag_field="type", tag="session.created"):
    """Server: the connection is ready. Sent at once, and only then."""

    id: str = ""
    created: int = 0
    """Seconds since 1970."""


class Delta(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="transcription.delta"
):
    """Server: more text, or none. Some servers send one for every 80 ms of sound."""

    delta: str
    end: int | None = None
    """Our own server's: samples of this generation up to which its text is told now."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a generation."""

    prompt_tokens: int = 0
    total_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: None = None
    completion_tokens_details: None = None


class Done(msgspec.Struct, frozen=True, tag_field="type", tag="transcription.done"):
    """Server: the generation is over; all its text."""

    text: str = ""
    usage: Usage | None = None


class Failure(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """Server: something went wrong; the connection stays open."""

    error: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message of a kind that we do not know."""

    kind: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No message at all, or one of a known kind that lacks what makes it one."""

    why: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """A message of the other protocol that lives under the same path."""

    why: str


type ServerMessage = SessionCreated | Delta | Done | Failure | Unknown | Unreadable | Foreign
type ClientMessage = SessionUpdate | Append | Commit
type Sendable = ClientMessage | SessionCreated | Delta | Done | Failure

_FOREIGN_KINDS = ("conversation.", "response.", "transcription_session.")
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def encode(message: Sendable) -> str:
    """The frame for a message."""
    return msgspec.json.encode(message).decode()


def decode_server(frame: str) -> ServerMessage:  # noqa: PLR0911 - one for each kind
    """What a server's frame says."""
    try:
        message: object = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Unreadable("no JSON")
    if not isinstance(message, dict):
        return Unreadable("no object")
    if (why := _foreign(message)) is not None:
        return Foreign(why)
    match message:
        case {"type": "session.created"}:
            identity = message.get("id")
            return SessionCreated(
                id=identity if isinstance(identity, str) else "",
                created=_count(message.get("created")) or 0,
            )
        case {"type": "transcription.delta", "delta": str(text)}:
            return Delta(delta=text, end=_count(message.get("end")))
        case {"type": "transcription.done", "text": str(text)}:
            return Done(text=text, usage=_usage(message.get("usage")))
        case {"type": "error", "error": str(text)}:
            code = message.get("code")
            return Failure(error=text, code=code if isinstance(code, str) else "")
        case {"type": "transcription.delta" | "transcription.done" | "error" as kind}:
            return Unreadable(f"{kind} without its text")
        case {"type": str(kind)}:
            return Unknown(kind)
    return Unreadable("no type")


def decode_client(frame: str) -> ClientMessage | Failure:  # noqa: PLR0911 - same
    """What a client's frame asks for, or the answer that vLLM gives to such a frame."""
    try:
        message: object = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Failure(error="Invalid JSON", code="invalid_json")
    if not isinstance(message, dict):
        name = type(message).__name__
        return Failure(error=f"'{name}' object has no attribute 'get'", code="processing_error")
    match message.get("type"):
        case "session.update":
            if message.get("model") is None:
                return Failure(error="Missing required field: model", code="invalid_event")
            return SessionUpdate(model=message["model"])
        case "input_audio_buffer.append":
            return _append(message)
        case "input_audio_buffer.commit":
            return _commit(message)
        case kind:
            return Failure(error=f"Unknown event type: {kind}", code="unknown_event")


def _foreign(message: dict[str, object]) -> str | None:
    """How a message shows that it belongs to the other protocol."""
    kind = message.get("type")
    if isinstance(kind, str) and kind.startswith(_FOREIGN_KINDS):
        return kind
    if kind == "session.created" and any(
        isinstance(message.get(key), dict) or (key == "event_id" and key in message)
        for key in ("session", "error", "event_id")
    ):
        return kind
    if kind == "error" and isinstance(message.get("error"), dict):
        return "error as an object"
    return None


def _count(value: object) -> int | None:
    """A number of something; None if it is none."""
    return value if type(value) is int and value >= 0 else None


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        prompt_tokens=_count(value.get("prompt_tokens")) or 0,
        total_tokens=_count(value.get("total_tokens")) or 0,
        completion_tokens=_count(value.get("completion_tokens")) or 0,
    )


def _append(message: dict[str, object]) -> Append | Failure:
    audio = message.get("audio")
    if not isinstance(audio, str):
        what = (
            "Input should be a valid string [type=string_type]"
            if "audio" in message
            else "Field required [type=missing]"
        )
        return _invalid("InputAudioBufferAppend", "audio", what)
    try:
        # As vLLM does: characters that are no base64 are left out, the rest is sound.
        pcm = base64.b64decode(audio)
    except (binascii.Error, ValueError):
        pcm = b""
    if not pcm or len(pcm) % 2:
        return Failure(error="Invalid audio data", code="invalid_audio")
    return Append(audio=pcm)


def _commit(message: dict[str, object]) -> Commit | Failure:
    final = message.get("final", False)
    word = str(final).lower() if isinstance(final, bool | int | float | str) else ""
    if word in _TRUE or word == "1.0":
        return Commit(final=True)
    if word in _FALSE or word == "0.0":
        return Commit(final=False)
    what = "Input should be a valid boolean [type=bool_type]"
    return _invalid("InputAudioBufferCommit", "final", what)


def _invalid(model: str, field: str, what: str) -> Failure:
    # vLLM repeats the whole input here; it is somebody's speech.
    error = f"1 validation error for {model}\n{field}\n  {what}"
    return Failure(error=error, code="processing_error")
