"""Keeps a stream on a Linux sound server connected to what was asked for.

The server moves a stream to some other source when its own vanishes, without
telling the stream. For someone who reads captions that would be words from the
wrong place, so the connection is compared with the wish on every change.
"""

from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from surtitle.audio.sound_server import Endpoint, Kind, SoundServer, Survey
from surtitle.core.audio import Lost, Moved
from surtitle.core.errors import Decision, SourceError

__all__ = ["TAG", "Gone", "Stay", "Steering", "Switch", "Verdict", "decide", "gone"]

TAG = "surtitle.stream"
"""The property that marks our streams among those of the server."""

_CHECK_EVERY = 2.0
"""Seconds between two looks when the server reports no change."""
_ATTEMPTS = 3
"""Looks in a row when what was to be connected vanished in between."""
_MOST_SWITCHES = 5
_SWITCHES_WITHIN = 10.0
"""Seconds. A server or a program that keeps moving our stream away wins in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """All is as it should be, or cannot be known just now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The stream should record `to`."""

    to: Endpoint
    connected: bool
    """Whether it already does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What should be recorded is not there."""


type Verdict = Stay | Switch | Gone


def decide(survey: Survey, *, wanted: Endpoint, connected: str | None, follow: bool) -> Verdict:
    """Say what to do about a stream.

    Args:
        survey: The state of the server.
        wanted: What the stream records as far as the user knows.
        connected: The source it is connected to; None if the server does not list it.
        follow: Whether the user wants whatever is the default.
    """
    kind = wanted.kind
    target = survey.default(kind) if follow else survey.endpoint(kind, wanted.name)
    if target is None:
        return Gone()
    if connected is None:
        return Stay()
    if connected == target.source == wanted.source:
        return Stay()
    return Switch(to=target, connected=connected == target.source)


class Steering:
    """Watches one stream of ours.

    Args:
        server: The connection to use.
        wanted: What the stream was opened on.
        follow: Whether to follow the default.
        tag: The value of the property `TAG` that the stream was opened with.
        process: This process's id.
        clock: The loop's clock, seconds.
    """

    def __init__(
        self,
        *,
        server: SoundServer,
        wanted: Endpoint,
        follow: bool,
        tag: str,
        process: int,
        clock: Callable[[], float],
    ) -> None:
        self.wanted = wanted
        """What the stream records."""
        self.seen = False
        """Whether the server has listed the stream as connected to what is wanted."""
        self.switches = 0
        """How often the stream was moved."""
        self._server = server
        self._follow = follow
        self._tag = tag
        self._process = str(process)
        self._clock = clock
        self._switches: deque[float] = deque(maxlen=_MOST_SWITCHES)

    async def check(self) -> Moved | None:
        """Compare and put right once; return what the user should hear of.

        Raises:
            SourceError: The server or the source is gone, or the stream cannot be kept on it.
        """
        for _ in range(_ATTEMPTS):
            survey = await self._server.survey()
            index, connected = self._ours(survey)
            match decide(survey, wanted=self.wanted, connected=connected, follow=self._follow):
                case Stay():
                    self.seen = self.seen or connected is not None
                    return None
                case Gone():
                    raise gone(self.wanted.description, self.wanted.kind)
                case Switch(to=target, connected=already):
                    if already or await self._move(index, target):
                        return self._now_on(target)
        raise self._taken_away()

    async def watch(self, tell: Callable[[Moved | Lost], None]) -> None:
        """Check on every change and at least every 2 s until cancelled or lost."""
        try:
            async with aclosing(self._server.changes(at_least_every=_CHECK_EVERY)) as changes:
                async for _ in changes:
                    moved = await self.check()
                    if moved is not None:
                        tell(moved)
        except SourceError as error:
            tell(Lost(error=error))

    def _ours(self, survey: Survey) -> tuple[int, str | None]:
        tagged = [r for r in survey.recordings if r.properties.get(TAG) == self._tag]
        if not tagged:
            # Some way the tag got lost; the process id will do if there is no doubt.
            tagged = [
                r
                for r in survey.recordings
                if r.properties.get("application.process.id") == self._process
                and TAG not in r.properties
            ]
        if len(tagged) != 1 or not tagged[0].source:
            return 0, None
        return tagged[0].index, tagged[0].source

    async def _move(self, index: int, target: Endpoint) -> bool:
        now = self._clock()
        if len(self._switches) == _MOST_SWITCHES and now - self._switches[0] < _SWITCHES_WITHIN:
            raise self._taken_away()
        self._switches.append(now)
        self.switches += 1
        return await self._server.move(index, target.source)

    def _now_on(self, target: Endpoint) -> Moved | None:
        self.seen = True
        if target.source == self.wanted.source:
            return None
        self.wanted = target
        return Moved(name=target.description)

    def _taken_away(self) -> SourceError:
        return SourceError(
            f"The sound server keeps taking Surtitle away from {self.wanted.description}.",
            remedy="Look at the recording tab of the sound settings, then choose again.",
            decision=Decision.RETRY,
        )


def gone(name: str, kind: Kind) -> SourceError:
    """Return the error for a device that is not there."""
    what = "output" if kind is Kind.SYSTEM else "microphone"
    return SourceError(
        f"{name} is not there any more.",
        remedy=f"Connect it again or choose another {what}: surtitle devices lists them.",
        decision=Decision.RETRY,
    )
