"""The local stand-in of the SageMaker runtime: the real client and a real container, no AWS."""

import asyncio
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from surtitle.core.errors import SurtitleError
from surtitle.server.certificates import issue, server_context, write_private
from surtitle.server.container import address
from surtitle.server.faults import Cut, Fault, FaultKind, Stage, parse_plan
from surtitle.server.http2 import Connection, Stream, reset_on_close
from surtitle.server.options import cannot_listen, check_limit, check_place, listen
from surtitle.server.records import SessionRecord, session_line
from surtitle.server.session import InvocationSession, Terms
from surtitle.server.sigv4 import STANDIN_CREDENTIALS, Credentials

__all__ = ["Standin"]

_READ = 65_536
_HANDSHAKE_WITHIN = 10.0
_CLOSE_WITHIN = 5.0
_MAX_CONNECTIONS = 256
_RECORDS = 1000
_LISTEN_AGAIN_WITHIN = 5.0
_NO_HTTP1 = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class _Paused(asyncio.Protocol):
    """Leaves what the client sends where it is, for TLS to read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)  # noqa: S101 - of a socket
        transport.pause_reading()


class _OverTls(asyncio.StreamReaderProtocol):
    """Knows that it is over TLS, where there is no half-closed state, from its first byte."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


class Standin:
    """Speaks as `runtime.sagemaker.REGION.amazonaws.com:8443` does; a context manager.

    Args:
        container: The WebSocket of the container, such as
            `ws://127.0.0.1:8080/invocations-bidirectional-stream`.
        host: The address to listen at.
        port: The port; 0 takes a free one.
        faults: One item for each attempt to come, None or '' for one without a fault: faults
            as `parse_fault` reads them, joined by `+`.
        credentials: Who may come in.
        endpoint: The only endpoint there is; any if None.
        session_limit: Seconds after which a session is cut.
        cut: How.
        max_sessions: How many at a time; more are refused as throttled.
        report_normal_close: A container that closes with 1000 is reported as ModelStreamError;
            otherwise the stream just ends.
        accept_within: Seconds in which a container must accept.
        ping_every: Seconds between pings to it.
        drain_within: Seconds in which it must close when the client has ended.
        clock: Seconds since 1970-01-01, UTC.
        log: Is told a line about every session that is over.

    Raises:
        UsageError: An argument cannot be meant.
    """

    def __init__(
        self,
        container: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Sequence[str | None] = (),
        credentials: Credentials = STANDIN_CREDENTIALS,
        endpoint: str | None = None,
        session_limit: float = 1800.0,
        cut: Cut = Cut.END,
        max_sessions: int | None = None,
        report_normal_close: bool = False,
        accept_within: float = 5.0,
        ping_every: float = 60.0,
        drain_within: float = 10.0,
        clock: Callable[[], float] = time.time,
        log: Callable[[str], None] | None = None,
    ) -> None:
        check_place(host, port)
        check_limit("--session-limit", session_limit)
        if max_sessions is not None:
            check_limit("--max-sessions", max_sessions)
        self._terms = Terms(
            container=address(container),
            credentials=credentials,
            clock=clock,
            endpoint=endpoint,
            session_limit=session_limit,
            cut=cut,
            report_normal_close=report_normal_close,
            accept_within=accept_within,
            ping_every=ping_every,
            drain_within=drain_within,
        )
        self._log = log
        self._host = host
        self._port = port
        self._max_sessions = max_sessions
        self._script = deque(parse_plan(text) for text in faults)
        self.sessions: deque[SessionRecord] = deque(maxlen=_RECORDS)
        """The requests that came, oldest first."""
        self._count = 0
        self.active = 0
        """Sessions that are open now."""
        now = datetime.fromtimestamp(clock(), UTC)
        certificate = issue([host], now=now)
        self.ca_pem = certificate.ca
        """The certificate of the authority that clients must trust."""
        self._context = server_context(certificate, ["h2"])
        self._old_context = server_context(certificate, ["http/1.1"])
        self._false_context = server_context(issue([host], now=now), ["h2"])
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._refusing: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def port(self) -> int:
        """The port it listens at."""
        return self._port

    @property
    def listening(self) -> bool:
        """New connections are taken; while a fault refuses them, they are not."""
        return self._listener is not None

    @property
    def url(self) -> str:
        """What a client takes as the service's address."""
        return f"https://localhost:{self._port}"

    @property
    def ca_path(self) -> Path:
        """A file with `ca_pem`, there while the stand-in runs."""
        assert self._folder is not None  # noqa: S101 - it has been entered
        return Path(self._folder.name) / "ca.pem"

    async def __aenter__(self) -> Self:
        """Listen. Raises SurtitleError if that cannot be."""
        self._listener = await self._listen()
        self._port = int(self._listener.getsockname()[1])
        self._folder = tempfile.TemporaryDirectory(prefix="surtitle-stand-in-")
        write_private(self.ca_path, self.ca_pem)
        self._accepting = asyncio.create_task(self._accept(self._listener), name="stand-in-accept")
        self._look_ahead()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the port, of all sessions and containers."""
        helpers = [task for task in (self._refusing, self._accepting) if task is not None]
        await _cancel(helpers)
        self._stop_listening()
        await _cancel(list(self._connections))
        if self._folder is not None:
            self._folder.cleanup()

    def order(self, *faults: str | None) -> None:
        """Put faults for further attempts behind those that have been ordered."""
        self._script.extend(parse_plan(text) for text in faults)
        self._look_ahead()

    async def _listen(self) -> socket.socket:
        try:
            return await listen(self._host, self._port)
        except (OSError, UnicodeError) as error:
            raise cannot_listen(error, self._host, self._port) from error

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                client, _ = await loop.sock_accept(listener)
            except asyncio.CancelledError:
                self._room.release()
                raise
            except OSError:  # it was gone before it was taken, or there are no descriptors left
                self._room.release()
                await asyncio.sleep(0.1)
                continue
            fault = self._next_fault(Stage.CONNECTION)
            task = asyncio.create_task(
                self._serve(client, fault[0] if fault else None), name="stand-in-connection"
            )
            self._connections.add(task)
            task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._room.release()

    def _next_fault(self, stage: Stage) -> tuple[Fault, ...]:
        """What is ordered for this attempt; what is for a connection waits for the next one."""
        if not self._script:
            return ()
        connection = any(fault.stage is Stage.CONNECTION for fault in self._script[0])
        return self._script.popleft() if connection == (stage is Stage.CONNECTION) else ()

    def _look_ahead(self) -> None:
        """Stop listening if that is what is ordered next."""
        if self._accepting is None or not self._script or not self._script[0]:
            return
        fault = self._script[0][0]
        if fault.kind is FaultKind.REFUSE and self._refusing is None:
            self._script.popleft()
            self._accepting.cancel()
            self._stop_listening()
            self._refusing = asyncio.create_task(self._refuse(fault.number), name="stand-in-refuse")

    async def _refuse(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        async with asyncio.timeout(_LISTEN_AGAIN_WITHIN):
            while self._listener is None:
                try:
                    self._listener = await self._listen()
                except SurtitleError:  # somebody else has the port for the moment
                    await asyncio.sleep(0.1)
        self._accepting = asyncio.create_task(self._accept(self._listener), name="stand-in-accept")
        self._refusing = None
        self._look_ahead()

    async def _serve(self, client: socket.socket, fault: Fault | None) -> None:
        try:
            await self._speak(client, None if fault is None else fault.kind)
        except (OSError, TimeoutError):
            pass
        finally:
            if fault is not None:
                self._look_ahead()

    async def _speak(self, client: socket.socket, fault: FaultKind | None) -> None:
        loop = asyncio.get_running_loop()
        if fault in {FaultKind.ABORT_TCP, FaultKind.STALL_TCP}:
            with client:
                if fault is FaultKind.ABORT_TCP:
                    reset_on_close(client)
                    return
                async with asyncio.timeout(self._terms.session_limit):
                    while await loop.sock_recv(client, _READ):
                        pass
            return
        context = self._context
        if fault is FaultKind.UNTRUSTED_CA:
            context = self._false_context
        elif fault is FaultKind.H1:
            context = self._old_context
        raw, _ = await loop.connect_accepted_socket(_Paused, client)
        try:
            reader = asyncio.StreamReader()
            protocol = _OverTls(reader)
            transport = await loop.start_tls(
                raw,
                protocol,
                context,
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_WITHIN,
                ssl_shutdown_timeout=_CLOSE_WITHIN,
            )
            assert transport is not None  # noqa: S101 - it was not closing
            protocol.connection_made(transport)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            if fault is FaultKind.STALL_TLS:
                async with asyncio.timeout(self._terms.session_limit):
                    while await reader.read(_READ):
                        pass
            elif transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
                await Connection(reader, writer, self._handle).run()
            else:
                async with asyncio.timeout(_CLOSE_WITHIN):
                    await reader.read(_READ)
                    writer.write(_NO_HTTP1)
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            raw.abort()

    async def _handle(self, stream: Stream) -> None:
        self._count += 1
        fields = dict(stream.headers)
        record = SessionRecord(
            number=self._count,
            target=fields.get(":path", ""),
            headers={
                name: value
                for name, value in stream.headers
                if name not in {"authorization", "x-amz-security-token"}
            },
        )
        self.sessions.append(record)
        session = InvocationSession(
            stream,
            self._terms,
            record,
            faults=self._next_fault(Stage.REQUEST),
            admit=self._admit,
            over=self._look_ahead,
        )
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            await session.run()
        finally:
            if record.admitted:
                self.active -= 1
            if self._log is not None:
                self._log(
                    session_line(
                        number=record.number,
                        endpoint=record.endpoint,
                        seconds=loop.time() - begun,
                        came=record.events_in,
                        went=record.events_out,
                        ended=record.ended,
                    )
                )

    def _admit(self) -> bool:
        if self._max_sessions is not None and self.active >= self._max_sessions:
            return False
        self.active += 1
        return True


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=2 * _CLOSE_WITHIN)
