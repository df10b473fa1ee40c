"""vLLM's Realtime API over any engine of ours: a speech server for a household or an office.

What is said and when is decided in `surtitle.core.realtime_server`; here are the
sockets and the HTTP beside them.
"""

import asyncio
import hmac
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from surtitle.core.errors import UsageError
from surtitle.core.realtime_generation import PROMPT_TOKENS
from surtitle.core.realtime_server import ServerSession
from surtitle.server.options import cannot_listen, check_limit, check_place
from surtitle.server.realtime_connection import RealtimeConnection, SpeechEngine
from surtitle.server.records import session_line

__all__ = ["RealtimeServer", "key_from_environment", "run"]

_PATH = "/v1/realtime"
_MAX_MESSAGE = 16 * 1024 * 1024
_PING_EVERY = 20.0
_PONG_WITHIN = 20.0
_GOODBYE_WITHIN = 1.0
"""Seconds that a client has to answer a close frame."""
_END_WITHIN = 3.0
"""Seconds in which the server is gone, whatever clients and engines do."""
_MAX_MODEL_LEN = 131_072
"""Tokens: nearly three hours in one generation."""

# The library writes frames into its log when it may: speech does not belong there.
_SILENT = logging.getLogger(f"{__name__}.frames")
_SILENT.disabled = True


class RealtimeServer:
    """The server, from `async with` to its end.

    Args:
        make_engine: Makes the engine for a generation.
        host: Where to listen.
        port: 0 takes any that is free.
        model: The name that the model is served under.
        max_sessions: Generations that are heard at once; more wait without a word.
        max_model_len: Tokens of the context window: 39, and one for every 80 ms.
        api_key: What clients must bring as bearer token; None or empty lets everybody in.
        log: Is told a line about every session that is over.

    Raises:
        UsageError: An argument cannot be meant.
    """

    def __init__(
        self,
        make_engine: Callable[[], SpeechEngine],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        model: str = "surtitle",
        max_sessions: int = 4,
        max_model_len: int = _MAX_MODEL_LEN,
        api_key: str | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        check_place(host, port)
        check_limit("--max-sessions", max_sessions)
        check_limit("--max-model-len", max_model_len, least=PROMPT_TOKENS + 1)
        if not model or not model.isprintable():
            raise UsageError(
                "The model needs a name that can be read.",
                remedy="Give another with --model, or leave it out.",
                field="--model",
            )
        self._make_engine = make_engine
        self._model = model
        self._max_model_len = max_model_len
        self._slots = asyncio.Semaphore(max_sessions)
        self._host = host
        self._port = port
        self._api_key = api_key
        self._server: Server | None = None
        self._connections: set[RealtimeConnection] = set()
        self._log = log
        self._count = 0
        """Sessions that there were."""

    @property
    def model(self) -> str:
        """The name that the model is served under."""
        return self._model

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    @property
    def url(self) -> str:
        """What a client connects to."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"ws://{host}:{self._port}{_PATH}"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            UsageError: There is no such place on this computer.
            SurtitleError: It cannot listen there, such as when another program does.
        """
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                process_request=self._answer_http,
                server_header="surtitle",
                max_size=_MAX_MESSAGE,
                ping_interval=_PING_EVERY,
                ping_timeout=_PONG_WITHIN,
                close_timeout=_GOODBYE_WITHIN,
                logger=_SILENT,
            )
        except (OSError, UnicodeError) as error:
            raise cannot_listen(error, self._host, self._port) from error
        self._port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send the clients away, 1012, and let go of the engines."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close(code=CloseCode.SERVICE_RESTART)
        leaving = [asyncio.create_task(c.let_go()) for c in self._connections]
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_WITHIN):
                await asyncio.gather(*leaving)
                await server.wait_closed()

    async def _serve(self, socket: ServerConnection) -> None:
        session = ServerSession(model=self._model, max_model_len=self._max_model_len)
        connection = RealtimeConnection(
            socket, session, make_engine=self._make_engine, slots=self._slots
        )
        self._connections.add(connection)
        self._count += 1
        number, loop = self._count, asyncio.get_running_loop()
        begun = loop.time()
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            if self._log is not None:
                self._log(
                    session_line(
                        number=number,
                        seconds=loop.time() - begun,
                        came=connection.frames_in,
                        went=connection.frames_out,
                        ended=connection.ended,
                    )
                )

    def _answer_http(self, socket: ServerConnection, request: Request) -> Response | None:
        """Everything but a WebSocket at the right place, with the right key."""
        path = urlsplit(request.path).path
        upgrade = "websocket" in ",".join(request.headers.get_all("Upgrade")).lower()
        if path in ("/health", "/ping") and not upgrade:
            return socket.respond(200, "")
        if path.startswith("/v1/") and not self._allowed(request):
            return _json(socket, 401, {"error": "Unauthorized"})
        if upgrade:
            return None if path == _PATH else socket.respond(403, "")
        if path == "/v1/models":
            return _json(socket, 200, {"object": "list", "data": [self._described()]})
        return _json(socket, 404, {"detail": "Not Found"})

    def _allowed(self, request: Request) -> bool:
        if not self._api_key:
            return True
        given = request.headers.get_all("Authorization")
        scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = hmac.compare_digest(key.encode(), self._api_key.encode())
        return scheme.lower() == "bearer" and right

    def _described(self) -> dict[str, object]:
        return {
            "id": self._model,
            "object": "model",
            "owned_by": "surtitle",
            "root": self._model,
            "max_model_len": self._max_model_len,
        }


def key_from_environment(variable: str) -> str:
    """The API key that an environment variable holds.

    Raises:
        UsageError: There is none.
    """
    if key := os.environ.get(variable, "").strip():
        return key
    raise UsageError(
        f"The environment variable {variable} is not set.",
        remedy="Put the API key into it, or leave --api-key-env away.",
        field="--api-key-env",
    )


async def run(server: RealtimeServer, *, say: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; says one line when clients may come.

    Raises:
        SurtitleError: It cannot listen there.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        async with server:
            tell = say or partial(print, flush=True)  # also where it goes into a pipe
            tell(f"Realtime server ready at {server.url} (model {server.model})")
            await ended.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _json(socket: ServerConnection, status: int, body: object) -> Response:
    response = socket.respond(status, msgspec.json.encode(body).decode())
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json"
    return response
