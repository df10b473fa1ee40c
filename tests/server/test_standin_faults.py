"""Faults to order, as they look on the wire."""

import asyncio
import ssl

import pytest

from fakes.container import counting
from fakes.h2_client import Signer, part
from fakes.standing_in import client, ended, eventually, kinds, standin
from surtitle.server.event_stream import Message
from surtitle.server.sagemaker import Standin


def payloads(messages: list[Message]) -> list[tuple[object, object, bytes]]:
    return [
        (message.headers["DataType"], message.headers["CompletionState"], message.payload)
        for message in messages
    ]


EARLY = [
    ("http:400", "400", "InputValidationError"),
    ("http:400/ThrottlingException", "400", "ThrottlingException"),
    ("http:403", "403", "AccessDeniedException"),
    ("http:424", "424", "ModelError"),
    ("http:429", "429", "ThrottlingException"),
    ("http:500", "500", "InternalServerError"),
    ("http:503", "503", "ServiceUnavailableError"),
    ("expired-token", "403", "ExpiredTokenException"),
    ("busy", "400", "ThrottlingException"),
]


@pytest.mark.parametrize(("fault", "status", "error"), EARLY)
def test_http_errors_to_order(fault: str, status: str, error: str) -> None:
    async def main() -> None:
        async with standin(faults=(fault,)) as (server, container), client(server) as peer:
            got = await peer.end(await peer.request(Signer().request(server.port)))
            assert (got.ended, got.headers[":status"]) == ("end", status)
            assert got.headers["x-amzn-errortype"] == error
            assert ("x-amz-retry-after" in got.headers) == (error == "ThrottlingException")
            assert not container.targets
            after = await peer.request(Signer().request(server.port))
            assert (await peer.headers(after))[":status"] == "200"  # it was for one session only

    asyncio.run(main())


def test_an_error_without_an_end_stays_open() -> None:
    async def main() -> None:
        async with standin(faults=("http-open:503",)) as (server, _), client(server) as peer:
            number = await peer.request(Signer().request(server.port))
            await peer.until(lambda: bool(peer.answer(number).body))
            assert peer.answer(number).headers[":status"] == "503"
            after = await peer.request(Signer().request(server.port))
            await peer.headers(after)
            assert not peer.answer(number).ended

    asyncio.run(main())


def test_a_request_that_stalls_gets_nothing() -> None:
    async def main() -> None:
        async with standin(faults=("stall",)) as (server, _), client(server) as peer:
            number = await peer.request(Signer().request(server.port))
            after = await peer.request(Signer().request(server.port))
            await peer.headers(after)
            assert peer.answer(number).headers == {}
            assert not peer.answer(number).ended
            await peer.reset(number)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "how"),
    [("rst-early", "reset"), ("goaway-early", "goaway"), ("abort-early", "lost")],
)
def test_breaking_off_before_the_headers(fault: str, how: str) -> None:
    async def main() -> None:
        async with standin(faults=(fault,)) as (server, container), client(server) as peer:
            got = await peer.end(await peer.request(Signer().request(server.port)))
            assert (got.ended, got.headers) == (how, {})
            assert not container.targets
            assert ended(server) == [f"fault {fault}"]

    asyncio.run(main())


LATE = [
    ("rst@2", "reset", ["PayloadPart"] * 2),
    ("goaway@2", "goaway", ["PayloadPart"] * 2),
    ("abort@2", "lost", ["PayloadPart"] * 2),
    ("end@2", "end", ["PayloadPart"] * 2),
    ("end", "end", []),
    ("model-error@1", "end", ["PayloadPart", "ModelStreamError"]),
    ("internal-failure@1", "end", ["PayloadPart", "InternalStreamFailure"]),
    ("unknown-exception", "end", ["ExceptionOfTheFuture"]),
    ("error-event@1", "end", ["PayloadPart", "InternalError"]),
    ("unknown-event@1+end@2", "end", ["PayloadPart", "EventOfTheFuture", "PayloadPart"]),
    ("initial-response+end@1", "end", ["initial-response", "PayloadPart"]),
    ("bad-crc@1", "end", ["PayloadPart", "broken"]),
    ("cut-event@1", "end", ["PayloadPart", "broken"]),
    ("close:1000@1", "end", ["PayloadPart"]),
    ("close:1012@1", "end", ["PayloadPart", "ModelStreamError"]),
    ("delay:0.01+end@1", "end", ["PayloadPart"]),
    ("cut:0.05/error", "end", [*["PayloadPart"] * 5, "ModelStreamError"]),
    ("cut:0.05/rst", "reset", ["PayloadPart"] * 5),
    ("cut:0.05/goaway", "goaway", ["PayloadPart"] * 5),
    ("cut:0.05", "end", ["PayloadPart"] * 5),
]


@pytest.mark.parametrize(("fault", "how", "told"), LATE)
def test_faults_of_a_stream(fault: str, how: str, told: list[str]) -> None:
    async def main() -> None:
        async with standin(counting, faults=(fault,)) as (server, container):
            async with client(server) as peer:
                got = await peer.end(await peer.request(Signer().request(server.port)))
                assert got.headers[":status"] == "200"
                assert (got.ended, kinds(got.readable())) == (how, told)
                await container.ended.wait()
                assert container.closed == [1001]
                last = fault.rpartition("+")[2].partition("@")[0].partition(":")[0]
                assert ended(server) == [f"fault {last}"]
            async with client(server) as peer:  # it was for one session only
                number = await peer.request(Signer().request(server.port))
                assert kinds([*await peer.messages(number, 5)]) == ["PayloadPart"] * 5

    asyncio.run(main())


