"""AWS's streaming SDK, cut down to one stream over one connection; nothing else knows it.

It is loaded late: the SDK is an extra, and takes most of a second.

The SDK is young. Waits that nothing ends, futures that its C threads trip over once
they are cancelled, tasks whose exceptions nobody fetches: each is met here, by going
a little below its surface. `check` makes sure that what is below is what was read there.
"""

import asyncio
import inspect
import logging
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any, Self

from aws_sdk_sagemaker_runtime_http2.client import AsyncSageMakerRuntimeHTTP2Client
from aws_sdk_sagemaker_runtime_http2.config import AsyncSageMakerRuntimeHTTP2Config
from aws_sdk_sagemaker_runtime_http2.models import (
    InvokeEndpointWithBidirectionalStreamInput,
    RequestPayloadPart,
    RequestStreamEventPayloadPart,
    ResponsePayloadPart,
)
from awscrt.aio.http import AIOHttpClientConnectionUnified, AIOHttpClientStreamUnified
from awscrt.io import ClientTlsContext, TlsContextOptions
from smithy_aws_core.identity import AWSCredentialsIdentity
from smithy_core.interfaces import URI
from smithy_http.aio.crt import AWSCRTHTTPClient, AWSCRTHTTPClientConfig, AWSCRTHTTPResponse
from smithy_http.aio.interfaces import HTTPRequest
from smithy_http.interfaces import HTTPRequestConfiguration

from surtitle.core.errors import Decision, EngineError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.aws_credentials import Credentials
from surtitle.engines.aws_errors import Answer

__all__ = ["SdkStream", "check"]

_LOGGERS = (
    *("smithy_core", "smithy_http", "smithy_aws_core", "smithy_aws_event_stream"),
    *("aws_sdk_signers", "aws_sdk_sagemaker_runtime_http2"),
)
_END_WITHIN = 0.8
_CLOSE_WITHIN = 0.5
_CANCEL_WITHIN = 0.2


