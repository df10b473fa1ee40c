"""Frame by frame: what our server answers beside what vLLM answers to the same, word for word."""

import asyncio
import base64
import json
from collections.abc import Callable

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from conformance.servers import MODEL, Kind, serving
from conformance.sound import bursts, loud, quiet
from conformance.talking import within_limit

type Note = Callable[[str, str], None]
type Frame = str | bytes | float
"""What is sent; a number is so many seconds of waiting."""

_QUIET, _QUIET_AFTER_DONE = 2.5, 0.4
"""Seconds without an answer after which none is expected any more."""


def _append(seconds: float = 3.0) -> str:
    # Silence at its end: while somebody speaks our server may hold deltas back for a word.
    pcm = (quiet(0.56) + loud(seconds) + quiet(0.8)).pcm
    return json.dumps(
        {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}
    )


UPDATE = json.dumps({"type": "session.update", "model": MODEL})
START = json.dumps({"type": "input_audio_buffer.commit"})
FINAL = json.dumps({"type": "input_audio_buffer.commit", "final": True})
SOUND = _append()
DONE = -1.0
"""Waits for the next done."""


def _audio(value: object) -> str:
    return json.dumps({"type": "input_audio_buffer.append", "audio": value})


def _update(**fields: object) -> str:
    return json.dumps({"type": "session.update", **fields})


_NORMAL: list[Frame] = [START, SOUND, FINAL, DONE]
SCRIPTS: dict[str, list[Frame]] = {
    "an utterance": [UPDATE, *_NORMAL],
    "sound first, long before the start": [SOUND, 0.5, UPDATE, START, FINAL, DONE],
    "no session.update": [START, FINAL],
    "no session.update, then one": [START, _append(1.0), UPDATE, START, SOUND, FINAL, DONE],
    "an unknown model": [_update(model="no/such-model"), START, UPDATE, *_NORMAL],
    "no model": [_update()],
    "the other protocol's model": [_update(session={"model": MODEL})],
    "no name": [_update(model=""), *_NORMAL],
    "a number for a model": [_update(model=5)],
    "an unknown model later": [UPDATE, _update(model="no/such-model"), *_NORMAL],
    "no JSON": ["this is not json", ""],
    "no object": ["[]", '"text"', "null", "5"],
    "no type": ["{}", '{"type":null}'],
    "an unknown type": ['{"type":"input_audio_buffer.clear"}', '{"type":"x"}'],
    "bad sound": [_audio(""), _audio("%%%"), _audio("AAA"), _audio("AA=="), _audio("AAAA")],
    "sound that is no text": [_audio(None), _audio(5), '{"type":"input_audio_buffer.append"}'],
    "neither final nor not": [UPDATE, '{"type":"input_audio_buffer.commit","final":"maybe"}'],
    "a final in words": [
        *(UPDATE, START, SOUND),
        *('{"type":"input_audio_buffer.commit","final":"yes"}', DONE),
    ],
    "mistakes in mid-stream": [UPDATE, START, SOUND, "[]", "{}", _audio("A"), SOUND, FINAL, DONE],
    "more fields than it knows": [
        json.dumps({"type": "session.update", "model": MODEL, "event_id": "e1", "x": [1]}),
        *_NORMAL,
    ],
    "three utterances": [UPDATE, *_NORMAL, *_NORMAL, UPDATE, *_NORMAL],
    "a start twice": [UPDATE, START, START, SOUND, START, FINAL, DONE, *_NORMAL],
    "a final twice before done": [UPDATE, START, SOUND, FINAL, FINAL, DONE, *_NORMAL],
    "a final after done, sound in time": [UPDATE, *_NORMAL, FINAL, SOUND, 0.2, START, DONE, 1.0],
    "a final after done, sound later": [
        *(UPDATE, *_NORMAL, FINAL, START, DONE),
        *(0.3, SOUND, FINAL, START, DONE, *_NORMAL),
    ],
    "a final before any start": [UPDATE, FINAL, START, DONE, *_NORMAL],
    "the next utterance before done": [
        *(UPDATE, START, SOUND, FINAL, START, SOUND, FINAL, DONE, 1.0),
        *_NORMAL,
    ],
    "no sound": [UPDATE, START, FINAL, DONE, *_NORMAL],
    "20 ms": [UPDATE, START, _audio(base64.b64encode(bytes(640)).decode()), FINAL, DONE],
    "no final": [UPDATE, START, SOUND],
    "a binary message": [UPDATE, START, SOUND, 3.0, SOUND.encode()],
}
"""By the letters of what was observed: a to f, and k."""


