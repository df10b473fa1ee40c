"""The server over real sockets, with engines that do as they are told."""

import asyncio
import json
import os
import re
import signal
import sys
import wave
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from fakes.engine import Plan, ScriptedEngines, broken
from fakes.speech import numbered, say
from surtitle.core.errors import SurtitleError, UsageError
from surtitle.core.realtime_actions import Action, Beat, Finished, Send, Words
from surtitle.core.realtime_client import Client
from surtitle.core.realtime_generation import due_deltas, total_deltas
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    ServerMessage,
    SessionCreated,
    SessionUpdate,
    Usage,
    decode_server,
    encode,
)
from surtitle.core.resampling import Resampler
from surtitle.core.stability import agreed_form
from surtitle.engines.on_device import OnDeviceEngine
from surtitle.server.realtime import RealtimeServer, key_from_environment, run

FRAME = 1_280
SECOND = 16_000
LIMIT = 60.0
QUICK = Plan(speed=2_000.0)


def engines(*plans: Plan, words: str = "one two three four") -> ScriptedEngines:
    return ScriptedEngines((say(words, at=1.0),), *plans, then=QUICK)


def within_limit[T](main: Coroutine[Any, Any, T]) -> T:
    """Run it, but not for ever."""

    async def limited() -> T:
        async with asyncio.timeout(LIMIT):
            return await main

    return asyncio.run(limited())


class Peer:
    """A client that sees every message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, *messages: SessionUpdate | Append | Commit | str) -> None:
        for message in messages:
            await self.socket.send(message if isinstance(message, str) else encode(message))

    async def sound(self, seconds: float) -> None:
        await self.send(Append(audio=bytes(2 * int(seconds * SECOND))))

    async def begin(self) -> None:
        await self.send(SessionUpdate(model="surtitle"), Commit())

    async def receive(self) -> ServerMessage:
        frame = await self.socket.recv()
        assert isinstance(frame, str)
        return decode_server(frame)

    async def deltas(self, count: int) -> list[str]:
        told = [await self.receive() for _ in range(count)]
        return [message.delta for message in told if isinstance(message, Delta)]

    async def closed(self) -> tuple[int, str]:
        """How the connection ends; messages before that are passed over."""
        try:
            while True:
                await self.socket.recv()
        except ConnectionClosed as closed:
            close = closed.rcvd
        return (close.code, close.reason) if close is not None else (1006, "")


@asynccontextmanager
async def client(server: RealtimeServer) -> AsyncIterator[Peer]:
    async with connect(server.url, compression=None) as socket:
        peer = Peer(socket)
        assert isinstance(await peer.receive(), SessionCreated)
        yield peer


def test_an_utterance() -> None:
    async def main() -> list[ServerMessage]:
        async with RealtimeServer(engines()) as server, client(server) as peer:
            await peer.begin()
            await peer.sound(6.0)
            await peer.send(Commit(final=True))
            return [await peer.receive() for _ in range(86)]

    *deltas, done = within_limit(main())
    assert all(isinstance(delta, Delta) for delta in deltas)
    text = " one two three four"
    assert "".join(d.delta for d in deltas if isinstance(d, Delta)) == text
    assert done == Done(text, Usage(39, 124, 85))


def test_one_delta_for_every_frame_while_nothing_is_said() -> None:
    async def main() -> None:
        made = ScriptedEngines(then=QUICK)
        async with RealtimeServer(made) as server, client(server) as peer:
            await peer.begin()
            had = 0
            for second in range(1, 6):
                await peer.sound(1.0)
                # Chunks that are not whole yet have not been heard.
                due = due_deltas(second * SECOND // FRAME * FRAME)
                assert await peer.deltas(due - had) == [""] * (due - had)
                had = due

    within_limit(main())


class Ours:
    """The client machine on a socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.machine = Client(model="surtitle")
        self.actions: list[Action] = []
        self._socket = socket

    async def do(self, actions: list[Action]) -> None:
        self.actions += actions
        for action in actions:
            if isinstance(action, Send):
                await self._socket.send(action.frame)

    async def hear_until(self, met: Callable[[], bool]) -> None:
        while not met():
            await self.do(self.machine.heard(str(await self._socket.recv()), 0.0))


