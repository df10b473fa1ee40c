import asyncio
import contextlib
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.media import FailingFile, encode, opens, refuses, tone, wave_bytes, wave_chunk
from fakes.media_listener import Heard, listen
from surtitle.audio.files import MediaFile, Pace
from surtitle.core.audio import Block, Format, SourceEvent, Started

SOUND = tone(16_000, 2.0)


def hear(data: bytes, *, name: str = "fake.wav") -> Heard:
    return listen(MediaFile(Path(name), open_file=opens(data, name=name)))


def test_a_media_file_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(wave_bytes(SOUND.tobytes()))
    source = MediaFile(path)
    assert (source.name, source.live) == ("talk.wav", False)
    heard = listen(source)  # which takes any source
    assert heard.events[0] == Started(format=Format(rate=16_000, channels=1), name="talk.wav")
    assert heard.pcm == SOUND.tobytes()
    assert source.duration == 2.0


def test_blocks_are_100_ms_and_the_last_one_is_the_rest() -> None:
    heard = hear(wave_bytes(bytes(2 * 2 * 4500), rate=16_000, channels=2))
    blocks = [event for event in heard.events if isinstance(event, Block)]
    assert [len(block.pcm) // 4 for block in blocks] == [1600, 1600, 1300]


FLOATS = np.array([0.0, 0.5, -0.5, 1.5, -1.5, np.nan, np.inf, -np.inf, 1 / 65536 * 1.1])


@pytest.mark.parametrize(
    ("data", "bits", "tag", "samples"),
    [
        pytest.param(bytes([0, 128, 255]), 8, 1, [-32768, 0, 32512], id="8 bit"),
        pytest.param(
            b"\x00\x00\x80\x80\x00\x00\x7f\x00\x00\xff\xff\x7f",
            24,
            1,
            [-32768, 1, 0, 32767],
            id="24 bit, rounded",
        ),
        pytest.param(
            np.array([2**31 - 1, -(2**31), 2**15, 2**15 - 1], "<i4").tobytes(),
            32,
            1,
            [32767, -32768, 1, 0],
            id="32 bit, rounded",
        ),
        pytest.param(
            FLOATS.astype("<f4").tobytes(),
            32,
            3,
            [0, 16384, -16384, 32767, -32768, 0, 32767, -32768, 1],
            id="float, clipped",
        ),
        pytest.param(
            FLOATS.astype("<f8").tobytes(),
            64,
            3,
            [0, 16384, -16384, 32767, -32768, 0, 32767, -32768, 1],
            id="double, clipped",
        ),
    ],
)
def test_samples_keep_their_scale(data: bytes, bits: int, tag: int, samples: list[int]) -> None:
    heard = hear(wave_bytes(data, bits=bits, tag=tag))
    assert np.frombuffer(heard.pcm, "<i2").tolist() == samples


def test_numbers_that_no_sound_has_are_silenced_or_clipped() -> None:
    signalling = b"\1\0\x80\x7f"  # a kind of "not a number" that raises alarms when it is copied
    huge = np.array([3e38, -3e38], "<f4").tobytes()
    heard = hear(wave_bytes(signalling + huge, bits=32, tag=3))
    assert np.frombuffer(heard.pcm, "<i2").tolist() == [0, 32767, -32768]
    enormous = np.array([1e308, -1e308], "<f8").tobytes()
    heard = hear(wave_bytes(enormous, bits=64, tag=3))
    assert np.frombuffer(heard.pcm, "<i2").tolist() == [32767, -32768]


def test_64_bit_samples_are_left_to_ffmpeg(tmp_path: Path) -> None:
    data = encode(tmp_path / "x.wav", codec="pcm_s64le", samples=SOUND, rate=16_000)
    assert hear(data).pcm == SOUND.tobytes()


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 6, 8, 64])
def test_channels_are_kept_in_order(channels: int) -> None:
    samples = np.arange(channels * 50, dtype="<i2").tobytes()
    heard = hear(wave_bytes(samples, channels=channels))
    assert heard.format.channels == channels
    assert heard.pcm == samples


# Headers that lie, and what is said about it.

ONE_SECOND = tone(16_000, 1.0).tobytes()
THREE_SECONDS = 3 * len(ONE_SECOND)