class _Answers:
    """What comes, with runs of deltas as they would be joined."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.dones = 0
        self._deltas = 0
        self._text = ""

    def hear(self, frame: str | bytes) -> None:
        message = json.loads(frame)
        match message["type"]:
            case "transcription.delta":
                self._deltas += 1
                self._text += message["delta"]
                return
            case "session.created":
                message = {"type": "session.created", "fields": sorted(message)}
            case "error":
                # Where the validation of its library speaks, its first line is enough.
                message["error"] = message["error"].partition("\n")[0]
            case "transcription.done":
                self.dones += 1
        self.flush()
        self.told.append(json.dumps(message))

    def flush(self) -> None:
        if self._deltas:
            self.told.append(f"{self._deltas} deltas:{self._text}")
        self._deltas, self._text = 0, ""


async def _listen(socket: ClientConnection, answers: _Answers, news: asyncio.Event) -> None:
    try:
        async for frame in socket:
            answers.hear(frame)
            news.set()
    finally:
        news.set()


async def _play(kind: Kind, script: list[Frame], config: str) -> list[str]:
    answers, news = _Answers(), asyncio.Event()
    async with (
        serving(kind, "SHORT" if config == "SHORT" else "MAIN") as server,
        connect(server.url, compression=None, proxy=None, max_size=None) as socket,
    ):
        listening = asyncio.create_task(_listen(socket, answers, news), name="listening")
        try:
            await _send(socket, script, answers, news, listening)
            while not listening.done():
                news.clear()
                async with asyncio.timeout(_QUIET_AFTER_DONE if script[-1] == DONE else _QUIET):
                    await news.wait()
        except (TimeoutError, ConnectionClosed):
            pass
        if listening.done() or socket.close_code is not None:
            close = socket.protocol.close_rcvd
            answers.flush()
            answers.told.append(f"closed, {close.code if close else 1006}")
        listening.cancel()
        await asyncio.wait([listening])
    if not listening.cancelled():
        listening.exception()  # told above
    answers.flush()
    return answers.told


async def _send(
    socket: ClientConnection,
    script: list[Frame],
    answers: _Answers,
    news: asyncio.Event,
    listening: asyncio.Task[None],
) -> None:
    wanted = 0
    for frame in script:
        if frame == DONE:
            wanted += 1
            while answers.dones < wanted and not listening.done():
                news.clear()
                async with asyncio.timeout(10.0):
                    await news.wait()
        elif isinstance(frame, float):
            await asyncio.sleep(frame)
        else:
            await socket.send(frame)


def _compare(script: list[Frame], note: Note, *, config: str = "MAIN") -> None:
    async def main() -> tuple[list[str], list[str]]:
        both = await asyncio.gather(_play("vLLM", script, config), _play("ours", script, config))
        return both[0], both[1]

    theirs, ours = within_limit(main())
    note("the same from both", "the same" if ours == theirs else f"vLLM {theirs}, ours {ours}")
    assert ours == theirs


@pytest.mark.parametrize("name", SCRIPTS)
def test_answers_to(name: str, note: Note) -> None:
    _compare(SCRIPTS[name], note)


_LONG = json.dumps(
    {
        "type": "input_audio_buffer.append",
        "audio": base64.b64encode(bursts(8).pcm).decode(),
    }
)
LIMIT: dict[str, list[Frame]] = {
    "30 s at once, then more": [UPDATE, START, _LONG, DONE, SOUND, 0.5, START],
    "a final just after the end": [UPDATE, START, _LONG, DONE, FINAL, SOUND, START, DONE, *_NORMAL],
}
"""By the letter g, in a context of 13.4 s."""


@pytest.mark.parametrize("name", LIMIT)
def test_answers_at_the_end_of_the_context_to(name: str, note: Note) -> None:
    _compare(LIMIT[name], note, config="SHORT")
