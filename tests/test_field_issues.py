"""Register: what is known to go wrong with speech services, and the tests that show what we do.

Each table follows one of protocol.md, row by row and in its order. A row says what our client
does, and names the tests that fail if it no longer does so. Rows without tests say why.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

AWS = "tests/engines/test_aws_errors.py"
CLIENT = "tests/core/test_realtime_client.py"
CREDENTIALS = "tests/engines/test_aws_credentials.py"
CRASHES = "tests/test_captioner_recovery.py"
ENGINE = "tests/engines/test_realtime.py"
FAULTS = "tests/test_faults.py"
FIELD = "tests/test_field_scenarios.py"
GENERATION = "tests/core/test_realtime_generation.py"
IDENTITY = "tests/engines/test_sagemaker_identity.py"
MESSAGES = "tests/core/test_realtime_messages.py"
RECOVERY = "tests/core/test_recovery.py"
RELAY = "tests/test_relay.py"
SDK = "tests/engines/test_sagemaker_sdk.py"
SEGMENTS = "tests/core/test_segmentation.py"
SENT = "tests/core/test_realtime_sent.py"
SETTINGS = "tests/test_speech_engines.py"
STOPPING = "tests/test_captioner_stopping.py"
STREAM = "tests/engines/test_sagemaker.py"
SUCCESSION = "tests/test_captioner_succession.py"
SOCKET = "tests/engines/test_websocket.py"
TARGET = "tests/core/test_sagemaker_target.py"

BEFORE_OPEN = (SDK, "test_what_goes_wrong_before_it_is_open")
MID_STREAM = (SDK, "test_what_goes_wrong_in_mid_stream")
MATRIX = (FAULTS, "test_the_text_is_that_of_a_run_without_the_fault")
FOR_THE_USER = (FAULTS, "test_what_only_the_user_can_put_right_ends_it_with_the_sentence")
ONE_END = (CLIENT, "test_an_error_ends_the_session_once")
ORDER = (CLIENT, "test_a_session_goes_in_the_order_that_the_server_needs")
MEANING = (AWS, "test_meaning")
SOUND = (SENT, "test_it_keeps_the_order_and_says_nothing_malformed")

type Test = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table."""

    does: str
    """What our client does, or how it cannot come to it."""
    tests: tuple[Test, ...] = ()
    """File and function."""
    untested: str = ""
    """Why there are none."""


def row(does: str, *tests: Test) -> Row:
    """Make a row that has tests."""
    return Row(does, tests)


FAILURES = (  # 3.6: how failures of a SageMaker stream look
    row("names endpoint, log group or status; 400 is for the user", MEANING, BEFORE_OPEN),
    row(
        "reads status and code of the head; waits as long as it is told when throttled",
        *(MEANING, BEFORE_OPEN, (AWS, "test_how_long_a_throttled_client_has_to_wait")),
        (AWS, "test_the_code_that_the_sdk_drops_is_taken_from_the_head_of_the_answer"),
    ),
    row("knows a 503 by its status, whatever its body", MEANING, BEFORE_OPEN),
    row("takes the session for broken and opens another", MEANING, MID_STREAM, MATRIX),
    row("names an exception that it does not know", MEANING, MID_STREAM, MATRIX),
    row("names the code of an error event", MEANING, MID_STREAM, MATRIX),
    row("lets an unknown event go by", (SDK, "test_what_is_odd_but_no_fault")),
    row("says that the stream is damaged and opens another", MEANING, MID_STREAM, MATRIX),
    row("the same for an event that is cut off", MEANING, MID_STREAM, MATRIX),
    row(
        "sends messages of 0.7 s at most",
        *(SOUND, (CLIENT, "test_one_long_piece_is_cut")),
        (GENERATION, "test_messages_hold_what_follows_each_other_and_no_more_than_they_may"),
    ),
)