class SdkStream:
    """One bidirectional stream, from connecting to letting go. Steps in order of the methods.

    Args:
        target: What to call.
        credentials: What every event is signed with.
        authorities: Certificates to trust in place of the system's, as PEM.

    Raises:
        Exception: Anything at all, from any method but `close`: what the SDK's parts raise.
    """

    def __init__(
        self, target: SageMakerTarget, credentials: Credentials, authorities: bytes | None
    ) -> None:
        self._target = target
        self._http = _Http2Client(authorities)
        self._identity = _FrozenIdentity(credentials)
        self._client: Any = None
        self._input: Any = None
        self._events: Any = None
        self._opening: asyncio.Task[Any] | None = None
        self._output: asyncio.Task[Any] | None = None

    @property
    def answer(self) -> Answer | None:
        """The head of the service's answer, once it is here."""
        return self._http.answer

    async def open(self) -> None:
        """Begin to connect. Does no harm when it is cancelled."""
        self._opening = _watched(self._begin(), "sagemaker-open")
        await asyncio.wait({self._opening})
        if self._opening.cancelled():
            raise ConnectionAbortedError
        self._opening.result()

    async def _begin(self) -> None:
        target = self._target
        config = await AsyncSageMakerRuntimeHTTP2Config.resolve(
            region=target.region,
            endpoint_uri=target.url,
            transport=self._http,
            aws_credentials_identity_resolver=self._identity,
            retry_mode="standard",
            max_attempts=1,
        )
        self._client = AsyncSageMakerRuntimeHTTP2Client(config=config)
        stream = await self._client.invoke_endpoint_with_bidirectional_stream(
            InvokeEndpointWithBidirectionalStreamInput(
                endpoint_name=target.endpoint,
                target_variant=target.target_variant or None,
                model_invocation_path=target.invocation_path or None,
                model_query_string=target.query_string or None,
            )
        )
        self._input = stream.input_stream
        self._output = asyncio.create_task(stream.await_output(), name="sagemaker-output")
        self._output.add_done_callback(_fetch)

    async def connected(self) -> None:
        """Wait until there is a secure connection. Does no harm when it is cancelled."""
        assert self._output is not None  # noqa: S101 - opened before
        waiting = asyncio.create_task(self._http.connected.wait())
        try:
            await asyncio.wait({waiting, self._output}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def answered(self) -> None:
        """Wait until the service has accepted the call. Does no harm when it is cancelled."""
        assert self._output is not None  # noqa: S101 - opened before
        await asyncio.wait({self._output})
        if self._output.cancelled():
            raise ConnectionAbortedError
        _, self._events = self._output.result()

    async def send(self, payload: bytes) -> None:
        """Sign and send one text frame; waits, without end, while the service takes none."""
        part = RequestPayloadPart(bytes_=payload, data_type="UTF8", completion_state="COMPLETE")
        await self._input.send(RequestStreamEventPayloadPart(value=part))

    async def receive(self) -> tuple[bytes, bool] | None:
        """The next part's bytes and whether its frame goes on; None at the end of the stream.

        Not to be cancelled while the stream is wanted: it would not be usable afterwards.
        """
        while (event := await self._events.receive()) is not None:
            part = getattr(event, "value", None)
            if isinstance(part, ResponsePayloadPart):
                return part.bytes_ or b"", part.completion_state == "PARTIAL"
        return None

    async def close(self, *, polite: bool) -> None:
        """Let go of everything, in at most 2 s. Never raises.

        Args:
            polite: Send what is queued and say goodbye first; of no use on a dead stream.
        """
        tasks: set[asyncio.Task[Any]] = set()
        if self._opening is not None:
            tasks.add(self._opening)
            await asyncio.wait(tasks, timeout=_CANCEL_WITHIN)
        if self._input is not None and polite:
            goodbye = _watched(self._say_goodbye(), "sagemaker-goodbye")
            tasks.add(goodbye)
            await asyncio.wait({goodbye}, timeout=_END_WITHIN)
        if self._client is not None:
            tasks.add(_watched(self._client.close(), "sagemaker-close"))
        tasks |= {task for task in (self._output, self._http.sending) if task is not None}
        if self._http.sending is not None:
            self._http.sending.cancel()  # its waits bear it; whoever waits for it ends with it
        if tasks:
            # What waits for the service ends by itself when the connection is closed.
            await asyncio.wait(tasks, timeout=_CLOSE_WITHIN)
        if self._http.writer is not None:
            tasks.add(self._http.writer)
        left = {task for task in tasks if not task.done()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_CANCEL_WITHIN)

    async def _say_goodbye(self) -> None:
        await self._input.close()
        if self._http.writer is not None:
            await asyncio.wait({self._http.writer})


class _Http2Client(AWSCRTHTTPClient):
    """The SDK's HTTP client, telling what it does and bearing to be cancelled."""

    def __init__(self, authorities: bytes | None) -> None:
        super().__init__(client_config=AWSCRTHTTPClientConfig(force_http_2=True))
        if authorities is not None:
            options = TlsContextOptions()
            options.override_default_trust_store(authorities)
            self._tls_ctx = ClientTlsContext(options)
        self.connected = asyncio.Event()
        self.answer: Answer | None = None
        self.sending: asyncio.Task[Any] | None = None
        """The SDK's task that connects and waits for the head of the answer."""
        self.writer: asyncio.Task[None] | None = None
        """The task of AWS's C library that writes what is queued."""

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a copy would trust other authorities

    async def send(
        self,
        request: HTTPRequest,
        *,
        request_config: HTTPRequestConfiguration | None = None,
    ) -> AWSCRTHTTPResponse:
        self.sending = asyncio.current_task()
        return await super().send(request, request_config=request_config)

    async def _build_new_connection(self, url: URI) -> AIOHttpClientConnectionUnified:
        options = self._tls_ctx.new_connection_options()
        options.set_server_name(url.host)
        options.set_alpn_list(["h2", "http/1.1"])
        coming = AIOHttpClientConnectionUnified._generic_new(  # noqa: SLF001 - `new` cannot be cancelled
            host_name=url.host,
            port=url.port or 443,
            bootstrap=self._client_bootstrap,
            socket_options=self._socket_options,
            tls_connection_options=options,
            asyncio_connection=True,
        )
        await _told(coming)
        connection = coming.result()
        self.connected.set()
        return connection

    async def _await_response(self, stream: AIOHttpClientStreamUnified) -> AWSCRTHTTPResponse:
        self.writer = stream._writer  # noqa: SLF001 - else its exception is never fetched
        self.writer.add_done_callback(_fetch)
        head, whole = stream._response_headers_future, stream._completion_future  # noqa: SLF001
        await _told(head, whole)
        if not head.done():  # the SDK would wait for ever
            raise whole.exception() or ConnectionAbortedError()
        self.answer = _answer(stream._response_status_future.result(), head.result())  # noqa: SLF001
        return await super()._await_response(stream)


class _FrozenIdentity:
    """The same credentials for every event, as the chain of signatures demands."""

    def __init__(self, credentials: Credentials) -> None:
        self._identity = AWSCredentialsIdentity(
            access_key_id=credentials.access_key,
            secret_access_key=credentials.secret_key,
            session_token=credentials.token or None,
        )

    async def get_identity(self, *, properties: object) -> AWSCredentialsIdentity:
        """Give them; the SDK asks before each event."""
        del properties
        return self._identity


def check() -> None:
    """See that the SDK is the one that was read, and keep it from logging what it carries.

    Raises:
        EngineError: It is another one.
    """
    for name in _LOGGERS:  # at DEBUG they write requests with tokens, and events with speech
        logging.getLogger(name).setLevel(logging.WARNING)
    new = inspect.signature(AIOHttpClientConnectionUnified._generic_new).parameters  # noqa: SLF001
    stream = AIOHttpClientStreamUnified.__init__.__code__.co_names
    client = AWSCRTHTTPClient.__init__.__code__.co_names
    expected: tuple[tuple[Iterable[str], Iterable[str]], ...] = (
        (("asyncio_connection", "bootstrap", "tls_connection_options"), new),
        (
            ("_writer", "_response_headers_future", "_response_status_future"),
            stream,
        ),
        (("_completion_future",), stream),
        (("_tls_ctx", "_client_bootstrap", "_socket_options"), client),
        (("_build_new_connection", "_await_response"), dir(AWSCRTHTTPClient)),
        (("bytes_", "data_type", "completion_state"), _names(RequestPayloadPart)),
        (("bytes_", "completion_state"), _names(ResponsePayloadPart)),
        (("resolve",), dir(AsyncSageMakerRuntimeHTTP2Config)),
    )
    if all({*names} <= {*there} for names, there in expected):
        return
    found = " and ".join(
        f"{name} {version(name)}"
        for name in ("aws-sdk-sagemaker-runtime-http2", "smithy-http", "awscrt")
    )
    raise EngineError(
        f"The installed AWS SDK is not one that Surtitle can use: {found}.",
        remedy="Run: pip install --upgrade --force-reinstall 'surtitle[aws]'",
        decision=Decision.RECONFIGURE,
    )


def _names(record: Any) -> set[str]:  # noqa: ANN401 - the SDK has no types
    return {field.name for field in fields(record)}


def _answer(status: int, headers: Iterable[tuple[str, str]]) -> Answer:
    """Keep of the head what the SDK drops."""
    values = {name.lower(): value for name, value in headers}
    code = values.get("x-amzn-errortype", "").partition(":")[0].rpartition("#")[2]
    ahead: float | None = None
    with suppress(ValueError, TypeError):  # TypeError: a date without a time zone
        sent = parsedate_to_datetime(values.get("date", ""))
        ahead = (datetime.now(UTC) - sent).total_seconds()
    return Answer(status=status, code=code, clock_ahead=ahead)


async def _told(*futures: Future[Any]) -> None:
    """Wait until a C thread has settled one of the futures.

    Whoever gives up waiting leaves them as they are: a thread that settles a cancelled
    future prints an InvalidStateError.
    """
    loop = asyncio.get_running_loop()
    settled = asyncio.Event()

    def tell(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settled.set)

    for future in futures:
        future.add_done_callback(tell)
    await settled.wait()


def _watched(work: Any, name: str) -> asyncio.Task[Any]:  # noqa: ANN401 - a coroutine of the SDK's
    task: asyncio.Task[Any] = asyncio.create_task(work, name=name)
    task.add_done_callback(_fetch)
    return task


def _fetch(task: asyncio.Task[Any]) -> None:
    """Fetch a task's exception, so that asyncio does not complain that nobody did."""
    if not task.cancelled():
        task.exception()
