"""A scripted server on loopback: real sockets, real bytes, and whatever can go wrong with them."""

import asyncio
import base64
import hashlib
import ipaddress
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Conversation", "Script", "WebSocketPeer", "answer"]

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_PATIENCE = 10.0
_GOODBYE = 0.5
"""Seconds in which a client that has been left should notice."""


class Conversation:
    """One connection, from the server's side. Written without the library that is tested."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def request(self) -> dict[str, str]:
        """Read the head of a request; its first line is under the empty name."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        headers = {"": first}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return headers

    async def accept(self, *more: str) -> dict[str, str]:
        """Read the request and upgrade."""
        headers = await self.request()
        proof = hashlib.sha1(f"{headers['sec-websocket-key']}{_GUID}".encode())  # noqa: S324 - RFC 6455
        accept = base64.b64encode(proof.digest()).decode()
        await self.raw(
            answer(
                101,
                "Upgrade: websocket",
                "Connection: Upgrade",
                f"Sec-WebSocket-Accept: {accept}",
                *more,
            )
        )
        return headers

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def frame(self, opcode: int, payload: bytes) -> None:
        length = len(payload)
        if length < 126:
            head = bytes([0x80 | opcode, length])
        elif length < 2**16:
            head = struct.pack("!BBH", 0x80 | opcode, 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, length)
        await self.raw(head + payload)

    async def text(self, *texts: str) -> None:
        for text in texts:
            await self.frame(_TEXT, text.encode())

    async def binary(self, data: bytes) -> None:
        await self.frame(_BINARY, data)

    async def ping(self, data: bytes) -> None:
        await self.frame(_PING, data)

    async def bye(self, code: int | None = None, reason: str = "") -> None:
        """Send a close frame, and wait until the client has answered it."""
        code_bytes = b"" if code is None else struct.pack("!H", code)
        await self.frame(_CLOSE, code_bytes + reason.encode())
        while (await self.receive())[0] != _CLOSE:
            pass

    async def receive(self) -> tuple[int, bytes]:
        """Opcode and content of the next frame, whatever it is. Raises IncompleteReadError."""
        first, second = await self.reader.readexactly(2)
        assert first & 0x40 == 0, "a compressed frame"
        assert second & 0x80, "an unmasked frame from a client"
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
        mask = await self.reader.readexactly(4)
        masked = await self.reader.readexactly(length)
        keys = (mask * (length // 4 + 1))[:length]
        number = int.from_bytes(masked, "big") ^ int.from_bytes(keys, "big")
        return first & 0x0F, number.to_bytes(length, "big")

    async def hear(self) -> str:
        """The next text."""
        opcode, payload = await self.receive()
        assert opcode == _TEXT, f"opcode {opcode} instead of text"
        return payload.decode()

    async def until_closed(self) -> int:
        """Read until the client says goodbye, answer it, and return its code."""
        while True:
            opcode, payload = await self.receive()
            if opcode == _CLOSE:
                await self.frame(_CLOSE, payload)
                return int.from_bytes(payload[:2], "big")

    async def until_gone(self) -> None:
        """Read until the client has hung up, in whatever way."""
        with suppress(ConnectionError, ssl.SSLError):
            while await self.reader.read(2**16):
                pass

    def cut(self) -> None:
        """Reset the connection."""
        line = self._writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def hang_up(self) -> None:
        self._writer.close()


type Script = Callable[[Conversation], Awaitable[object]]


def answer(status: int, *headers: str, body: str = "") -> bytes:
    """Build an HTTP answer."""
    lines = [f"HTTP/1.1 {status} So", *headers]
    if status != 101:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + f"\r\n\r\n{body}").encode()


class WebSocketPeer:
    """Listens while it is entered, and follows the script on each connection.

    Args:
        script: What to do; the connection is closed when it returns.
        tls: Encrypts, if given.
        buffer: Bytes that the system takes in although the script reads none.
    """

    def __init__(
        self, script: Script, *, tls: ssl.SSLContext | None = None, buffer: int | None = None
    ) -> None:
        self._script = script
        self._tls = tls
        self._buffer = buffer
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.failure: Exception | None = None
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'wss' if self._tls else 'ws'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        # Of this protocol by name: else asyncio leaves Nagle's algorithm on.
        line = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._buffer is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer)
        line.bind(("127.0.0.1", 0))
        self.port = line.getsockname()[1]
        limit = self._buffer or 2**20
        self._server = await asyncio.start_server(self._meet, sock=line, limit=limit)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0.0 if error else _PATIENCE)
        late = [task for task in self._tasks if not task.done()]
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            assert not late, "the script waits for what does not come"
            if self.failure is not None:
                raise self.failure

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._tls:
            # What comes first is for the encryption.
            cast("asyncio.Transport", writer.transport).pause_reading()
        task = asyncio.create_task(self._talk(reader, writer), name="peer")
        self._tasks.add(task)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._tls:
                await writer.start_tls(self._tls)
        except (ConnectionError, ssl.SSLError):
            writer.close()  # the client does not trust it
            return
        try:
            await self._script(Conversation(reader, writer))
        except Exception as error:  # noqa: BLE001 - raised where the test can see it
            self.failure = error
        finally:
            writer.close()
            try:
                async with asyncio.timeout(_GOODBYE):
                    await writer.wait_closed()
            except TimeoutError:
                writer.transport.abort()
            except (ConnectionError, ssl.SSLError):
                pass


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates that nobody else trusts; everything is kept in one folder."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _certificate(subject="Test authority", issuer="Test authority", key=key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        authority = cls(folder, key, certificate)
        authority.bundle.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return authority

    @property
    def bundle(self) -> Path:
        """What to trust to trust this authority."""
        return self.folder / "authority.pem"

    def server(self, *, name: str = "127.0.0.1", days: int = 1) -> ssl.SSLContext:
        """What a server needs to have that name, for so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(name))]
        except ValueError:
            names = [x509.DNSName(name)]
        certificate = (
            _certificate(subject=name, issuer="Test authority", key=key, days=days)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = self.folder / f"{name}{days}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _certificate(
    *, subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
    )
