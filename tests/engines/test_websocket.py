"""The WebSocket transport, over real sockets on loopback, against a peer that follows a script."""

import asyncio
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes.websocket_peer import Authority, Conversation, Script, WebSocketPeer, answer
from surtitle.core.errors import Decision, SurtitleError, UsageError
from surtitle.core.server_address import parse_server_address
from surtitle.engines.websocket import WebSocketLimits, WebSocketTransport

if TYPE_CHECKING:
    from surtitle.engines.transport import Transport

KEY = "sk-hunter2-SECRET"
QUERY = "token=QUERY-SECRET"
RETRY, RECONFIGURE = Decision.RETRY, Decision.RECONFIGURE
QUICK = WebSocketLimits(opening=2.0, sending=0.3, closing=0.4)
PATIENCE = 10.0


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "ws", "wss", "socks", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


def to(
    url: str,
    *,
    key: str = KEY,
    ca_bundle: Path | None = None,
    limits: WebSocketLimits = QUICK,
) -> WebSocketTransport:
    address = parse_server_address(f"{url}/v1/realtime?{QUERY}", allow_plaintext=True)
    return WebSocketTransport(address, key=key, ca_bundle=ca_bundle, limits=limits)


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await work

    asyncio.run(bounded())


async def failure(work: Awaitable[object]) -> SurtitleError:
    """The error that must come; nothing about it may tell a secret."""
    with pytest.raises(SurtitleError) as caught:
        await work
    error: BaseException | None = caught.value
    assert "SECRET" not in f"{error}{error!r}"
    while error is not None:
        assert not any(secret in f"{error}{error!r}" for secret in (KEY, QUERY, "hunter"))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert caught.value.message.endswith(".")
    assert caught.value.remedy.endswith(".")
    return caught.value


async def refused(
    script: Script,
    *,
    key: str = KEY,
    tls: ssl.SSLContext | None = None,
    ca_bundle: Path | None = None,
) -> SurtitleError:
    """How opening a connection to such a peer fails."""
    async with WebSocketPeer(script, tls=tls) as peer:
        url = peer.url
        transport = to(url, key=key, ca_bundle=ca_bundle)
        error = await failure(transport.open())
        await transport.close()
    return error


def test_it_is_a_transport() -> None:
    transport: Transport = to("ws://gpu.home:8000")
    assert transport.place == "to gpu.home, not encrypted"
    assert "SECRET" not in repr(transport)


def test_frames_go_both_ways_in_order() -> None:
    heads: list[dict[str, str]] = []
    large = "é" * 200_000

    async def script(it: Conversation) -> None:
        heads.append(await it.accept())
        for _ in range(3):
            await it.text(await it.hear())
        assert await it.until_closed() == 1000

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            for text in ("one", "", large):
                await transport.send(text)
            assert [await transport.receive() for _ in range(3)] == ["one", "", large]
            await transport.close()

    run(work())
    assert heads[0][""] == f"GET /v1/realtime?{QUERY} HTTP/1.1"
    assert heads[0]["authorization"] == f"Bearer {KEY}"
    assert "sec-websocket-extensions" not in heads[0]


def test_without_a_key_none_is_sent() -> None:
    async def script(it: Conversation) -> None:
        assert "authorization" not in await it.accept()
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url, key="")
            await transport.open()
            await transport.close()

    run(work())


def test_the_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.text("caption-SECRET")
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            await transport.send("sound-SECRET")
            await transport.receive()
            await transport.close()

    with caplog.at_level(logging.DEBUG):
        run(work())
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("key", ["sk-SECRET\r\nX: y", "sk SECRET", "clé-SECRET"])
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is(key: str) -> None:
    async def work() -> None:
        error = await failure(to("ws://127.0.0.1:9", key=key).open())
        assert isinstance(error, UsageError)
        assert error.field == "--api-key-env"

    run(work())


def http(status: int, *headers: str, body: str = "") -> Script:
    async def script(it: Conversation) -> None:
        await it.request()
        await it.raw(answer(status, *headers, body=body))

    return script