def test_a_client_of_ours_and_the_server_agree() -> None:
    speech = numbered([4, 7, 3])

    async def main() -> Ours:
        made = ScriptedEngines(speech, then=QUICK)
        async with RealtimeServer(made) as server, connect(server.url) as socket:
            ours = Ours(socket)
            machine = ours.machine
            await ours.do(machine.opened(0.0))
            await ours.hear_until(lambda: machine.ready)
            for at in range(0, 12 * SECOND, FRAME):
                await ours.do(machine.append(at, bytes(2 * FRAME), 0.0))
            await ours.do(machine.finish(0.0))
            await ours.hear_until(lambda: machine.done)
        return ours

    ours = within_limit(main())
    *_, last = ours.actions
    text = "".join(a.text for a in ours.actions if isinstance(a, Words))
    assert text.split() == [word.text for spoken in speech for word in spoken.words]
    assert last == Finished(text, 12 * SECOND)
    assert ours.machine.counted
    places = [a.position for a in ours.actions if isinstance(a, Beat | Words)]
    assert places == sorted(places)


def test_two_utterances_on_one_connection_have_an_engine_each() -> None:
    async def main() -> ScriptedEngines:
        made = engines()
        async with RealtimeServer(made) as server, client(server) as peer:
            for _ in range(2):
                await peer.begin()
                await peer.sound(3.0)
                await peer.send(Commit(final=True))
                total = total_deltas(3 * SECOND)
                assert "".join(await peer.deltas(total)) == " one two three four"
                assert isinstance(await peer.receive(), Done)
        return made

    made = within_limit(main())
    assert len(made.made) == 2
    assert all(engine.stopped for engine in made.made)


def test_the_end_of_the_context() -> None:
    async def main() -> None:
        made = ScriptedEngines(then=QUICK)
        async with RealtimeServer(made, max_model_len=200) as server, client(server) as peer:
            await peer.begin()
            await peer.sound(30.0)
            assert await peer.deltas(161) == [""] * 161
            assert await peer.receive() == Done("", Usage(39, 200, 161))
            await peer.sound(6.0)
            await peer.send(Commit())
            due = due_deltas(6 * SECOND)
            assert await peer.deltas(due) == [""] * due

    within_limit(main())


