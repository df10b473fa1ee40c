"""The server's side of vLLM's Realtime API, as values: frames and engine events in, actions out.

It does as vLLM was seen to do, its errors and its traps included: sound and end
marks wait in one queue until a generation takes them; what is in the queue when
a generation ends is thrown away; an end mark that comes after a generation stays,
and ends the next one at once; the end of the context window is a done that nobody
asked for.
"""

from collections import deque
from dataclasses import dataclass

from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE
from surtitle.core.realtime_deltas import DeltaWriter
from surtitle.core.realtime_generation import PROMPT_TOKENS
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    Sendable,
    SessionCreated,
    SessionUpdate,
    Usage,
    decode_client,
    encode,
)
from surtitle.core.speech import EngineEvent
from surtitle.core.stability import Stability

__all__ = ["Answer", "Begin", "Close", "Drop", "End", "Hear", "ServerAction", "ServerSession"]

_WAITING = 600 * SAMPLE_RATE
_TOO_MUCH = 1011
_NOT_VALIDATED = (
    "Model not validated. Make sure to validate the model by sending a session.update event."
)
_BROKEN = "EngineCore encountered an issue. See stack trace (above) for the root cause."


@dataclass(frozen=True, slots=True)
class Answer:
    """Send this text frame."""

    frame: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Get an engine, as soon as one is free; what follows is for it."""


@dataclass(frozen=True, slots=True)
class Hear:
    """Feed the engine: sound from sample `start` of the generation on."""

    start: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class End:
    """Tell the engine that no more sound comes; tell `engine_ended` when it has said all."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Let go of the engine at once; nothing that it says is wanted."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection."""

    code: int
    reason: str


type ServerAction = Answer | Begin | Hear | End | Drop | Close


class _EndMark:
    """Lies in the queue where a final commit came."""


_END = _EndMark()


class ServerSession:
    """One connection.

    Args:
        model: The name that the model is served under.
        max_model_len: Tokens of the context window.
        rules: When a word is settled.
        waiting: Samples that may wait to be heard.
    """

    def __init__(
        self,
        *,
        model: str,
        max_model_len: int | None = None,
        rules: Stability | None = None,
        waiting: int = _WAITING,
    ) -> None:
        self._model = model
        self._rules = rules or Stability.of(0.5)
        self._most = None if max_model_len is None else max(1, max_model_len - PROMPT_TOKENS)
        self._may_wait = waiting
        self._validated = False
        self._queue: deque[bytes | _EndMark] = deque()
        self._queued = 0
        """Samples in the queue."""
        self._writer: DeltaWriter | None = None
        """Of the generation that runs."""
        self._ended = False
        """It has taken an end mark."""
        self._rest = b""
        """Sound it has taken that is not a whole chunk yet."""
        self._taken = 0
        """Samples it has taken and passed on."""
        self._actions: list[ServerAction] = []

    @property
    def running(self) -> bool:
        """Whether a generation runs, or waits for its engine."""
        return self._writer is not None

    @property
    def waiting(self) -> int:
        """Samples that are here and not heard yet."""
        unheard = self._taken - self._writer.heard if self._writer is not None else 0
        return self._queued + len(self._rest) // 2 + max(0, unheard)

    def opened(self, *, identity: str, created: int) -> list[ServerAction]:
        """The connection is open; `created` is the time in seconds since 1970."""
        self._answer(SessionCreated(id=identity, created=created))
        return self._told()

    def heard(self, frame: str) -> list[ServerAction]:
        """A text frame has come."""
        match decode_client(frame):
            case SessionUpdate(model=model):
                if model in ("", self._model):
                    self._validated = True
                else:
                    error = f"The model `{model}` does not exist."
                    self._answer(Failure(error=error, code="model_not_found"))
            case Append(audio=pcm):
                self._put(pcm)
            case Commit() if not self._validated:
                self._answer(Failure(error=_NOT_VALIDATED, code="model_not_validated"))
            case Commit(final=True):
                self._queue.append(_END)
            case Commit() if self._writer is None:
                self._begin()
            case Failure() as failure:
                self._answer(failure)
            case _:  # a second start while one runs
                pass
        self._take()
        return self._told()

    def spoke(self, event: EngineEvent) -> list[ServerAction]:
        """The engine says something."""
        if self._writer is not None:
            self._deltas(self._writer, self._writer.hear(event))
        return self._told()

    def engine_ended(self) -> list[ServerAction]:
        """The engine has said everything."""
        if self._writer is not None and self._ended:
            self._deltas(self._writer, self._writer.finish())
            if self._writer is not None:
                self._done(self._writer)
        elif self._writer is not None:
            return self.engine_failed()
        return self._told()

    def engine_failed(self) -> list[ServerAction]:
        """The engine broke, or could not be had: an error, and never a done."""
        if self._writer is not None:
            self._answer(Failure(error=_BROKEN, code="processing_error"))
            self._stop()
        return self._told()

    def _put(self, pcm: bytes) -> None:
        self._queue.append(pcm)
        self._queued += len(pcm) // 2
        if self.waiting > self._may_wait:
            reason = f"more than {self._may_wait // SAMPLE_RATE} s of audio wait to be heard"
            self._actions.append(Close(_TOO_MUCH, reason))
            self._queue.clear()
            self._queued = 0

    def _begin(self) -> None:
        if self._queue and isinstance(self._queue[0], _EndMark):
            self._empty()
            return
        self._writer = DeltaWriter(self._rules, most=self._most)
        self._ended = False
        self._taken = 0
        self._rest = b""
        self._actions.append(Begin())

    def _empty(self) -> None:
        """A generation that comes upon an end mark before any sound is over at once."""
        self._answer(Done(text="", usage=Usage()))
        self._queue.clear()
        self._queued = 0

    def _take(self) -> None:
        """Let the generation that runs take what waits, up to an end mark."""
        while self._writer is not None and self._queue and not self._ended:
            item = self._queue.popleft()
            if not isinstance(item, _EndMark):
                self._queued -= len(item) // 2
                self._pass_on(self._writer, item)
            elif not self._taken and not self._rest:
                self._actions.append(Drop())
                self._writer = None
                self._empty()
            else:
                self._ended = True
                self._pass_on(self._writer, b"")
                self._actions.append(End())

    def _pass_on(self, writer: DeltaWriter, pcm: bytes) -> None:
        """Give the engine whole chunks, and at the end what is left."""
        sound = self._rest + pcm
        size = 2 * CHUNK_SAMPLES
        whole = len(sound) if self._ended else len(sound) - len(sound) % size
        for at in range(0, whole, size):
            piece = sound[at : min(at + size, whole)]
            self._actions.append(Hear(self._taken, piece))
            self._taken += len(piece) // 2
        writer.sound(whole // 2)
        self._rest = sound[whole:]

    def _deltas(self, writer: DeltaWriter, deltas: list[Delta]) -> None:
        for delta in deltas:
            self._answer(delta)
        if writer.full:
            self._done(writer)

    def _done(self, writer: DeltaWriter) -> None:
        count = writer.deltas
        usage = Usage(
            prompt_tokens=PROMPT_TOKENS,
            total_tokens=PROMPT_TOKENS + count,
            completion_tokens=count,
        )
        self._answer(Done(text=writer.text, usage=usage))
        self._stop()

    def _stop(self) -> None:
        """The generation is over, and with it whatever waited."""
        self._actions.append(Drop())
        self._writer = None
        self._rest = b""
        self._queue.clear()
        self._queued = 0

    def _answer(self, message: Sendable) -> None:
        self._actions.append(Answer(encode(message)))

    def _told(self) -> list[ServerAction]:
        actions, self._actions = self._actions, []
        return actions