HANGS = (  # 3.7: hangs and errors that the SDK swallows
    row(
        "has credentials and a name before it enters the SDK",
        (STREAM, "test_credentials_that_do_not_come_are_told_in_time"),
        (STREAM, "test_credentials_that_cannot_be_had_are_told_as_they_are"),
        (TARGET, "test_what_cannot_be_names_the_option_and_what_to_do"),
    ),
    row("waits for the head with a limit of its own, and for the end", BEFORE_OPEN),
    row("takes an end that it did not ask for as a break", MID_STREAM, MATRIX),
    row(
        "gives up a send after 5 s, or at once when the stream ends",
        (STREAM, "test_no_room_for_too_long_is_the_end"),
        (STREAM, "test_the_end_wakes_whoever_waits_for_room_at_once"),
        (SDK, "test_it_dies_while_much_is_on_its_way"),
        (SDK, "test_a_service_that_takes_nothing"),
    ),
    row(
        "says goodbye with a limit, and to nobody who is dead",
        (SDK, "test_closing_while_the_service_takes_nothing"),
        (STREAM, "test_the_end_comes_after_what_was_received"),
    ),
    row(
        "one task receives; whoever waits for a frame may give up",
        (STREAM, "test_receiving_may_be_cancelled_at_any_step_and_loses_nothing"),
        (STREAM, "test_the_end_wakes_whoever_waits_for_a_frame"),
    ),
    row(
        "fetches the exception of every task of the SDK: no complaint is printed",
        *(MID_STREAM, (SDK, "test_it_dies_while_much_is_on_its_way")),
    ),
    row(
        "believes in deltas, not in sends that succeed",
        *((CLIENT, "test_a_server_that_stops_answering"), MATRIX),
    ),
    row(
        "gives up waiting for an answer",
        *(BEFORE_OPEN, (STREAM, "test_what_does_not_come_about_is_told_in_time")),
    ),
)

UPDATES = (  # 4.4: session.update by version
    row("names the model before anything else, and needs no answer", ORDER, SOUND),
    row(
        "asks once more without a name, then says both names; silence is consent",
        (CLIENT, "test_a_model_that_is_unknown_is_asked_for_without_its_name"),
        (CLIENT, "test_no_model_at_all_is_for_the_user"),
        *(ORDER, FOR_THE_USER),
    ),
    row("always sends a model", SOUND, ONE_END),
    row(
        "sends an empty name where none is given",
        (CLIENT, "test_no_model_at_all_is_for_the_user"),
        *((MESSAGES, "test_messages_lie_on_the_wire_as_vllm_sends_them"), SOUND),
    ),
    row(
        "never begins before; forgives the refusal of what it sent before a second name",
        *(SOUND, (CLIENT, "test_a_model_that_is_unknown_is_asked_for_without_its_name")),
        (CLIENT, "test_also_if_everything_had_been_said_by_then"),
    ),
    Row("sends none in mid-stream", untested="only an unknown name makes it send another"),
    Row("any name is accepted then", untested="a setting of the server; as a known model"),
)

ERRORS = (  # 4.6: errors and limits; that a session ends once with each is ONE_END
    row("sends only JSON", SOUND, ONE_END),
    row("sends only objects", SOUND, ONE_END),
    row("sends only kinds that vLLM knows", SOUND, ONE_END),
    row("always sends sound with it", SOUND, ONE_END),
    row(
        "sends whole samples, never none",
        *(SOUND, ONE_END, (MESSAGES, "test_sound_arrives_as_it_was")),
        ("tests/core/test_intake.py", "test_a_pause_in_the_middle_of_a_sample_drops_the_half"),
    ),
    row("sends strict base64", (MESSAGES, "test_sound_arrives_as_it_was")),
    row("sends 0.7 s at a time", (CLIENT, "test_one_long_piece_is_cut"), SOUND),
    row(
        "sends text frames",
        (SOCKET, "test_frames_go_both_ways_in_order"),
        (SDK, "test_text_both_ways_and_a_polite_end"),
    ),
    row("sends small frames; a 1009 is a break", SOUND, (SOCKET, "test_the_peer_closes")),
    row("takes the error for the end of the session and opens another", ONE_END, MATRIX),
)

