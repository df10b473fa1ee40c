"""The stand-in on the wire: what it accepts, what it refuses, how it ends."""

import asyncio
import json
import os
import re
import ssl
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.utils import accept_key

from fakes.container import ContainerServer, counting
from fakes.h2_client import Signer, part
from fakes.standing_in import WITHIN, client, ended, eventually, kinds, standin
from surtitle.server.event_stream import Message
from surtitle.server.sagemaker import Credentials, Cut, Standin


def payloads(messages: list[Message]) -> list[tuple[object, object, bytes]]:
    return [
        (message.headers["DataType"], message.headers["CompletionState"], message.payload)
        for message in messages
    ]


def test_frames_and_parts_are_the_same_thing() -> None:
    async def main() -> None:
        async with standin() as (server, container), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            sent = [
                part(b"hello"),
                part("zwölf 👍 字".encode()),
                part(b""),
                part(b"\x00\xff", kind="BINARY"),
                part(b"\x01", kind=None),
            ]
            for message in sent:
                await peer.send(number, signer.event(message))
            got = payloads(await peer.messages(number, len(sent)))
            assert got == [
                ("UTF8", "COMPLETE", b"hello"),
                ("UTF8", "COMPLETE", "zwölf 👍 字".encode()),
                ("UTF8", "COMPLETE", b""),
                ("BINARY", "COMPLETE", b"\x00\xff"),
                ("BINARY", "COMPLETE", b"\x01"),
            ]
            headers = await peer.headers(number)
            assert headers[":status"] == "200"
            assert headers["content-type"] == "application/vnd.amazon.eventstream"
            assert headers["x-amzn-invoked-production-variant"] == "AllTraffic"
            await peer.send(number, signer.event(None), end=True)
            assert (await peer.end(number)).ended == "end"
            await container.ended.wait()
            assert container.closed == [1000]
            assert container.targets == ["/invocations-bidirectional-stream"]
            [record] = server.sessions
            assert (record.status, record.events_in, record.events_out) == (200, 5, 5)
            assert record.ended == "client"
            assert "authorization" not in record.headers

    asyncio.run(main())


def test_the_end_of_the_stream_alone_ends_it_too() -> None:
    received: list[str | bytes] = []

    async def note(connection: ServerConnection) -> None:
        received.extend([message async for message in connection])

    async def main() -> None:
        async with standin(note) as (server, container), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            await peer.send(number, signer.event(part(b"last")), end=True)
            assert (await peer.end(number)).ended == "end"
            await container.ended.wait()
            assert received == ["last"]
            assert container.closed == [1000]
            assert ended(server) == ["client"]

    asyncio.run(main())


def test_parts_are_neither_joined_nor_split() -> None:
    whole = "ein Ährenkorb"
    frames: list[str] = []

    async def fragments(connection: ServerConnection) -> None:
        async for frame in connection.recv_streaming():
            assert isinstance(frame, str)
            frames.append(frame)
        await connection.send(["Ä", "h", "re"])
        await connection.wait_closed()

    async def main() -> None:
        async with standin(fragments) as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            encoded = whole.encode()
            pieces = [encoded[:5], encoded[5:9], encoded[9:]]  # the first cuts the Ä in two
            for at, piece in enumerate(pieces):
                state = "COMPLETE" if at == len(pieces) - 1 else "PARTIAL"
                await peer.send(number, signer.event(part(piece, state=state)))
            got = payloads(await peer.messages(number, 4))
            assert got[:3] == [
                ("UTF8", "PARTIAL", "Ä".encode()),
                ("UTF8", "PARTIAL", b"h"),
                ("UTF8", "PARTIAL", b"re"),
            ]
            assert got[3] == ("UTF8", "COMPLETE", b"")  # the library ends a message like this
            assert frames == ["ein ", "Ähre", "nkorb"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fields", "target", "variant"),
    [
        ({}, "/invocations-bidirectional-stream", "AllTraffic"),
        ({"target-variant": "blue-1"}, "/invocations-bidirectional-stream", "blue-1"),
        ({"model-invocation-path": "v1/realtime"}, "/v1/realtime", "AllTraffic"),
        ({"model-query-string": "a=b&c=%20"}, "/invocations-bidirectional-stream?a=b&c=%20", ""),
        ({"model-invocation-path": "v1/x", "model-query-string": "a=1"}, "/v1/x?a=1", ""),
    ],
)
def test_a_request_may_name_path_query_and_variant(
    fields: dict[str, str], target: str, variant: str
) -> None:
    async def main() -> None:
        async with standin() as (server, container), client(server) as peer:
            more = [(f"x-amzn-sagemaker-{name}", value) for name, value in fields.items()]
            number = await peer.request(Signer().request(server.port, replace=more))
            headers = await peer.headers(number)
            assert headers[":status"] == "200"
            assert container.targets == [target]
            if variant:
                assert headers["x-amzn-invoked-production-variant"] == variant

    asyncio.run(main())