@pytest.mark.parametrize(
    ("data", "frames", "notices"),
    [
        pytest.param(wave_bytes(ONE_SECOND), 16_000, [], id="honest"),
        pytest.param(wave_bytes(ONE_SECOND, data_length=0), 16_000, [], id="0"),
        pytest.param(wave_bytes(ONE_SECOND, data_length=0xFFFFFFFF), 16_000, [], id="largest"),
        pytest.param(
            wave_bytes(ONE_SECOND, data_length=THREE_SECONDS),
            16_000,
            ["The file promises 3.0 s of sound but ends after 1.0 s."],
            id="too long",
        ),
        pytest.param(
            wave_bytes(ONE_SECOND)[:-1001],
            15_499,
            ["The file promises 1.00 s of sound but ends after 0.97 s."],
            id="cut off in the middle of a sample",
        ),
        pytest.param(wave_bytes(ONE_SECOND)[:-1], 15_999, [], id="half a sample is nothing"),
        pytest.param(wave_bytes(ONE_SECOND) + b"\xaa" * 5000, 16_000, [], id="garbage behind"),
        pytest.param(
            wave_bytes(
                ONE_SECOND,
                before_data=wave_chunk(b"LIST", b"INFOIART\4\0\0\0\xe9\xe8\xff\0")
                + wave_chunk(b"odd ", b"123"),
            ),
            16_000,
            [],
            id="names in no known letters, an odd chunk",
        ),
    ],
)
def test_what_can_be_read_is_read(data: bytes, frames: int, notices: list[str]) -> None:
    heard = hear(data)
    assert (heard.frames, heard.notices, heard.lost) == (frames, notices, False)


