"""`surtitle serve`, as a person starts it: real processes, real speech, AWS's real SDK."""

import asyncio
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from fakes.recording import plain, raw_recording
from fakes.running import Running, until
from surtitle.core.errors import EngineError
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Sendable,
    ServerMessage,
    SessionCreated,
    SessionUpdate,
    decode_server,
    encode,
)
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.aws_credentials import Credentials
from surtitle.engines.sagemaker import SageMakerTransport
from surtitle.server.sagemaker import STANDIN_CREDENTIALS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

LIMIT = 60.0
SPEECH = 6.0
"""Seconds of it, with the words below in them."""
CHUNK = 2_560
NOWHERE = "ws://127.0.0.1:9/invocations-bidirectional-stream"


@contextmanager
def serving(folder: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    command = ("-W", "error", "-m", "surtitle", "serve", *arguments)
    with Running(*command, folder=folder, environment=os.environ | environment) as program:
        yield program


@contextmanager
def realtime(folder: Path, *options: str, **environment: str) -> Iterator[tuple[Running, str]]:
    """The Realtime server, once it has said that it is ready, and its address."""
    with serving(folder, "realtime", "--port", "0", *options, **environment) as program:
        until(lambda: "\n" in program.said, "the line that it is ready")
        assert program.said.startswith("Realtime server ready at ws://127.0.0.1:")
        yield program, program.said.split()[4]


@contextmanager
def sagemaker(folder: Path, container: str, *options: str) -> Iterator[tuple[Running, str, Path]]:
    """The stand-in, once it has said that it is ready, its address, and what to trust."""
    ca = folder / "ca.pem"
    arguments = ("sagemaker", "--port", "0", "--container", container, "--ca-out", str(ca))
    with serving(folder, *arguments, *options) as program:
        until(lambda: "\n" in program.said, "the line that it is ready")
        said = program.said
        assert said.startswith("Listening on https://localhost:")
        assert said.endswith(f", CA written to {ca}\n")
        assert stat.S_IMODE(ca.stat().st_mode) == 0o600
        yield program, said.split()[2].rstrip(","), ca


def within_limit[T](main: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(LIMIT):
            return await main

    return asyncio.run(limited())


class Line(Protocol):
    """Frames there and back."""

    async def send(self, frame: str, /) -> None: ...

    async def receive(self) -> str: ...


class Socket:
    """A `Line` over a plain WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: str, /) -> None:
        await self._socket.send(frame)

    async def receive(self) -> str:
        return await self._socket.recv(decode=True)


async def say(line: Line, *messages: Sendable) -> None:
    for message in messages:
        await line.send(encode(message))


async def hear(line: Line) -> ServerMessage:
    return decode_server(await line.receive())


async def begin(line: Line, *, model: str = "surtitle") -> None:
    assert isinstance(await hear(line), SessionCreated)
    await say(line, SessionUpdate(model=model), Commit())


async def dictate(line: Line) -> str:
    """Send the speech as fast as it is taken; return the words that come back."""
    pcm = raw_recording(seconds=SPEECH)
    await begin(line)
    for at in range(0, len(pcm), CHUNK):
        await say(line, Append(audio=pcm[at : at + CHUNK]))
    await say(line, Commit(final=True))
    text = ""
    while not isinstance(message := await hear(line), Done):
        assert isinstance(message, Delta), message
        text += message.delta
    assert message.text == text
    return plain(text)


async def closed(socket: ClientConnection) -> int:
    """The code with which the server closes; messages before that are passed over."""
    with suppress(ConnectionClosed):
        while True:
            await socket.recv()
    return socket.close_code or 0


async def all_of(line: Line) -> None:
    """Receive until the line breaks."""
    while True:
        await line.receive()


def assert_words(text: str) -> None:
    assert "it was the best of times" in text
    assert "it was the worst of times" in text


class Provider:
    """The keys that the stand-in knows."""

    async def resolve(self) -> Credentials:
        return Credentials(
            access_key=STANDIN_CREDENTIALS.access_key, secret_key=STANDIN_CREDENTIALS.secret
        )


@asynccontextmanager
async def through_the_sdk(url: str, ca: Path, **more: str) -> AsyncIterator[SageMakerTransport]:
    target = SageMakerTarget(
        endpoint="voxtral", region="eu-west-1", endpoint_url=url, ca_bundle=str(ca), **more
    )
    transport = SageMakerTransport(target, credentials=Provider())
    try:
        await transport.open()
        yield transport
    finally:
        await transport.close()


def test_a_speech_server_hears_and_ends_when_told_in_mid_sentence(tmp_path: Path) -> None:
    with realtime(tmp_path) as (program, url):

        async def use() -> None:
            async with connect(url) as socket:
                assert_words(await dictate(Socket(socket)))
            async with connect(url) as socket:
                line = Socket(socket)
                await begin(line)
                await say(line, Append(audio=raw_recording(seconds=4.0)))
                await hear(line)
                program.tell(signal.SIGTERM)
                assert await closed(socket) == 1012

        within_limit(use())
        program.ends(0, within=3)
        program.leaves_nothing()
        first, second = program.complained.splitlines()
    assert first.startswith("Session 1: ")
    assert first.endswith("ended: client 1000")
    assert second.startswith("Session 2: ")
    assert second.endswith("ended: server 1012")
    assert "times" not in first + second


@pytest.mark.parametrize("server", ["realtime", "sagemaker"])
def test_control_c_is_how_a_person_ends_it(server: str, tmp_path: Path) -> None:
    with (
        realtime(tmp_path) if server == "realtime" else sagemaker(tmp_path, NOWHERE) as (
            program,
            *_,
        )
    ):
        program.tell(signal.SIGINT)
        program.ends(0, within=3)
        assert len(program.said.splitlines()) == 1
        assert program.complained == ""


def test_a_speech_server_with_a_key_lets_in_who_has_it(tmp_path: Path) -> None:
    options = ("--api-key-env", "OUR_KEY", "--model", "other", "--max-sessions", "1")
    with realtime(tmp_path, *options, OUR_KEY="for-few") as (program, url):

        async def use() -> None:
            with pytest.raises(InvalidStatus) as caught:
                await connect(url)
            assert caught.value.response.status_code == 401
            headers = {"Authorization": "Bearer for-few"}
            async with connect(url, additional_headers=headers) as socket:
                await begin(Socket(socket), model="other")

        within_limit(use())
        program.tell(signal.SIGTERM)
        program.ends(0, within=3)
        assert "model other" in program.said
        assert "for-few" not in program.said + program.complained


def test_words_come_through_the_stand_in_and_the_sdk(tmp_path: Path) -> None:
    with (
        realtime(tmp_path) as (hearing, container),
        sagemaker(tmp_path, container) as (
            program,
            url,
            ca,
        ),
    ):

        async def use() -> None:
            async with through_the_sdk(url, ca, invocation_path="v1/realtime") as transport:
                assert_words(await dictate(transport))

        within_limit(use())
        until(lambda: "Session 1" in program.complained, "the line about the session")
        for each in (program, hearing):
            each.tell(signal.SIGTERM)
            each.ends(0, within=3)
            each.leaves_nothing()
        [line] = program.complained.splitlines()
    assert line.startswith("Session 1 at voxtral: ")
    assert line.endswith(" out, ended: client")
    assert "times" not in line


def test_a_stand_in_that_is_ended_in_mid_sentence(tmp_path: Path) -> None:
    with realtime(tmp_path) as (_, container), sagemaker(tmp_path, container) as (program, url, ca):

        async def use() -> None:
            async with through_the_sdk(url, ca) as transport:
                await begin(transport)
                await say(transport, Append(audio=raw_recording(seconds=4.0)))
                await hear(transport)
                program.tell(signal.SIGTERM)
                with pytest.raises(EngineError):
                    await all_of(transport)

        within_limit(use())
        program.ends(0, within=5)
        assert program.complained.splitlines()[-1].endswith("ended: stopped")


def test_faults_come_in_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    faults = ("--fault", "busy", "--fault", "", "--fault", "close:1013@1")
    limits = ("--endpoint", "voxtral", "--session-limit", "60", "--cut", "rst")
    with (
        realtime(tmp_path) as (_, container),
        sagemaker(tmp_path, container, *faults, *limits) as (program, url, ca),
    ):

        async def attempt(use: Callable[[SageMakerTransport], Coroutine[Any, Any, None]]) -> None:
            async with through_the_sdk(url, ca) as transport:
                await use(transport)

        async def main() -> None:
            with pytest.raises(EngineError, match="throttled"):
                await attempt(begin)
            await attempt(begin)
            with pytest.raises(EngineError, match="busy"):
                await attempt(all_of)

        within_limit(main())
        until(lambda: len(program.complained.splitlines()) == 3, "three lines")
        ends = [line.partition("ended: ")[2] for line in program.complained.splitlines()]
        assert ends == ["refused ThrottlingException", "client", "fault close"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("realtime --port 99999", "There is no port 99999."),
        ("realtime --port x", "invalid int value: 'x'"),
        ("realtime --api-key-env NOT_SET_HERE", "NOT_SET_HERE is not set."),
        ("sagemaker", "--ca-out"),
        ("sagemaker --ca-out {folder}/ca.pem --fault nothing", "There is no fault 'nothing'."),
        ("sagemaker --port 0 --ca-out {folder}/missing/ca.pem", "ca.pem' cannot be written: no"),
    ],
)
def test_what_cannot_be_meant(arguments: str, words: str, tmp_path: Path) -> None:
    with serving(tmp_path, *arguments.format(folder=tmp_path).split()) as program:
        program.ends(2)
        assert program.said == ""
        assert words in program.complained.splitlines()[-1]
        assert "Traceback" not in program.complained
    assert not list(tmp_path.glob("*.pem"))


@pytest.mark.parametrize("server", ["realtime", "sagemaker"])
def test_a_port_that_is_taken(server: str, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        more = ["--ca-out", str(ca)] if server == "sagemaker" else []
        with serving(tmp_path, server, "--port", port, *more) as program:
            program.ends(1)
            assert program.said == ""
            assert program.complained == (
                f"surtitle: Port {port} of 127.0.0.1 is taken: another program listens there. "
                "End it, or choose another port with --port.\n"
            )
    assert not ca.exists()
