"""The codec of the event stream, against its own rules and against the SDK's."""

import io
import struct
import uuid
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smithy_aws_event_stream.events import Event, EventMessage

from surtitle.server.event_stream import (
    MAX_PAYLOAD,
    BrokenMessageError,
    Decoder,
    HeaderValue,
    Message,
    Timestamp,
    encode_headers,
)

NAMES = st.text(min_size=1, max_size=60)
VALUES: st.SearchStrategy[HeaderValue] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=300),
    st.text(max_size=100),
    st.uuids(),
    st.builds(Timestamp, milliseconds=st.integers(-(2**63), 2**63 - 1)),
)
MESSAGES = st.builds(
    Message,
    headers=st.dictionaries(NAMES, VALUES, max_size=6),
    payload=st.binary(max_size=400),
)


def decoded(data: bytes) -> list[Message]:
    return list(Decoder().receive(data))


@given(st.lists(MESSAGES, max_size=4), st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_what_was_encoded_comes_back_however_the_bytes_arrive(
    messages: list[Message], sizes: list[int]
) -> None:
    data = b"".join(message.encode() for message in messages)
    decoder = Decoder()
    got: list[Message] = []
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        got += decoder.receive(data[at : at + size])
        at, turn = at + size, turn + 1
    assert got == messages
    assert decoder.pending == 0


@given(MESSAGES.filter(lambda message: bool(message.payload)), st.data())
def test_no_changed_bit_goes_unnoticed(message: Message, data: st.DataObject) -> None:
    whole = bytearray(message.encode())
    # A longer length in the first bytes would wait for more; its checksum comes first.
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BrokenMessageError):
        decoded(bytes(whole))


@given(st.text(max_size=50), st.binary(max_size=200))
def test_the_client_of_the_sdk_reads_what_we_write(text: str, payload: bytes) -> None:
    headers: dict[str, HeaderValue] = {":event-type": "PayloadPart", "DataType": text}
    event = Event.decode(io.BytesIO(Message(headers=headers, payload=payload).encode()))
    assert event is not None
    assert event.message.headers == headers
    assert event.message.payload == payload


@given(st.text(max_size=50), st.binary(max_size=200), st.binary(max_size=64))
def test_we_read_what_the_client_of_the_sdk_writes(
    text: str, payload: bytes, signature: bytes
) -> None:
    theirs = EventMessage(headers={"P": text, ":chunk-signature": signature}, payload=payload)
    [message] = decoded(theirs.encode())
    assert message == Message(headers={"P": text, ":chunk-signature": signature}, payload=payload)


def raw(headers: bytes, payload: bytes = b"") -> bytes:
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return body + struct.pack(">I", crc32(body))


def prelude(length: int, headers: int) -> bytes:
    lengths = struct.pack(">II", length, headers)
    return lengths + struct.pack(">I", crc32(lengths))


@pytest.mark.parametrize(
    "data",
    [
        prelude(15, 0),
        prelude(16, 1),
        prelude(16 + MAX_PAYLOAD + 1, 0),
        prelude(2**32 - 1, 0),
        prelude(200_000, 131_073),
        raw(b"\x01"),
        raw(b"\x00\x00"),
        raw(b"\x01a\x0a"),
        raw(b"\x01a\x07\x00\x05hi"),
        raw(b"\x01a\x07\x00\x02\xff\xfe"),
        raw(b"\x01a\x00\x01a\x01"),
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenMessageError):
        decoded(data)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (b"\x00", True),
        (b"\x01", False),
        (b"\x02\xff", -1),
        (b"\x03\xff\xfe", -2),
        (b"\x04\x00\x00\x00\x03", 3),
        (b"\x05\xff\xff\xff\xff\xff\xff\xff\xfc", -4),
        (b"\x06\x00\x02\x00\xff", b"\x00\xff"),
        (b"\x07\x00\x02\xc3\xa9", "é"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x03\xe8", Timestamp(milliseconds=1000)),
        (b"\x09" + bytes(16), uuid.UUID(int=0)),
    ],
)
def test_every_type_of_header_is_read(encoded: bytes, value: HeaderValue) -> None:
    [message] = decoded(raw(b"\x01a" + encoded))
    assert message.headers == {"a": value}
    assert type(message.headers["a"]) is type(value)


@pytest.mark.parametrize(
    "headers",
    [{"": "a"}, {"a" * 256: "a"}, {"a": "a" * 65_536}, {"a": b"a" * 65_536}, {"a": 2**63}],
)
def test_what_has_no_encoding_is_refused(headers: dict[str, HeaderValue]) -> None:
    with pytest.raises(BrokenMessageError):
        encode_headers(headers)


def test_a_payload_that_is_too_long_is_refused() -> None:
    with pytest.raises(BrokenMessageError, match="longer than"):
        Message(payload=bytes(MAX_PAYLOAD + 1)).encode()


def test_payloads_are_not_in_the_repr() -> None:
    assert "secret words" not in repr(Message(payload=b"secret words"))