@pytest.mark.parametrize(
    ("status", "key", "message", "remedy", "outcome"),
    [
        (401, KEY, "does not accept the key", "keyring", (RECONFIGURE, "--api-key-env")),
        (401, "", "wants a key", "--api-key-env", (RECONFIGURE, "--api-key-env")),
        (403, KEY, "no captions at /v1/realtime", "slash", (RECONFIGURE, "--url")),
        (404, KEY, "nothing at /v1/realtime", "Check the path", (RECONFIGURE, "--url")),
        (400, KEY, "does not understand", "wss://", (RECONFIGURE, "--url")),
        (426, KEY, "not answer like a WebSocket", "/v1/realtime", (RECONFIGURE, "--url")),
        (405, KEY, "not answer like a WebSocket", "/v1/realtime", (RECONFIGURE, "--url")),
        (200, KEY, "not answer like a WebSocket", "/v1/realtime", (RECONFIGURE, "--url")),
        (204, KEY, "not answer like a WebSocket", "/v1/realtime", (RECONFIGURE, "--url")),
        (500, KEY, "failed when it was to check the key", "vLLM", (RECONFIGURE, "--api-key-env")),
        (500, "", "failed", "tried again", (RETRY, "")),
        (501, KEY, "failed", "tried again", (RETRY, "")),
        (408, KEY, "not ready", "tried again", (RETRY, "")),
        (429, KEY, "no room", "tried again", (RETRY, "")),
        (502, KEY, "not ready", "tried again", (RETRY, "")),
        (503, KEY, "not ready", "tried again", (RETRY, "")),
        (504, KEY, "not ready", "tried again", (RETRY, "")),
    ],
)
def test_an_answer_that_is_no_upgrade(
    status: int, key: str, message: str, remedy: str, outcome: tuple[Decision, str]
) -> None:
    async def work() -> None:
        error = await refused(http(status, body=f"no {key}"), key=key)
        assert message in error.message
        assert f"(HTTP {status})" in error.message
        assert remedy in error.remedy
        assert (error.decision, error.field, error.retry_after) == (*outcome, None)

    run(work())


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (503, "17", 17.0),
        (429, "0", 0.0),
        (429, "999999", 600.0),
        (429, "Fri, 31 Dec 2026 23:59:59 GMT", None),
        (429, "-1", None),
        (429, "²", None),
        (404, "17", None),
    ],
)
def test_when_to_come_back(status: int, header: str, expected: float | None) -> None:
    async def work() -> None:
        script = http(status, f"Retry-After: {header}", "Retry-After: 3")
        assert (await refused(script)).retry_after == expected

    run(work())


@pytest.mark.parametrize(
    ("location", "remedy"),
    [
        ("https://other.home/v1/realtime?x=SECRET", "write wss://other.home/v1/realtime in"),
        ("ws://other.home:8000/x", "write ws://other.home:8000/x in"),
        (f"https://other.home/{KEY}", "Check --url."),
        ("/login", "Check --url."),
        (f"https://me:{KEY}@other.home", "Check --url."),
        ("", "Check --url."),
    ],
)
def test_a_redirect_is_not_followed(location: str, remedy: str) -> None:
    async def work() -> None:
        async with WebSocketPeer(http(307, f"Location: {location}")) as peer:
            error = await failure(to(peer.url).open())
            assert peer.connections == 1
        assert "has moved (HTTP 307)" in error.message
        assert remedy in error.remedy
        assert (error.decision, error.field) == (RECONFIGURE, "--url")

    run(work())


def bytes_instead(data: bytes) -> Script:
    async def script(it: Conversation) -> None:
        await it.request()
        await it.raw(data)

    return script


async def hangs_up(it: Conversation) -> None:
    await it.request()


async def resets(it: Conversation) -> None:
    await it.request()
    it.cut()


async def picks_a_protocol(it: Conversation) -> None:
    await it.accept("Sec-WebSocket-Protocol: realtime")


async def compresses(it: Conversation) -> None:
    await it.accept("Sec-WebSocket-Extensions: permessage-deflate")


