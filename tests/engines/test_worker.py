"""What runs in the engine's process."""

import json
import queue
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from io import BytesIO

import pytest

from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE, Chunk
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.engines.recogniser import Recogniser
from surtitle.engines.worker import HEADER, Frames, encode, read_frames, run

LIMIT = 60.0


def frame(start: int, pcm: bytes) -> bytes:
    return HEADER.pack(start, len(pcm)) + pcm


END = HEADER.pack(0, 0)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Partial(utterance=1, text="é\n", start=2, end=3), ["partial", 1, "é\n", 2, 3]),
        (Final(utterance=1, text="", start=2, end=3), ["final", 1, "", 2, 3]),
        (Progress(position=4), ["progress", 4]),
        (Voice(start=5, end=6, probability=0.123456), ["voice", 5, 6, 0.123]),
    ],
)
def test_events_over_the_pipe(event: EngineEvent, message: list[object]) -> None:
    assert encode(event) == message
    assert "\n" not in json.dumps(encode(event))


def read(data: bytes) -> list[Chunk | None]:
    frames: Frames = queue.SimpleQueue()
    read_frames(BytesIO(data), frames)
    read = []
    while not frames.empty():
        read.append(frames.get())
    return read


WHOLE = frame(0, b"\1\0" * 3) + frame(2**40, b"\2\0" * 2)
CHUNKS = [
    Chunk(start=0, pcm=b"\1\0" * 3, level=0.0),
    Chunk(start=2**40, pcm=b"\2\0" * 2, level=0.0),
]


@pytest.mark.parametrize("after", [b"", END, END + WHOLE, HEADER.pack(9, 9), b"\0", END[:-1]])
def test_frames_are_read_up_to_the_end(after: bytes) -> None:
    assert read(WHOLE + after) == [*CHUNKS, None]


@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_a_frame_that_is_cut_off_is_left_out(cut: int) -> None:
    whole = len(WHOLE) - HEADER.size - 4
    assert read(WHOLE[:cut]) == [*CHUNKS[: cut >= whole], None]


def test_whoever_waits_for_frames_is_let_go_when_reading_fails() -> None:
    class Gone(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            del size
            raise OSError("The pipe is gone.")

    frames: Frames = queue.SimpleQueue()
    with pytest.raises(OSError, match="pipe"):
        read_frames(Gone(), frames)
    assert frames.get_nowait() is None


class FakeRecogniser(Recogniser):
    """Remembers how much was waiting."""

    def __init__(self) -> None:
        super().__init__(transcribe=lambda _: "", score=lambda _: 0.0)
        self.backlogs: list[float] = []

    def take(self, chunk: Chunk, *, backlog: float = 0.0) -> Iterator[EngineEvent]:
        self.backlogs.append(backlog)
        yield Progress(position=chunk.start)

    def finish(self) -> Iterator[EngineEvent]:
        yield Progress(position=99)


def test_it_tells_what_is_heard_and_how_far() -> None:
    frames: Frames = queue.SimpleQueue()
    for number in range(3):
        start = number * CHUNK_SAMPLES
        frames.put(Chunk(start=start, pcm=bytes(2 * CHUNK_SAMPLES), level=0.0))
    frames.put(None)
    recogniser = FakeRecogniser()
    assert list(run(recogniser, frames)) == [
        ["progress", 0],
        ["heard", CHUNK_SAMPLES],
        ["progress", CHUNK_SAMPLES],
        ["heard", 2 * CHUNK_SAMPLES],
        ["progress", 2 * CHUNK_SAMPLES],
        ["heard", 3 * CHUNK_SAMPLES],
        ["progress", 99],
        ["done"],
    ]
    chunk = CHUNK_SAMPLES / SAMPLE_RATE
    # What waits behind each, with the end mark counted as one more.
    assert recogniser.backlogs == pytest.approx([3 * chunk, 2 * chunk, chunk])


def test_no_sound_at_all() -> None:
    frames: Frames = queue.SimpleQueue()
    frames.put(None)
    recogniser = Recogniser(transcribe=lambda _: "", score=lambda _: 0.0)
    assert list(run(recogniser, frames)) == [["done"]]


# The whole process, with another loader: it changes the standard streams.

CHILD = """
import os
import sys
from surtitle.engines import worker
from surtitle.engines.recogniser import Recogniser

def load(folder, architecture):
    print("noise of a library")
    print("noise of a library", file=sys.stderr)
    {load}
    return Recogniser(transcribe=transcribe, score=lambda _: 0.9)

def transcribe(pcm):
    print("speech that must not be printed", flush=True)
    {transcribe}
    return "hello"

os._exit(worker.main({arguments}, loader=load))  # as the module does
"""


def child(
    sound: bytes, *, load: str = "", transcribe: str = "", arguments: str = '["here", "0"]'
) -> tuple[int, list[object], str]:
    program = textwrap.dedent(CHILD).format(load=load, transcribe=transcribe, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=False,
        input=sound,
        capture_output=True,
        timeout=LIMIT,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr.decode()


LOUD = b"".join(frame(n * CHUNK_SAMPLES, b"\x10\x20" * CHUNK_SAMPLES) for n in range(25))


def test_the_process_says_nothing_but_its_messages() -> None:
    code, lines, errors = child(LOUD + END)
    assert code == 0
    assert errors == ""
    assert lines[0] == ["ready"]
    assert lines[-1] == ["done"]
    assert ["heard", 25 * CHUNK_SAMPLES] in lines
    finals = [line for line in lines if isinstance(line, list) and line[0] == "final"]
    assert [final[2] for final in finals] == ["hello"]


@pytest.mark.parametrize("sound", [b"", LOUD[:-1], LOUD + struct.pack("<Q", 7)])
def test_the_process_ends_when_the_other_side_is_gone(sound: bytes) -> None:
    code, lines, _ = child(sound)
    assert code == 0
    assert lines[-1] == ["done"]


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ({"load": "raise RuntimeError('no model')"}, "RuntimeError"),
        ({"load": "import no_such_library"}, "ModuleNotFoundError"),
        ({"arguments": "['here']"}, "IndexError"),
        ({"arguments": "['here', 'x']"}, "ValueError"),
    ],
)
def test_a_loader_that_fails_is_told(faults: dict[str, str], kind: str) -> None:
    code, lines, errors = child(LOUD + END, **faults)
    assert code == 1
    assert lines == [["failed", kind]]
    assert errors == ""


def test_a_model_that_fails_is_told_without_its_words() -> None:
    code, lines, errors = child(LOUD + END, transcribe="raise ValueError('secret speech')")
    assert code == 1
    assert lines[0] == ["ready"]
    assert lines[-1] == ["failed", "ValueError"]
    assert "secret" not in str(lines) + errors


def test_the_process_ends_in_order_when_nobody_listens() -> None:
    program = textwrap.dedent(CHILD).format(load="", transcribe="", arguments='["here", "0"]')
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == ["ready"]
        process.stdout.close()
        process.stdin.write(LOUD + END)
        process.stdin.close()
        assert process.wait(LIMIT) == 0
        assert process.stderr.read() == b""
