import base64
import json

import pytest

from surtitle.core.realtime_generation import due_deltas, total_deltas
from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    SessionCreated,
    SessionUpdate,
    Usage,
    decode_server,
    encode,
)
from surtitle.core.realtime_server import (
    Answer,
    Begin,
    Close,
    Drop,
    End,
    Hear,
    ServerAction,
    ServerSession,
)
from surtitle.core.speech import Final, Progress, Voice

FRAME = 1_280
SECOND = 16_000
NOT_VALIDATED = Failure(
    "Model not validated. Make sure to validate the model by sending a session.update event.",
    "model_not_validated",
)


class Peer:
    """A server's session, with a short way to say what a client sends."""

    def __init__(self, *, max_model_len: int | None = None, validated: bool = True) -> None:
        self.session = ServerSession(model="voxtral", max_model_len=max_model_len)
        if validated:
            assert self.sends(SessionUpdate(model="voxtral")) == []

    def sends(self, message: SessionUpdate | Append | Commit | str) -> list[ServerAction]:
        return self.session.heard(message if isinstance(message, str) else encode(message))

    def append(self, frames: float = 1, *, fill: int = 1) -> list[ServerAction]:
        return self.sends(Append(audio=bytes([fill]) * int(2 * FRAME * frames)))

    def start(self) -> list[ServerAction]:
        return self.sends(Commit())

    def final(self) -> list[ServerAction]:
        return self.sends(Commit(final=True))

    def heard_to(self, frames: int) -> list[ServerAction]:
        return self.session.spoke(Progress(position=frames * FRAME))

    def running(self) -> bool:
        return self.session.running


def answers(actions: list[ServerAction]) -> list[object]:
    return [decode_server(a.frame) for a in actions if isinstance(a, Answer)]


def deltas(actions: list[ServerAction]) -> list[str]:
    return [a.delta for a in answers(actions) if isinstance(a, Delta)]


def fed(actions: list[ServerAction]) -> list[tuple[int, int]]:
    return [(a.start, len(a.pcm) // 2) for a in actions if isinstance(a, Hear)]


def done(text: str, count: int) -> Done:
    return Done(text, Usage(39, 39 + count, count))


EMPTY = Done("", Usage(0, 0, 0))


def test_a_normal_utterance() -> None:
    peer = Peer()
    assert answers(peer.session.opened(identity="sess-1", created=7)) == [
        SessionCreated("sess-1", 7)
    ]
    assert peer.append(0.5) == [], "sound may come first"
    assert peer.start() == [Begin()]
    assert fed(peer.append()) == [(0, FRAME)], "in whole chunks"
    assert fed(peer.append(9.25)) == [(n * FRAME, FRAME) for n in range(1, 10)]
    assert len(deltas(peer.heard_to(10))) == due_deltas(10 * FRAME)
    assert peer.final() == [Hear(10 * FRAME, b"\1" * 1920), End()]
    said = peer.session.spoke(Final(utterance=1, text="One two.", start=0, end=9 * FRAME))
    last = peer.session.engine_ended()
    total = total_deltas(int(10.75 * FRAME))
    assert len(deltas(said + last)) == total - due_deltas(10 * FRAME)
    assert "".join(deltas(said + last)) == " One two."
    assert answers(last)[-1] == done(" One two.", total)
    assert last[-1] == Drop()
    assert not peer.running()


def test_messages_have_the_shape_of_the_real_ones() -> None:
    peer = Peer()
    peer.append()
    peer.start()
    peer.final()
    last = peer.session.engine_ended()[-2]
    assert isinstance(last, Answer)
    usage = (
        '{"prompt_tokens":39,"total_tokens":50,"completion_tokens":11,'
        '"prompt_tokens_details":null,"completion_tokens_details":null}'
    )
    assert last.frame == f'{{"type":"transcription.done","text":"","usage":{usage}}}'


def test_nothing_runs_without_a_model() -> None:
    peer = Peer(validated=False)
    peer.append(10)
    assert answers(peer.start()) == answers(peer.final()) == [NOT_VALIDATED]
    peer.sends(SessionUpdate(model="voxtral"))
    assert fed(peer.start()) == [(n * FRAME, FRAME) for n in range(10)], "the sound had waited"


@pytest.mark.parametrize("model", ["unknown", 5, "Voxtral"])
def test_an_unknown_model_is_named(model: object) -> None:
    peer = Peer(validated=False)
    error = Failure(f"The model `{model}` does not exist.", "model_not_found")
    assert answers(peer.sends(SessionUpdate(model=model))) == [error]
    assert answers(peer.start()) == [NOT_VALIDATED]
    assert peer.sends(SessionUpdate(model="")) == [], "no name is as good as the right one"
    assert answers(peer.sends(SessionUpdate(model=model))) == [error]
    assert peer.start() == [Begin()], "once validated, always validated"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("what?", "invalid_json"),
        ("[]", "processing_error"),
        ('{"type":"input_audio_buffer.clear"}', "unknown_event"),
        ('{"type":"input_audio_buffer.append"}', "processing_error"),
        ('{"type":"input_audio_buffer.append","audio":"AQ=="}', "invalid_audio"),
        ('{"type":"session.update"}', "invalid_event"),
    ],
)
def test_mistakes_leave_what_runs_alone(frame: str, code: str) -> None:
    peer = Peer()
    peer.start()
    peer.append(10)
    (failure,) = answers(peer.sends(frame))
    assert isinstance(failure, Failure)
    assert failure.code == code
    assert fed(peer.append()) == [(10 * FRAME, FRAME)]


