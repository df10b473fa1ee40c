"""Text frames to and from a model on Amazon SageMaker, over its bidirectional stream."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from surtitle.core.errors import Decision, EngineError, UsageError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.authorities import certificate_fault, read_authorities
from surtitle.engines.aws_credentials import AwsCredentials, Credentials, CredentialsProvider
from surtitle.engines.aws_errors import (
    Answer,
    Situation,
    Stage,
    certificate_refused,
    meaning,
    over,
    timed_out,
)

__all__ = ["Connect", "Limits", "SageMakerTransport", "Stream"]

_LONGEST = 1 << 20
"""Bytes of a frame; those of the Realtime protocol have a few hundred."""
_RECEIVER_WITHIN = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long each wait may last, in seconds, and how much may lie unread.

    Args:
        total: Everything that `open` does, but for finding out about a certificate and
            cleaning up after a failure.
        credentials: Getting credentials; a provider gives up by itself before, and says more.
        connect: TCP and TLS. TCP alone fails after 5 s by itself.
        certificate: Finding out why TLS did not come about: AWS's library keeps silent
            about a certificate that it does not trust for 10 to 30 s.
        answer: The answer's head, which waits for the model's container.
        send: Room for one frame.
        frames: Received frames that nobody has taken.
    """

    total: float = 12.0
    credentials: float = 10.5
    connect: float = 6.0
    certificate: float = 2.0
    answer: float = 10.0
    send: float = 5.0
    frames: int = 1024


class Stream(Protocol):
    """What the transport needs of the SDK. Any method but `close` may raise anything."""

    @property
    def answer(self) -> Answer | None:
        """The head of the service's answer, once it is here."""

    async def open(self) -> None:
        """Begin to connect."""

    async def connected(self) -> None:
        """Wait until there is a secure connection, or until it has failed."""

    async def answered(self) -> None:
        """Wait until the service has accepted the call."""

    async def send(self, payload: bytes) -> None:
        """Send one text frame; may wait without end. Not usable any more once cancelled."""

    async def receive(self) -> tuple[bytes, bool] | None:
        """A part and whether its frame goes on, or None at the end. Never cancelled."""

    async def close(self, *, polite: bool) -> None:
        """Let go of everything, in at most 2 s. Never raises."""


type Connect = Callable[[SageMakerTarget, Credentials, bytes | None], Stream]
"""Makes a stream from a target, credentials and the authorities to trust (PEM)."""


