"""A client of the bidirectional stream that does exactly what it is told, also what is wrong."""

import asyncio
import hmac
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from types import TracebackType
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

from surtitle.server.event_stream import (
    BrokenMessageError,
    Decoder,
    HeaderValue,
    Message,
    Timestamp,
    encode_headers,
)

__all__ = ["Answer", "Client", "Signer", "part"]

_SIGNED = "STREAMING-AWS4-HMAC-SHA256-EVENTS"
_WITHIN = 10.0


@dataclass(slots=True, kw_only=True)
class Answer:
    """What has come for one request."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: str = ""
    """`end`, `reset`, `goaway` or `lost`; empty while it is open."""

    def messages(self) -> list[Message]:
        return list(Decoder().receive(self.body))

    def readable(self) -> list[Message | None]:
        """The messages, and None where something is none."""
        decoder, found = Decoder(), list[Message | None]()
        try:
            found += decoder.receive(self.body)
        except BrokenMessageError:
            return [*found, None]
        return [*found, None] if decoder.pending else found


def part(data: bytes, *, kind: str | None = "UTF8", state: str | None = None) -> Message:
    headers: dict[str, HeaderValue] = {":message-type": "event", ":event-type": "PayloadPart"}
    if kind is not None:
        headers["DataType"] = kind
    if state is not None:
        headers["CompletionState"] = state
    return Message(headers=headers, payload=data)


class Signer:
    """Signs a request and then its events, one after the other."""

    def __init__(
        self,
        *,
        access_key: str = "AKIDLOCALSTANDIN",
        secret: str = "surtitle-local-stand-in",  # noqa: S107 - opens nothing but the stand-in
        token: str | None = None,
        skew: float = 0.0,
    ) -> None:
        self._access_key = access_key
        self._secret = secret
        self._token = token
        self.skew = skew
        self._prior = ""

    def request(
        self,
        port: int,
        *,
        endpoint: str = "my-endpoint",
        method: str = "POST",
        path: str | None = None,
        replace: Sequence[tuple[str, str]] = (),
    ) -> list[tuple[str, str]]:
        """The header fields of a signed request; `replace` changes some or adds more."""
        if path is None:
            path = f"/endpoints/{endpoint}/invocations-bidirectional-stream"
        now = self._now().strftime("%Y%m%dT%H%M%SZ")
        fields = {
            "content-type": "application/vnd.amazon.eventstream",
            "host": f"localhost:{port}",
            "x-amz-content-sha256": _SIGNED,
            "x-amz-date": now,
        } | dict(replace)
        if self._token is not None:
            fields["x-amz-security-token"] = self._token
        names = sorted(fields)
        canonical = "\n".join(
            (
                method,
                path,
                "",
                *(f"{name}:{fields[name]}" for name in names),
                "",
                ";".join(names),
                fields["x-amz-content-sha256"],
            )
        )
        digest = sha256(canonical.encode()).hexdigest()
        self._prior = self._sign("AWS4-HMAC-SHA256", now, digest).hex()
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={self._access_key}/{self._scope(now)}, "
            f"SignedHeaders={';'.join(names)}, Signature={self._prior}"
        )
        authority = fields.pop("host")
        return [
            (":method", method),
            (":scheme", "https"),
            (":authority", authority),
            (":path", path),
            *fields.items(),
            ("authorization", authorization),
        ]

    def event(self, inner: Message | None) -> bytes:
        """The signed event around `inner`; the last and empty one for None."""
        now = self._now()
        moment = now.strftime("%Y%m%dT%H%M%SZ")
        date = {":date": Timestamp(milliseconds=int(now.timestamp() * 1000))}
        payload = b"" if inner is None else inner.encode()
        hashes = [sha256(encode_headers(date)).hexdigest(), sha256(payload).hexdigest()]
        signature = self._sign("AWS4-HMAC-SHA256-PAYLOAD", moment, self._prior, *hashes)
        self._prior = signature.hex()
        return Message(headers={**date, ":chunk-signature": signature}, payload=payload).encode()

    def spoil(self) -> None:
        """Have the next event build on another one than it should."""
        self._prior = "0" * 64

    def _now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.skew, UTC)

    def _scope(self, moment: str) -> str:
        return f"{moment[:8]}/eu-west-1/sagemaker/aws4_request"

    def _sign(self, algorithm: str, moment: str, *lines: str) -> bytes:
        key = f"AWS4{self._secret}".encode()
        for word in self._scope(moment).split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        text = "\n".join((algorithm, moment, self._scope(moment), *lines))
        return hmac.digest(key, text.encode(), "sha256")


class Client:
    """One HTTP/2 connection.

    Args:
        port: Of the stand-in on this computer.
        ca: The authority's certificate, PEM.
        takes: Give the windows back as data comes; otherwise only when `take` is called.
    """

    def __init__(self, port: int, ca: bytes, *, takes: bool = True) -> None:
        self._port = port
        self._context = ssl.create_default_context(cadata=ca.decode())
        self._context.set_alpn_protocols(["h2"])
        self._takes = takes
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._answers: dict[int, Answer] = {}
        self._changed = asyncio.Condition()
        self._untaken: list[tuple[int, int]] = []

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname="localhost"
        )
        self._h2.initiate_connection()
        await self._flush()
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        self._writer.transport.abort()

    async def request(self, headers: Sequence[tuple[str, str]], *, end: bool = False) -> int:
        number = self._h2.get_next_available_stream_id()
        self._answers[number] = Answer()
        self._h2.send_headers(number, headers, end_stream=end)
        await self._flush()
        return number

    async def send(self, number: int, data: bytes, *, end: bool = False) -> None:
        """Send as the windows allow."""
        while data:
            size = min(
                len(data),
                self._h2.local_flow_control_window(number),
                self._h2.max_outbound_frame_size,
            )
            if not size:
                await self.until(lambda: self._h2.local_flow_control_window(number) > 0)
                continue
            self._h2.send_data(number, data[:size])
            data = data[size:]
            await self._flush()
        if end:
            self._h2.end_stream(number)
            await self._flush()

    def room(self, number: int) -> int:
        """Bytes that may be sent now."""
        return self._h2.local_flow_control_window(number)

    async def reset(self, number: int) -> None:
        self._h2.reset_stream(number)
        await self._flush()

    async def take(self) -> None:
        """Give back the windows that have been used, from now on at once."""
        self._takes = True
        for size, number in self._untaken:
            self._h2.acknowledge_received_data(size, number)
        self._untaken.clear()
        await self._flush()

    def answer(self, number: int) -> Answer:
        return self._answers[number]

    async def headers(self, number: int) -> dict[str, str]:
        """The header fields of the answer, when they have come."""
        await self.until(lambda: bool(self._answers[number].headers or self._answers[number].ended))
        return self._answers[number].headers

    async def messages(self, number: int, count: int) -> list[Message]:
        """The messages that have come, once there are `count`."""
        await self.until(lambda: len(self._answers[number].messages()) >= count)
        return self._answers[number].messages()

    async def end(self, number: int) -> Answer:
        """The whole answer, when nothing more will come."""
        await self.until(lambda: bool(self._answers[number].ended))
        return self._answers[number]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(_WITHIN), self._changed:
            await self._changed.wait_for(true)

    async def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()

    async def _listen(self) -> None:
        try:
            while data := await self._reader.read(65_536):
                for event in self._h2.receive_data(data):
                    self._note(event)
                await self._flush()
                async with self._changed:
                    self._changed.notify_all()
        except OSError:
            pass
        self._all_end("lost")
        async with self._changed:
            self._changed.notify_all()

    def _note(self, event: Event) -> None:
        match event:
            case ResponseReceived(stream_id=int(number), headers=headers):
                self._answers[number].headers = {str(k): str(v) for k, v in headers or ()}
            case DataReceived(stream_id=int(number), data=bytes(data), flow_controlled_length=size):
                self._answers[number].body += data
                if self._takes:
                    self._h2.acknowledge_received_data(size or 0, number)
                else:
                    self._untaken.append((size or 0, number))
            case StreamEnded(stream_id=int(number)):
                self._answers[number].ended = "end"
            case StreamReset(stream_id=int(number)):
                self._answers[number].ended = self._answers[number].ended or "reset"
            case ConnectionTerminated():
                self._all_end("goaway")
            case _:
                pass

    def _all_end(self, how: str) -> None:
        for answer in self._answers.values():
            answer.ended = answer.ended or how
