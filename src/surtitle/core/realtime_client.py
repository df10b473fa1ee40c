"""The client's side of vLLM's Realtime API, as values: told what came and when, it says what to do.

Any transport that carries text frames will do. Sound has positions in samples
since capture began; times are seconds on a clock of the caller's.

    session.created -> session.update -> 80 ms of sound -> commit -> sound ...
    ... final commit -> done -> [sound -> commit -> ...]

From a commit to its done is a generation. The server throws away what it is
sent between a final commit and its done, so that is held back here.
"""

from collections.abc import Iterable
from enum import Enum, auto

from surtitle.core import realtime_faults as faults
from surtitle.core.audio import CHUNK_SAMPLES, SAMPLE_RATE
from surtitle.core.errors import EngineError
from surtitle.core.realtime_actions import (
    Action,
    Beat,
    Fault,
    Finished,
    Limits,
    Restarted,
    Send,
    Words,
)
from surtitle.core.realtime_generation import PROMPT_TOKENS, ContextWindow, DeltaClock, Generation
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    Foreign,
    Sendable,
    SessionCreated,
    SessionUpdate,
    Unreadable,
    decode_server,
    encode,
)
from surtitle.core.realtime_sound import MESSAGE_SAMPLES, Piece, Shelf, in_messages

__all__ = ["Client"]

_FIRST_SOUND = 9_600
"""Samples after which a first delta is due."""
_BEHIND = 2 * SAMPLE_RATE
"""Samples that a server may have unanswered without being suspected."""
_SOFT, _HARD = 0.80, 0.95
"""Shares of the context at which a generation should end, and at which it does."""
_UNTIL_PAUSE = 50
"""Tokens, 4 s, that speech may go on without a pause once one is waited for."""
_CUT = 3 * SAMPLE_RATE
"""Sound before a cut that is heard again at most; no word is longer."""
_BABBLE = 60.0
"""Seconds after a final commit in which even a server that goes on talking must end."""
_UNREADABLE = 100
"""Messages in a session that may make no sense."""


class _State(Enum):
    NEW = auto()
    OPENING = auto()
    """Waiting for session.created."""
    SENDING = auto()
    ENDING = auto()
    """Waiting for done."""
    OVER = auto()


class _Why(Enum):
    """What a final commit was sent for."""

    FINISH = auto()
    RENEW = auto()
    CUT = auto()
    """To begin anew where nobody paused: the word that was cut is heard again."""
    CLEAR = auto()
    """To be rid of the sound that was on its way when the server ended by itself."""