@pytest.mark.parametrize(
    ("script", "message", "decision", "field"),
    [
        (hangs_up, "closed the connection instead of answering", RETRY, ""),
        (resets, "closed the connection instead of answering", RETRY, ""),
        (bytes_instead(b"HTTP/1.1 200"), "closed the connection", RETRY, ""),
        (bytes_instead(b"SSH-2.0-x\r\n\r\n"), "like a WebSocket server", RECONFIGURE, "--url"),
        (bytes_instead(b"HTTP/1.0 404 No\r\n\r\n"), "like a WebSocket", RECONFIGURE, "--url"),
        (bytes_instead(b"x" * 100_000 + b"\r\n"), "like a WebSocket", RECONFIGURE, "--url"),
        (bytes_instead(answer(101)), "like a WebSocket server", RECONFIGURE, "--url"),
        (
            bytes_instead(
                answer(
                    *(101, "Upgrade: websocket", "Connection: Upgrade"),
                    f"Sec-WebSocket-Accept: {KEY}",
                )
            ),
            *("like a WebSocket server", RECONFIGURE, "--url"),
        ),
        (picks_a_protocol, "like a WebSocket server", RECONFIGURE, "--url"),
        (compresses, "like a WebSocket server", RECONFIGURE, "--url"),
    ],
)
def test_a_peer_that_is_something_else(
    script: Script, message: str, decision: Decision, field: str
) -> None:
    async def work() -> None:
        error = await refused(script)
        assert message in error.message
        assert (error.decision, error.field) == (decision, field)

    run(work())


async def waits(it: Conversation) -> None:
    await it.until_gone()


def test_a_peer_that_never_answers() -> None:
    async def work() -> None:
        async with WebSocketPeer(waits) as peer:
            transport = to(peer.url, limits=WebSocketLimits(opening=0.2))
            error = await failure(transport.open())
            await transport.close()
        assert "does not answer" in error.message
        assert (error.decision, error.field) == (RETRY, "--url")

    run(work())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_nobody_listens(host: str) -> None:
    async def work() -> None:
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))  # taken, but not listened at
            port = line.getsockname()[1]
            error = await failure(to(f"ws://{host}:{port}").open())
        assert f"{host}:{port} refuses connections" in error.message
        assert (error.decision, error.field) == (RETRY, "--url")

    run(work())


def test_of_several_addresses_the_one_that_works_is_taken() -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url.replace("127.0.0.1", "localhost"))
            await transport.open()
            await transport.close()

    run(work())


@pytest.mark.skipif(sys.platform != "linux", reason="needs a full backlog to be passed over")
def test_an_address_that_leads_nowhere_does_not_take_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        with socket.socket() as hole, socket.socket() as first, socket.socket() as second:
            hole.bind(("127.0.0.1", 0))
            hole.listen(0)
            for line in (first, second):  # fill what waits to be accepted: the next are ignored
                line.settimeout(0)
                line.connect_ex(hole.getsockname())
            async with WebSocketPeer(echo) as peer:
                found = [
                    (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)
                    for address in (hole.getsockname(), ("127.0.0.1", peer.port))
                ]
                monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
                transport = to("ws://gpu.test", limits=WebSocketLimits(opening=0.6, closing=0.4))
                await transport.open()
                await transport.send("x")
                assert await transport.receive() == "x"
                await transport.close()

    run(work())


def look_up(result: Callable[[], Exception]) -> Callable[..., object]:
    """Look names of `.test` up as told, everything else as usual."""
    usual = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: int, **options: int) -> object:
        if host.endswith(".test"):
            raise result()
        return usual(host, port, *args, **options)

    return getaddrinfo


@pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_AGAIN, socket.EAI_FAIL])
def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", look_up(lambda: socket.gaierror(code, "in system's words"))
    )

    async def work() -> None:
        error = await failure(to("ws://gpu.test").open())
        assert "gpu.test cannot be found" in error.message
        assert (error.decision, error.field) == (RETRY, "--url")

    run(work())