def test_more_sessions_than_slots_wait_without_a_word() -> None:
    async def main() -> None:
        made = ScriptedEngines(then=QUICK)
        async with RealtimeServer(made, max_sessions=1) as server, client(server) as second:
            async with client(server) as first:
                await first.begin()
                await first.sound(1.0)
                due = due_deltas(SECOND // FRAME * FRAME)
                await first.deltas(due)
                await second.begin()
                await second.sound(1.0)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(second.socket.recv(), 0.1)
                assert len(made.made) == 1, "the first keeps its slot though it says nothing"
            assert await second.deltas(due) == [""] * due

    within_limit(main())


def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    async def main() -> ScriptedEngines:
        made = ScriptedEngines(then=Plan(speed=20.0, never_done=True))
        async with RealtimeServer(made, max_sessions=1) as server:
            for _ in range(3):
                async with client(server) as peer:
                    await peer.begin()
                    await peer.sound(20.0)
                    await peer.deltas(1)
                    peer.socket.transport.abort()
        return made

    made = within_limit(main())
    assert [engine.stopped for engine in made.made] == [True] * 3


BROKEN = Failure(
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "processing_error",
)


@pytest.mark.logs("The engine of a session failed")
@pytest.mark.parametrize(
    "plan",
    [
        Plan(refuses=broken()),
        Plan(breaks_at=10_000),
        Plan(feed_breaks_at=10_000),
    ],
)
def test_an_engine_that_fails_is_an_error_and_the_connection_lives(plan: Plan) -> None:
    async def main() -> None:
        made = engines(plan)
        async with RealtimeServer(made, max_sessions=1) as server, client(server) as peer:
            await peer.begin()
            await peer.sound(3.0)
            while isinstance(message := await peer.receive(), Delta):
                pass
            assert message == BROKEN
            await peer.send("what?")
            assert await peer.receive() == Failure("Invalid JSON", "invalid_json")
            await peer.begin()
            await peer.sound(3.0)
            await peer.send(Commit(final=True))
            told = await peer.deltas(total_deltas(3 * SECOND))
            assert "".join(told) == " one two three four"
        assert all(engine.stopped for engine in made.made)

    within_limit(main())


def test_an_engine_that_ends_by_itself_is_an_error_too() -> None:
    async def main() -> None:
        made = engines(Plan(ends_at=10_000))
        async with RealtimeServer(made) as server, client(server) as peer:
            await peer.begin()
            await peer.sound(3.0)
            while isinstance(message := await peer.receive(), Delta):
                pass
            assert message == BROKEN

    within_limit(main())


def test_mistakes_are_answered() -> None:
    async def main() -> None:
        async with RealtimeServer(engines()) as server, client(server) as peer:
            await peer.send("[]", Commit())
            codes = [await peer.receive() for _ in range(2)]
            assert [c.code for c in codes if isinstance(c, Failure)] == [
                "processing_error",
                "model_not_validated",
            ]

    within_limit(main())


def test_a_binary_message_is_the_end_without_a_word() -> None:
    async def main() -> None:
        async with RealtimeServer(engines()) as server, client(server) as peer:
            await peer.socket.send(b"pcm")
            assert await peer.closed() == (1006, "")

    within_limit(main())


def test_a_message_may_have_16_mib() -> None:
    async def main() -> None:
        async with RealtimeServer(engines()) as server:
            async with client(server) as peer:
                await peer.send(encode(Append(audio=bytes(12_000_000))), "what?")
                assert await peer.receive() == Failure("Invalid JSON", "invalid_json")
            peer = Peer(await connect(server.url, compression=None))
            sending = asyncio.create_task(peer.send(" " * (16 * 1024 * 1024 + 1)))
            assert (await peer.closed())[0] == 1009
            await asyncio.wait([sending])
            sending.exception()  # whether all of it went out does not matter

    within_limit(main())


def test_sound_beyond_ten_minutes_is_not_taken() -> None:
    async def main() -> None:
        async with RealtimeServer(engines()) as server, client(server) as peer:
            await peer.sound(300.0)
            await peer.sound(300.0)
            await peer.sound(1.0)
            code, reason = await peer.closed()
            assert code == 1011
            assert "600 s" in reason

    within_limit(main())


async def http(server: RealtimeServer, request: str, *headers: str) -> tuple[str, str, str]:
    """Status, content type and body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    lines = [f"{request} HTTP/1.1", "Host: localhost", *headers, "", ""]
    writer.write("\r\n".join(lines).encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    status, *rest = head.split("\r\n")
    kinds = [line.partition(": ")[2] for line in rest if line.lower().startswith("content-type:")]
    return status.split(" ")[1], ", ".join(kinds), body


@pytest.mark.parametrize(
    ("request_line", "headers", "status", "body"),
    [
        ("GET /health", (), "200", ""),
        ("GET /ping", (), "200", ""),
        ("GET /v1/realtime", (), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/models", (), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/models", ("api-key: KEY",), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/models?api_key=KEY", (), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/models", ("Authorization: Bearer NO",), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/models", ("Authorization: Basic KEY",), "401", '{"error":"Unauthorized"}'),
        ("GET /v1/realtime", ("Authorization: bearer KEY",), "404", '{"detail":"Not Found"}'),
        ("POST /v1/realtime", ("Authorization: Bearer KEY",), "404", '{"detail":"Not Found"}'),
        ("GET /", (), "404", '{"detail":"Not Found"}'),
    ],
)
def test_http_beside_it(
    request_line: str, headers: tuple[str, ...], status: str, body: str
) -> None:
    async def main() -> tuple[str, str, str]:
        async with RealtimeServer(engines(), api_key="KEY") as server:
            return await http(server, request_line, *headers)

    got_status, kind, got_body = within_limit(main())
    assert (got_status, got_body) == (status, body)
    assert kind == "application/json" or not body


def test_the_model_is_listed() -> None:
    async def main() -> str:
        async with RealtimeServer(engines(), model="voxtral", max_model_len=4096) as server:
            return (await http(server, "GET /v1/models"))[2]

    (model,) = json.loads(within_limit(main()))["data"]
    assert (model["id"], model["max_model_len"]) == ("voxtral", 4096)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/realtime", {}, 401),
        ("/v1/realtime", {"Authorization": "Bearer NO"}, 401),
        ("/v1/realtime?api_key=KEY", {}, 401),
        ("/v1/realtime/", {"Authorization": "Bearer KEY"}, 403),
        ("/other", {"Authorization": "Bearer KEY"}, 403),
    ],
)
def test_connections_that_are_refused(path: str, headers: dict[str, str], status: int) -> None:
    async def main() -> int:
        async with RealtimeServer(engines(), api_key="KEY") as server:
            url = server.url.replace("/v1/realtime", path)
            with pytest.raises(InvalidStatus) as caught:
                async with connect(url, additional_headers=headers):
                    pass
            return caught.value.response.status_code

    assert within_limit(main()) == status


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_right_key_opens(scheme: str) -> None:
    async def main() -> None:
        async with RealtimeServer(engines(), api_key="KEY") as server:
            headers = {"Authorization": f"{scheme} KEY"}
            url = f"{server.url}?model=any"
            async with connect(url, additional_headers=headers, origin=None) as socket:
                message = decode_server(str(await socket.recv()))
                assert isinstance(message, SessionCreated)
                assert message.id.startswith("sess-")

    within_limit(main())


def test_a_server_that_ends_says_so_and_stops_its_engines() -> None:
    async def main() -> ScriptedEngines:
        made = ScriptedEngines(then=Plan(speed=20.0))
        async with RealtimeServer(made) as server:
            socket = await connect(server.url)
            peer = Peer(socket)
            await peer.begin()
            await peer.sound(20.0)
            await peer.receive()
            await peer.deltas(1)
        assert await peer.closed() == (1012, "")
        with pytest.raises(OSError, match="failed"):
            await connect(server.url)
        return made

    assert [engine.stopped for engine in within_limit(main()).made] == [True]


def test_a_line_tells_of_every_session_that_is_over() -> None:
    lines: list[str] = []

    async def main() -> None:
        async with RealtimeServer(engines(), log=lines.append) as server:
            async with client(server) as peer:
                await peer.begin()
                await peer.sound(6.0)
                await peer.send(Commit(final=True))
                while not isinstance(await peer.receive(), Done):
                    pass
            while len(lines) < 1:  # noqa: ASYNC110 - it is told by a plain call
                await asyncio.sleep(0)
            async with client(server) as peer:
                await peer.socket.send(b"no text")
                assert (await peer.closed())[0] == 1006
            while len(lines) < 2:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
            async with client(server) as peer:
                peer.socket.transport.abort()
            while len(lines) < 3:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
            last = Peer(await connect(server.url))
        assert await last.closed() == (1012, "")

    within_limit(main())
    told = [re.sub(r": \d+\.\d s,", ": T s,", line) for line in lines]
    assert told == [
        "Session 1: T s, 4 events in, 87 out, ended: client 1000",
        "Session 2: T s, 1 events in, 1 out, ended: refused binary frame",
        "Session 3: T s, 0 events in, 1 out, ended: client lost",
        "Session 4: T s, 0 events in, 1 out, ended: server 1012",
    ]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"port": 65_536}, "--port"),
        ({"port": -1}, "--port"),
        ({"host": ""}, "--host"),
        ({"host": "two words"}, "--host"),
        ({"max_sessions": 0}, "--max-sessions"),
        ({"max_model_len": 39}, "--max-model-len"),
        ({"model": ""}, "--model"),
        ({"model": "\n"}, "--model"),
    ],
)
def test_what_cannot_be_meant_is_named(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        RealtimeServer(engines(), **arguments)
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    async def main() -> list[str]:
        said: list[str] = []
        server = RealtimeServer(engines())
        serving = asyncio.create_task(run(server, say=said.append))
        while not said:  # noqa: ASYNC110 - it is told by a plain call
            await asyncio.sleep(0)
        peer = Peer(await connect(server.url))
        os.kill(os.getpid(), number)
        await serving
        assert await peer.closed() == (1012, "")
        assert server.url in said[0]
        return said

    assert len(within_limit(main())) == 1
    assert signal.getsignal(number) == before


def test_a_port_that_is_taken_is_named() -> None:
    async def main() -> None:
        async with RealtimeServer(engines()) as server:
            with pytest.raises(SurtitleError) as caught:
                async with RealtimeServer(engines(), port=server.port):
                    pass
            assert (caught.value.field, caught.value.exit_code) == ("--port", 1)
            assert str(server.port) in caught.value.message

    within_limit(main())


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", " secret ")
    assert key_from_environment("SOME_KEY") == "secret"
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(UsageError) as caught:
        key_from_environment("SOME_KEY")
    assert caught.value.field == "--api-key-env"


def recording(seconds: int) -> bytes:
    """The beginning of the speech that comes with Moonshine, at 16 kHz."""
    spec = find_spec("moonshine_voice")
    if spec is None or spec.origin is None:
        pytest.skip("no on-device engine on this computer")
    with wave.open(str(Path(spec.origin).parent / "assets" / "two_cities.wav")) as file:
        assert (file.getsampwidth(), file.getnchannels()) == (2, 1)
        frames = np.frombuffer(file.readframes(seconds * file.getframerate()), "<i2")
        resampler = Resampler(file.getframerate())
    first = resampler.push(frames.astype(np.float32))
    return first.tobytes() + resampler.finish(seconds * SECOND - len(first)).tobytes()


def test_with_the_real_engine_and_real_speech() -> None:
    pcm = recording(12)

    async def main() -> tuple[str, Done]:
        async with RealtimeServer(OnDeviceEngine) as server, client(server) as peer:
            await peer.begin()
            for at in range(0, len(pcm), 2 * FRAME):
                await peer.send(Append(audio=pcm[at : at + 2 * FRAME]))
            await peer.send(Commit(final=True))
            told = await peer.deltas(total_deltas(len(pcm) // 2))
            done = await peer.receive()
            assert isinstance(done, Done)
            return "".join(told), done

    text, done = within_limit(main())
    assert done.text == text
    words = " ".join(agreed_form(word) for word in text.split())
    assert words.count("best of times") == 1, text
    assert words.count("worst of times") == 1, text
    assert words.count("age of wisdom") == 1, text
