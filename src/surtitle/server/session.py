"""One request to the stand-in: checked, connected to the container, carried, and ended."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate

from surtitle.server.answers import Refusal, RefusedError, container_refused, refusal_of
from surtitle.server.container import (
    Container,
    ContainerClosedError,
    ContainerRefusedError,
    Part,
    address,
)
from surtitle.server.endings import (
    POLITE_CODES,
    Ending,
    ending_of_close,
    ending_of_fault,
    ending_of_limit,
    refused_ending,
    stray_event,
)
from surtitle.server.event_stream import BrokenMessageError, Decoder
from surtitle.server.faults import Cut, Fault, FaultKind, Stage
from surtitle.server.http2 import Stream
from surtitle.server.invocation import (
    CONTENT_TYPE,
    read_invocation,
    read_part,
    response_part,
)
from surtitle.server.records import SessionRecord
from surtitle.server.sigv4 import Credentials, EventChain, verify_request

__all__ = ["InvocationSession", "Terms"]

_FINISH_WITHIN = 2.0
"""Seconds for the event that is being written when a session is cut; then it is reset."""
_GONE = 1006
_LEAD_BYTE = 0xC0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every session of a stand-in. Times are in seconds."""

    container: str
    credentials: Credentials
    clock: Callable[[], float]
    """Seconds since 1970-01-01, UTC."""
    endpoint: str | None = None
    variant: str = "AllTraffic"
    session_limit: float = 1800.0
    cut: Cut = Cut.END
    report_normal_close: bool = False
    """Tell the client with ModelStreamError that the container closed with 1000, too."""
    accept_within: float = 5.0
    ping_every: float = 60.0
    drain_within: float = 10.0
    """For the container to close after the client has ended."""