def test_a_network_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", look_up(lambda: OSError(101, "Network is unreachable"))
    )

    async def work() -> None:
        error = await failure(to("ws://gpu.test").open())
        assert "cannot be reached (network is unreachable)" in error.message
        assert (error.decision, error.field) == (RETRY, "--url")

    run(work())


def test_a_look_up_that_hangs_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    threads: list[threading.Thread] = []
    waited_for: list[bool] = []

    def hang() -> Exception:
        threads.append(threading.current_thread())
        waited_for.append(not over.wait(2.0))
        return OSError("late")

    monkeypatch.setattr(socket, "getaddrinfo", look_up(hang))

    async def work() -> None:
        error = await failure(to("ws://gpu.test", limits=WebSocketLimits(opening=0.1)).open())
        assert "does not answer" in error.message

    run(work())  # would wait here for a thread of the loop's own
    over.set()
    for thread in threads:
        thread.join()
        assert thread.daemon
    assert waited_for == [False]


@pytest.mark.parametrize(
    ("code", "reason", "message", "outcome"),
    [
        (1000, "", "ended the session (code 1000)", (RETRY, "", None)),
        (1001, "bye", "ended the session (code 1001: “bye”)", (RETRY, "", None)),
        (None, "", "ended the session", (RETRY, "", None)),
        (1002, "", "does not understand", (RETRY, "", None)),
        (1003, "", "does not understand", (RETRY, "", None)),
        (1007, "", "does not understand", (RETRY, "", None)),
        (1008, "policy", "does not allow", (RECONFIGURE, "--api-key-env", None)),
        (1009, "frame exceeds limit", "that much at once (code 1009: “frame", (RETRY, "", None)),
        (1011, "keepalive ping timeout", "failed (code 1011", (RETRY, "", None)),
        (1012, "", "is being restarted", (RETRY, "", 3.0)),
        (1013, "", "no room", (RETRY, "", 5.0)),
        (1014, "", "not ready", (RETRY, "", None)),
        (3000, "", "does not allow", (RECONFIGURE, "--api-key-env", None)),
        (4401, "", "does not allow", (RECONFIGURE, "--api-key-env", None)),
        (4404, "", "nothing at /v1/realtime", (RECONFIGURE, "--url", None)),
        (4429, "", "no room", (RETRY, "", 5.0)),
        (4999, "", "ended the session (code 4999)", (RETRY, "", None)),
        (1008, "bad token QUERY-SECRET", "(code 1008)", (RECONFIGURE, "--api-key-env", None)),
        (1008, f"bad key {KEY}", "(code 1008)", (RECONFIGURE, "--api-key-env", None)),
        (1011, "a\nb", "(code 1011)", (RETRY, "", None)),
        (1011, "x" * 121, "(code 1011)", (RETRY, "", None)),
    ],
)
def test_the_peer_closes(
    code: int | None,
    reason: str,
    message: str,
    outcome: tuple[Decision, str, float | None],
) -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.text("the last word")
        await it.bye(code, reason)

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            assert await transport.receive() == "the last word"
            error = await failure(transport.receive())
            assert message in error.message
            assert (error.decision, error.field, error.retry_after) == outcome
            assert await failure(transport.send("more")) is error
            assert await failure(transport.receive()) is error
            await transport.close()

    run(work())


async def breaks_off(it: Conversation) -> None:
    await it.raw(b"\x81\x05wo")
    it.hang_up()


async def is_cut(it: Conversation) -> None:
    await it.raw(b"\x81\x05wo")
    await it.hear()
    it.cut()


async def sends_binary(it: Conversation) -> None:
    await it.binary(b"SECRET")
    await it.until_closed()


async def sends_no_text(it: Conversation) -> None:
    await it.raw(b"\x81\x01\xff")
    await it.until_closed()


async def sets_reserved_bits(it: Conversation) -> None:
    await it.raw(b"\xc1\x01x")
    await it.until_closed()


async def sends_too_much(it: Conversation) -> None:
    await it.text("x" * 1001)
    await it.until_closed()


