"""The on-device engine: Moonshine, in a process of its own beside the program."""

import asyncio
import json
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
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
_UNHEARD = 10 * SAMPLE_RATE
"""Sound that may wait in the process; more stays with whoever feeds."""


class OnDeviceEngine:
    """An engine as `surtitle.captioner` wants it; one session, not to be started twice."""

    def __init__(
        self, model: SpeechModel = PACKAGED, *, command: Sequence[str] | None = None
    ) -> None:
        self._model = model
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._incoming: asyncio.Queue[list[object] | None] = asyncio.Queue()
        self._threads: list[threading.Thread] = []
        self._fed = 0
        self._heard = 0
        self._first: int | None = None
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
        """Start the process and wait until its model is loaded."""
        command = self._command or [
            *(sys.executable, "-m", "surtitle.engines.worker"),
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
        self._threads = [
            threading.Thread(target=self._write, args=(process.stdin,), name="engine-in"),
            threading.Thread(target=self._read, args=(process.stdout, loop), name="engine-out"),
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        try:
            async with asyncio.timeout(_READY_WITHIN):
                first = await self._incoming.get()
        except TimeoutError as error:
            raise self._error("does not become ready") from error
        if first != ["ready"]:
            raise self._error("could not load its model")

    async def feed(self, chunk: Chunk) -> None:
        """Hand over a chunk; waits while ten seconds are waiting to be heard."""
        if self._first is None:
            self._first = self._heard = self._fed = chunk.start
        while self._broken is None and self._fed - self._heard > _UNHEARD:
            self._room.clear()
            await self._room.wait()
        if self._broken is not None:
            raise self._broken
        self._outgoing.put(HEADER.pack(chunk.start, len(chunk.pcm)) + chunk.pcm)
        self._fed = chunk.end

    async def finish(self) -> None:
        """Say that no more sound comes."""
        self._outgoing.put(HEADER.pack(0, 0))

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Tell what the process says, until it has said everything."""
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
        if self._broken is not None:
            process.kill()
        # A child process has no event to wait for that works on every system and loop.
        while process.poll() is None and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        process.kill()
        while process.poll() is None or any(thread.is_alive() for thread in self._threads):
            if loop.time() > deadline + _STOP_WITHIN:
                break  # daemons; they end with the program at the latest
            await asyncio.sleep(0.02)
        self._broken = self._broken or self._error("was stopped")
        self._room.set()

    async def _next(self) -> list[object] | None:
        """The next message; while sound waits to be heard it must come in time."""
        while True:
            try:
                async with asyncio.timeout(_ANSWER_WITHIN):
                    return await self._incoming.get()
            except TimeoutError as error:
                if self._fed > self._heard:
                    raise self._error("does not answer") from error

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

    def _read(self, pipe: IO[bytes], loop: asyncio.AbstractEventLoop) -> None:
        """Run in a thread: hand each line to the loop."""
        with pipe:
            for line in pipe:
                self._hand_over(loop, json.loads(line))
        self._hand_over(loop, None)

    def _hand_over(self, loop: asyncio.AbstractEventLoop, message: list[object] | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._incoming.put_nowait, message)
