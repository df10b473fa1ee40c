import base64
import json

import pytest

from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.errors import Decision, EngineError
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
from surtitle.core.realtime_client import Client
from surtitle.core.realtime_generation import due_deltas, total_deltas
from surtitle.core.realtime_messages import Delta, Done, Failure, SessionCreated, Usage, encode

FRAME = 1_280
SECOND = 16_000
CREATED = encode(SessionCreated(id="sess-1", created=1))


class Wire:
    """A client with a short way to say what comes, and a memory of what it did."""

    def __init__(self, *, model: str = "voxtral", limits: Limits | None = None) -> None:
        self.client = Client(model=model, limits=limits or Limits(trailing=2 * FRAME))
        self.now = 0.0
        self.end = 0
        self.actions: list[Action] = []
        self.did(self.client.opened(self.now))

    def did(self, actions: list[Action]) -> list[Action]:
        self.actions += actions
        return actions

    def hears(self, message: SessionCreated | Delta | Done | Failure | str) -> list[Action]:
        frame = message if isinstance(message, str) else encode(message)
        return self.did(self.client.heard(frame, self.now))

    def append(self, frames: float = 1, *, fill: int = 1) -> list[Action]:
        pcm = bytes([fill]) * int(2 * FRAME * frames)
        start, self.end = self.end, self.end + len(pcm) // 2
        return self.did(self.client.append(start, pcm, self.now))

    def deltas(self, count: int, *, end: int | None = None) -> list[Action]:
        return [a for _ in range(count) for a in self.hears(Delta("", end))]

    def runs(self, frames: int = 40) -> "Wire":
        """Let a server that counts hear so much."""
        self.hears(CREATED)
        for _ in range(frames):
            self.append()
        self.deltas(due_deltas(frames * FRAME))
        return self

    def ready(self) -> bool:
        return self.client.ready

    def counted(self) -> bool:
        return self.client.counted

    def deadline(self) -> float | None:
        return self.client.deadline

    def wants_renewal(self) -> bool:
        return self.client.wants_renewal

    def after(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.did(self.client.tick(self.now))


def said(actions: list[Action]) -> list[str]:
    """What was sent, in short: `model`, `start`, `final`, or how many samples."""
    result = []
    for action in actions:
        if not isinstance(action, Send):
            continue
        message = json.loads(action.frame)
        match message["type"]:
            case "session.update":
                result.append(f"model={message['model']}")
            case "input_audio_buffer.append":
                result.append(str(len(base64.b64decode(message["audio"])) // 2))
            case _:
                result.append("final" if message.get("final") else "start")
    return result


def others(actions: list[Action]) -> list[Action]:
    return [action for action in actions if not isinstance(action, Send)]


def fault(actions: list[Action]) -> EngineError:
    assert actions, "nothing happened"
    assert isinstance(actions[-1], Fault)
    return actions[-1].error


def test_a_session_goes_in_the_order_that_the_server_needs() -> None:
    wire = Wire()
    assert not wire.ready()
    assert said(wire.append(0.5)) == [], "no sound before the session is there"
    assert said(wire.hears(CREATED)) == ["model=voxtral", "640"]
    assert wire.ready()
    assert said(wire.append(0.5)) == ["640", "start"], "begun once there are 80 ms"
    assert said(wire.append()) == ["1280"]
    assert said(wire.did(wire.client.finish(0.0))) == ["2560", "final"]
    assert said(wire.append()) == [], "nothing follows the end"
    assert wire.hears(Delta(" one")) == [Words(" one", 2 * FRAME)]
    assert wire.hears(Delta("")) == [Beat(0)], "not yet trusted to be a clock"
    done = Done(" one", Usage(39, 54, total_deltas(4 * FRAME)))
    assert wire.hears(done) == [Beat(2 * FRAME), Finished(" one", 2 * FRAME)]
    assert wire.client.done
    assert wire.deadline() is None
    assert wire.hears(Delta(" more")) == wire.hears(CREATED) == wire.after(1e6) == []


def test_nothing_is_sent_for_nothing() -> None:
    wire = Wire()
    wire.hears(CREATED)
    assert wire.client.finish(0.0) == [Finished("", 0)]


def test_a_finish_waits_for_the_session() -> None:
    wire = Wire()
    wire.append(0.25)
    assert wire.client.finish(0.0) == []
    assert said(wire.hears(CREATED)) == ["model=voxtral", "320", "2560", "start", "final"]


def test_sound_that_waited_is_sent_in_few_messages() -> None:
    wire = Wire()
    for _ in range(20):
        wire.append()
    assert wire.client.held == 20 * FRAME
    actions = wire.hears(CREATED)
    assert said(actions) == ["model=voxtral", "11520", "start", "11520", "2560"]
    assert all(len(a.frame) <= 32_768 for a in actions if isinstance(a, Send))
    assert wire.client.held == 0


def test_one_long_piece_is_cut() -> None:
    wire = Wire()
    wire.hears(CREATED)
    assert said(wire.append(20)) == ["11520", "start", "11520", "2560"]


# Positions


def test_deltas_become_a_clock_once_they_have_behaved_like_one() -> None:
    wire = Wire()
    wire.hears(CREATED)
    for number in range(60):
        wire.append()
        due = due_deltas(wire.end)
        actions = wire.deltas(due - due_deltas(wire.end - FRAME))
        assert wire.counted() == (due >= 25)
        assert wire.client.sent == wire.end
        if due >= 25:
            assert actions == [Beat(due * FRAME)]
            assert wire.client.position == due * FRAME
        else:
            assert wire.client.position == 0, number
    assert wire.hears(Delta(" word")) == [Words(" word", 54 * FRAME)]


def test_a_server_that_lags_is_no_clock_until_it_has_caught_up() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(200)
    wire.deltas(100)
    assert not wire.counted()
    wire.deltas(due_deltas(200 * FRAME) - 104)
    assert not wire.counted()
    wire.deltas(1)
    assert wire.counted()


def test_a_server_that_says_more_than_it_heard_is_no_clock() -> None:
    wire = Wire().runs()
    assert wire.counted()
    position = wire.client.position
    wire.deltas(3)
    assert wire.counted()
    wire.deltas(1)
    assert not wire.counted()
    wire.append(100)
    wire.deltas(90)
    assert not wire.counted(), "never again"
    assert wire.client.position >= position, "what was said stands"
    assert wire.hears(Delta(" word")) == [Words(" word", 140 * FRAME)], "of anything sent"


def test_a_server_that_says_where_it_is_is_believed_at_once() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(10)
    assert wire.hears(Delta(" word", FRAME)) == [Words(" word", FRAME)]
    assert wire.hears(Delta("", 4 * FRAME)) == [Beat(4 * FRAME)]
    assert wire.hears(Delta("", 3 * FRAME)) == [Beat(4 * FRAME)], "not back"
    assert wire.hears(Delta("", 10**9)) == [Beat(10 * FRAME)], "nor beyond what it has"


def test_positions_jump_where_the_sound_does() -> None:
    wire = Wire()
    wire.end = 100_000
    wire.hears(CREATED)
    wire.append(5)
    wire.end += 50_000
    wire.append(5)
    assert wire.client.sent == 100_000 + 10 * FRAME + 50_000
    positions = [wire.hears(Delta("", frame * FRAME)) for frame in range(1, 11)]
    before = [[Beat(100_000 + frame * FRAME)] for frame in range(1, 6)]
    behind = [[Beat(150_000 + frame * FRAME)] for frame in range(6, 11)]
    assert positions == before + behind


def test_silence_at_the_end_has_no_place_in_the_sound() -> None:
    wire = Wire().runs()
    wire.did(wire.client.finish(0.0))
    wire.deltas(total_deltas(42 * FRAME) - due_deltas(40 * FRAME))
    assert wire.client.position == wire.client.sent == 40 * FRAME


def test_text_that_only_done_has_is_not_lost() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(5)
    wire.hears(Delta(" one"))
    wire.did(wire.client.finish(0.0))
    assert wire.hears(Done("one two")) == [Words(" two", 5 * FRAME), Finished(" one", 5 * FRAME)]


@pytest.mark.parametrize("text", ["", " one", "one", " other words", "one  "])
def test_otherwise_the_deltas_are_believed(text: str) -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(5)
    wire.hears(Delta(" one"))
    wire.did(wire.client.finish(0.0))
    assert wire.hears(Done(text)) == [Beat(5 * FRAME), Finished(" one", 5 * FRAME)]


# Renewal and restarts


def test_a_renewal_holds_the_sound_back_until_the_server_can_take_it() -> None:
    wire = Wire().runs()
    assert said(wire.did(wire.client.renew(0.0))) == ["final"]
    assert said(wire.append()) == said(wire.append()) == []
    assert said(wire.did(wire.client.renew(0.0))) == [], "one end for each beginning"
    total = total_deltas(40 * FRAME)
    wire.deltas(total - due_deltas(40 * FRAME))
    actions = wire.hears(Done("", Usage(39, 39 + total, total)))
    assert others(actions) == [Beat(40 * FRAME)]
    assert said(actions) == ["2560", "start"]
    assert wire.counted(), "it is the same server"
    assert wire.client.position == 40 * FRAME
    wire.append(6)
    assert wire.deltas(1) == [Beat(41 * FRAME)]


def test_a_finish_during_a_renewal_comes_after_it() -> None:
    wire = Wire().runs()
    wire.did(wire.client.renew(0.0))
    wire.append()
    assert wire.did(wire.client.finish(0.0)) == []
    done = Done("", Usage(39, 99, total_deltas(40 * FRAME)))
    assert said(wire.hears(done)) == ["1280", "start", "2560", "final"]


def test_a_finish_with_nothing_new_after_a_renewal_is_the_end() -> None:
    wire = Wire().runs()
    wire.did(wire.client.renew(0.0))
    wire.did(wire.client.finish(0.0))
    actions = wire.hears(Done("", Usage(39, 99, total_deltas(40 * FRAME))))
    assert actions == [Beat(40 * FRAME), Finished("", 40 * FRAME)]


def test_when_the_server_ends_the_sound_without_settled_text_is_sent_again() -> None:
    wire = Wire().runs()
    wire.client.keep_from(10 * FRAME + 100)
    actions = wire.hears(Done("", Usage(39, 200, 161)))
    assert others(actions) == [Restarted(10 * FRAME + 100)]
    # A generation of its own takes away what was on its way when the server ended.
    assert said(actions) == ["1280", "start", "final"]
    assert said(wire.append()) == []
    wire.hears(Delta(" twice"))
    assert others(wire.actions[-1:]) != [Words(" twice", 0)], "its text comes again"
    actions = wire.hears(Done(" twice", Usage(39, 50, 11)))
    assert others(actions) == []
    assert said(actions) == ["11420", "start", "11520", "11520", "5120"]
    assert wire.client.position == 10 * FRAME + 100
    assert wire.client.sent == 41 * FRAME


def test_sound_without_text_is_sent_again_whatever_is_said_to_be_settled() -> None:
    wire = Wire().runs()
    wire.client.keep_from(40 * FRAME)
    assert others(wire.hears(Done("", Usage(39, 200, 161)))) == [Restarted(33 * FRAME)]


def test_sound_of_an_ended_generation_is_not_sent_again() -> None:
    wire = Wire().runs()
    wire.did(wire.client.renew(0.0))
    wire.hears(Done("", Usage(39, 99, total_deltas(40 * FRAME))))
    wire.append(10)
    wire.deltas(3)
    assert others(wire.hears(Done("", Usage(39, 200, 161)))) == [Restarted(40 * FRAME)]


def test_the_end_of_the_context_is_learned_and_the_next_one_is_not_run_into() -> None:
    wire = Wire().runs(165)
    wire.client.keep_from(150 * FRAME)
    assert not wire.wants_renewal()
    wire.hears(Done("", Usage(39, 200, 161)))
    wire.hears(Done("", Usage(39, 50, 11)))
    for _ in range(200):
        if "final" in said(wire.append()):
            break
        wire.deltas(wire.client.sent >= 158 * FRAME)
    generation = (wire.end - 150 * FRAME) // FRAME
    assert 100 < generation < 150
    assert 39 + total_deltas(generation * FRAME) < 200
    assert wire.client.held == 0


@pytest.mark.parametrize(("context", "wanted", "must"), [(1_000, 800, 949), (200, 120, 169)])
def test_renewal_is_wanted_before_it_must_be(context: int, wanted: int, must: int) -> None:
    wire = Wire(limits=Limits(context=context, trailing=2 * FRAME))
    wire.hears(CREATED)
    for _ in range(1_000):
        actions = wire.append()
        wire.deltas(wire.end >= 8 * FRAME)
        if "final" in said(actions):
            break
        tokens = 39 + due_deltas(wire.end)
        assert wire.wants_renewal() == (tokens >= wanted)
    assert tokens == must


@pytest.mark.parametrize("words_before", [10, 100])
def test_the_word_that_a_full_context_cuts_is_heard_again(words_before: int) -> None:
    wire = Wire(limits=Limits(context=200, trailing=2 * FRAME)).runs(100)
    while "final" not in said(wire.append()):
        wire.deltas(due_deltas(wire.end) - due_deltas(wire.end - FRAME))
        if wire.end == (100 + words_before // 4) * FRAME:
            wire.hears(Delta(" last", wire.client.position))
    cut = wire.end
    spoken = [action for action in wire.actions if isinstance(action, Words)][-1].position
    wire.append(5)
    assert wire.client.sent == cut
    usage = Usage(39, 39 + total_deltas(cut), total_deltas(cut))
    actions = wire.hears(Done("", usage))
    again = max(spoken, cut - 3 * SAMPLE_RATE)
    assert again < cut
    assert Restarted(again) in actions
    assert said(actions)[-1] == "start" or "start" in said(actions)
    assert wire.client.sent == wire.end
    resent = sum(int(each) for each in said(actions) if each.isdigit())
    assert resent == wire.end - again


def test_renewal_can_be_wanted_for_age() -> None:
    wire = Wire(limits=Limits(renew_after=10 * FRAME))
    wire.hears(CREATED)
    wire.append(9)
    assert not wire.wants_renewal()
    wire.append(1)
    assert wire.wants_renewal()


def test_a_server_that_ends_before_it_begins_is_left() -> None:
    wire = Wire(limits=Limits(stale=2))
    wire.hears(CREATED)
    wire.append(10)
    nothing = Done("", Usage())
    for _ in range(2):
        assert others(wire.hears(nothing)) == [Restarted(0)]
        assert said(wire.hears(nothing)) == ["11520", "start", "1280"]
    assert fault(wire.hears(nothing)).decision is Decision.RETRY


def test_sound_that_can_no_longer_be_sent_again_is_for_a_new_session() -> None:
    wire = Wire(limits=Limits(kept=10 * FRAME)).runs()
    wire.append(100)
    error = fault(wire.hears(Done("", Usage(39, 200, 161))))
    assert error.decision is Decision.RETRY


def test_a_done_that_comes_too_early_for_our_end_is_not_taken_for_it() -> None:
    wire = Wire().runs()
    wire.append(20)
    wire.did(wire.client.finish(0.0))
    error = fault(wire.hears(Done("", Usage(39, 39 + 34, 34))))
    assert error.decision is Decision.RETRY


def test_an_old_end_mark_is_not_taken_for_an_end() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(20)
    wire.did(wire.client.finish(0.0))
    assert fault(wire.hears(Done("", Usage()))).decision is Decision.RETRY


def test_a_done_when_nothing_runs_is_nothing() -> None:
    wire = Wire()
    wire.hears(CREATED)
    assert wire.hears(Done("old", Usage())) == wire.hears(Delta("old")) == []
    wire.append(0.5)
    assert wire.hears(Done("old", Usage())) == wire.hears(Delta("old")) == []


# Waiting


def test_a_server_that_does_not_open_the_session() -> None:
    wire = Wire()
    assert wire.deadline() == 10.0
    assert wire.after(9.9) == []
    error = fault(wire.after(0.2))
    assert (error.decision, error.field) == (Decision.RETRY, "--url")


def test_a_server_that_is_full() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(7)
    assert wire.deadline() is None, "no delta is due yet"
    wire.now = 3.0
    wire.append()
    assert wire.deadline() == 13.0
    wire.now = 12.0
    wire.append()
    assert wire.after(0.9) == []
    error = fault(wire.after(0.2))
    assert (error.decision, error.retry_after) == (Decision.RETRY, 2.0)


def test_a_full_server_at_the_end_loses_nothing() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(4)
    wire.did(wire.client.finish(0.0))
    assert wire.after(9.9) == []
    assert fault(wire.after(0.2)).retry_after == 2.0


def test_a_server_that_stops_answering() -> None:
    wire = Wire().runs()
    assert wire.deadline() is None, "all is answered"
    wire.now = 2.0
    for _ in range(20):
        wire.append()
    assert wire.deadline() == 10.0
    wire.now = 5.0
    wire.deltas(1)
    assert wire.deadline() == 13.0, "a sign of life"
    assert wire.after(7.9) == []
    assert fault(wire.after(0.2)).decision is Decision.RETRY


def test_a_pause_of_the_sound_is_no_stall() -> None:
    wire = Wire().runs()
    wire.append(18)
    assert wire.after(1_000.0) == []


def test_a_slow_server_that_is_no_clock_is_only_suspected_while_sound_flows() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(200)
    wire.deltas(1)
    assert wire.deadline() is None
    wire.append(26)
    assert wire.deadline() == 8.0
    wire.deltas(1)
    assert wire.deadline() is None


def test_at_the_end_the_words_count_even_if_done_does_not_come() -> None:
    wire = Wire().runs()
    wire.hears(Delta(" one"))
    wire.did(wire.client.finish(0.0))
    wire.now = 4.0
    wire.deltas(1)
    assert wire.after(4.9) == []
    assert wire.after(0.2) == [Finished(" one", wire.client.position)]


def test_a_renewal_without_done_is_for_a_new_session() -> None:
    wire = Wire().runs()
    wire.did(wire.client.renew(0.0))
    assert fault(wire.after(5.0)).decision is Decision.RETRY


def test_a_server_that_never_stops_talking_is_stopped() -> None:
    wire = Wire().runs()
    wire.did(wire.client.finish(0.0))
    for _ in range(100):
        wire.after(1.0)
        wire.deltas(1)
    assert wire.client.done
    assert wire.now >= 60.0


def test_sound_that_waits_has_a_bound() -> None:
    wire = Wire(limits=Limits(held=10 * FRAME))
    wire.append(10)
    assert fault(wire.append()).decision is Decision.RETRY
    assert wire.client.done


# Errors


def test_a_model_that_is_unknown_is_asked_for_without_its_name() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(10)
    not_validated = Failure("Model not validated.", "model_not_validated")
    actions = wire.hears(Failure("The model `voxtral` does not exist.", "model_not_found"))
    assert said(actions) == ["model=", "start"], "the sound is there already"
    assert wire.hears(not_validated) == [], "the answer to the first start"
    wire.append(10)
    assert wire.hears(Delta(" one")) == [Words(" one", 20 * FRAME)]


def test_the_waiting_begins_anew_with_another_model() -> None:
    wire = Wire()
    wire.hears(CREATED)
    wire.append(10)
    wire.now = 8.0
    wire.hears(Failure("", "model_not_found"))
    assert wire.deadline() == 18.0
    wire.did(wire.client.finish(9.0))
    assert wire.deadline() == 19.0


def test_the_waiting_for_the_end_begins_anew_too() -> None:
    wire = Wire()
    wire.append(2)
    wire.did(wire.client.finish(0.0))
    wire.hears(CREATED)
    wire.now = 8.0
    wire.hears(Failure("", "model_not_found"))
    assert wire.deadline() == 18.0


def test_also_if_everything_had_been_said_by_then() -> None:
    wire = Wire()
    wire.append(2)
    wire.did(wire.client.finish(0.0))
    wire.hears(CREATED)
    actions = wire.hears(Failure("", "model_not_found"))
    assert said(actions) == ["model=", "start", "final"]
    not_validated = Failure("Model not validated.", "model_not_validated")
    assert wire.hears(not_validated) == wire.hears(not_validated) == []
    assert fault(wire.hears(not_validated)).decision is Decision.RETRY


@pytest.mark.parametrize(("model", "answers"), [("voxtral", 2), ("", 1)])
def test_no_model_at_all_is_for_the_user(model: str, answers: int) -> None:
    wire = Wire(model=model)
    wire.hears(CREATED)
    for _ in range(answers):
        actions = wire.hears(Failure("", "model_not_found"))
    error = fault(actions)
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--model")
    assert f"“{model}”" in error.message
    assert "“”" in error.message


@pytest.mark.parametrize(
    ("code", "decision"),
    [
        ("invalid_event", Decision.RECONFIGURE),
        ("model_not_validated", Decision.RETRY),
        ("processing_error", Decision.RETRY),
        ("invalid_audio", Decision.RETRY),
        ("invalid_json", Decision.RETRY),
        ("unknown_event", Decision.RETRY),
        ("idle_timeout", Decision.RETRY),
        ("something_new", Decision.RETRY),
        ("", Decision.RETRY),
        ("what you said: top secret", Decision.RETRY),
    ],
)
def test_an_error_ends_the_session_once(code: str, decision: Decision) -> None:
    wire = Wire().runs()
    error = fault(wire.hears(Failure("top secret speech", code)))
    assert error.decision is decision
    assert error.remedy
    assert "secret" not in str(error)
    assert wire.hears(Failure("", code)) == [], "not one for each message"
    assert wire.append() == wire.client.finish(0.0) == []


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"session.created","session":{"id":"s"},"event_id":"e"}',
        '{"type":"error","error":{"message":"no","type":"invalid_request_error"}}',
        '{"type":"conversation.item.created"}',
        "hello",
    ],
)
def test_another_protocol_is_recognised(frame: str) -> None:
    error = fault(Wire().hears(frame))
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--url")


def test_messages_that_make_no_sense_are_borne_but_not_for_ever() -> None:
    wire = Wire().runs()
    assert wire.hears('{"type":"session.updated","new":1}') == []
    assert wire.hears(CREATED) == []
    for _ in range(100):
        assert wire.hears("what?") == []
    assert fault(wire.hears("what?")).decision is Decision.RETRY