@pytest.mark.parametrize(
    ("name", "codec", "rate"), [("x.flac", "flac", 16_000), ("x.mp3", "libmp3lame", 16_000)]
)
def test_half_a_download_says_so(tmp_path: Path, name: str, codec: str, rate: int) -> None:
    noise = np.random.default_rng(1).integers(-3000, 3000, 10 * rate, dtype=np.int16)
    data = encode(tmp_path / name, codec=codec, samples=noise, rate=rate)
    heard = hear(data[: len(data) // 2], name=name)
    assert heard.seconds == pytest.approx(5, abs=0.6)
    assert heard.notices == [
        f"The file promises 10.0 s of sound but ends after {heard.seconds:.1f} s."
    ]


def test_a_length_that_is_only_a_guess_is_no_promise(tmp_path: Path) -> None:
    # No Xing header, and frames of very different size: FFmpeg guesses from the first ones.
    quiet, loud = np.zeros(80_000, np.int16), tone(16_000, 5.0, peak=30_000)
    data = encode(
        tmp_path / "x.mp3",
        codec="libmp3lame",
        samples=np.concatenate((quiet, loud)),
        rate=16_000,
        options={"write_xing": "0"},
    )
    heard = hear(data, name="x.mp3")
    assert heard.seconds == pytest.approx(10, abs=0.2)
    assert heard.notices == []


def test_damage_in_the_middle_leaves_a_gap_of_the_right_length(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(-3000, 3000, 160_000, dtype=np.int16)
    data = bytearray(encode(tmp_path / "x.m4a", codec="aac", samples=noise, rate=16_000))
    middle = len(data) // 2
    data[middle : middle + 20_000] = b"\xff" * 20_000
    heard = hear(bytes(data), name="x.m4a")
    (gap,) = heard.gaps
    assert gap.reason == "damaged in the file"
    assert gap.frames > 3_200
    assert heard.frames + gap.frames == pytest.approx(160_000, abs=3_200)
    (notice,) = heard.notices
    assert notice.endswith("parts of the sound could not be decoded: the file is damaged.")


def test_sound_that_starts_later_than_the_picture_keeps_its_time(tmp_path: Path) -> None:
    data = encode(
        tmp_path / "x.mkv",
        codec="pcm_s16le",
        samples=SOUND,
        rate=16_000,
        starts_at=1.5,
        video_seconds=4,
    )
    heard = hear(data, name="x.mkv")
    assert [gap.frames for gap in heard.gaps] == [24_000]
    assert heard.events[1] == heard.gaps[0]
    assert heard.pcm == SOUND.tobytes()
    assert heard.notices == []


def test_files_put_end_to_end_become_one_format(tmp_path: Path) -> None:
    first = encode(tmp_path / "a.aac", codec="aac", samples=tone(16_000, 2.0), rate=16_000)
    second = encode(tmp_path / "b.aac", codec="aac", samples=tone(48_000, 2.0), rate=48_000)
    heard = hear(first + second, name="x.aac")
    assert heard.format == Format(rate=16_000, channels=1)
    assert heard.seconds == pytest.approx(4, abs=0.2)
    assert heard.gaps == []


# What cannot be used, and what the user is told.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", '"x.wav" is empty.', id="empty"),
        pytest.param(b"Dear diary,\n" * 99, '"x.wav" is no media file, or one of an', id="text"),
        pytest.param(wave_bytes(ONE_SECOND)[:20], '"x.wav" is no media file', id="cut"),
        pytest.param(wave_bytes(b""), '"x.wav" holds no sound.', id="no samples"),
        pytest.param(
            wave_bytes(ONE_SECOND, tag=0x1234),
            '"x.wav" has sound of a kind that cannot be decoded here.',
            id="unknown codec",
        ),
        pytest.param(
            wave_bytes(ONE_SECOND, rate=100),
            '"x.wav" has 1 channels at 100 Hz, which cannot be used.',
            id="no rate for sound",
        ),
        pytest.param(
            wave_bytes(ONE_SECOND, channels=100),
            '"x.wav" has 100 channels at 16000 Hz, which cannot be used.',
            id="too many channels",
        ),
    ],
)
def test_what_cannot_be_used_is_said_first(data: bytes, message: str) -> None:
    heard = hear(data, name="x.wav")
    assert len(heard.events) == 1
    assert heard.error.message.startswith(message)
    assert heard.error.exit_code == 2
    assert heard.error.remedy


def test_a_video_without_sound_has_no_sound_track(tmp_path: Path) -> None:
    data = encode(tmp_path / "x.mp4", codec="aac", samples=None, rate=16_000, video_seconds=1)
    assert hear(data, name="x.mp4").error.message == '"x.mp4" has no sound track.'


def test_encrypted_sound_cannot_be_decoded(tmp_path: Path) -> None:
    data = bytearray(encode(tmp_path / "x.m4a", codec="aac", samples=SOUND, rate=16_000))
    start = data.index(b"mdat") + 4
    length = int.from_bytes(data[start - 8 : start - 4], "big") - 8
    data[start : start + length] = b"\xff" * length
    heard = hear(bytes(data), name="x.m4a")
    assert "may be damaged or copy-protected" in heard.error.message
    assert heard.error.exit_code == 2


def test_a_missing_file(tmp_path: Path) -> None:
    error = listen(MediaFile(tmp_path / "none.wav")).error
    assert error.message == f'There is no file "{tmp_path / "none.wav"}".'
    assert error.exit_code == 2


def test_a_folder(tmp_path: Path) -> None:
    error = listen(MediaFile(tmp_path)).error
    assert error.message == f'"{tmp_path}" is a folder, not a media file.'
    assert error.exit_code == 2


@pytest.mark.parametrize("name", ["x.wav", "x.pcm"])
@pytest.mark.parametrize(
    ("problem", "message", "exit_code"),
    [
        (PermissionError(13, "Permission denied"), 'You are not allowed to read "{}".', 2),
        (NotADirectoryError(20, "Not a directory"), 'There is no file "{}".', 2),
        (ValueError("embedded null byte"), 'There is no file "{}".', 2),
        (OSError(5, "Input/output error"), '"{}" cannot be opened: Input/output error.', 1),
    ],
)
def test_a_file_that_cannot_be_opened(
    name: str, problem: Exception, message: str, exit_code: int
) -> None:
    error = listen(MediaFile(Path(name), open_file=refuses(problem))).error
    assert error.message == message.format(name)
    assert error.exit_code == exit_code
    assert error.remedy
    assert error.__cause__ is problem


def test_a_name_that_cannot_be_printed_is_replaced() -> None:
    error = listen(MediaFile(Path(os.fsdecode(b"no\xff\n.wav")))).error
    assert (
        error.message
        == 'There is no file "no\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}.wav".'
    )


def test_a_disk_that_fails_in_the_middle_gives_what_came_before() -> None:
    file = FailingFile(wave_bytes(tone(16_000, 10.0).tobytes()), limit=150_000)
    heard = listen(MediaFile(Path("broken.wav"), open_file=lambda _: file))
    assert 100_000 < len(heard.pcm) <= 150_000 + 32_768  # FFmpeg reads ahead
    assert heard.error.message == 'Reading "broken.wav" failed: Input/output error.'
    assert heard.error.exit_code == 1
    assert file.closed


# Damaged files of every kind.


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["wav", "flac", "mp3", "m4a", "mka"]),
    hits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=9)), max_size=20),
    end=st.floats(0, 1) | st.just(1.0),
)
def test_no_damage_can_upset_it(
    made: dict[str, bytes], kind: str, hits: list[tuple[float, bytes]], end: float
) -> None:
    data = bytearray(made[kind])
    for where, what in hits:
        start = int(where * len(data))
        data[start : start + len(what)] = what
    heard = hear(bytes(data[: int(end * len(data))]), name=f"x.{kind}")
    if heard.lost:
        assert heard.error.exit_code == 2
    else:
        assert heard.frames > 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A short file of every kind."""
    folder = tmp_path_factory.mktemp("made")
    noise = np.random.default_rng(1).integers(-3000, 3000, 12_000, dtype=np.int16)
    codecs = {"wav": "pcm_f32le", "flac": "flac", "mp3": "libmp3lame", "m4a": "aac", "mka": "ac3"}
    return {
        kind: encode(folder / f"x.{kind}", codec=codec, samples=noise, rate=32_000)
        for kind, codec in codecs.items()
    }


# Headerless files.


@pytest.mark.parametrize("suffix", [".pcm", ".raw", ".s16le", ".RAW"])
def test_a_raw_file_is_taken_at_its_word(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(SOUND.tobytes())
    source = MediaFile(path)
    heard = listen(source)
    assert heard.format == Format(rate=16_000, channels=1)
    assert heard.pcm == SOUND.tobytes()
    assert source.duration == 2.0


def test_a_raw_file_with_half_a_sample_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.pcm"
    path.write_bytes(SOUND.tobytes() + b"\1")
    heard = listen(MediaFile(path))
    assert heard.pcm == SOUND.tobytes()
    assert "in the middle of a sample" in heard.notices[0]


def test_an_empty_raw_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pcm"
    path.touch()
    heard = listen(MediaFile(path))
    assert len(heard.events) == 1
    assert heard.error.exit_code == 2


# How it is listened to.


def test_decoding_waits_for_the_listener() -> None:
    file = FailingFile(wave_bytes(bytes(2 * 16_000 * 600)), limit=10**9)
    source = MediaFile(Path("long.wav"), open_file=lambda _: file)

    async def hear_a_little() -> int:
        async with contextlib.aclosing(source.events()) as events:
            for _ in range(3):
                await anext(events)
            for _ in range(100):  # as long as the thread likes
                await asyncio.sleep(0.001)
            read = file.tell()
        await source.close()
        return int(read)

    assert asyncio.run(hear_a_little()) < 200_000  # of 19 MB
    assert file.closed


def test_closing_ends_the_listening() -> None:
    source = MediaFile(
        Path("long.wav"),
        pace=Pace.REAL_TIME,
        open_file=opens(wave_bytes(bytes(2 * 16_000 * 600))),
    )
    events: list[SourceEvent] = []

    async def hear_until_closed() -> None:
        async def hear() -> None:
            events.extend([event async for event in source.events()])

        async with asyncio.timeout(10):
            listening = asyncio.create_task(hear())
            await asyncio.sleep(0)
            await source.close()
            await source.close()
            await listening

    asyncio.run(hear_until_closed())
    assert not [thread for thread in threading.enumerate() if thread.name == "surtitle-file"]


def test_closing_what_was_never_opened() -> None:
    source = MediaFile(Path("never.wav"))

    async def close_then_hear() -> list[SourceEvent]:
        await source.close()
        return [event async for event in source.events()]

    assert asyncio.run(close_then_hear()) == []


def test_real_time_gives_the_same_events() -> None:
    data = wave_bytes(tone(16_000, 0.25).tobytes())
    slow = MediaFile(Path("x.wav"), pace=Pace.REAL_TIME, open_file=opens(data))
    assert listen(slow).events == hear(data, name="x.wav").events