async def answers_no_ping(it: Conversation) -> None:
    await it.until_gone()


async def says_goodbye_and_stays(it: Conversation) -> None:
    await it.raw(b"\x88\x02\x03\xe8")
    await it.until_gone()


@pytest.mark.parametrize(
    ("script", "message", "decision"),
    [
        (breaks_off, "is cut off", RETRY),
        (is_cut, "is cut off", RETRY),
        (sends_binary, "no Realtime message", RECONFIGURE),
        (sends_no_text, "no Realtime message", RECONFIGURE),
        (sets_reserved_bits, "no Realtime message", RECONFIGURE),
        (sends_too_much, "more than can be taken in", RETRY),
        (answers_no_ping, "no longer answers", RETRY),
        (says_goodbye_and_stays, "ended the session", RETRY),
    ],
)
def test_a_connection_that_breaks(script: Script, message: str, decision: Decision) -> None:
    async def whole(it: Conversation) -> None:
        await it.accept()
        await it.text("before")
        await script(it)

    async def work() -> None:
        ping = 0.1 if script is answers_no_ping else 60.0
        limits = WebSocketLimits(
            opening=2.0, closing=0.2, message=1000, ping_every=ping, pong_within=ping
        )
        async with WebSocketPeer(whole) as peer:
            transport = to(peer.url, limits=limits)
            await transport.open()
            if script is is_cut:
                await transport.send("now")
            assert await transport.receive() == "before"
            error = await failure(transport.receive())
            assert message in error.message
            assert error.decision is decision
            await transport.close()

    run(work())


def test_a_peer_that_stops_reading_is_noticed_by_who_sends() -> None:
    async def work() -> None:
        gone = asyncio.Event()

        async def script(it: Conversation) -> None:
            await it.accept()
            await gone.wait()

        limits = WebSocketLimits(sending=0.2, closing=0.4, send_buffer=4096)
        async with WebSocketPeer(script, buffer=4096) as peer:
            transport = to(peer.url, limits=limits)
            await transport.open()
            waiting = asyncio.create_task(transport.receive())

            async def send_on() -> None:
                for _ in range(1000):
                    await transport.send("x" * 4000)

            error = await failure(send_on())
            assert "no longer takes" in error.message
            assert error.decision is RETRY
            assert await failure(waiting) is error
            await transport.close()
            gone.set()

    run(work())


def test_closing_does_not_wait_for_a_peer_that_stopped_reading() -> None:
    async def work() -> None:
        gone = asyncio.Event()

        async def script(it: Conversation) -> None:
            await it.accept()
            await gone.wait()

        limits = WebSocketLimits(sending=60.0, closing=0.4, send_buffer=4096)
        async with WebSocketPeer(script, buffer=4096) as peer:
            transport = to(peer.url, limits=limits)
            await transport.open()

            async def send_on() -> None:
                while True:
                    await transport.send("x" * 4000)

            sending = asyncio.create_task(send_on())
            await asyncio.sleep(0.1)
            await transport.close()
            assert "closed here" in (await failure(sending)).message
            gone.set()

    run(work())


def test_pings_are_answered_while_nobody_receives() -> None:
    async def work() -> None:
        answered = asyncio.Event()

        async def script(it: Conversation) -> None:
            await it.accept()
            await it.text(*map(str, range(200)))
            await it.ping(b"there?")
            assert await it.receive() == (10, b"there?")
            answered.set()
            await it.until_closed()

        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            await answered.wait()
            assert [int(await transport.receive()) for _ in range(200)] == list(range(200))
            await transport.close()

    run(work())


