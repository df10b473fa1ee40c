"""The real pipeline with an audience that measures."""

import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from surtitle.captioner import Captioner, Source
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.health import Status
from surtitle.core.stability import Stability, agreed_form, words_of
from surtitle.engines.models import PACKAGED, locate
from surtitle.engines.on_device import OnDeviceEngine

LIVE_WORKER = Path(__file__).with_name("live_worker.py")


@dataclass
class Shown:
    """One passage as it was seen: when each word was first there, and how often words changed."""

    start: int = 0
    end: int = 0
    words: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    changed: int = 0
    moved: int = 0
    """Settled words that were not the same later."""
    settled_words: list[str] = field(default_factory=list)


class Watcher:
    """An audience that notes what a reader sees, and when (loop time)."""

    def __init__(self, more: Callable[[Snapshot], None] = lambda _: None) -> None:
        self.passages: dict[int, Shown] = {}
        self.gaps: list[Passage] = []
        self.notices: list[str] = []
        self.states: list[str] = []
        self._more = more

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        now = asyncio.get_running_loop().time()
        for passage in changed:
            if passage.gap:
                self.gaps.append(passage)
            else:
                self._see(passage, now)
        self._more(snapshot)

    def status(self, status: Status) -> None:
        if not self.states or self.states[-1] != str(status.state):
            self.states.append(str(status.state))

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def _see(self, passage: Passage, now: float) -> None:
        shown = self.passages.setdefault(passage.key, Shown())
        shown.start, shown.end = passage.start, passage.end
        words = [agreed_form(word) for word in words_of(passage.settled + passage.tentative)]
        settled = words_of(passage.settled)
        shown.moved += sum(a != b for a, b in zip(shown.settled_words, settled, strict=False))
        shown.moved += max(0, len(shown.settled_words) - len(settled))
        shown.settled_words = settled
        same = [a == b for a, b in zip(shown.words, words, strict=False)]
        shown.changed += same.count(False) + max(0, len(shown.words) - len(words))
        # Seen first: when a word came to stand where it stands.
        first = [shown.first[i] if i < len(same) else now for i in range(len(words))]
        shown.first = first
        shown.words = words
        shown.settled += [now] * (len(settled) - len(shown.settled))

    @property
    def text(self) -> str:
        ordered = sorted(self.passages.values(), key=lambda shown: shown.start)
        return " ".join("".join(shown.settled_words).strip() for shown in ordered)


async def listen(
    source: Source,
    watcher: Watcher,
    *,
    steadiness: float = 0.5,
    live_schedule: bool = False,
    microphone: bool = False,
) -> Captioner:
    """Run the pipeline over a source. `live_schedule`: hypotheses as often as in real time."""
    folder = str(locate(PACKAGED))
    command = [sys.executable, str(LIVE_WORKER), folder, str(PACKAGED.architecture)]
    captioner = Captioner(
        source,
        lambda: OnDeviceEngine(command=command if live_schedule else None),
        Captions(Stability.of(steadiness)),
        watcher,
        chance=random.random,
        patience=3,
        microphone=microphone,
    )
    await captioner.run()
    return captioner
