import asyncio
import contextlib
import io
import os
import pty
import subprocess
import sys
from typing import BinaryIO, cast

import pytest

from fakes.media import FailingFile, tone
from fakes.media_listener import Heard, listen
from surtitle.audio.raw import RawStream
from surtitle.core.audio import Block, Format, SourceEvent, Started
from surtitle.core.errors import MediaError, UsageError

SOUND = tone(16_000, 1.0).tobytes()


def through_a_pipe(*parts: bytes) -> Heard:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb") as pipe:
        for part in parts:
            pipe.write(part)
        pipe.close()
        return listen(RawStream(stream))


def test_sound_from_a_pipe() -> None:
    heard = through_a_pipe(SOUND)
    assert heard.events[0] == Started(format=Format(rate=16_000, channels=1), name="Standard input")
    assert heard.pcm == SOUND
    assert (heard.notices, heard.lost) == ([], False)
    assert max(len(event.pcm) for event in heard.events if isinstance(event, Block)) <= 3_200


def test_sound_from_memory() -> None:
    assert listen(RawStream(io.BytesIO(SOUND))).pcm == SOUND


def test_nothing_at_all() -> None:
    error = through_a_pipe(b"").error
    assert isinstance(error, MediaError)
    assert error.message == "No sound came from standard input."
    assert error.exit_code == 2
    assert error.remedy


def test_half_a_sample_at_the_end() -> None:
    heard = through_a_pipe(SOUND, b"\1")
    assert heard.pcm == SOUND
    assert "in the middle of a sample" in heard.notices[0]
    assert not heard.lost


def test_only_half_a_sample_is_no_sound() -> None:
    assert through_a_pipe(b"\1").error.exit_code == 2


def test_a_read_that_fails() -> None:
    heard = listen(RawStream(FailingFile(SOUND, limit=16_000), name="A pipe"))
    assert len(heard.pcm) == 16_000
    assert heard.error.message == 'Reading "A pipe" failed: Input/output error.'
    assert heard.error.exit_code == 1
    assert isinstance(heard.error.__cause__, OSError)


def test_a_terminal_is_refused_at_once() -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "rb"), os.fdopen(terminal, "rb", buffering=0) as stream:
        heard = listen(RawStream(cast("BinaryIO", stream)))
    assert len(heard.events) == 1
    assert isinstance(heard.error, UsageError)
    assert heard.error.exit_code == 2


def test_blocks_come_as_soon_as_there_is_sound_and_samples_stay_whole() -> None:
    reading, writing = os.pipe()

    async def talk() -> list[bytes]:
        with os.fdopen(reading, "rb") as stream:
            source = RawStream(stream)
            got: list[bytes] = []
            async with asyncio.timeout(10), contextlib.aclosing(source.events()) as events:
                assert isinstance(await anext(events), Started)
                for part in (b"ab", b"cde", b"fgh"):
                    os.write(writing, part)
                    block = await anext(events)
                    assert isinstance(block, Block)
                    got.append(block.pcm)
            await source.close()
            return got

    try:
        assert asyncio.run(talk()) == [b"ab", b"cd", b"efgh"]
    finally:
        os.close(writing)


def test_closing_while_nothing_comes() -> None:
    reading, writing = os.pipe()

    async def wait_and_close() -> list[SourceEvent]:
        with os.fdopen(reading, "rb") as stream:
            source = RawStream(stream)
            heard: list[SourceEvent] = []
            started = asyncio.Event()

            async def hear() -> None:
                async for event in source.events():
                    heard.append(event)
                    started.set()

            async with asyncio.timeout(10):
                hearing = asyncio.create_task(hear())
                await started.wait()
                await source.close()
                await hearing
            return heard

    try:
        assert len(asyncio.run(wait_and_close())) == 1
    finally:
        os.close(writing)


QUIT_AFTER_CLOSING = """
import asyncio, sys
from surtitle.audio.raw import RawStream

async def main():
    source = RawStream(sys.stdin.buffer)
    await anext(source.events())
    await source.close()
    print("closed", flush=True)

asyncio.run(main())
"""


QUIT_WITHOUT_CLOSING = QUIT_AFTER_CLOSING.replace("await source.close()", "")


@pytest.mark.parametrize("code", [QUIT_AFTER_CLOSING, QUIT_WITHOUT_CLOSING])
def test_a_program_can_quit_while_standard_input_is_silent(code: str) -> None:
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        try:
            assert program.wait(20) == 0  # its standard input is still open
            assert program.stdout is not None
            assert program.stderr is not None
            assert (program.stdout.read(), program.stderr.read()) == (b"closed\n", b"")
        finally:
            program.kill()