ISSUES = (  # 6: public issues
    row(
        "sends silence like speech; leaves a session that has gone deaf",
        (FIELD, "test_1_silence_is_sent_like_anything_else"),
        (FIELD, "test_1_a_service_that_went_deaf_while_no_sound_came_is_left_for_another"),
        (SENT, "test_sound_that_is_missing_is_not_waited_for"),
        (CLIENT, "test_a_server_that_stops_answering"),
    ),
    row(
        "says that it is behind, then that the server may be full",
        (FIELD, "test_2_a_service_without_a_free_slot_is_never_taken_for_one_that_listens"),
        *((CLIENT, "test_a_server_that_is_full"), MATRIX),
    ),
    row(
        "waits 5 s for done, and keeps the words",
        (CLIENT, "test_at_the_end_the_words_count_even_if_done_does_not_come"),
        *((CLIENT, "test_a_renewal_without_done_is_for_a_new_session"), MATRIX),
    ),
    row(
        "closes politely, within a limit",
        (SOCKET, "test_frames_go_both_ways_in_order"),
        (SOCKET, "test_closing_does_not_wait_for_a_peer_that_does_not_answer"),
        (SDK, "test_text_both_ways_and_a_polite_end"),
    ),
    row(
        "begins with 80 ms of sound; comes back later each time",
        *(ORDER, SOUND, (CLIENT, "test_nothing_is_sent_for_nothing")),
        (RECOVERY, "test_it_waits_longer_each_time_and_never_gives_up"),
    ),
    row(
        "renews a generation by time and by tokens, before the context is full",
        (SETTINGS, "test_a_generation_ends_long_before_a_small_context_is_full"),
        (CLIENT, "test_renewal_is_wanted_before_it_must_be"),
        (CLIENT, "test_the_end_of_the_context_is_learned_and_the_next_one_is_not_run_into"),
        (
            "tests/core/test_realtime_both_sides.py",
            "test_the_limit_is_run_into_once_and_then_avoided",
        ),
    ),
    row(
        "leaves a server that hangs, and says so",
        *((CLIENT, "test_a_server_that_stops_answering"), MATRIX),
    ),
    row(
        "has speech without words heard again by another session, not for ever",
        (ENGINE, "test_speech_without_words_is_to_be_heard_again_from_its_beginning"),
        (ENGINE, "test_a_second_session_that_hears_nothing_either_is_believed"),
        MATRIX,
    ),
    row(
        "marks sound that hangs session after session as lost, and goes on behind it",
        (FIELD, "test_9_sound_that_hangs_every_session_is_not_sent_again_for_ever"),
        (RECOVERY, "test_sound_that_breaks_three_sessions_is_passed_over"),
    ),
    row(
        "bears an answer to the model's name, and none",
        *(ORDER, (CLIENT, "test_a_model_that_is_unknown_is_asked_for_without_its_name")),
    ),
    row(
        "takes a refusal, or a failure with a key, for one of the key",
        *((SOCKET, "test_an_answer_that_is_no_upgrade"), FOR_THE_USER),
    ),
    row("ends what it began; comes back after idle_timeout", ORDER, SOUND, ONE_END),
    row("uses no connection again after an error", ONE_END, MATRIX),
    row(
        "gives every utterance a generation of its own where deltas are no clock",
        (FIELD, "test_14_each_utterance_is_a_generation_where_deltas_are_no_clock"),
        (SEGMENTS, "test_a_service_whose_words_have_no_place_ends_when_it_has_said_everything"),
    ),
    row(
        "ignores what it does not know; counts deltas where they behave like a clock",
        (MESSAGES, "test_a_server_may_say_more_or_less_than_we_know"),
        (CLIENT, "test_deltas_become_a_clock_once_they_have_behaved_like_one"),
        (CLIENT, "test_a_server_that_says_more_than_it_heard_is_no_clock"),
    ),
    row(
        "expects the old slot to be taken: waits for its turn, then longer each time",
        *((CLIENT, "test_a_server_that_is_full"), MATRIX),
        (RECOVERY, "test_it_does_not_come_back_before_it_was_asked_to"),
    ),
    row("the same", (RECOVERY, "test_it_waits_longer_each_time_and_never_gives_up"), MATRIX),
    row(
        "answers pings whatever it does; comes back after a 1011",
        (SOCKET, "test_pings_are_answered_while_nobody_receives"),
        *((SOCKET, "test_the_peer_closes"), MATRIX),
    ),
    row("says what a 403 and a 404 mean", (SOCKET, "test_an_answer_that_is_no_upgrade")),
    row(
        "recognises the other protocol and refuses it",
        (CLIENT, "test_another_protocol_is_recognised"),
        (MESSAGES, "test_a_server_may_say_more_or_less_than_we_know"),
    ),
    row(
        "asks a second time, without a name, before it gives up",
        (CLIENT, "test_no_model_at_all_is_for_the_user"),
        (CLIENT, "test_the_waiting_begins_anew_with_another_model"),
    ),
    row(
        "cancels nothing that a C thread will settle",
        (SDK, "test_beginning_to_connect_may_be_given_up_at_any_step"),
        (SDK, "test_opening_may_be_given_up_at_any_time"),
        (STREAM, "test_receiving_may_be_cancelled_at_any_step_and_loses_nothing"),
    ),
    row(
        "fetches exactly those exceptions",
        *(MID_STREAM, (SDK, "test_closing_while_the_service_is_silent")),
    ),
    row("has its own limit for the answer", BEFORE_OPEN),
    row(
        "pins the SDK, and looks at it before it is used",
        (SDK, "test_the_sdk_is_the_one_that_was_read"),
        (SDK, "test_another_sdk_is_refused_with_its_version"),
        (
            "tests/packaging/test_requirements.py",
            "test_everything_that_the_project_asks_for_is_pinned",
        ),
    ),
    row(
        "sends nothing once the other side has ended",
        (STREAM, "test_the_end_comes_after_what_was_received"),
        (STREAM, "test_the_end_wakes_whoever_waits_for_room_at_once"),
        *((SOCKET, "test_the_peer_closes"), MID_STREAM),
    ),
    row(
        "signs a stream with the same credentials to its end",
        (IDENTITY, "test_a_stream_keeps_what_it_began_with_and_the_next_one_gets_fresh_ones"),
    ),
    row(
        "sends at most four times as fast as it sounds, files and replays alike",
        (FIELD, "test_28_sound_never_goes_out_faster_than_four_times_real_time"),
        (ENGINE, "test_sound_goes_out_no_faster_than_four_times_as_it_sounded"),
    ),
    row(
        "ends without an exception, wherever it is",
        (STREAM, "test_opening_may_be_cancelled"),
        (STREAM, "test_closing_while_it_opens_ends_the_opening"),
        (SDK, "test_opening_may_be_given_up_at_any_time"),
        *((SUCCESSION, "test_cancelling_in_every_phase"), MATRIX),
    ),
    row(
        "refuses credentials that end too soon; gets fresh ones for every session",
        (CREDENTIALS, "test_what_ends_too_soon_is_refused_with_the_command_that_helps"),
        (IDENTITY, "test_a_stream_keeps_what_it_began_with_and_the_next_one_gets_fresh_ones"),
    ),
    row(
        "does not try again; says which login command to run",
        (CREDENTIALS, "test_single_sign_on_that_is_over"),
        (RECOVERY, "test_what_does_not_pass_by_itself_is_given_up_at_once"),
        *(BEFORE_OPEN, FOR_THE_USER),
    ),
    row(
        "writes nothing into the environment",
        (CREDENTIALS, "test_from_the_environment"),
        (IDENTITY, "test_a_stream_keeps_what_it_began_with_and_the_next_one_gets_fresh_ones"),
    ),
    row("carries the token with the key", (IDENTITY, "test_a_token_belongs_to_the_key")),
    row(
        "has a successor prove itself by deltas; what it swallowed is sent to the next",
        (FIELD, "test_34_and_47_a_session_that_died_while_it_waited_for_its_turn"),
        *((SUCCESSION, "test_a_successor_that_breaks_at_once"), MATRIX),
    ),
    row(
        "replaces a session in a pause, minutes before its limit",
        (SETTINGS, "test_a_stream_to_sagemaker_is_replaced_in_time"),
        (SUCCESSION, "test_a_session_is_renewed_between_two_utterances_only"),
        (SUCCESSION, "test_a_service_s_own_limit_comes_before_the_successor"),
    ),
    row(
        "the same; the README says so",
        (SETTINGS, "test_a_stream_to_sagemaker_is_replaced_in_time"),
        (SUCCESSION, "test_twenty_sessions_in_turn_and_every_word_once"),
    ),
    row(
        "silence that was heard is progress too, and begins the count anew",
        (FIELD, "test_37_whoever_says_nothing_does_not_use_up_any_patience"),
        (RECOVERY, "test_progress_makes_it_begin_anew"),
    ),
    row("opens another session", MATRIX, (CRASHES, "test_a_crash_changes_no_word")),
    row(
        "ends with a sentence where only the user can help; never storms",
        *(FOR_THE_USER, (CLIENT, "test_a_server_that_ends_before_it_begins_is_left")),
        (CRASHES, "test_an_engine_that_breaks_at_once_every_time_loses_nothing_unmarked"),
        (RELAY, "test_attempts_grow_further_apart"),
    ),
    row(
        "misses deltas after 8 s, long before the connection is known to be dead",
        *((CLIENT, "test_a_server_that_stops_answering"), MATRIX),
        (SOCKET, "test_a_connection_that_breaks"),
    ),
    row(
        "keeps sound until its text is settled, and sends it again",
        *(MATRIX, (CRASHES, "test_a_second_session_hears_from_the_settled_position_on")),
        ("tests/test_faults_property.py", "test_no_word_is_lost_or_doubled_without_a_mark"),
    ),
    row(
        "whoever receives only tells of the end; the conductor opens the next",
        *(MATRIX, (CRASHES, "test_an_end_that_nobody_asked_for_is_an_error_and_told")),
    ),
    row(
        "brings out what was said before the device fell silent, and goes on behind the gap",
        (FIELD, "test_43_what_was_said_before_a_device_fell_silent_comes_out"),
        (FIELD, "test_43_a_device_that_comes_back_loses_no_word_that_was_whole"),
        (
            "tests/audio/test_timeline.py",
            "test_a_silent_loopback_gets_silence_by_the_clock_and_is_never_lost",
        ),
    ),
    row(
        "is one state for the reader, however often it fails",
        (FIELD, "test_44_a_service_that_is_away_is_one_state_and_no_storm"),
        (FIELD, "test_44_an_error_for_every_piece_of_sound_is_one_break"),
        ONE_END,
    ),
    row(
        "sends what is documented; says where to look when the model does not accept",
        *(SOUND, (AWS, "test_a_path_given_may_be_what_the_model_does_not_accept")),
        BEFORE_OPEN,
    ),
    row(
        "reconnects and keeps the text; what was stopped stays so",
        *(MATRIX, (STOPPING, "test_an_engine_that_stays_away_does_not_keep_the_user")),
        (SUCCESSION, "test_stopping_in_every_phase"),
    ),
    row(
        "a session that waited is believed only when deltas come",
        (FIELD, "test_34_and_47_a_session_that_died_while_it_waited_for_its_turn"),
        MATRIX,
    ),
    row(
        "hears all the time, pauses too",
        (FIELD, "test_48_the_first_words_after_a_pause_are_there"),
        (CLIENT, "test_a_renewal_holds_the_sound_back_until_the_server_can_take_it"),
    ),
    row(
        "begins a generation first; an end has its reason",
        *(ORDER, (SOCKET, "test_the_peer_closes")),
        (CRASHES, "test_an_end_that_nobody_asked_for_is_an_error_and_told"),
    ),
    row(
        "ends utterances by pauses, sentences and length",
        (SEGMENTS, "test_where_utterances_end"),
        (SEGMENTS, "test_whoever_never_pauses_is_cut_and_no_word_is_in_two"),
        (SEGMENTS, "test_every_word_is_in_one_final_whenever_it_comes"),
    ),
    row(
        "sends silence before the end",
        (SENT, "test_silence_at_the_end_is_longer_than_the_model_holds_words_back"),
        (FIELD, "test_51_the_last_word_comes_though_the_sound_ends_with_it"),
    ),
    row(
        "keeps keys in the keyring, out of settings, logs and errors",
        (SETTINGS, "test_the_settings_name_where_a_key_is_and_never_hold_one"),
        (SOCKET, "test_the_key_is_in_no_log"),
        (SDK, "test_the_sdk_logs_neither_tokens_nor_text"),
        ("tests/core/test_server_address.py", "test_what_may_be_secret_is_not_repeated"),
    ),
    row(
        "bounds whatever it keeps",
        (FIELD, "test_53_a_session_grows_no_larger_the_longer_it_lasts"),
        (FAULTS, "test_the_long_haul_loses_no_word_and_keeps_nothing"),
        (CLIENT, "test_sound_that_waits_has_a_bound"),
        (STREAM, "test_frames_that_nobody_takes_are_bounded"),
        ("tests/test_captioner.py", "test_the_buffer_is_bounded_and_what_leaves_it_is_marked"),
    ),
)

