"""The declaration of settings and values that follow it."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.choices import any_text, made
from surtitle.core.errors import SettingsError
from surtitle.core.settings import SETTINGS, VERSION, AnySetting, Settings, Value, migrated

TEXT = made(partial(any_text, most=12), 60)


def allowed(setting: AnySetting) -> st.SearchStrategy[Value]:
    """Make any value the setting can have."""
    if setting.choices:
        return st.sampled_from([*setting.choices])
    match setting.default, setting.low, setting.high:
        case bool(), _, _:
            return st.booleans()
        case int(), int() as low, int() as high:
            return st.integers(low, high)
        case float(), float() as low, float() as high:
            return st.floats(low, high)
        case _:
            return TEXT.map(lambda text: "".join(filter(str.isprintable, text)))


ANY_SETTINGS = st.fixed_dictionaries({key: allowed(each) for key, each in SETTINGS.items()})
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
ANYTHING = PLAIN | st.lists(PLAIN, max_size=2) | st.dictionaries(st.just("x"), PLAIN)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_each_declaration_is_whole(setting: AnySetting) -> None:
    assert setting.key == f"{setting.section}.{setting.name}"
    assert setting.check(setting.default) == setting.default
    assert setting.label
    assert setting.help.endswith(".")
    assert setting.allowed


def test_defaults() -> None:
    settings = Settings()
    assert settings.audio_source == "system"
    assert settings.audio_device == ""
    assert settings.engine_name == "on-device"
    assert settings.captions_steadiness == 0.5
    assert settings.captions_lines == 2
    assert settings.captions_text_size == 100
    assert settings.captions_opacity == 80
    assert settings.transcript_save is True
    assert Settings.captions_lines.label == "Lines"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("audio.source", "speakers", "system or mic"),
        ("captions.lines", 0, "from 1 to 6"),
        ("captions.lines", 7, "from 1 to 6"),
        ("captions.lines", 2.0, "a whole number"),
        ("captions.lines", True, "a whole number"),
        ("captions.steadiness", -0.1, "from 0.0 to 1.0"),
        ("captions.steadiness", math.nan, "from 0.0 to 1.0"),
        ("captions.steadiness", math.inf, "from 0.0 to 1.0"),
        ("captions.steadiness", 10**400, "from 0.0 to 1.0"),
        ("captions.text_size", 401, "from 50 to 400 %"),
        ("transcript.save", 1, "true or false"),
        ("transcript.save", "true", "true or false"),
        ("audio.device", "two\nlines", "one line"),
        ("audio.device", None, "text"),
    ],
)
def test_a_value_that_cannot_be_names_key_value_and_what_can(
    key: str, value: object, words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings().with_value(key, value)
    assert key in str(caught.value)
    assert words in str(caught.value)
    assert (caught.value.field, caught.value.exit_code) == (key, 2)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("captions.lines", "3", 3),
        ("captions.steadiness", "1", 1.0),
        ("transcript.save", "False", False),
        ("audio.device", "USB headset", "USB headset"),
        ("audio.source", "mic", "mic"),
    ],
)
def test_a_command_line_is_read_by_type(key: str, text: str, value: Value) -> None:
    assert Settings().with_text(key, text).get(key) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [("captions.lines", "three"), ("captions.steadiness", "nan"), ("transcript.save", "yes?")],
)
def test_a_command_line_that_cannot_be_read_says_so(key: str, text: str) -> None:
    with pytest.raises(SettingsError, match=key):
        Settings().with_text(key, text)


def test_a_key_that_is_none_suggests_one() -> None:
    with pytest.raises(SettingsError, match=r"Did you mean captions\.lines\?"):
        Settings().get("captions.line")


def test_changing_makes_another() -> None:
    before = Settings()
    after = before.with_value("captions.lines", 3)
    assert (before.captions_lines, after.captions_lines) == (2, 3)
    assert before != after
    assert after.with_value("captions.lines", 2) == before


def test_good_fields_stay_when_others_are_bad_and_strange_ones_are_preserved() -> None:
    settings, problems = Settings.from_mapping(
        {
            "version": 1,
            "captions": {"lines": 3, "opacity": "very", "future": [1]},
            "audio": "mic",
            "plugins": {"x": {"y": 1}},
        }
    )
    assert (settings.captions_lines, settings.captions_opacity) == (3, 80)
    assert [problem.field for problem in problems] == ["captions.opacity", "audio"]
    mapping = settings.to_mapping()
    assert mapping["plugins"] == {"x": {"y": 1}}
    assert isinstance(mapping["captions"], dict)
    assert mapping["captions"]["future"] == [1]
    assert Settings.from_mapping(mapping) == (settings, [])


@given(ANY_SETTINGS)
def test_allowed_values_survive_a_round_trip(values: dict[str, Value]) -> None:
    settings = Settings()
    for key, value in values.items():
        settings = settings.with_value(key, value)
    read, problems = Settings.from_mapping(settings.to_mapping())
    assert (read, problems) == (settings, [])
    assert {key: read.get(key) for key in SETTINGS} == values


@given(
    st.dictionaries(
        st.sampled_from(["audio", "captions", "version", "other"]),
        ANYTHING | st.dictionaries(st.sampled_from(["lines", "source", "steadiness"]), ANYTHING),
    )
)
def test_whatever_a_file_says_there_are_settings(mapping: dict[str, object]) -> None:
    settings, _ = Settings.from_mapping(mapping)
    for key, setting in SETTINGS.items():
        assert setting.check(settings.get(key)) == settings.get(key)


# Versions.


def test_an_older_file_is_brought_up_step_by_step() -> None:
    def named(old: dict[str, object]) -> dict[str, object]:
        return {"lines": old["rows"]}

    def put_in_a_section(old: dict[str, object]) -> dict[str, object]:
        return {"captions": {"lines": old["lines"]}}

    steps = {1: named, 2: put_in_a_section}
    assert migrated({"version": 1, "rows": 4}, steps, 3) == {"version": 3, "captions": {"lines": 4}}
    assert migrated({"version": 3, "rows": 4}, steps, 3) == {"version": 3, "rows": 4}


def test_a_newer_file_is_used_as_far_as_it_is_understood() -> None:
    settings, problems = Settings.from_mapping(
        {"version": VERSION + 1, "captions": {"lines": 4}, "new": {"thing": 1}}
    )
    assert settings.captions_lines == 4
    assert [problem.field for problem in problems] == ["version"]
    assert "newer" in str(problems[0])


@pytest.mark.parametrize("version", ["1", 0, -3, True, None, 1.0])
def test_a_version_that_is_none_is_reported(version: object) -> None:
    _, problems = Settings.from_mapping({"version": version})
    assert [problem.field for problem in problems] == ["version"]
