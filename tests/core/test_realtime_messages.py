import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.core.realtime_messages import (
    Append,
    Commit,
    Delta,
    Done,
    Failure,
    Foreign,
    ServerMessage,
    SessionCreated,
    SessionUpdate,
    Unknown,
    Unreadable,
    Usage,
    decode_client,
    decode_server,
    encode,
)

SOUND = b"\x01\x00\xff\x7f"

ON_THE_WIRE = [
    (SessionUpdate(model="NAME"), '{"type":"session.update","model":"NAME"}'),
    (Commit(), '{"type":"input_audio_buffer.commit"}'),
    (Commit(final=True), '{"type":"input_audio_buffer.commit","final":true}'),
    (Append(audio=SOUND), '{"type":"input_audio_buffer.append","audio":"AQD/fw=="}'),
    (
        SessionCreated(id="sess-be45460bced26f17", created=1796047988),
        '{"type":"session.created","id":"sess-be45460bced26f17","created":1796047988}',
    ),
    (Delta(delta=" one"), '{"type":"transcription.delta","delta":" one"}'),
    (Delta(delta="", end=1280), '{"type":"transcription.delta","delta":"","end":1280}'),
    (
        Done(text=" one two", usage=Usage(prompt_tokens=39, total_tokens=99, completion_tokens=60)),
        (
            '{"type":"transcription.done","text":" one two","usage":{"prompt_tokens":39,'
            '"total_tokens":99,"completion_tokens":60,"prompt_tokens_details":null,'
            '"completion_tokens_details":null}}'
        ),
    ),
    (
        Failure(error="Invalid JSON", code="invalid_json"),
        '{"type":"error","error":"Invalid JSON","code":"invalid_json"}',
    ),
]


@pytest.mark.parametrize(("message", "frame"), ON_THE_WIRE)
def test_messages_lie_on_the_wire_as_vllm_sends_them(
    message: SessionUpdate | Commit | Append | SessionCreated | Delta | Done | Failure, frame: str
) -> None:
    assert encode(message) == frame
    if isinstance(message, SessionUpdate | Commit | Append):
        assert decode_client(frame) == message
    else:
        assert decode_server(frame) == message


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ('{"type":"transcription.delta","delta":"a","event_id":"e","logprobs":[1]}', Delta("a")),
        ('{"type":"transcription.delta","delta":"a","end":"soon"}', Delta("a")),
        ('{"type":"transcription.delta","delta":"a","end":-1}', Delta("a")),
        ('{"type":"transcription.delta","delta":"a","end":true}', Delta("a")),
        ('{"type":"transcription.delta","delta":"a","end":1.5}', Delta("a")),
        ('{"type":"transcription.done","text":"a","usage":7}', Done("a")),
        ('{"type":"transcription.done","text":"a","usage":null}', Done("a")),
        (
            '{"type":"transcription.done","text":"a","usage":{"total_tokens":"x"}}',
            Done("a", Usage()),
        ),
        ('{"type":"session.created"}', SessionCreated()),
        ('{"type":"session.created","id":7,"created":"now"}', SessionCreated()),
        ('{"type":"error","error":"It broke."}', Failure("It broke.")),
        ('{"type":"error","error":"It broke.","code":5}', Failure("It broke.")),
        ('{"type":"session.updated"}', Unknown("session.updated")),
        ('{"type":"transcription.delta"}', Unreadable("transcription.delta without its text")),
        (
            '{"type":"transcription.delta","delta":5}',
            Unreadable("transcription.delta without its text"),
        ),
        ('{"type":"transcription.done"}', Unreadable("transcription.done without its text")),
        ('{"type":"error"}', Unreadable("error without its text")),
        ("{}", Unreadable("no type")),
        ('{"type":5}', Unreadable("no type")),
        ("[]", Unreadable("no object")),
        ("null", Unreadable("no object")),
        ("hello", Unreadable("no JSON")),
        ("", Unreadable("no JSON")),
        ("[" * 100_000, Unreadable("no JSON")),
        ('{"type":"session.created","session":{"id":"s"}}', Foreign("session.created")),
        ('{"type":"session.created","error":{}}', Foreign("session.created")),
        ('{"type":"session.created","event_id":"event_1"}', Foreign("session.created")),
        ('{"type":"conversation.item.created"}', Foreign("conversation.item.created")),
        ('{"type":"error","error":{"message":"no"}}', Foreign("error as an object")),
    ],
)
def test_a_server_may_say_more_or_less_than_we_know(frame: str, message: ServerMessage) -> None:
    assert decode_server(frame) == message


