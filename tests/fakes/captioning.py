"""A captioner in virtual time with fakes around it, and what always holds of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from fakes.audience import RememberingAudience
from fakes.engine import WELL, Plan, ScriptedEngines
from fakes.keeper import RememberingKeeper
from fakes.source import ScriptedSource, sound
from fakes.speech import Spoken, say
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.captions import Captions
from surtitle.core.errors import SurtitleError
from surtitle.core.stability import Stability

__all__ = [
    "LENGTH",
    "SPEECH",
    "TEXT",
    "Meanwhile",
    "Session",
    "caption",
    "device",
    "file_of",
    "stop_at",
]

SPEECH = (
    say("it was the best of times", at=1.0),
    say("it was the worst of times", at=4.0),
    say("it was the age of wisdom", at=7.0),
)
LENGTH = 10.0
TEXT = [spoken.text for spoken in SPEECH]


class Session:
    """A captioner with everything around it."""

    def __init__(
        self,
        source: ScriptedSource,
        engines: ScriptedEngines,
        *,
        patience: int | None = None,
        origin: int = 0,
        buffer: float = 600.0,
    ) -> None:
        self.source = source
        self.engines = engines
        self.audience = RememberingAudience()
        self.keeper = RememberingKeeper()
        self.error: SurtitleError | None = None
        self.took = 0.0
        self.captioner = Captioner(
            source,
            engines,
            Captions(Stability.of(0.5), keep=10_000),
            self.audience,
            chance=lambda: 0.0,
            keeper=self.keeper,
            origin=origin,
            patience=patience,
            buffer=buffer,
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self.captioner.run()
        except SurtitleError as error:
            self.error = error
        finally:
            self.took = loop.time() - began
            self.check()

    def check(self) -> None:
        """What holds however it ended."""
        assert not self.source.open
        assert all(engine.stopped for engine in self.engines.made)
        assert len(asyncio.all_tasks()) <= 3, "run, stop and the test itself"
        kept = [entry for entry in self.keeper.entries.values() if entry.text or entry.gap]
        assert [entry.text for entry in kept] == [
            "" if passage.gap else passage.settled
            for passage in self.audience.passages.values()
            if passage.settled
        ]
        assert all(entry.closed for entry in kept)
        starts = [p.start for p in self.audience.passages.values() if p.settled]
        assert starts == sorted(starts), "text and gaps are in the order of the sound"


def file_of(length: float = LENGTH) -> ScriptedSource:
    return ScriptedSource(list(sound(length, live=False)))


def device(length: float = LENGTH, *, endless: bool = False) -> ScriptedSource:
    return ScriptedSource(list(sound(length, live=True)), live=True, endless=endless)


type Meanwhile = Callable[[Session], Awaitable[None]]


def caption(
    source: ScriptedSource,
    *plans: Plan,
    speech: Sequence[Spoken] = SPEECH,
    then: Plan = WELL,
    meanwhile: Meanwhile | None = None,
    **options: int,
) -> Session:
    async def main() -> Session:
        session = Session(source, ScriptedEngines(speech, *plans, then=then), **options)
        running = asyncio.create_task(session.run())
        if meanwhile is not None:
            await meanwhile(session)
        await asyncio.gather(running, return_exceptions=True)
        if not running.cancelled():
            running.result()
        return session

    return run_virtual(main())


def stop_at(time: float) -> Meanwhile:
    async def stop(session: Session) -> None:
        await asyncio.sleep(time)
        await session.captioner.stop()

    return stop