class InvocationSession:
    """Handles one request.

    Args:
        stream: The request.
        terms: What holds for it.
        record: Where it is remembered.
        faults: What is to go wrong.
        admit: Whether there is room for one more session.
        over: Called once, before the client can know that it has ended.
    """

    def __init__(
        self,
        stream: Stream,
        terms: Terms,
        record: SessionRecord,
        *,
        faults: Sequence[Fault] = (),
        admit: Callable[[], bool],
        over: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._terms = terms
        self._record = record
        self._early = [fault for fault in faults if fault.stage is Stage.REQUEST]
        self._due = [fault for fault in faults if fault.stage is Stage.STREAM]
        self._split = self._take(FaultKind.SPLIT)
        self._slow = self._take(FaultKind.SLOW_READER)
        self._cut = self._take(FaultKind.CUT)
        self._admit = admit
        self._over: Callable[[], None] | None = over
        self._client_ended = False
        self._writing = asyncio.Lock()
        self._request_id = str(uuid.uuid4())

    async def run(self) -> None:
        """Answer the request, to the end."""
        try:
            await self._answer()
        except asyncio.CancelledError:
            self._ends(self._left if self._stream.lost else "stopped")
            raise
        except ConnectionError:
            self._ends(self._left)
        finally:
            self._ends("failed")

    @property
    def _left(self) -> str:
        """How a client left that is gone: it need not wait for an answer to its goodbye."""
        return "client" if self._client_ended or self._stream.complete else "client lost"

    @property
    def _date(self) -> tuple[str, str]:
        """The header by which clients find out that their clock is wrong."""
        return "date", formatdate(self._terms.clock(), usegmt=True)

    def _take(self, kind: FaultKind) -> Fault | None:
        found = next((fault for fault in self._due if fault.kind is kind), None)
        self._due = [fault for fault in self._due if fault.kind is not kind]
        return found

    def _ends(self, how: str) -> None:
        if not self._record.ended:
            self._record.ended = how
        if self._over is not None:
            over, self._over = self._over, None
            over()

    async def _answer(self) -> None:
        try:
            chain = self._verify()
            invocation = read_invocation(self._stream.headers, endpoint=self._terms.endpoint)
            self._record.endpoint = invocation.endpoint
        except RefusedError as error:
            await self._refuse(error.refusal)
            return
        for fault in self._early:
            if await self._goes_wrong(fault):
                return
        if not self._admit():
            await self._refuse(refusal_of(400, "ThrottlingException"))
            return
        self._record.admitted = True
        url = address(self._terms.container, path=invocation.path, query=invocation.query)
        try:
            container = await Container.connect(
                url, within=self._terms.accept_within, ping_every=self._terms.ping_every
            )
        except ContainerRefusedError as error:
            await self._refuse(container_refused(error.message, status=error.status))
            return
        try:
            self._record.status = 200
            await self._stream.start(
                [
                    (":status", "200"),
                    self._date,
                    ("content-type", CONTENT_TYPE),
                    ("x-amzn-requestid", self._request_id),
                    (
                        "x-amzn-invoked-production-variant",
                        invocation.variant or self._terms.variant,
                    ),
                ]
            )
            ending = await self._carry(container, chain)
            self._ends(ending.how)
            await self._end(ending)
        finally:
            await container.leave()

    def _verify(self) -> EventChain:
        headers = self._stream.headers
        fields = dict(headers)
        plain = [(name, value) for name, value in headers if not name.startswith(":")]
        if "host" not in fields:
            plain.append(("host", fields.get(":authority", "")))
        return verify_request(
            method=fields.get(":method", ""),
            target=fields.get(":path", ""),
            headers=plain,
            credentials=self._terms.credentials,
            now=self._terms.clock(),
        )

    async def _refuse(self, refusal: Refusal, *, end: bool = True) -> None:
        self._record.status = refusal.status
        self._ends(f"refused {refusal.error}")
        await self._stream.start([*refusal.headers(self._request_id), self._date])
        await self._stream.write(refusal.body())
        if end:
            await self._stream.end()

    async def _goes_wrong(self, fault: Fault) -> bool:
        """Whether that was the answer."""
        match fault.kind:
            case FaultKind.DELAY:
                await asyncio.sleep(fault.number)
                return False
            case FaultKind.HTTP:
                await self._refuse(refusal_of(int(fault.number), fault.word))
            case FaultKind.EXPIRED_TOKEN:
                await self._refuse(refusal_of(403, "ExpiredTokenException"))
            case FaultKind.BUSY:
                await self._refuse(refusal_of(400, "ThrottlingException"))
            case FaultKind.HTTP_OPEN:
                await self._refuse(refusal_of(int(fault.number), fault.word), end=False)
                await self._nothing()
            case FaultKind.STALL:
                self._ends(f"fault {fault.kind}")
                await self._nothing()
            case FaultKind.RST_EARLY | FaultKind.GOAWAY_EARLY | FaultKind.ABORT_EARLY:
                cut = Cut(fault.kind.removesuffix("-early"))
                self._ends(f"fault {fault.kind}")
                await self._end(Ending(how="", cut=cut))
            case _:
                return False
        return True

    async def _nothing(self) -> None:
        """Do nothing for as long as a session may last."""
        await asyncio.sleep(self._terms.session_limit)

    async def _carry(self, container: Container, chain: EventChain) -> Ending:
        up = asyncio.create_task(self._up(container, chain), name="stand-in-up")
        down = asyncio.create_task(self._down(container), name="stand-in-down")
        try:
            ending = await self._first_ending(up, down)
            try:
                async with asyncio.timeout(_FINISH_WITHIN):
                    await self._writing.acquire()
            except TimeoutError:  # the client takes nothing: what it has of the event is no event
                return Ending(how=ending.how, cut=Cut.RST)
            return ending
        finally:
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _first_ending(
        self, up: asyncio.Task[Ending | None], down: asyncio.Task[Ending]
    ) -> Ending:
        loop = asyncio.get_running_loop()
        limit = self._terms.session_limit if self._cut is None else self._cut.number
        cut = self._terms.cut if self._cut is None else Cut(self._cut.word)
        deadline = loop.time() + limit
        done, _ = await asyncio.wait({up, down}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if up in done and down not in done:
            if (ending := up.result()) is not None:
                return ending
            left = min(self._terms.drain_within, deadline - loop.time())
            done, _ = await asyncio.wait({down}, timeout=max(left, 0))
            if not done:
                return Ending(how="client")
        if down in done:
            ending = down.result()
            expected = self._client_ended and ending.code in {*POLITE_CODES, _GONE}
            return Ending(how="client") if expected else ending
        how = "limit" if self._cut is None else f"fault {self._cut.kind}"
        return ending_of_limit(how, cut)

    async def _up(self, container: Container, chain: EventChain) -> Ending | None:
        """From the client to the container, until the client has ended. None: in order."""
        decoder = Decoder()
        try:
            while data := await self._read():
                for outer in decoder.receive(data):
                    chain.verify(outer, now=self._terms.clock())
                    if not outer.payload:
                        await self._client_ends(container)
                        return None
                    part = read_part(outer.payload)
                    self._record.events_in += 1
                    await container.send(part)
            if decoder.pending:
                return refused_ending("SerializationException", "The stream ends inside an event.")
            await self._client_ends(container)
        except RefusedError as error:
            return refused_ending(error.refusal.error, error.refusal.message)
        except BrokenMessageError as error:
            return refused_ending("SerializationException", str(error))
        except ContainerClosedError:
            await self._nothing()  # the other direction says how it closed
        return None

    async def _client_ends(self, container: Container) -> None:
        self._client_ended = True
        await container.close(1000)

    async def _read(self) -> bytes:
        slow = self._slow
        if slow is not None and self._record.events_out >= slow.after and not slow.number:
            await self._nothing()
        data = await self._stream.read()
        if slow is not None and self._record.events_out >= slow.after:
            await asyncio.sleep(len(data) / slow.number)
        return data

    async def _down(self, container: Container) -> Ending:
        """From the container to the client, until the container closes or a fault ends it."""
        if (ending := await self._faults_due()) is not None:
            return ending
        async for frame in container.parts():
            for part in self._pieces(frame):
                await self._send(response_part(part).encode())
                self._record.events_out += 1
                if (ending := await self._faults_due()) is not None:
                    return ending
        return ending_of_close(
            container.close_code,
            container.close_reason,
            report_normal=self._terms.report_normal_close,
        )

    def _pieces(self, part: Part) -> Iterator[Part]:
        split = self._split
        wanted = split is not None and self._record.events_out >= split.after
        if not wanted or not part.text or len(part.data) < 2:  # noqa: PLR2004 - two halves
            yield part
            return
        first = next((at for at, byte in enumerate(part.data) if byte >= _LEAD_BYTE), None)
        cut = len(part.data) // 2 if first is None else first + 1
        yield Part(text=True, data=part.data[:cut], final=False)
        yield Part(text=True, data=part.data[cut:], final=part.final)

    async def _send(self, data: bytes) -> None:
        async with self._writing:
            await self._stream.write(data)

    async def _faults_due(self) -> Ending | None:
        for fault in [fault for fault in self._due if fault.after <= self._record.events_out]:
            self._due.remove(fault)
            if (event := stray_event(fault.kind)) is not None:
                await self._send(event)
                continue
            if fault.kind is FaultKind.MUTE:
                await self._nothing()
            return ending_of_fault(fault)
        return None

    async def _end(self, ending: Ending) -> None:
        if ending.data:
            await self._stream.write(ending.data)
        match ending.cut:
            case Cut.END | Cut.ERROR:
                await self._stream.end()
            case Cut.RST:
                await self._stream.reset()
            case Cut.GOAWAY:
                await self._stream.go_away()
            case Cut.ABORT:
                self._stream.abort()