class SageMakerTransport:
    """A transport of `surtitle.engines.transport`: one stream, opened once.

    Args:
        target: The endpoint.
        credentials: Where to get credentials; by default where the AWS command line does.
        connect: What makes the stream; by default AWS's SDK.
        limits: How long each wait may last.
    """

    def __init__(
        self,
        target: SageMakerTarget,
        *,
        credentials: CredentialsProvider | None = None,
        connect: Connect | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._target = target
        self._credentials = credentials or AwsCredentials(target.profile)
        self._connect = connect
        self._limits = limits or Limits()
        self._stream: Stream | None = None
        self._renewal = ""
        self._expires: datetime | None = None
        self._receiver: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._frames: deque[str] = deque()
        self._news = asyncio.Event()
        """Something came, or nothing more will."""
        self._over: EngineError | None = None
        self._ended = asyncio.Event()

    @property
    def place(self) -> str:
        """Where the sound goes."""
        return self._target.place

    @property
    def expires(self) -> datetime | None:
        """When the credentials that it is signed with end: a reason to rotate before."""
        return self._expires

    async def open(self) -> None:
        """Get credentials, connect, and wait until the model has accepted the session.

        Raises:
            EngineError: It did not come about.
            SettingsError: The file of authorities cannot be used.
        """
        deadline = asyncio.get_running_loop().time() + self._limits.total
        try:
            await self._open(deadline)
        except (EngineError, UsageError):
            await self.close()
            raise
        if self._over is not None:  # closed by somebody else meanwhile
            raise self._over

    async def send(self, frame: str) -> None:
        """Send one text frame, waiting at most 5 s for room.

        Raises:
            EngineError: The stream is over, or takes nothing.
        """
        if self._over is not None:
            raise self._over
        stream = self._stream
        if stream is None or self._receiver is None:
            raise self._closed("is not open")
        sending = asyncio.create_task(stream.send(frame.encode()), name="sagemaker-send")
        sending.add_done_callback(_fetch)
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait(
                {sending, ended},
                timeout=self._limits.send,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            ended.cancel()
            if not sending.done():
                # It is signed already: without it no later event is valid.
                sending.cancel()
                self._finish(timed_out(Stage.SEND, self._limits.send, self._situation))
        if sending.done() and not sending.cancelled() and (error := sending.exception()):
            self._finish(self._meaning(error))
        if self._over is not None:
            raise self._over

    async def receive(self) -> str:
        """The next text frame; a frame is not lost when this is cancelled.

        Raises:
            EngineError: No more will come.
        """
        while not self._frames:
            if self._over is not None:
                raise self._over
            if self._receiver is None:
                raise self._closed("is not open")
            self._news.clear()
            await self._news.wait()
        return self._frames.popleft()

    async def close(self) -> None:
        """End the stream and let go of the connection. Never raises; goes on if cancelled."""
        if self._closing is None:
            # Whether to say goodbye is decided before the end that this is.
            polite = self._over is None and self._receiver is not None
            self._finish(self._closed("was closed"))
            self._closing = asyncio.create_task(self._close(polite=polite), name="sagemaker-close")
        await asyncio.shield(self._closing)

    @property
    def _situation(self) -> Situation:
        answer = self._stream.answer if self._stream is not None else None
        return Situation(target=self._target, answer=answer, renewal=self._renewal)

    async def _open(self, deadline: float) -> None:
        limits = self._limits
        try:
            async with _until(limits.credentials, deadline):
                credentials = await self._credentials.resolve()
        except TimeoutError as error:
            raise EngineError(
                "AWS credentials did not come in time.", decision=Decision.RETRY, field="--profile"
            ) from error
        self._renewal, self._expires = credentials.renewal, credentials.expires
        connect = self._connect
        try:
            async with _until(limits.connect, deadline):
                authorities = await asyncio.to_thread(read_authorities, self._target.ca_bundle)
                if connect is None:
                    connect = await asyncio.to_thread(_load)
        except TimeoutError as error:
            raise EngineError(
                "The AWS SDK could not be loaded in time.", decision=Decision.RETRY
            ) from error
        if self._over is None:
            stream = await self._call(connect, credentials, authorities, deadline)
        if self._over is not None:
            raise self._over
        self._receiver = asyncio.create_task(self._listen(stream), name="sagemaker-receive")

    async def _call(
        self,
        connect: Connect,
        credentials: Credentials,
        authorities: bytes | None,
        deadline: float,
    ) -> Stream:
        """Connect, and wait for the service to accept."""
        limits = self._limits
        try:
            stream = self._stream = connect(self._target, credentials, authorities)
            async with _until(limits.connect, deadline):
                await stream.open()
                await stream.connected()
        except TimeoutError as error:
            if reason := await certificate_fault(
                self._target.host, self._target.port, authorities, within=limits.certificate
            ):
                raise certificate_refused(reason, self._situation) from error
            raise timed_out(Stage.CONNECT, limits.connect, self._situation) from error
        except Exception as error:
            raise self._meaning(error) from error
        try:
            async with _until(limits.answer, deadline):
                await stream.answered()
        except TimeoutError as error:
            raise timed_out(Stage.ANSWER, limits.answer, self._situation) from error
        except Exception as error:
            raise self._meaning(error) from error
        return stream

    async def _listen(self, stream: Stream) -> None:
        """Receive until the end; the only task that does."""
        frame = bytearray()
        try:
            while (part := await stream.receive()) is not None:
                payload, goes_on = part
                frame += payload
                if len(frame) > _LONGEST or len(self._frames) >= self._limits.frames:
                    self._finish(self._broke("sends more than can be taken"))
                    return
                if not goes_on:
                    self._frames.append(frame.decode())
                    frame.clear()
                    self._news.set()
        except UnicodeDecodeError:  # not chained: it has the bytes in it
            self._finish(self._broke("sends what is no text"))
        except Exception as error:  # noqa: BLE001 - the SDK raises whatever its parts do
            self._finish(self._meaning(error))
        else:
            self._finish(over(self._situation))

    def _meaning(self, error: BaseException) -> EngineError:
        meant = meaning(error, self._situation)
        if meant is not error:
            meant.__cause__ = error
        return meant

    def _finish(self, error: EngineError) -> None:
        """From now on nothing is sent, and nothing received but what is here. The first counts."""
        if self._over is None:
            self._over = error
            self._news.set()
            self._ended.set()

    def _broke(self, what: str) -> EngineError:
        return EngineError(f"{self._target.endpoint} {what}.", decision=Decision.RETRY)

    def _closed(self, what: str) -> EngineError:
        return EngineError(
            f"The connection to {self._target.endpoint} {what}.", decision=Decision.RETRY
        )

    async def _close(self, *, polite: bool) -> None:
        if self._stream is not None:
            await self._stream.close(polite=polite)
        if self._receiver is not None:
            # It ends by itself with the connection. Cancelling it is for when it does not.
            _, stuck = await asyncio.wait({self._receiver}, timeout=_RECEIVER_WITHIN)
            for task in stuck:
                task.cancel()


def _until(seconds: float, deadline: float) -> asyncio.Timeout:
    now = asyncio.get_running_loop().time()
    return asyncio.timeout_at(min(now + seconds, deadline))


def _load() -> Connect:
    """Load the SDK; in a thread, for it takes most of a second."""
    try:
        from surtitle.engines.sagemaker_sdk import (  # noqa: PLC0415 - an extra, slow to load
            SdkStream,
            check,
        )
    except ImportError as error:
        raise EngineError(
            "The AWS SDK is not installed, or not the one Surtitle can use.",
            remedy="Run: pip install 'surtitle[aws]'",
            decision=Decision.RECONFIGURE,
        ) from error
    check()
    return SdkStream


def _fetch(task: asyncio.Task[None]) -> None:
    """Fetch a task's exception, so that asyncio does not complain that nobody did."""
    if not task.cancelled():
        task.exception()
