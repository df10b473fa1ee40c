"""Settings on disk: what their owner wrote stays."""

import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surtitle.core.errors import OutputError
from surtitle.core.settings import Settings
from surtitle.storage.settings_file import SettingsFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def written(path: Path, content: str) -> SettingsFile:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return SettingsFile(path)


def beside(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if each != path)


def test_no_file_and_an_empty_one_are_the_defaults(path: Path) -> None:
    assert SettingsFile(path).read() == (Settings(), [])
    assert not path.exists()
    assert written(path, "").read() == (Settings(), [])
    assert path.exists()
    assert not beside(path)


def test_only_what_was_changed_is_written_and_only_for_its_owner(path: Path) -> None:
    changed = Settings().with_value("captions.lines", 3).with_value("transcript.save", value=False)
    SettingsFile(path).write(changed)
    assert (
        path.read_text() == "version = 1\n\n[captions]\nlines = 3\n\n[transcript]\nsave = false\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SettingsFile(path).read() == (changed, [])


def test_comments_order_and_strange_fields_stay(path: Path) -> None:
    content = """\
# my settings
[plugins]  # not ours
x = {y = 1}

[captions]
lines = 3      # three
future = [1, 2]

[audio]
source = "mic"
"""
    file = written(path, content)
    settings, problems = file.read()
    assert (settings.captions_lines, settings.audio_source, problems) == (3, "mic", [])
    file.write(settings.with_value("captions.lines", 4))
    assert path.read_text() == content.replace("lines = 3 ", "lines = 4 ")
    assert not beside(path)


@pytest.mark.parametrize(
    "content",
    [
        'captions.lines = 3\naudio.source = "mic"\n',
        'captions = {lines = 3}\naudio = {source = "mic"}\n',
        '[captions]\nlines = 3\n[audio]\nsource = "mic"\n[captions.more]\nx = 1\n',
        '\ufeff[captions]\r\nlines = 3\r\n[audio]\r\nsource = "mic"\r\n',
    ],
)
def test_every_way_to_write_a_section(path: Path, content: str) -> None:
    file = written(path, content)
    settings, problems = file.read()
    assert (settings.captions_lines, settings.audio_source, problems) == (3, "mic", [])
    changed = settings.with_value("captions.lines", 5).with_value("captions.opacity", 90)
    file.write(changed)
    assert file.read() == (changed, [])


@pytest.mark.parametrize("content", [b"lines = = 3", b"\xff\xfe\0", b"[" * 5000, b"a = 1\na = 2"])
def test_a_damaged_file_is_kept_aside_and_reported_once(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    settings, problems = SettingsFile(path).read()
    assert settings == Settings()
    assert len(problems) == 1
    assert "settings.toml.damaged-1" in str(problems[0])
    assert (path.parent / "settings.toml.damaged-1").read_bytes() == content
    assert SettingsFile(path).read() == (Settings(), [])


def test_a_bad_field_costs_no_good_one_and_is_not_lost_when_replaced(path: Path) -> None:
    content = '[captions]\nlines = 30 # many\nopacity = 50\n\n[engine]\nname = "magic"\n'
    file = written(path, content)
    settings, problems = file.read()
    assert (settings.captions_lines, settings.captions_opacity) == (2, 50)
    assert [problem.field for problem in problems] == ["captions.lines", "engine.name"]
    assert path.read_text() == content
    file.write(settings.with_value("captions.text_size", 120))
    after, problems = file.read()
    assert (after.captions_opacity, after.captions_text_size, problems) == (50, 120, [])
    assert "# many" in path.read_text()
    assert (path.parent / "settings.toml.damaged-1").read_text() == content
    file.write(after)
    assert beside(path) == ["settings.toml.damaged-1"]


def test_a_section_that_is_none_becomes_one(path: Path) -> None:
    file = written(path, "# mine\naudio = 3\n")
    settings, problems = file.read()
    assert [problem.field for problem in problems] == ["audio"]
    file.write(settings)
    assert file.read() == (settings, [])
    assert "# mine" in path.read_text()
    assert beside(path) == ["settings.toml.damaged-1"]


def test_a_newer_file_is_copied_before_it_is_changed(path: Path) -> None:
    content = "version = 99\n[captions]\nlines = 3\nnew = 1\n"
    file = written(path, content)
    settings, problems = file.read()
    assert settings.captions_lines == 3
    assert "newer" in str(problems[0])
    file.write(settings)
    assert file.read() == (settings, [])
    assert (path.parent / "settings.toml.damaged-1").read_text() == content


def test_what_is_damaged_between_reading_and_writing_is_kept(path: Path) -> None:
    file = written(path, "= nonsense")
    file.write(Settings().with_value("captions.lines", 3))
    assert file.read()[0].captions_lines == 3
    assert (path.parent / "settings.toml.damaged-1").read_text() == "= nonsense"


def test_a_file_that_cannot_be_read_is_never_replaced(path: Path) -> None:
    path.mkdir(parents=True)
    settings, problems = SettingsFile(path).read()
    assert settings == Settings()
    assert "cannot be read" in str(problems[0])
    with pytest.raises(OutputError, match="cannot be changed"):
        SettingsFile(path).write(Settings())
    assert path.is_dir()


LINES = st.sampled_from(
    [
        *("[captions]", "[audio]", "[captions.lines]", "[[audio]]", "[x]", "# note", "", "["),
        *("lines = 3", "lines = 99", "opacity = 5", 'source = "mic"', "source = 1", "x = 1.5"),
        *("captions.lines = 1", "audio = {source = 'mic'}", "version = 1", "version = 'x'", "x ="),
    ]
)


@hypothesis_settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(LINES, max_size=6), st.integers(1, 6))
def test_whatever_the_file_says_it_can_be_read_and_changed(
    path: Path, lines: list[str], count: int
) -> None:
    file = written(path, "\n".join(lines))
    settings = file.read()[0].with_value("captions.lines", count)
    file.write(settings)
    read, problems = file.read()
    assert (read, problems) == (settings, [])