PATH = "/endpoints/{}/invocations-bidirectional-stream"


@pytest.mark.parametrize(
    ("request_of", "status", "error"),
    [
        ({"secret": "wrong"}, 403, "InvalidSignatureException"),
        ({"access_key": "AKIDWRONG"}, 403, "UnrecognizedClientException"),
        ({"token": "unheard of"}, 403, "UnrecognizedClientException"),
        ({"skew": -320.0}, 403, "InvalidSignatureException"),
        ({"skew": 320.0}, 403, "InvalidSignatureException"),
        ({"path": PATH.format("-x")}, 400, "InputValidationError"),
        ({"path": PATH.format("x" * 64)}, 400, "InputValidationError"),
        ({"path": PATH.format("other")}, 400, "InputValidationError"),
        ({"path": "/endpoints/my-endpoint/invocations"}, 404, "UnknownOperationException"),
        ({"method": "PUT"}, 404, "UnknownOperationException"),
        ({"content-type": "application/json"}, 400, "InputValidationError"),
        ({"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-target-variant": "a_b"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-invocation-path": "/v1"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-invocation-path": "v1//x"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-invocation-path": "x" * 101}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-query-string": "?a=b"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-query-string": "a=%2"}, 400, "InputValidationError"),
        ({"x-amzn-sagemaker-model-query-string": "a=b&"}, 400, "InputValidationError"),
    ],
)
def test_what_is_wrong_with_a_request_is_answered_as_the_service_does(
    request_of: dict[str, str | float], status: int, error: str
) -> None:
    own = {"secret", "access_key", "token", "skew"}
    whole = {"path", "method"}

    async def main() -> None:
        async with standin(endpoint="my-endpoint") as (server, container), client(server) as peer:
            signer = Signer(**{k: v for k, v in request_of.items() if k in own})  # type: ignore[arg-type] # a table
            headers = signer.request(
                server.port,
                replace=[(k, str(v)) for k, v in request_of.items() if k not in own | whole],
                **{k: str(v) for k, v in request_of.items() if k in whole},
            )
            answer = await peer.end(await peer.request(headers))
            assert answer.ended == "end"
            assert answer.headers[":status"] == str(status)
            assert answer.headers["x-amzn-errortype"] == error
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["x-amzn-requestid"]
            body = json.loads(answer.body)
            assert body["ErrorCode"] == error
            assert body["Message"]
            assert not container.targets
            assert ended(server) == [f"refused {error}"]

    asyncio.run(main())


def test_a_session_token_that_is_expected_is_accepted() -> None:
    async def main() -> None:
        credentials = Credentials(access_key="AKID", secret="s", session_token="t")  # noqa: S106 - a test's
        async with standin(credentials=credentials) as (server, _), client(server) as peer:
            signer = Signer(access_key="AKID", secret="s", token="t")  # noqa: S106 - the same
            number = await peer.request(signer.request(server.port))
            assert (await peer.headers(number))[":status"] == "200"
            assert "x-amz-security-token" not in server.sessions[0].headers

    asyncio.run(main())


def tampered(signer: Signer) -> bytes:
    return signer.event(part(b"hello")).replace(b"hello", b"hallo")


def chained_wrongly(signer: Signer) -> bytes:
    signer.spoil()
    return signer.event(part(b"hello"))


def stale(signer: Signer) -> bytes:
    signer.skew = -320
    return signer.event(part(b"hello"))


def unsigned(_: Signer) -> bytes:
    return Message(payload=part(b"hello").encode()).encode()


def of_another_kind(signer: Signer) -> bytes:
    headers = {":message-type": "event", ":event-type": "Other"}
    return signer.event(Message(headers=headers, payload=b"x"))


def of_an_unknown_type(signer: Signer) -> bytes:
    return signer.event(part(b"x", kind="UTF16"))


def no_event_inside(signer: Signer) -> bytes:
    return signer.event(part(b"x"))[:-1] + b"?"


@pytest.mark.parametrize(
    ("spoilt", "error"),
    [
        (tampered, "SerializationException"),  # its checksum says so first
        (chained_wrongly, "InvalidSignatureException"),
        (stale, "InvalidSignatureException"),
        (unsigned, "InvalidSignatureException"),
        (of_another_kind, "InputValidationError"),
        (of_an_unknown_type, "InputValidationError"),
        (no_event_inside, "SerializationException"),
    ],
)
def test_an_event_that_is_not_right_ends_the_session(
    spoilt: Callable[[Signer], bytes], error: str
) -> None:
    received: list[str | bytes] = []

    async def note(connection: ServerConnection) -> None:
        async for message in connection:
            received.append(message)
            await connection.send("thanks")

    async def main() -> None:
        async with standin(note) as (server, container), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            await peer.send(number, signer.event(part(b"first")))
            await peer.messages(number, 1)
            await peer.send(number, spoilt(signer))
            answer = await peer.end(number)
            assert answer.ended == "end"
            assert kinds(answer.readable()) == ["PayloadPart", error]
            await container.ended.wait()
            assert received == ["first"]
            assert container.closed == [1001]
            assert ended(server) == [f"refused {error}"]

    asyncio.run(main())


def test_a_stream_that_ends_inside_an_event_is_refused() -> None:
    async def main() -> None:
        async with standin() as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            await peer.send(number, signer.event(part(b"first"))[:-3], end=True)
            assert kinds((await peer.end(number)).readable()) == ["SerializationException"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "report", "answer", "error_code"),
    [
        (1000, False, [], ""),
        (1000, True, ["ModelStreamError"], "1000"),
        (1001, False, ["ModelStreamError"], "1001"),
        (1011, False, ["ModelStreamError"], "1011"),
        (1012, False, ["ModelStreamError"], "1012"),
    ],
)
def test_the_close_frame_of_the_container_is_reported(
    code: int, answer: list[str], error_code: str, *, report: bool
) -> None:
    async def closing(connection: ServerConnection) -> None:
        await connection.send("last words")
        await connection.close(code, "a reason")

    async def main() -> None:
        async with (
            standin(closing, report_normal_close=report) as (server, _),
            client(server) as peer,
        ):
            number = await peer.request(Signer().request(server.port))
            got = await peer.end(number)
            assert got.ended == "end"
            assert kinds(got.readable()) == ["PayloadPart", *answer]
            if answer:
                told = json.loads(got.messages()[-1].payload)
                assert told == {"Message": "a reason", "ErrorCode": error_code}
            assert ended(server) == [f"container {code}"]

    asyncio.run(main())


def test_a_container_that_just_goes_is_reported() -> None:
    async def going(connection: ServerConnection) -> None:
        connection.transport.abort()
        await connection.wait_closed()

    async def main() -> None:
        async with standin(going) as (server, _), client(server) as peer:
            got = await peer.end(await peer.request(Signer().request(server.port)))
            assert kinds(got.readable()) == ["ModelStreamError"]
            assert ended(server) == ["container 1006"]

    asyncio.run(main())


def test_a_container_that_is_not_there_is_a_model_error() -> None:
    async def main() -> None:
        async with ContainerServer() as container:
            url = container.url
        async with asyncio.timeout(WITHIN), Standin(url) as server, client(server) as peer:
            got = await peer.end(await peer.request(Signer().request(server.port)))
            assert got.headers[":status"] == "424"
            assert got.headers["x-amzn-errortype"] == "ModelError"
            assert json.loads(got.body)["OriginalMessage"] == "The container cannot be reached."

    asyncio.run(main())


async def plain_server(answer: bytes) -> asyncio.Server:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer:
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    return await asyncio.start_server(handle, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("answer", "original"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503),
        (b"SSH-2.0\r\n\r\n", None),
        (b"", None),
    ],
)
def test_a_container_that_refuses_is_a_model_error(answer: bytes, original: int | None) -> None:
    async def main() -> None:
        async with await plain_server(answer) as other:
            url = f"ws://127.0.0.1:{other.sockets[0].getsockname()[1]}/x"
            async with (
                asyncio.timeout(WITHIN),
                Standin(url, accept_within=0.2) as server,
                client(server) as peer,
            ):
                got = await peer.end(await peer.request(Signer().request(server.port)))
                assert got.headers[":status"] == "424"
                assert json.loads(got.body).get("OriginalStatusCode") == original

    asyncio.run(main())


