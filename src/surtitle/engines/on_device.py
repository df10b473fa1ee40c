"""The on-device engine: Moonshine, in a process of its own beside the program."""

import asyncio
import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import IO

from surtitle.core.audio import SAMPLE_RATE, Chunk
from surtitle.core.errors import Decision, EngineError
from surtitle.core.speech import EngineEvent, Final, Partial, Progress, Voice
from surtitle.engines.models import PACKAGED, SpeechModel, locate
from surtitle.engines.worker import HEADER

__all__ = ["OnDeviceEngine"]

_READY_WITHIN = 30.0
_ANSWER_WITHIN = 12.0
"""Seconds without a word from the process while it has sound to hear: then it hangs."""
_STOP_WITHIN = 1.0
_LOOK_EVERY = 0.02
_UNHEARD = 10 * SAMPLE_RATE
"""Sound that may wait in the process; more stays with whoever feeds."""
_LINE = 1_000_000
"""Bytes of a message: an utterance of 18 seconds is far shorter."""
_MESSAGES = 64
"""Batches of messages that may wait for the loop; more stay in the process."""


class OnDeviceEngine:
    """An engine as `surtitle.captioner` wants it; one session, not to be started twice.

    Args:
        model: What it listens with.
        command: The program to run instead of the worker, with all its arguments.
        ready_within: Seconds in which the process must have loaded its model.
        answer_within: Seconds in which it must say something while sound waits for it.
    """

    def __init__(
        self,
        model: SpeechModel = PACKAGED,
        *,
        command: Sequence[str] | None = None,
        ready_within: float = _READY_WITHIN,
        answer_within: float = _ANSWER_WITHIN,
    ) -> None:
        self._model = model
        self._command = command
        self._ready_within = ready_within
        self._answer_within = answer_within
        self._process: subprocess.Popen[bytes] | None = None
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._incoming: asyncio.Queue[list[object]] = asyncio.Queue()  # bounded by the slots
        self._unread: deque[object] = deque()
        self._slots = threading.Semaphore(_MESSAGES)
        self._over = False
        """Nobody waits for messages any more."""
        self._threads: list[threading.Thread] = []
        self._fed = 0
        self._heard = 0
        self._begun = False
        self._finished = False
        self._room = asyncio.Event()
        self._broken: EngineError | None = None

    @property
    def name(self) -> str:
        """The model, as a person reads it."""
        return self._model.label

    @property
    def place(self) -> str:
        """Where the sound goes: nowhere."""
        return "on this computer"

    async def start(self) -> None:
        """Start the process and wait until its model is loaded.

        Raises:
            EngineError: It cannot be started, or does not become ready in time.
        """
        command = self._command or [
            *(sys.executable, "-P", "-m", "surtitle.engines.worker"),
            *(str(locate(self._model)), str(self._model.architecture)),
        ]
        try:
            process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own command; it forks and returns
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal is for the program, which then ends this process in order.
                process_group=None if sys.platform == "win32" else 0,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise EngineError(
                "The on-device engine cannot be started.",
                remedy="Run: surtitle doctor",
                decision=Decision.RETRY,
            ) from error
        self._process = process
        assert process.stdin is not None  # noqa: S101 - asked for above
        assert process.stdout is not None  # noqa: S101 - same
        loop = asyncio.get_running_loop()
        for name, work, arguments in (
            ("engine-in", self._write, (process.stdin,)),
            ("engine-out", self._read, (process, process.stdout, loop)),
        ):
            thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        try:
            async with asyncio.timeout(self._ready_within):
                await self._receive()
        except TimeoutError as error:
            raise self._error("does not become ready") from error
        if self._unread.popleft() != ["ready"]:
            raise self._error("could not load its model")

    async def feed(self, chunk: Chunk) -> None:
        """Hand over a chunk; waits while ten seconds are waiting to be heard.

        Raises:
            EngineError: The process is gone or does not answer; `events` says so too.
        """
        if not self._begun:
            self._begun = True
            self._heard = self._fed = chunk.start
        while self._broken is None and self._fed - self._heard > _UNHEARD:
            self._room.clear()
            await self._room.wait()
        if self._broken is not None:
            raise self._broken
        if chunk.pcm:  # an empty frame would be the end mark
            self._outgoing.put(HEADER.pack(chunk.start, len(chunk.pcm)) + chunk.pcm)
            self._fed = chunk.end

    async def finish(self) -> None:
        """Say that no more sound comes."""
        self._finished = True
        self._outgoing.put(HEADER.pack(0, 0))

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Tell what the process says, until it has said everything.

        Raises:
            EngineError: The process ended, failed, does not answer or talks nonsense.
        """
        while True:
            message = await self._next()
            match message:
                case ["partial", int(utterance), str(text), int(start), int(end)]:
                    yield Partial(utterance=utterance, text=text, start=start, end=end)
                case ["final", int(utterance), str(text), int(start), int(end)]:
                    yield Final(utterance=utterance, text=text, start=start, end=end)
                case ["progress", int(position)]:
                    yield Progress(position=position)
                case ["voice", int(start), int(end), float() | int() as probability]:
                    yield Voice(start=start, end=end, probability=float(probability))
                case ["heard", int(position)]:
                    self._heard = position
                    self._room.set()
                case ["done"]:
                    return
                case ["failed", str(kind)]:
                    raise self._error(f"reported a fault ({kind})")
                case None:
                    raise self._error("ended by itself")
                case _:
                    raise self._error("said something that cannot be understood")

    async def stop(self) -> None:
        """End the process and the threads that talk to it."""
        process, self._process = self._process, None
        self._outgoing.put(None)
        if process is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _STOP_WITHIN
        if self._broken is None:
            self._error("was stopped")
            patience = deadline
        else:
            patience = loop.time()
        self._over = True
        self._slots.release(_MESSAGES)
        try:
            await self._threads_gone(patience)
        finally:
            process.kill()
        await self._threads_gone(deadline + _STOP_WITHIN)

    async def _threads_gone(self, deadline: float) -> None:
        """Wait until both threads have ended, and with them the process."""
        # Neither has an event to wait for that works on every system and loop. Threads
        # that are alive after the deadline are stuck in the system; they are daemons.
        loop = asyncio.get_running_loop()
        while any(thread.is_alive() for thread in self._threads) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY)

    async def _next(self) -> object:
        """The next message; while sound waits to be heard it must come in time."""
        while not self._unread:
            waiting = self._finished or self._fed > self._heard
            try:
                async with asyncio.timeout(self._answer_within):
                    await self._receive()
            except TimeoutError as error:
                # Sound that has only just come must not be held against it.
                if waiting:
                    raise self._error("does not answer") from error
        return self._unread.popleft()

    async def _receive(self) -> None:
        self._unread.extend(await self._incoming.get())
        self._slots.release()

    def _error(self, what: str) -> EngineError:
        self._broken = EngineError(
            f"The on-device engine {what}.",
            remedy="If this happens again, run: surtitle doctor",
            decision=Decision.RETRY,
        )
        self._room.set()
        return self._broken

    def _write(self, pipe: IO[bytes]) -> None:
        """Run in a thread: the pipe is full while the process computes."""
        try:
            with pipe:
                while (frame := self._outgoing.get()) is not None:
                    pipe.write(frame)
                    pipe.flush()
        except OSError:
            pass  # the process is gone; the reading side tells

    def _read(
        self, process: subprocess.Popen[bytes], pipe: IO[bytes], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Run in a thread: hand what is said to the loop, then see the process off.

        All lines that have come are handed over at once: waking the loop is what costs.
        """
        rest = b""
        with pipe:
            while data := os.read(pipe.fileno(), _LINE):
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LINE:
                    lines, rest = [*lines, rest], b""
                if lines and not self._over:
                    self._slots.acquire()
                    self._hand_over(loop, [_message(line) for line in lines])
        self._hand_over(loop, [None])
        process.wait()

    def _hand_over(self, loop: asyncio.AbstractEventLoop, messages: list[object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is there to tell
            loop.call_soon_threadsafe(self._incoming.put_nowait, messages)


def _message(line: bytes) -> object:
    """What a line says; anything that is no message if it cannot be read."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line