@pytest.mark.parametrize(
    "limits",
    [
        WebSocketLimits(closing=0.4, frames=10),
        WebSocketLimits(closing=0.4, characters=35),
    ],
)
def test_what_does_not_fit_ends_it_in_the_open(limits: WebSocketLimits) -> None:
    sent = [f"{n:03}" for n in range(12)]

    async def script(it: Conversation) -> None:
        await it.accept()
        await it.text(*sent)
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url, limits=limits)
            await transport.open()
            await asyncio.sleep(0.1)
            received = []

            async def receive_on() -> None:
                while True:
                    received.append(await transport.receive())

            error = await failure(receive_on())
            assert "more than can be taken in" in error.message
            assert error.decision is RETRY
            assert received == sent[: len(received)]
            assert 10 <= len(received) <= 11
            await transport.close()

    run(work())


def test_a_receiver_that_keeps_up_is_not_bounded_by_what_came_in_all() -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        for number in range(100):
            await it.text(str(number))
            assert await it.hear() == "next"
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url, limits=WebSocketLimits(frames=1, characters=2))
            await transport.open()
            for number in range(100):
                assert await transport.receive() == str(number)
                await transport.send("next")
            await transport.close()

    run(work())


def test_no_frame_is_lost_by_cancelling_receive() -> None:
    count = 300

    async def script(it: Conversation) -> None:
        await it.accept()
        for number in range(count):
            await it.text(str(number))
            await asyncio.sleep(0)
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            received: list[int] = []
            rounds = 0
            while len(received) < count:
                rounds += 1
                task = asyncio.create_task(transport.receive())
                for _ in range(rounds % 4):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    received.append(int(task.result()))
            assert rounds > count, "nothing was ever cancelled"
            assert received == list(range(count))
            await transport.close()

    run(work())


def test_closed_before_it_was_opened() -> None:
    async def work() -> None:
        transport = to("ws://127.0.0.1:9")
        assert "closed here" in (await failure(transport.send("x"))).message
        assert "closed here" in (await failure(transport.receive())).message
        await transport.close()
        await transport.close()
        assert "closed here" in (await failure(transport.open())).message

    run(work())


@pytest.mark.parametrize("rounds", [0, 1, 2, 5, 20, 100, 500])
def test_closed_while_it_is_opened(rounds: int) -> None:
    async def script(it: Conversation) -> None:
        await it.until_gone()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            opening = asyncio.create_task(transport.open())
            for _ in range(rounds):
                await asyncio.sleep(0)
            await transport.close()
            for _ in range(3):
                await asyncio.sleep(0)
            assert opening.done()
            assert "closed here" in (await failure(opening)).message

    run(work())


def test_opening_is_cancelled() -> None:
    async def work() -> None:
        async with WebSocketPeer(waits) as peer:
            transport = to(peer.url)
            opening = asyncio.create_task(transport.open())
            await asyncio.sleep(0.05)
            opening.cancel()
            await asyncio.wait([opening])
            assert opening.cancelled()
            await transport.close()

    run(work())


def test_closing_ends_a_receive_that_waits_and_may_be_repeated() -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            waiting = asyncio.create_task(transport.receive())
            await asyncio.sleep(0)
            await asyncio.gather(transport.close(), transport.close())
            await transport.close()
            assert "closed here" in (await failure(waiting)).message
            assert "closed here" in (await failure(transport.send("x"))).message

    run(work())


def test_closing_does_not_wait_for_a_peer_that_does_not_answer() -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.until_gone()

    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            transport = to(peer.url)
            await transport.open()
            await transport.close()

    run(work())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208 - of the system


def test_twenty_connections_leave_nothing(authority: Authority) -> None:
    async def script(it: Conversation) -> None:
        await it.accept()
        await it.text(await it.hear())
        await it.until_closed()

    async def work() -> None:
        async with WebSocketPeer(script, tls=authority.server()) as peer:
            for number in range(20):
                transport = to(peer.url, ca_bundle=authority.bundle)
                await transport.open()
                await transport.send("x")
                assert await transport.receive() == "x"
                await transport.close()
                await asyncio.sleep(0.05)  # the peer lets go too
                if number == 2:
                    files, tasks = open_files(), len(asyncio.all_tasks())
            assert open_files() <= files
            assert len(asyncio.all_tasks()) <= tasks
            assert peer.connections == 20

    run(work())


