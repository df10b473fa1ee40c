"""Whatever happens to a client, it sends nothing that vLLM does not take."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surtitle.core.realtime_actions import Action, Limits, Send
from surtitle.core.realtime_client import Client
from surtitle.core.realtime_messages import (
    Append,
    ClientMessage,
    Commit,
    Delta,
    Done,
    Failure,
    SessionCreated,
    SessionUpdate,
    Usage,
    decode_client,
    encode,
)

FRAME = 1_280
SECOND = 16_000
LARGEST = 16 * 1024**2
"""Bytes of a frame at which a server of vLLM closes the connection."""


def sent(actions: list[Action]) -> list[ClientMessage]:
    """The messages, as the server reads them."""
    messages: list[ClientMessage] = []
    for action in actions:
        if isinstance(action, Send):
            assert len(action.frame.encode()) < LARGEST // 256
            message = decode_client(action.frame)
            assert not isinstance(message, Failure), message
            messages.append(message)
    return messages


class Server:
    """Keeps count of what a client may do, and answers anything at all."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.position = 0
        self.model = self.committed = False
        self.sound = 0
        """Samples since the last generation ended."""
        self.take(client.opened(0.0))

    def take(self, actions: list[Action]) -> None:
        for message in sent(actions):
            match message:
                case SessionUpdate(model=model):
                    assert isinstance(model, str)
                    self.model = True
                case Append(audio=pcm):
                    self.sound += len(pcm) // 2
                case Commit(final=False):
                    assert self.model, "the model comes first"
                    assert self.sound >= FRAME, "80 ms of sound come before"
                    self.committed = True
                case Commit():
                    assert self.committed, "one end for one beginning"
                    self.committed = False
                    self.sound = 0

    def do(self, step: str) -> None:
        client, now = self.client, 0.0
        match step.split():
            case ["sound", samples]:
                count = int(samples)
                self.take(client.append(self.position, bytes(2 * count), now))
                self.position += count
            case ["hole"]:
                self.position += SECOND
            case ["created"]:
                self.take(client.heard(encode(SessionCreated()), now))
            case ["delta"]:
                self.take(client.heard(encode(Delta(" word")), now))
            case ["done"]:
                self.take(client.heard(encode(Done("", Usage(39, 99, 60))), now))
            case ["renew"]:
                self.take(client.renew(now))
            case ["finish"]:
                self.take(client.finish(now))
            case _:
                raise AssertionError(step)


STEPS = st.sampled_from(
    [
        *("sound 1", "sound 640", "sound 1280", "sound 1281", "sound 40000", "hole"),
        *("created", "delta", "delta", "done", "renew"),
    ]
)


@example(steps=["created", "sound 640", "sound 640", "renew", "done", "sound 1"], ends=True)
@example(steps=["sound 40000", "created", "delta", "done", "done", "hole", "sound 1"], ends=True)
@given(steps=st.lists(STEPS, max_size=40), ends=st.booleans())
def test_it_keeps_the_order_and_says_nothing_malformed(*, steps: list[str], ends: bool) -> None:
    server = Server(Client(model="voxtral"))
    for step in [*steps, *(["finish"] if ends else [])]:
        server.do(step)


def test_silence_at_the_end_is_longer_than_the_model_holds_words_back() -> None:
    client = Client(model="voxtral")
    actions = [*client.opened(0.0), *client.heard(encode(SessionCreated()), 0.0)]
    actions += [*client.append(0, b"\1" * 2 * FRAME, 0.0), *client.finish(0.0)]
    messages = sent(actions)
    assert messages[-1] == Commit(final=True)
    silence = [m.audio for m in messages if isinstance(m, Append) and not any(m.audio)]
    # The model is 0.48 s behind; a second more for what it holds back.
    assert sum(map(len, silence)) // 2 >= 1.48 * SECOND


@pytest.mark.parametrize("hole", [0, 90 * SECOND])
def test_sound_that_is_missing_is_not_waited_for(hole: int) -> None:
    """Else who waits for the server to get on waits for ever."""
    client = Client(model="voxtral", limits=Limits())
    client.opened(0.0)
    client.heard(encode(SessionCreated()), 0.0)
    client.append(0, bytes(2 * 40 * FRAME), 0.0)
    for _ in range(33):
        client.heard(encode(Delta("")), 0.0)
    assert client.unanswered == 7 * FRAME
    client.append(40 * FRAME + hole, bytes(2 * FRAME), 0.0)
    assert client.unanswered == 8 * FRAME
    assert client.sent - client.position == 8 * FRAME + hole