def test_a_second_start_is_ignored() -> None:
    peer = Peer()
    peer.start()
    assert peer.start() == []
    peer.append(10)
    assert peer.start() == []


def run_through(peer: Peer, frames: int = 10) -> list[object]:
    """One whole utterance; what comes at its end."""
    actions = peer.start() + peer.append(frames) + peer.final()
    if peer.running():
        actions += peer.session.engine_ended()
    return [a for a in answers(actions) if not isinstance(a, Delta)]


def test_one_utterance_after_the_other() -> None:
    peer = Peer()
    for _ in range(3):
        assert run_through(peer) == [done("", total_deltas(10 * FRAME))]


def test_a_second_end_before_done_is_thrown_away() -> None:
    peer = Peer()
    peer.start()
    peer.append(10)
    assert End() in peer.final()
    assert peer.final() == []
    peer.session.engine_ended()
    assert run_through(peer) == [done("", total_deltas(10 * FRAME))]


def test_an_end_after_done_ends_the_next_utterance_at_once() -> None:
    peer = Peer()
    run_through(peer)
    assert peer.final() == []
    assert answers(peer.start()) == [EMPTY]
    # Its sound comes later, is kept with its own end, and answered one start too late.
    assert peer.append(20) == peer.final() == []
    actions = peer.start()
    assert fed(actions)[-1] == (19 * FRAME, FRAME)
    assert answers(peer.session.engine_ended())[-1] == done("", total_deltas(20 * FRAME))


def test_an_end_before_any_start_costs_the_sound_that_waits() -> None:
    peer = Peer()
    peer.final()
    peer.append(50)
    assert answers(peer.start()) == [EMPTY]
    assert peer.session.waiting == 0
    assert run_through(peer) == [done("", total_deltas(10 * FRAME))]


def test_what_comes_between_the_end_and_done_is_thrown_away() -> None:
    peer = Peer()
    peer.start()
    peer.append(10)
    peer.final()
    assert peer.start() == peer.append(20) == peer.final() == []
    assert peer.session.waiting == 30 * FRAME
    assert answers(peer.session.engine_ended())[-1] == done("", total_deltas(10 * FRAME))
    assert peer.session.waiting == 0
    assert peer.heard_to(40) == peer.session.engine_ended() == [], "nothing ever answers it"


def test_an_utterance_without_sound_is_over_at_once() -> None:
    peer = Peer()
    assert peer.start() == [Begin()]
    actions = peer.final()
    assert actions[0] == Drop()
    assert answers(actions) == [EMPTY]
    assert run_through(peer) == [done("", total_deltas(10 * FRAME))]


def test_the_end_of_the_context_is_a_done_that_nobody_asked_for() -> None:
    peer = Peer(max_model_len=200)
    peer.start()
    peer.append(400)
    assert len(deltas(peer.heard_to(165))) == 158
    actions = peer.heard_to(400)
    assert deltas(actions) == [""] * 3
    assert answers(actions)[-1] == done("", 161)
    assert actions[-1] == Drop()
    assert peer.session.waiting == 0, "the rest is thrown away"
    assert peer.append(75) == [], "and what comes is kept without a word"
    assert fed(peer.start())[-1] == (74 * FRAME, FRAME)


def test_a_broken_engine_is_told_and_never_done() -> None:
    peer = Peer()
    peer.start()
    peer.append(10.5)
    broken = Failure(
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "processing_error",
    )
    actions = peer.session.engine_failed()
    assert answers(actions) == [broken]
    assert actions[-1] == Drop()
    assert peer.session.waiting == 0
    assert peer.session.engine_failed() == peer.session.engine_ended() == []
    assert peer.append(10) == [], "sound is still taken"


def test_an_engine_that_ends_by_itself_is_broken() -> None:
    peer = Peer()
    peer.start()
    peer.append(10)
    (failure,) = answers(peer.session.engine_ended())
    assert isinstance(failure, Failure)


def test_sound_that_waits_has_a_bound() -> None:
    peer = Peer()
    peer.start()
    minute = Append(audio=bytes(2 * 60 * SECOND))
    for number in range(10):
        assert not any(isinstance(a, Close) for a in peer.sends(minute)), number
        assert peer.session.waiting == (number + 1) * 60 * SECOND
    peer.session.spoke(Voice(start=0, end=60 * SECOND, probability=0.0))
    assert peer.session.waiting == 9 * 60 * SECOND, "what is heard does not wait"
    assert not any(isinstance(a, Close) for a in peer.sends(minute))
    closing = [a for a in peer.append() if isinstance(a, Close)]
    assert [c.code for c in closing] == [1011]
    assert "600 s" in closing[0].reason


def test_the_bound_holds_before_the_start_too() -> None:
    peer = Peer()
    minute = encode(Append(audio=bytes(2 * 60 * SECOND)))
    assert len(base64.b64decode(json.loads(minute)["audio"])) == 2 * 60 * SECOND
    assert [a for _ in range(11) for a in peer.sends(minute)] == [
        Close(1011, "more than 600 s of audio wait to be heard")
    ]