async def echo(it: Conversation) -> None:
    await it.accept()
    await it.text(await it.hear())
    await it.until_closed()


@pytest.mark.parametrize("trusted", ["the authority", "the certificate itself"])
def test_encrypted_with_an_authority_of_ones_own(authority: Authority, trusted: str) -> None:
    async def work() -> None:
        async with WebSocketPeer(echo, tls=authority.server()) as peer:
            bundle = authority.bundle
            if trusted == "the certificate itself":
                bundle = authority.folder / "own.pem"
                pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", peer.port))
                bundle.write_text(pem)
                peer.failure = None  # it had expected a request
            transport = to(peer.url, ca_bundle=bundle)
            await transport.open()
            await transport.send("x" * 100_000)
            assert len(await transport.receive()) == 100_000
            await transport.close()
            peer.failure = None

    run(work())


@pytest.mark.parametrize(
    ("name", "days", "trusted", "message", "field"),
    [
        ("127.0.0.1", 1, False, "that no known authority signed", "--ca-bundle"),
        ("127.0.0.1", -1, True, "not valid today", "--url"),
        ("127.0.0.2", 1, True, "for another name", "--url"),
        ("gpu.home", 1, True, "for another name", "--url"),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted(
    authority: Authority, name: str, days: int, *, trusted: bool, message: str, field: str
) -> None:
    async def work() -> None:
        tls = authority.server(name=name, days=days)
        error = await refused(waits, tls=tls, ca_bundle=authority.bundle if trusted else None)
        assert message in error.message
        assert (error.decision, error.field) == (RECONFIGURE, field)

    run(work())


def test_another_name_in_the_certificate_than_was_asked_for(authority: Authority) -> None:
    async def work() -> None:
        async with WebSocketPeer(waits, tls=authority.server()) as peer:
            url = peer.url.replace("127.0.0.1", "localhost")
            error = await failure(to(url, ca_bundle=authority.bundle).open())
        assert "for another name" in error.message

    run(work())


async def speaks_first(it: Conversation) -> None:
    await it.raw(b"SSH-2.0-OpenSSH_9.2\r\n")
    await it.until_gone()


async def answers_what_it_cannot_read(it: Conversation) -> None:
    await it.reader.read(1)
    await it.raw(answer(400))
    await it.until_gone()


async def hangs_up_at_once(it: Conversation) -> None:
    await it.reader.read(1)


async def sends_an_alert(it: Conversation) -> None:
    await it.reader.read(1)
    await it.raw(bytes([21, 3, 3, 0, 2, 2, 40]))  # handshake_failure
    await it.until_gone()


@pytest.mark.parametrize(
    ("script", "message", "decision"),
    [
        (speaks_first, "does not speak TLS", RECONFIGURE),
        (answers_what_it_cannot_read, "does not speak TLS", RECONFIGURE),
        (sends_an_alert, "agrees on no encryption", RECONFIGURE),
        (hangs_up_at_once, "closed the connection", RETRY),
    ],
)
def test_encryption_is_asked_of_who_has_none(
    script: Script, message: str, decision: Decision
) -> None:
    async def work() -> None:
        async with WebSocketPeer(script) as peer:
            error = await failure(to(peer.url.replace("ws:", "wss:")).open())
            peer.failure = None
        assert message in error.message
        assert error.decision is decision

    run(work())


def test_no_encryption_is_asked_of_who_wants_it(authority: Authority) -> None:
    async def work() -> None:
        async with WebSocketPeer(waits, tls=authority.server()) as peer:
            error = await failure(to(peer.url.replace("wss:", "ws:")).open())
        assert "wss://" in error.remedy

    run(work())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: no such file"),
        ("folder", "cannot be read: is a directory"),
        (b"", "holds no certificate"),
        (b"no PEM", "holds no certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate"),
    ],
)
def test_a_file_of_certificates_that_is_none(
    tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    bundle = tmp_path / "authority.pem"
    if isinstance(content, bytes):
        bundle.write_bytes(content)
    elif content is not None:
        bundle.mkdir()

    async def work() -> None:
        error = await failure(to("wss://127.0.0.1:9", ca_bundle=bundle).open())
        assert isinstance(error, UsageError)
        assert message in error.message
        assert (error.decision, error.field) == (RECONFIGURE, "--ca-bundle")

    run(work())


def proxy(script: Script, *, status: int = 200) -> Script:
    """A proxy that leads to a peer with that script, or says why not."""

    async def whole(it: Conversation) -> None:
        head = await it.request()
        assert head[""] == "CONNECT gpu.test:8000 HTTP/1.1"
        assert "authorization" not in head
        await it.raw(f"HTTP/1.1 {status} So\r\n\r\n".encode())
        if status == 200:
            await script(it)

    return whole


def test_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with WebSocketPeer(proxy(echo)) as peer:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{peer.port}")
            transport = to("ws://gpu.test:8000")
            await transport.open()
            await transport.send("x")
            assert await transport.receive() == "x"
            await transport.close()

    run(work())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_stands_before_this_computer(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def work() -> None:
        async with WebSocketPeer(echo) as peer:
            transport = to(f"ws://{host}:{peer.port}")
            await transport.open()
            await transport.send("x")
            await transport.close()

    run(work())


def test_a_proxy_can_be_gone_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "gpu.test")
    monkeypatch.setattr(socket, "getaddrinfo", look_up(lambda: socket.gaierror(-2, "none")))

    async def work() -> None:
        assert "cannot be found" in (await failure(to("ws://gpu.test:8000").open())).message

    run(work())


@pytest.mark.parametrize(
    ("status", "message", "decision", "field"),
    [
        (407, "asks for a name and a password", RECONFIGURE, "https_proxy"),
        (403, "does not let the connection through", RECONFIGURE, "https_proxy"),
        (405, "does not let the connection through", RECONFIGURE, "https_proxy"),
        (502, "does not reach the server", RETRY, ""),
        (503, "does not reach the server", RETRY, ""),
    ],
)
def test_a_proxy_that_does_not_lead_there(
    monkeypatch: pytest.MonkeyPatch, status: int, message: str, decision: Decision, field: str
) -> None:
    async def work() -> None:
        async with WebSocketPeer(proxy(waits, status=status)) as peer:
            monkeypatch.setenv("http_proxy", f"http://me:hunter-SECRET@127.0.0.1:{peer.port}")
            error = await failure(to("ws://gpu.test:8000").open())
        assert f"The proxy 127.0.0.1:{peer.port} before gpu.test:8000 {message}" in error.message
        assert f"(HTTP {status})" in error.message
        assert (error.decision, error.field) == (decision, field)

    run(work())


@pytest.mark.parametrize(
    ("url", "message", "decision"),
    [
        ("http://127.0.0.1:9", "cannot be reached", RETRY),
        ("http://proxy.test:8080", "cannot be reached", RETRY),
        ("http://me:SECRET@:0", "address is wrong", RECONFIGURE),
        ("http://127.0.0.1:SECRET", "address is wrong", RECONFIGURE),
        ("ftp://SECRET@127.0.0.1", "address is wrong", RECONFIGURE),
        ("socks5h://me:SECRET@127.0.0.1:9", "SOCKS proxy", RECONFIGURE),
    ],
)
def test_a_proxy_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, url: str, message: str, decision: Decision
) -> None:
    monkeypatch.setenv("https_proxy", url)
    monkeypatch.setattr(socket, "getaddrinfo", look_up(lambda: socket.gaierror(-2, "none")))

    async def work() -> None:
        error = await failure(to("wss://gpu.home").open())
        assert message in error.message
        assert "no_proxy=gpu.home" in error.remedy
        assert (error.decision, error.field) == (decision, "https_proxy")

    run(work())


def test_no_proxy_at_all_behind_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with WebSocketPeer(bytes_instead(b"SSH-2.0-x\r\n\r\n")) as peer:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{peer.port}")
            error = await failure(to("ws://gpu.test:8000").open())
        assert "does not let the connection through" in error.message

    run(work())
