"""The binary event stream of AWS: messages of typed headers and a payload, with checksums."""

import struct
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

__all__ = [
    "MAX_HEADERS",
    "MAX_PAYLOAD",
    "BrokenMessageError",
    "Decoder",
    "HeaderValue",
    "Message",
    "Timestamp",
    "encode_headers",
]

MAX_PAYLOAD = 16 * 1024 * 1024
"""Bytes of payload a message may carry."""
MAX_HEADERS = 128 * 1024
"""Bytes that all headers of a message may take together."""

_PRELUDE = struct.Struct(">III")
"""Length of all, length of the headers, checksum of these two."""
_LENGTHS = struct.Struct(">II")
_CRC = struct.Struct(">I")
_FRAME = _PRELUDE.size + _CRC.size
_SHORTEST_NAME, _LONGEST_NAME, _LONGEST_VALUE = 1, 0xFF, 0xFFFF
_TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _BYTES, _TEXT, _TIME, _UUID = range(10)
_INTEGERS = {
    _INT8: struct.Struct(">b"),
    _INT16: struct.Struct(">h"),
    _INT32: struct.Struct(">i"),
    _INT64: struct.Struct(">q"),
}


class BrokenMessageError(ValueError):
    """Bytes that are no message: a wrong checksum, an impossible length, an unknown type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timestamp:
    """A moment as the stream carries it."""

    milliseconds: int
    """Since 1970-01-01, UTC."""


type HeaderValue = bool | int | bytes | str | Timestamp | uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, decoded or to be encoded."""

    headers: Mapping[str, HeaderValue] = field(default_factory=dict)
    payload: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        """The message as it goes over the wire. Raises BrokenMessageError if it is too long."""
        headers = encode_headers(self.headers)
        if len(headers) > MAX_HEADERS or len(self.payload) > MAX_PAYLOAD:
            raise BrokenMessageError("A message is longer than the event stream allows.")
        lengths = _LENGTHS.pack(_FRAME + len(headers) + len(self.payload), len(headers))
        body = b"".join((lengths, _CRC.pack(crc32(lengths)), headers, self.payload))
        return body + _CRC.pack(crc32(body))

    def text(self, name: str) -> str:
        """The header `name` if it is there and text; otherwise an empty string."""
        value = self.headers.get(name)
        return value if isinstance(value, str) else ""


class Decoder:
    """Takes bytes as they come and gives the messages that are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a message that has begun and not ended."""
        return len(self._bytes)

    def receive(self, data: bytes) -> Iterator[Message]:
        """Add `data` and give the messages it completes.

        Raises:
            BrokenMessageError: What came is no message; there is no way to go on.
        """
        self._bytes += data
        while len(self._bytes) >= _PRELUDE.size:
            length, headers_length, checksum = _PRELUDE.unpack_from(self._bytes)
            if crc32(self._bytes[: _LENGTHS.size]) != checksum:
                raise BrokenMessageError("The checksum of a message's lengths is wrong.")
            payload_length = length - headers_length - _FRAME
            if headers_length > MAX_HEADERS or not 0 <= payload_length <= MAX_PAYLOAD:
                raise BrokenMessageError("A message has an impossible length.")
            if len(self._bytes) < length:
                return
            whole = bytes(self._bytes[:length])
            del self._bytes[:length]
            yield _decode(whole, headers_length)


def encode_headers(headers: Mapping[str, HeaderValue]) -> bytes:
    """The headers as they stand in a message, in their order.

    Raises:
        BrokenMessageError: A name or a value has no encoding.
    """
    parts: list[bytes] = []
    for name, value in headers.items():
        encoded = name.encode()
        if not _SHORTEST_NAME <= len(encoded) <= _LONGEST_NAME:
            raise BrokenMessageError("The name of a header is empty or too long.")
        parts += (bytes([len(encoded)]), encoded, _encode_value(value))
    return b"".join(parts)


def _encode_value(value: HeaderValue) -> bytes:
    match value:
        case bool():  # before int, which it is too
            return bytes([_TRUE if value else _FALSE])
        case int():
            try:
                return bytes([_INT64]) + _INTEGERS[_INT64].pack(value)
            except struct.error as error:
                raise BrokenMessageError("A number in a header is too large.") from error
        case Timestamp():
            return bytes([_TIME]) + _INTEGERS[_INT64].pack(value.milliseconds)
        case uuid.UUID():
            return bytes([_UUID]) + value.bytes
        case bytes():
            kind, raw = _BYTES, value
        case str():
            kind, raw = _TEXT, value.encode()
    if len(raw) > _LONGEST_VALUE:
        raise BrokenMessageError("The value of a header is too long.")
    return bytes([kind]) + len(raw).to_bytes(2) + raw


def _decode(whole: bytes, headers_length: int) -> Message:
    body, (checksum,) = whole[: -_CRC.size], _CRC.unpack(whole[-_CRC.size :])
    if crc32(body) != checksum:
        raise BrokenMessageError("The checksum of a message is wrong.")
    headers_end = _PRELUDE.size + headers_length
    headers = _decode_headers(body[_PRELUDE.size : headers_end])
    return Message(headers=headers, payload=body[headers_end:])


class _Reader:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        if len(taken) != length:
            raise BrokenMessageError("A header is cut off.")
        self._at += length
        return taken


def _decode_headers(data: bytes) -> dict[str, HeaderValue]:
    reader = _Reader(data)
    headers: dict[str, HeaderValue] = {}
    while reader:
        try:
            name = reader.take(reader.take(1)[0]).decode()
            value = _decode_value(reader)
        except UnicodeDecodeError as error:
            raise BrokenMessageError("A header is not UTF-8.") from error
        if not name or name in headers:
            raise BrokenMessageError("A header has no name, or stands there twice.")
        headers[name] = value
    return headers


def _decode_value(reader: _Reader) -> HeaderValue:
    kind = reader.take(1)[0]
    match kind:
        case 0 | 1:
            return kind == _TRUE
        case 2 | 3 | 4 | 5:
            number = _INTEGERS[kind]
            return int(number.unpack(reader.take(number.size))[0])
        case 6:
            return reader.take(int.from_bytes(reader.take(2)))
        case 7:
            return reader.take(int.from_bytes(reader.take(2))).decode()
        case 8:
            number = _INTEGERS[_INT64]
            return Timestamp(milliseconds=int(number.unpack(reader.take(number.size))[0]))
        case 9:
            return uuid.UUID(bytes=reader.take(16))
        case _:
            raise BrokenMessageError("A header has a type that does not exist.")