def test_the_session_limit_cuts_as_it_is_told() -> None:
    async def main() -> None:
        for cut, how, last in (
            (Cut.END, "end", "PayloadPart"),
            (Cut.ERROR, "end", "ModelStreamError"),
            (Cut.RST, "reset", "PayloadPart"),
            (Cut.GOAWAY, "goaway", "PayloadPart"),
        ):
            async with standin(counting, session_limit=0.05, cut=cut) as (server, container):
                async with client(server) as peer:
                    got = await peer.end(await peer.request(Signer().request(server.port)))
                assert (got.ended, kinds(got.readable())[-1]) == (how, last)
                assert ended(server) == ["limit"]
                await container.ended.wait()

    asyncio.run(main())


def test_a_client_that_takes_nothing_holds_the_container_back() -> None:
    sent = 0

    async def flood(connection: ServerConnection) -> None:
        nonlocal sent
        while sent < 400:
            await connection.send("x" * 20_000)
            sent += 1
        await connection.close()

    async def main() -> None:
        async with standin(flood) as (server, _), client(server, takes=False) as peer:
            number = await peer.request(Signer().request(server.port))
            await peer.until(lambda: len(peer.answer(number).body) >= 65_000)
            before = -1
            while before != sent:  # until it has come to rest
                before = sent
                await asyncio.sleep(0.1)
            assert 3 <= sent < 400
            assert len(peer.answer(number).body) == 65_535
            await peer.take()
            got = await peer.end(number)
            assert len(got.messages()) == 400

    asyncio.run(main())


