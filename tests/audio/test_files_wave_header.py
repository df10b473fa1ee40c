import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.media import wave_bytes, wave_chunk
from surtitle.audio.wave_header import read_wave_header

DATA = bytes(32_000)


def seconds(data: bytes) -> float | None:
    header = read_wave_header(io.BytesIO(data))
    return None if header is None else header.seconds


def rf64(length: int) -> bytes:
    sizes = wave_chunk(b"ds64", struct.pack("<QQQI", 0, length, 0, 0))
    plain = wave_bytes(DATA, data_length=0xFFFFFFFF)
    return b"RF64\xff\xff\xff\xffWAVE" + sizes + plain[12:]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(wave_bytes(DATA), 1.0, id="plain"),
        pytest.param(wave_bytes(DATA, data_length=320_000), 10.0, id="promises more"),
        pytest.param(wave_bytes(DATA, data_length=0), None, id="never closed"),
        pytest.param(wave_bytes(DATA, data_length=0xFFFFFFFF), None, id="a stream"),
        pytest.param(wave_bytes(DATA, before_data=wave_chunk(b"odd ", b"123")), 1.0, id="padded"),
        pytest.param(wave_bytes(DATA, rate=0), None, id="no byte rate"),
        pytest.param(rf64(64_000), 2.0, id="RF64"),
        pytest.param(wave_bytes(DATA)[:30], None, id="cut in fmt"),
        pytest.param(wave_bytes(DATA)[:38], None, id="cut before data"),
        pytest.param(wave_bytes(b"", before_data=wave_chunk(b"x   ", b"") * 99), None, id="chunks"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"OggS" + bytes(99), None, id="no WAV"),
    ],
)
def test_what_is_promised(data: bytes, expected: float | None) -> None:
    assert seconds(data) == expected


@given(st.binary(max_size=80), st.integers(0, 60))
def test_no_bytes_can_upset_it(noise: bytes, keep: int) -> None:
    seconds(wave_bytes(DATA)[:keep] + noise)