_LIST = "'list' object has no attribute 'get'"
_NO_AUDIO = "1 validation error for InputAudioBufferAppend\naudio\n  "
_APPEND = '{"type":"input_audio_buffer.append"'


@pytest.mark.parametrize(
    ("frame", "error", "code"),
    [
        ("this is not json", "Invalid JSON", "invalid_json"),
        ("", "Invalid JSON", "invalid_json"),
        ("[]", _LIST, "processing_error"),
        ('"text"', "'str' object has no attribute 'get'", "processing_error"),
        ("null", "'NoneType' object has no attribute 'get'", "processing_error"),
        ("5", "'int' object has no attribute 'get'", "processing_error"),
        ("{}", "Unknown event type: None", "unknown_event"),
        ('{"type":null}', "Unknown event type: None", "unknown_event"),
        (
            '{"type":"input_audio_buffer.clear"}',
            "Unknown event type: input_audio_buffer.clear",
            "unknown_event",
        ),
        (_APPEND + "}", _NO_AUDIO + "Field required [type=missing]", "processing_error"),
        (
            _APPEND + ',"audio":null}',
            _NO_AUDIO + "Input should be a valid string [type=string_type]",
            "processing_error",
        ),
        (
            _APPEND + ',"audio":5}',
            _NO_AUDIO + "Input should be a valid string [type=string_type]",
            "processing_error",
        ),
        *(
            (f'{_APPEND},"audio":"{audio}"}}', "Invalid audio data", "invalid_audio")
            for audio in ("", "?", "AQD/f", "é", "AQ==", "AQID")
        ),
        (
            '{"type":"input_audio_buffer.commit","final":"maybe"}',
            (
                "1 validation error for InputAudioBufferCommit\nfinal\n"
                "  Input should be a valid boolean [type=bool_type]"
            ),
            "processing_error",
        ),
        ('{"type":"session.update"}', "Missing required field: model", "invalid_event"),
        (
            '{"type":"session.update","session":{"model":"m"}}',
            "Missing required field: model",
            "invalid_event",
        ),
    ],
)
def test_a_clients_mistakes_are_answered_as_vllm_answers_them(
    frame: str, error: str, code: str
) -> None:
    assert decode_client(frame) == Failure(error=error, code=code)


@pytest.mark.parametrize(
    ("value", "final"),
    [
        ("true", True),
        ('"yes"', True),
        ("1", True),
        ("false", False),
        ('"off"', False),
        ("0", False),
    ],
)
def test_a_final_may_be_said_in_several_ways(value: str, final: bool) -> None:  # noqa: FBT001 - a table
    frame = f'{{"type":"input_audio_buffer.commit","final":{value}}}'
    assert decode_client(frame) == Commit(final=final)


def test_what_is_no_base64_is_left_out_of_the_sound() -> None:
    assert decode_client(_APPEND + ',"audio":"AQ D!/fw=="}') == Append(audio=SOUND)


@given(st.binary(min_size=2).filter(lambda pcm: len(pcm) % 2 == 0))
def test_sound_arrives_as_it_was(pcm: bytes) -> None:
    frame = encode(Append(audio=pcm))
    assert json.loads(frame)["audio"] == base64.b64encode(pcm).decode()
    assert decode_client(frame) == Append(audio=pcm)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_FIELDS = st.dictionaries(
    st.sampled_from(
        ["type", "delta", "end", "text", "usage", "error", "code", "audio", "final", "model", "id"]
    ),
    _ANYTHING
    | st.sampled_from(
        [
            "session.created",
            "transcription.delta",
            "transcription.done",
            "error",
            "session.update",
            "input_audio_buffer.append",
            "input_audio_buffer.commit",
        ]
    ),
)


@given(st.text() | _FIELDS.map(json.dumps) | _ANYTHING.map(json.dumps))
def test_nothing_on_the_wire_raises(frame: str) -> None:
    decode_server(frame)
    decode_client(frame)