def test_a_client_that_is_cut_off_while_it_takes_nothing_is_reset() -> None:
    async def flood(connection: ServerConnection) -> None:
        while True:
            await connection.send("x" * 20_000)

    async def main() -> None:
        async with (
            standin(flood, session_limit=0.05) as (server, _),
            client(server, takes=False) as peer,
        ):
            got = await peer.end(await peer.request(Signer().request(server.port)))
            assert got.ended == "reset"

    asyncio.run(main())


def test_a_large_part_needs_more_than_one_window() -> None:
    async def main() -> None:
        async with standin() as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            payload = os.urandom(1_000_000)
            await peer.send(number, signer.event(part(payload, kind="BINARY")))
            assert payloads(await peer.messages(number, 1)) == [("BINARY", "COMPLETE", payload)]

    asyncio.run(main())


def test_a_client_that_goes_takes_its_session_along() -> None:
    async def main() -> None:
        async with standin() as (server, container):
            async with client(server) as peer:
                number = await peer.request(Signer().request(server.port))
                await peer.headers(number)
                await peer.reset(number)
                await container.ended.wait()
                container.ended.clear()
                await peer.headers(await peer.request(Signer().request(server.port)))
            await container.ended.wait()
            assert container.closed == [1001, 1001]
            assert ended(server) == ["client lost", "client lost"]

    asyncio.run(main())


