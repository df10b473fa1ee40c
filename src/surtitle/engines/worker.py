"""The process in which the on-device engine listens.

It is a process of its own because the model's library computes for up to a second
at a time, some of it holding the interpreter, and because a crash in it must not
take the captions along. It reads frames from standard input and writes one JSON
array a line to standard output; both ends are in `surtitle.engines.on_device`.
"""

import json
import os
import queue
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.loudness import lifted
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.engines.recogniser import Recogniser, Schedule
from surtitle.engines.voice_detector import voice_detector

__all__ = ["HEADER", "encode", "main", "run"]

HEADER = struct.Struct("<QI")
"""Position of the first sample and number of bytes that follow; no bytes: the end."""

_COMPLETE = frozenset({"ready", "heard", "done", "failed"})
"""Messages that end what there is to say about a chunk: everything goes out together."""

type Frames = queue.SimpleQueue[Chunk | None]


def encode(event: EngineEvent) -> list[object]:
    """An event as it goes over the pipe."""
    match event:
        case Partial(utterance=utterance, text=text, start=start, end=end):
            return ["partial", utterance, text, start, end]
        case Final(utterance=utterance, text=text, start=start, end=end):
            return ["final", utterance, text, start, end]
        case Progress(position=position):
            return ["progress", position]
        case Voice(start=start, end=end, probability=probability):
            return ["voice", start, end, round(probability, 3)]


def read_frames(stream: BinaryIO, frames: Frames) -> None:
    """Read until the end mark or until the other side is gone."""
    try:
        while len(header := stream.read(HEADER.size)) == HEADER.size:
            position, size = HEADER.unpack(header)
            pcm = stream.read(size)
            if not size or len(pcm) < size:
                break
            frames.put(Chunk(start=position, pcm=pcm, level=0.0))
    finally:
        frames.put(None)  # whatever happens here, nobody may wait for ever


def run(recogniser: Recogniser, frames: Frames) -> Iterator[list[object]]:
    """Listen until the sound ends; tell what is heard, and how far."""
    while (chunk := frames.get()) is not None:
        backlog = frames.qsize() * chunk.samples / SAMPLE_RATE
        for event in recogniser.take(chunk, backlog=backlog):
            yield encode(event)
        yield ["heard", chunk.end]
    for event in recogniser.finish():
        yield encode(event)
    yield ["done"]


def load(folder: str, architecture: int, schedule: Schedule | None = None) -> Recogniser:
    """Load model and voice detector."""
    import numpy as np  # noqa: PLC0415 - a second of imports, wanted only in the child
    from moonshine_voice.moonshine_api import ModelArch  # noqa: PLC0415 - same
    from moonshine_voice.transcriber import Transcriber  # noqa: PLC0415 - same

    transcriber = Transcriber(
        folder,
        ModelArch(architecture),
        # Where utterances begin and end is ours to decide, and the sound is known here.
        options={"vad_threshold": "0", "return_audio_data": "false"},
    )

    def transcribe(pcm: bytes) -> str:
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) / np.float32(32768)
        sound = lifted(samples).tolist()
        result = transcriber.transcribe_without_streaming(sound, SAMPLE_RATE)
        return " ".join(line.text.strip() for line in result.lines)

    transcribe(bytes(SAMPLE_RATE))  # the first call is slow: have it behind us
    return Recogniser(transcribe, voice_detector(), schedule=schedule)


def main(arguments: list[str], *, loader: Callable[[str, int], Recogniser] = load) -> int:
    """Run in the child process. `arguments`: the model's folder and architecture."""
    # What the libraries print must neither mix with our lines nor reach a log:
    # it may hold speech.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def say(message: list[object]) -> None:
        output.write(json.dumps(message) + "\n")
        if message[0] in _COMPLETE:
            output.flush()

    try:
        recogniser = loader(arguments[0], int(arguments[1]))
        say(["ready"])
        frames: Frames = queue.SimpleQueue()
        threading.Thread(
            target=read_frames, args=(sys.stdin.buffer, frames), daemon=True, name="frames"
        ).start()
        for message in run(recogniser, frames):
            say(message)
    except BrokenPipeError:
        pass  # nobody listens any more: the program has ended
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side must hear of it
        with suppress(OSError):
            say(["failed", type(error).__name__])
        return 1
    return 0


if __name__ == "__main__":
    # Not through interpreter shutdown: the libraries' threads do not always end well there.
    code = main(sys.argv[1:])
    os._exit(code)
