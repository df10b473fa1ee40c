"""A captioner over the Realtime service in memory, in virtual time; what always holds; measures."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from fakes.audience import RememberingAudience
from fakes.coded_sound import CodedSound, Speech
from fakes.engine import WELL, Plan, ScriptedEngine
from fakes.keeper import RememberingKeeper
from fakes.realtime_service import Service
from fakes.source import ScriptedSource
from fakes.virtual_time import run_virtual
from surtitle.captioner import Captioner
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.errors import SurtitleError
from surtitle.core.health import State, Status
from surtitle.core.realtime_actions import Limits
from surtitle.core.stability import Stability
from surtitle.engines.realtime import Doubts, RealtimeEngine
from surtitle.relay import Engines

__all__ = ["Outcome", "TimedAudience", "run"]

_ANNOUNCED = {State.DELAYED, State.RECOVERING, State.NO_SOUND, State.FAILED}
_AFTER_STOP = 60.0
"""Seconds that the end may take: a stalled attempt, what is left, and what it waits for."""


class TimedAudience(RememberingAudience):
    """Notes when each word is seen for the first time, and what the status says when."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, float] = {}
        self.said: list[tuple[float, State]] = []

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        super().captions(snapshot, changed)
        del self.snapshots[:-1]  # hours of them
        now = asyncio.get_running_loop().time()
        for passage in changed:
            if not passage.gap:
                for word in (passage.settled + passage.tentative).split():
                    self.seen.setdefault(word, now)

    def status(self, status: Status) -> None:
        super().status(status)
        self.said.append((asyncio.get_running_loop().time(), status.state))


@dataclass(kw_only=True)
class Outcome:
    """What came of a run."""

    speech: Speech
    service: Service
    audience: TimedAudience
    position: int
    """How much sound came in, in samples."""
    error: SurtitleError | None
    ended: float
    took: float
    """Seconds from the end of the sound to the end of the run."""
    engines: list[RealtimeEngine]
    stand_ins: list[ScriptedEngine]
    # The most at any second:
    buffered: int = 0
    """Samples that waited for their text."""
    shelved: int = 0
    """Samples that a client of the service kept."""
    told: int = 0
    """Events that waited to be taken."""
    open: int = 0
    """Connections."""

    @property
    def expected(self) -> list[str]:
        """The words that were over before the sound was."""
        return [word.text for word in self.speech.words if word.end <= self.position]

    @property
    def words(self) -> list[str]:
        return self.audience.words

    @property
    def doubled(self) -> list[str]:
        return [word for word, count in Counter(self.words).items() if count > 1]

    @property
    def lost(self) -> list[str]:
        """Words that are neither in the text nor, with all their sound, under a mark."""
        have = set(self.words)
        return [
            word.text
            for word in self.speech.words
            if word.end <= self.position and word.text not in have
            if not any(a < word.end and word.start < b for a, b in self.audience.gaps)
        ]

    @property
    def dead(self) -> float:
        """Longest time, in seconds, that was talked without a word and without saying why."""
        news = sorted(self.audience.seen.values())
        longest = dead = 0.0
        at = 0
        for (before, _), (now, state) in pairwise([(0.0, State.STARTING), *self.audience.said]):
            if now * SAMPLE_RATE > self.position:
                break
            talked = self.speech.speaking(int(before * SAMPLE_RATE), int(now * SAMPLE_RATE))
            dead += talked / SAMPLE_RATE
            fresh = at < len(news) and news[at] <= now
            while at < len(news) and news[at] <= now:
                at += 1
            longest = max(longest, dead)
            if fresh or state in _ANNOUNCED:
                dead = 0.0
        return longest

    @property
    def recovery(self) -> float | None:
        """Seconds from when all was well again, and a word was there to be told, to that word."""
        seen = self.audience.seen
        well = self.service.cleared
        later = [seen[w.text] - max(well, w.end / SAMPLE_RATE) for w in self.speech.words
                 if w.text in seen and seen[w.text] > well]  # fmt: skip
        return later[0] if later and well else None

    def check(self) -> None:
        """What holds however it went."""
        assert not self.service.serving, "a connection was left open"
        assert all(connection.closed for connection in self.service.connections[:-1])
        assert self.doubled == []
        assert self.lost == []
        order = [int(word.removeprefix("word")) for word in self.words]
        assert order == sorted(order)
        marks = self.audience.gaps
        assert all(a < b <= c for (a, b), (c, _) in pairwise([*marks, (1 << 60, 0)]))
        starts = [p.start for p in self.audience.passages.values() if p.settled]
        assert starts == sorted(starts), "text and gaps are in the order of the sound"
        assert self.took <= _AFTER_STOP


def run(
    service: Service,
    length: float,
    *,
    stop: float | None = None,
    stand_in: bool = False,
    renew_after: float | None = None,
    limits: Limits | None = None,
    live: bool = True,
    watched: bool = False,
) -> Outcome:
    """Caption so many seconds of what is said; stop after `stop` seconds."""
    speech = service.speech
    engines: list[RealtimeEngine] = []
    stand_ins: list[ScriptedEngine] = []
    doubts = Doubts()

    def chosen() -> RealtimeEngine:
        engine = RealtimeEngine(
            service(),
            lambda: speech.score,
            model="voxtral",
            name="Voxtral",
            doubts=doubts,
            limits=limits,
        )
        engines.append(engine)
        return engine

    def other() -> ScriptedEngine:
        engine = ScriptedEngine(speech.spoken, WELL if live else Plan())
        stand_ins.append(engine)
        return engine

    async def main() -> Outcome:
        loop = asyncio.get_running_loop()
        audience, keeper = TimedAudience(), RememberingKeeper()
        source = ScriptedSource(CodedSound(length, live=live), live=live)
        captioner = Captioner(
            source,
            Engines(chosen=chosen, stand_in=other if stand_in else None, renew_after=renew_after),
            Captions(Stability.of(0.5), keep=40),
            audience,
            chance=lambda: 0.0,
            keeper=keeper,
        )
        outcome = Outcome(
            speech=speech,
            service=service,
            audience=audience,
            position=0,
            error=None,
            ended=0.0,
            took=0.0,
            engines=engines,
            stand_ins=stand_ins,
        )
        helpers = [asyncio.create_task(_stop(captioner, stop))]
        if watched:
            helpers.append(asyncio.create_task(_watch(captioner, outcome)))
        try:
            await captioner.run()
        except SurtitleError as error:
            outcome.error = error
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        outcome.position = captioner.position
        outcome.ended = loop.time()
        outcome.took = loop.time() - min(stop or length, length)
        assert len(asyncio.all_tasks()) == 1, "a task was left"
        assert [entry.text for entry in keeper.entries.values() if entry.text] == [
            p.settled for p in audience.passages.values() if p.settled and not p.gap
        ]
        return outcome

    return run_virtual(main())


async def _stop(captioner: Captioner, at: float | None) -> None:
    if at is not None:
        await asyncio.sleep(at)
        await captioner.stop()


async def _watch(captioner: Captioner, outcome: Outcome) -> None:
    """Look every second how much is kept anywhere."""
    while True:
        await asyncio.sleep(1.0)
        clients = [engine._client for engine in outcome.engines[-3:]]
        outcome.buffered = max(outcome.buffered, captioner._backlog._buffer.kept)
        outcome.shelved = max(
            outcome.shelved, *(c._kept.samples + c._held.samples for c in clients)
        )
        outcome.told = max(outcome.told, *(len(engine._told) for engine in outcome.engines[-3:]))
        outcome.open = max(outcome.open, len(outcome.service.serving))
        del outcome.engines[:-3]