def test_sessions_over_their_number_are_throttled() -> None:
    async def main() -> None:
        async with standin(max_sessions=1) as (server, container), client(server) as peer:
            first = await peer.request(Signer().request(server.port))
            await peer.headers(first)
            second = await peer.end(await peer.request(Signer().request(server.port)))
            assert second.headers[":status"] == "400"
            assert second.headers["x-amzn-errortype"] == "ThrottlingException"
            await peer.reset(first)
            await container.ended.wait()
            await eventually(lambda: server.active == 0)
            third = await peer.request(Signer().request(server.port))
            assert (await peer.headers(third))[":status"] == "200"

    asyncio.run(main())


def test_the_container_is_pinged_and_given_up() -> None:
    async def main() -> None:
        async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
            accept = accept_key(key.decode())
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n"
            )
            pings.append((await reader.read()).count(b"\x89\x80"))
            writer.close()

        pings: list[int] = []
        async with await asyncio.start_server(deaf, "127.0.0.1", 0) as other:
            url = f"ws://127.0.0.1:{other.sockets[0].getsockname()[1]}/x"
            async with (
                asyncio.timeout(WITHIN),
                Standin(url, ping_every=0.01) as server,
                client(server) as peer,
            ):
                got = await peer.end(await peer.request(Signer().request(server.port)))
                assert kinds(got.readable()) == ["ModelStreamError"]
                assert ended(server) == ["container 1006"]
                await asyncio.sleep(0)
        assert pings == [5]

    asyncio.run(main())


def test_what_a_client_sends_after_the_end_does_not_stop_it() -> None:
    async def main() -> None:
        async with standin(faults=("end",)) as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            assert (await peer.end(number)).ended == "end"
            for _ in range(10):  # ten times what the window of a stream allows
                await peer.send(number, signer.event(part(bytes(60_000))))
            await peer.send(number, signer.event(None), end=True)
            after = await peer.request(Signer().request(server.port))
            assert (await peer.headers(after))[":status"] == "200"

    asyncio.run(main())


def test_two_sessions_share_a_connection_and_nothing_else() -> None:
    async def main() -> None:
        async with standin() as (server, container), client(server) as peer:
            signers = [Signer(), Signer()]
            numbers = [await peer.request(signer.request(server.port)) for signer in signers]
            for word in (b"one", b"two", b"three"):
                for at, signer in enumerate(signers):
                    event = signer.event(part(word + bytes([48 + at])))
                    await peer.send(numbers[at], event)
            for at, number in enumerate(numbers):
                got = [message.payload for message in await peer.messages(number, 3)]
                assert got == [word + bytes([48 + at]) for word in (b"one", b"two", b"three")]
            assert len(container.targets) == server.active == 2

    asyncio.run(main())


def test_what_is_no_http2_is_closed() -> None:
    async def main() -> None:
        async with standin() as (server, _):
            context = ssl.create_default_context(cadata=server.ca_pem.decode())
            context.set_alpn_protocols(["h2"])
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
            )
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while await reader.read(1000):
                pass
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while await reader.read(1000):
                pass
            writer.close()
            async with client(server) as peer:
                await peer.headers(await peer.request(Signer().request(server.port)))

    asyncio.run(main())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_is_new_enough(version: ssl.TLSVersion) -> None:
    async def main() -> None:
        async with standin() as (server, _):
            context = ssl.create_default_context(cadata=server.ca_pem.decode())
            context.set_alpn_protocols(["h2"])
            context.minimum_version = context.maximum_version = version
            _, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
            )
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
            writer.close()

    asyncio.run(main())