class Client:
    """One session, on one connection.

    Args:
        model: Name of the model as the server has it; empty for whichever it has.
        limits: How long to wait and how much to keep.
    """

    def __init__(self, *, model: str, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._model = model
        self._nameless = not model
        """The server is asked for a model without a name."""
        self._context = ContextWindow(
            self._limits.context, reserve=MESSAGE_SAMPLES + self._limits.trailing
        )
        self._state = _State.NEW
        self._why = _Why.FINISH
        self._since = 0.0
        """When the wait for session.created or done began."""
        self._finishing = False
        self._clock = DeltaClock()
        self._generation = Generation()
        self._answered = False
        """Some delta has come in this session."""
        self._begun = False
        """Some sound has come."""
        self._position = self._sent = self._keep_from = 0
        self._kept = Shelf(bound=self._limits.kept)
        """Sent in this generation."""
        self._lost = 0
        """One past the newest sample that fell off that shelf."""
        self._held = Shelf(bound=self._limits.held)
        """Not sent yet."""
        self._worded = 0
        """Where the newest words lie."""
        self._stale = self._unreadable = 0
        self._forgiven = 0
        """Commits that the server will refuse because it had not accepted the model yet."""
        self._actions: list[Action] = []

    @property
    def ready(self) -> bool:
        """Whether the server has opened the session and nothing has ended it."""
        return self._state in (_State.SENDING, _State.ENDING)

    @property
    def done(self) -> bool:
        """Whether the session is over, one way or the other."""
        return self._state is _State.OVER

    @property
    def position(self) -> int:
        """Everything before it has had its text. Goes back only with `Restarted`.

        If the server's deltas do not count the sound, it moves only when a generation ends.
        """
        return self._position

    @property
    def sent(self) -> int:
        """One past the newest sample that was sent. Goes back only with `Restarted`."""
        return self._sent

    @property
    def unanswered(self) -> int:
        """Samples on their way whose text has not come; 0 if the deltas do not count them.

        Less than `sent` less `position` where sound is missing between the two.
        """
        generation = self._generation
        return generation.samples - generation.reached if self._clock.counted else 0

    @property
    def held(self) -> int:
        """Samples that wait here until the server can take them; too many are a fault."""
        return self._held.samples

    @property
    def answered(self) -> bool:
        """Whether any delta has come in this session: a full server sends none."""
        return self._answered

    @property
    def counted(self) -> bool:
        """Whether this server's deltas count the sound: measured, once enough have come."""
        return self._clock.counted

    @property
    def wants_renewal(self) -> bool:
        """Whether the next pause should be used to `renew`."""
        if self._state is not _State.SENDING or not self._generation.committed:
            return False
        after = self._limits.renew_after
        old = after is not None and self._generation.samples >= after
        return old or self._context.used(_SOFT, tokens=self._generation.tokens, spare=_UNTIL_PAUSE)

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do, unless something comes before."""
        limits, generation = self._limits, self._generation
        patience = limits.done_within if generation.deltas else limits.first_delta_within
        match self._state:
            case _State.OPENING:
                return self._since + limits.created_within
            case _State.ENDING:
                latest = self._since + max(_BABBLE, patience)
                return min(max(self._since, generation.last_sign) + patience, latest)
            case _State.SENDING if generation.deltas:
                if generation.behind_since is None:
                    return None
                return max(generation.behind_since, generation.last_sign) + limits.delta_within
            case _State.SENDING if generation.first_due is not None:
                return generation.first_due + patience
        return None

    def opened(self, now: float) -> list[Action]:
        """The connection is open."""
        if self._state is _State.NEW:
            self._state = _State.OPENING
            self._since = now
        return self._told()

    def heard(self, frame: str, now: float) -> list[Action]:
        """A text frame has come."""
        if self._state is _State.OVER:
            return []
        match decode_server(frame):
            case SessionCreated() if self._state is _State.OPENING:
                self._say(SessionUpdate(model=self._model))
                self._proceed(now)
            case Delta(delta=text, end=end):
                self._delta(text, end, now)
            case Done() as done:
                self._done(done, now)
            case Failure(code=code):
                self._failure(code, now)
            case Foreign():
                self._fail(faults.foreign())
            case Unreadable() if self._state is _State.OPENING:
                self._fail(faults.foreign())
            case Unreadable():
                self._unreadable += 1
                if self._unreadable > _UNREADABLE:
                    self._fail(faults.unreadable())
            case _:  # a newer server says more than we know
                pass
        return self._told()

    def append(self, start: int, pcm: bytes, now: float) -> list[Action]:
        """Sound from position `start` on, signed 16-bit; what follows `finish` is dropped."""
        if self._state is _State.OVER or self._finishing or not pcm:
            return []
        if not self._begun:
            self._begun = True
            self._position = self._sent = self._keep_from = start
        if self._state is _State.SENDING:
            self._send([(start, pcm)], now)
        else:
            self._hold(start, pcm)
        return self._told()

    def finish(self, now: float) -> list[Action]:
        """No more sound comes: have the rest heard, then `Finished`."""
        if self._state is not _State.OVER and not self._finishing:
            self._finishing = True
            if self._state is _State.SENDING:
                self._end(_Why.FINISH, now)
        return self._told()

    def renew(self, now: float) -> list[Action]:
        """End this generation and begin another, best in a pause. No sound is lost by it."""
        if self._state is _State.SENDING and self._generation.committed:
            self._end(_Why.RENEW, now)
        return self._told()

    def keep_from(self, position: int) -> None:
        """The text before `position` is settled: its sound need not be sent again."""
        if self._clock.counted:
            position = min(position, self._position)
        self._keep_from = max(self._keep_from, position)
        self._kept.release(self._keep_from)

    def tick(self, now: float) -> list[Action]:
        """Time has passed: if the deadline is over, wait no longer."""
        if (deadline := self.deadline) is None or now < deadline:
            return []
        if self._state is _State.OPENING:
            self._fail(faults.not_created(self._limits.created_within))
        elif not self._answered:
            self._fail(faults.not_answering())
        elif self._state is _State.SENDING:
            waited = self._generation.deltas and self._limits.delta_within
            self._fail(faults.stalled(waited or self._limits.first_delta_within))
        elif self._why is _Why.FINISH and self._generation.deltas:
            # The words are there; only the word that there are no more is not.
            self._finish(self._position if self._clock.counted else self._sent)
        else:
            self._fail(faults.not_done())
        return self._told()

    def _delta(self, text: str, end: int | None, now: float) -> None:
        generation = self._generation
        if not (self._state in (_State.SENDING, _State.ENDING) and generation.committed):
            return
        self._answered = True
        generation.last_sign = now
        generation.told(text, end=end)
        if self._state is _State.ENDING and self._why is _Why.CLEAR:
            return  # this sound comes again
        self._clock.delta(generation, exact=end is not None)
        if self._clock.counted and (place := generation.place()) is not None:
            self._position = max(self._position, place)
        self._watch(now)
        self._tell(text)

    def _tell(self, text: str) -> None:
        if text:
            spoken = self._position if self._clock.counted else self._sent
            self._worded = spoken
            self._actions.append(Words(text, spoken))
        else:
            self._actions.append(Beat(self._position))

    def _done(self, done: Done, now: float) -> None:
        generation = self._generation
        if self._state is _State.SENDING and generation.committed:
            self._ended_by_server(done, now)
        elif self._state is _State.ENDING and self._why is _Why.CLEAR:
            self._proceed(now)
        elif self._state is _State.ENDING:
            usage = done.usage
            # An end mark of old, or the end of the context, may have come before ours.
            nothing = usage is not None and not (usage.total_tokens or generation.deltas)
            tokens = usage.completion_tokens if usage is not None else 0
            if nothing or (self._clock.counted and not generation.complete(tokens)):
                self._fail(faults.ended_early())
                return
            self._stale = 0
            if self._why is _Why.CUT:
                self._take_back(max(self._worded, self._sent - _CUT))
                self._proceed(now)
                return
            self._position = self._sent
            self._kept.take()
            self._tell(generation.missing(done.text))
            if self._why is _Why.FINISH:
                self._finish(self._sent)
            else:
                self._proceed(now)

    def _ended_by_server(self, done: Done, now: float) -> None:
        """Begin again with the sound that has no settled text."""
        generation = self._generation
        if rest := generation.missing(done.text):
            self._tell(rest)
        total = done.usage.total_tokens if done.usage is not None else 0
        learned = self._context.ended_at(total or PROMPT_TOKENS + generation.deltas)
        self._stale = 0 if learned else self._stale + 1
        if self._stale > self._limits.stale:
            self._fail(faults.restless())
            return
        if self._clock.counted and self._lost > self._position:
            self._fail(faults.ended_early())
            return
        self._take_back(self._keep_from)
        # What was on its way when the server ended waits there, and would be heard
        # before the sound that is sent again: a generation of its own takes it away.
        self._generation = Generation()
        self._silence(CHUNK_SAMPLES, now)
        self._close(_Why.CLEAR, now)

    def _take_back(self, since: int) -> None:
        """Have the sound from `since` on heard once more, by the next generation."""
        again = [*self._kept.take(since=since), *self._held.take()]
        start = again[0][0] if again else self._sent
        self._position = self._sent = self._keep_from = start
        self._actions.append(Restarted(start))
        for piece in again:
            self._hold(*piece)

    def _failure(self, code: str, now: float) -> None:
        if code == "model_not_found" and self._nameless:
            self._fail(faults.model_unknown(self._model))
        elif code == "model_not_found" and self._state in (_State.SENDING, _State.ENDING):
            self._ask_for_any_model(now)
        elif code == "model_not_validated" and self._forgiven:
            self._forgiven -= 1
        elif code == "invalid_event":
            self._fail(faults.refused())
        else:
            self._fail(faults.reported(code))

    def _ask_for_any_model(self, now: float) -> None:
        """Try a model without a name; the sound waits on the server, the commits were lost."""
        self._nameless = True
        self._say(SessionUpdate(model=""))
        if self._generation.committed:
            self._say(Commit())
            self._forgiven += 1
        if self._generation.first_due is not None:
            self._generation.first_due = now
        if self._state is _State.ENDING:
            self._say(Commit(final=True))
            self._forgiven += 1
            self._since = now

    def _proceed(self, now: float) -> None:
        """Begin the next generation, with what was held back."""
        self._state = _State.SENDING
        self._generation = Generation()
        self._send(self._held.take(), now)
        if self._finishing and self._state is _State.SENDING:
            self._end(_Why.FINISH, now)

    def _send(self, sound: Iterable[Piece], now: float) -> None:
        for start, pcm in in_messages(sound):
            if self._state is not _State.SENDING:
                self._hold(start, pcm)
                continue
            self._say(Append(audio=pcm))
            self._generation.sent(start, len(pcm) // 2)
            self._sent = start + len(pcm) // 2
            self._kept.put(start, pcm)
            while self._kept.full:
                self._lost = self._kept.drop()
            self._sound_sent(now)
            if self._context.used(_HARD, tokens=self._generation.tokens):
                # In mid-word perhaps, of which neither half would be understood.
                self._close(_Why.CUT if self._clock.counted else _Why.RENEW, now)

    def _silence(self, samples: int, now: float) -> None:
        while samples > 0:
            size = min(samples, MESSAGE_SAMPLES)
            self._say(Append(audio=bytes(2 * size)))
            self._generation.padded(size)
            samples -= size
        self._sound_sent(now)

    def _sound_sent(self, now: float) -> None:
        generation = self._generation
        if not generation.committed and generation.samples >= CHUNK_SAMPLES:
            generation.committed = True
            self._say(Commit())
        if generation.first_due is None and generation.samples >= _FIRST_SOUND:
            generation.first_due = now
        self._watch(now)

    def _watch(self, now: float) -> None:
        """Note since when the server owes deltas."""
        generation = self._generation
        counted = self._clock.counted
        owed = generation.samples - generation.reached if counted else generation.unanswered
        if owed <= _BEHIND:
            generation.behind_since = None
        elif generation.behind_since is None:
            generation.behind_since = now

    def _end(self, why: _Why, now: float) -> None:
        generation = self._generation
        if not generation.samples:
            self._finish(self._sent)
            return
        if why is _Why.FINISH:
            # At least so much that there is something to commit.
            self._silence(max(self._limits.trailing, CHUNK_SAMPLES - generation.samples), now)
        self._close(why, now)

    def _close(self, why: _Why, now: float) -> None:
        self._say(Commit(final=True))
        self._generation.closed = True
        self._state = _State.ENDING
        self._why = why
        self._since = now

    def _hold(self, start: int, pcm: bytes) -> None:
        if self._state is _State.OVER:
            return
        self._held.put(start, pcm)
        if self._held.full:
            self._fail(faults.overfull())

    def _finish(self, position: int) -> None:
        self._actions.append(Finished(self._generation.text, position))
        self._over()

    def _fail(self, error: EngineError) -> None:
        self._actions.append(Fault(error))
        self._over()

    def _over(self) -> None:
        self._state = _State.OVER
        self._kept.take()
        self._held.take()

    def _say(self, message: Sendable) -> None:
        self._actions.append(Send(encode(message)))

    def _told(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions
