"""The engine as it is: a real process with the real model hears real speech."""

import asyncio
import os
import signal
import wave
from importlib.util import find_spec
from itertools import batched
from pathlib import Path

import pytest

from fakes.audience import RememberingAudience
from fakes.source import ScriptedSource
from surtitle.captioner import Captioner
from surtitle.core.audio import Block, Format, SourceEvent, Started
from surtitle.core.captions import Captions, Passage, Snapshot
from surtitle.core.stability import Stability, agreed_form
from surtitle.engines.on_device import OnDeviceEngine

LIMIT = 120.0
SECONDS = 6.7
"""Of the recording, up to the words "it was the age of wisdom"."""


def recording() -> list[tuple[float, SourceEvent]]:
    """The beginning of the speech that comes with Moonshine."""
    spec = find_spec("moonshine_voice")
    if spec is None or spec.origin is None:
        pytest.skip("no on-device engine on this computer")
    with wave.open(str(Path(spec.origin).parent / "assets" / "two_cities.wav")) as file:
        assert file.getsampwidth() == 2
        form = Format(rate=file.getframerate(), channels=file.getnchannels())
        pcm = file.readframes(round(SECONDS * form.rate))
    size = form.rate // 50 * form.channels * 2
    blocks = [Block(pcm=bytes(part)) for part in batched(pcm, size)]
    events: list[SourceEvent] = [Started(format=form, name="Speech"), *blocks]
    return [(0.0, event) for event in events]


class KillingAudience(RememberingAudience):
    """Kills the engine's process as soon as it has said so much of an utterance."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.engines: list[OnDeviceEngine] = []
        self.killed = False
        self._words = words

    def engine(self) -> OnDeviceEngine:
        self.engines.append(OnDeviceEngine())
        return self.engines[-1]

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        super().captions(snapshot, changed)
        said = sum(len(f"{p.settled}{p.tentative}".split()) for p in snapshot.passages)
        if not self.killed and said >= self._words:
            process = self.engines[-1]._process
            assert process is not None
            self.killed = True
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("words_until_killed", [4, 11])
def test_words_are_recognised_and_survive_the_death_of_the_process(words_until_killed: int) -> None:
    audience = KillingAudience(words_until_killed)

    async def main() -> None:
        captioner = Captioner(
            ScriptedSource(recording()),
            audience.engine,
            Captions(Stability.of(0.5)),
            audience,
            chance=lambda: 0.0,
            patience=3,
        )
        async with asyncio.timeout(LIMIT):
            await captioner.run()

    asyncio.run(main())
    text = " ".join(agreed_form(word) for word in audience.words)
    assert audience.killed
    assert len(audience.engines) == 2
    assert text.count("best of times") == 1, text
    assert text.count("worst of times") == 1, text
    assert text.count("age of wisdom") == 1, text
    assert audience.gaps == []