TABLES = {
    "3.6": (FAILURES, 10),
    "3.7": (HANGS, 9),
    "4.4": (UPDATES, 7),
    "4.6": (ERRORS, 10),
    "6": (ISSUES, 53),
}


def rows() -> Iterator[tuple[str, Row]]:
    """Every row with its name, such as `6#9`."""
    for table, (all_of_it, _) in TABLES.items():
        for number, each in enumerate(all_of_it, 1):
            yield f"{table}#{number}", each


@cache
def names_in(path: str) -> frozenset[str]:
    """The tests of a file, without importing it."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


@pytest.mark.parametrize("table", TABLES)
def test_no_row_of_a_table_is_missing(table: str) -> None:
    all_of_it, count = TABLES[table]
    assert len(all_of_it) == count


@pytest.mark.parametrize("each", [pytest.param(each, id=name) for name, each in rows()])
def test_each_row_says_what_we_do_and_shows_it(each: Row) -> None:
    assert each.does
    assert bool(each.tests) != bool(each.untested), "either tests, or why not"
    assert len(set(each.tests)) == len(each.tests)
    for path, name in each.tests:
        assert name in names_in(path), f"{path}::{name} is gone"


@pytest.mark.parametrize("name", ["test_something", "row", "Row"])
def test_a_test_that_is_not_there_is_found_out(name: str) -> None:
    assert name not in names_in("tests/test_field_issues.py")


def test_tests_of_field_issues_are_in_the_register() -> None:
    named = {name for _, each in rows() for path, name in each.tests if path == FIELD}
    assert named == names_in(FIELD)