def test_a_stream_that_falls_silent_stays_open() -> None:
    async def main() -> None:
        async with standin(faults=("mute@1",)) as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            for word in (b"one", b"two"):
                await peer.send(number, signer.event(part(word)))
            await peer.messages(number, 1)
            after = await peer.request(Signer().request(server.port))
            await peer.headers(after)
            assert [message.payload for message in peer.answer(number).messages()] == [b"one"]
            assert not peer.answer(number).ended

    asyncio.run(main())


def test_texts_split_inside_a_character() -> None:
    async def main() -> None:
        async with standin(faults=("split",)) as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            for word in ("año", "ab", "x"):
                await peer.send(number, signer.event(part(word.encode())))
            got = payloads(await peer.messages(number, 5))
            assert got == [
                ("UTF8", "PARTIAL", b"a\xc3"),
                ("UTF8", "COMPLETE", b"\xb1o"),
                ("UTF8", "PARTIAL", b"a"),
                ("UTF8", "COMPLETE", b"b"),
                ("UTF8", "COMPLETE", b"x"),
            ]

    asyncio.run(main())


def test_a_slow_reader_gives_no_window_back() -> None:
    async def main() -> None:
        async with standin(faults=("slow-reader:0",)) as (server, _), client(server) as peer:
            signer = Signer()
            number = await peer.request(signer.request(server.port))
            await peer.headers(number)
            await peer.send(number, signer.event(part(bytes(60_000))))
            after = await peer.request(Signer().request(server.port))
            await peer.headers(after)  # whatever there was to come has come
            assert peer.room(number) < 6_000
            assert server.sessions[0].events_in == 0

    asyncio.run(main())


async def session_after(server: Standin) -> None:
    """A session without a fault, on a connection of its own."""
    async with client(server) as peer:
        assert (await peer.headers(await peer.request(Signer().request(server.port))))[
            ":status"
        ] == "200"


async def connect(server: Standin) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


def test_a_connection_that_stalls_says_nothing() -> None:
    async def main() -> None:
        async with standin(faults=("stall-tcp",)) as (server, _):
            reader, writer = await connect(server)
            writer.write(b"anything")
            await session_after(server)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await reader.read(1)
            writer.close()

    asyncio.run(main())


def test_a_connection_that_is_reset_at_once() -> None:
    async def main() -> None:
        async with standin(faults=("abort-tcp",)) as (server, _):
            reader, writer = await connect(server)
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.close()
            await session_after(server)

    asyncio.run(main())


def test_tls_and_then_nothing() -> None:
    async def main() -> None:
        async with standin(faults=("stall-tls",)) as (server, _):
            async with client(server) as peer:
                number = await peer.request(Signer().request(server.port))
                await session_after(server)
                assert peer.answer(number).headers == {}
                assert not peer.answer(number).ended
            assert len(server.sessions) == 1

    asyncio.run(main())


def test_a_server_of_http_1_only() -> None:
    async def main() -> None:
        async with standin(faults=("h1",)) as (server, _):
            context = ssl.create_default_context(cadata=server.ca_pem.decode())
            context.set_alpn_protocols(["h2", "http/1.1"])
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
            )
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 505 ")
            writer.close()
            await session_after(server)

    asyncio.run(main())


def test_a_certificate_of_somebody_else() -> None:
    async def main() -> None:
        async with standin(faults=("untrusted-ca",)) as (server, _):
            with pytest.raises(ssl.SSLCertVerificationError):
                await session_after(server)
            await session_after(server)

    asyncio.run(main())


def test_a_port_that_refuses_and_then_listens_again() -> None:
    async def main() -> None:
        async with standin(faults=("refuse:0.2", None, "end", "refuse:0.2")) as (server, _):
            with pytest.raises(ConnectionRefusedError):
                await session_after(server)
            await eventually(lambda: server.listening)
            await session_after(server)
            async with client(server) as peer:
                got = await peer.end(await peer.request(Signer().request(server.port)))
                assert got.ended == "end"
                # When the client knows that it has ended, nobody listens any more.
                with pytest.raises(ConnectionRefusedError):
                    await session_after(server)
                # A connection that is open goes on.
                number = await peer.request(Signer().request(server.port))
                assert (await peer.headers(number))[":status"] == "200"
            await eventually(lambda: server.listening)
            await session_after(server)

    asyncio.run(main())


def test_faults_are_told_off_one_by_one() -> None:
    async def main() -> None:
        async with standin(faults=("http:503", None, "http:500")) as (server, _):
            statuses = []
            async with client(server) as peer:
                for _ in range(4):
                    number = await peer.request(Signer().request(server.port))
                    statuses.append((await peer.headers(number))[":status"])
                server.order("http:429", "stall-tls")
                number = await peer.request(Signer().request(server.port))
                statuses.append((await peer.headers(number))[":status"])
                number = await peer.request(Signer().request(server.port))  # not a new connection
                statuses.append((await peer.headers(number))[":status"])
            assert statuses == ["503", "200", "500", "200", "429", "200"]

    asyncio.run(main())