def test_it_ends_while_sessions_are_open() -> None:
    async def main() -> None:
        async with ContainerServer() as container, asyncio.timeout(WITHIN):
            server = Standin(container.url)
            async with server:
                peer = client(server)
                await peer.__aenter__()
                number = await peer.request(Signer().request(server.port))
                await peer.headers(number)
            assert (await peer.end(number)).ended in {"lost", "reset"}
            await peer.__aexit__(None, None, None)
            await container.ended.wait()
            assert container.closed == [1001]
            assert server.active == 0

    asyncio.run(main())


def test_a_client_that_has_said_goodbye_need_not_wait() -> None:
    async def main() -> None:
        async with standin(faults=("slow-reader:0",)) as (server, container):
            async with client(server) as peer:
                signer = Signer()
                number = await peer.request(signer.request(server.port))
                await peer.headers(number)
                await peer.send(number, signer.event(None), end=True)
                after = await peer.request(Signer().request(server.port, path="/"))
                await peer.end(after)  # by now the goodbye has come, too
            await eventually(lambda: bool(server.sessions[0].ended))
            assert ended(server) == ["client", "refused UnknownOperationException"]
            await container.ended.wait()

    asyncio.run(main())


def test_a_stand_in_that_ends_says_so_of_its_sessions() -> None:
    lines: list[str] = []

    async def main() -> None:
        async with (
            ContainerServer() as container,
            Standin(container.url, log=lines.append) as server,
            client(server) as peer,
        ):
            await peer.headers(await peer.request(Signer().request(server.port)))
            await server.__aexit__(None, None, None)
            assert ended(server) == ["stopped"]
            await container.ended.wait()
            assert container.closed == [1001]

    asyncio.run(main())
    assert len(lines) == 1


def test_a_line_tells_of_every_session_that_is_over() -> None:
    lines: list[str] = []

    async def main() -> None:
        async with (
            standin(log=lines.append, max_sessions=1, endpoint="one") as (server, container),
            client(server) as peer,
        ):
            signer = Signer()
            number = await peer.request(signer.request(server.port, endpoint="one"))
            await peer.send(number, signer.event(part(b"words of somebody")))
            await peer.messages(number, 1)
            refused = await peer.request(Signer().request(server.port, endpoint="one"))
            await peer.end(refused)
            await peer.end(await peer.request(Signer().request(server.port, endpoint="two")))
            await peer.send(number, signer.event(None), end=True)
            await peer.end(number)
            await container.ended.wait()
            await eventually(lambda: len(lines) == 3)

    asyncio.run(main())
    told = [re.sub(r": \d+\.\d s,", ": T s,", line) for line in lines]
    assert told == [
        "Session 2 at one: T s, 0 events in, 0 out, ended: refused ThrottlingException",
        "Session 3: T s, 0 events in, 0 out, ended: refused InputValidationError",
        "Session 1 at one: T s, 1 events in, 1 out, ended: client",
    ]


@pytest.mark.parametrize(("ahead", "status"), [(0.0, "200"), (36_000.0, "403")])
def test_every_answer_says_what_time_it_is(ahead: float, status: str) -> None:
    async def main() -> None:
        async with (
            standin(clock=lambda: time.time() + ahead) as (server, _),
            client(server) as peer,
        ):
            headers = await peer.headers(await peer.request(Signer().request(server.port)))
            assert headers[":status"] == status
            assert headers["date"].endswith(" GMT")
            told = parsedate_to_datetime(headers["date"]).timestamp()
            assert abs(told - time.time() - ahead) < 10 * WITHIN

    asyncio.run(main())
