"""What the doctor says of Python and of libraries."""

import asyncio
import os
from pathlib import Path

import pytest

from surtitle.checks.child import Answer
from surtitle.checks.finding import Finding, Level, fail, ok, warn
from surtitle.checks.installation import (
    LIBRARIES,
    Library,
    check_libraries,
    check_python,
    library,
    python,
)

NEEDED = Library(name="Needed", distributions=("needed",), module="needed")
OPTIONAL = Library(
    name="Optional", distributions=("o",), module="o", optional="Do without.", system="apt it."
)


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 11, 9), Level.FAIL),
        ((3, 12, 0), Level.OK),
        ((3, 13, 7), Level.OK),
        ((3, 14, 0), Level.FAIL),
        ((4, 0, 0), Level.FAIL),
    ],
)
def test_python_must_be_one_that_qasync_runs_on(
    version: tuple[int, int, int], level: Level
) -> None:
    assert python(version).level is level


AGAIN = "Install Surtitle again: its libraries are incomplete."


@pytest.mark.parametrize(
    ("wanted", "version", "code", "finding"),
    [
        (NEEDED, "1.2", 0, ok("Needed 1.2")),
        (NEEDED, None, 0, fail("Needed is not installed", AGAIN)),
        (NEEDED, "1.2", -11, fail("Needed 1.2 crashes when it is loaded", AGAIN)),
        (NEEDED, "1.2", 0xC0000005, fail("Needed 1.2 crashes when it is loaded", AGAIN)),
        (NEEDED, "1.2", 1, fail("Needed 1.2 cannot be loaded", AGAIN)),
        (NEEDED, "1.2", 3, fail("Needed 1.2 cannot be loaded", AGAIN)),
        (NEEDED, "1.2", 4, fail("Needed 1.2 cannot be loaded", AGAIN)),
        (OPTIONAL, "1.2", 0, ok("Optional 1.2")),
        (OPTIONAL, None, 0, warn("Optional is not installed", "Do without.")),
        (OPTIONAL, "1.2", 3, fail("Optional 1.2 cannot be loaded", AGAIN)),
        (
            OPTIONAL,
            "1.2",
            4,
            fail("Optional 1.2 cannot be loaded: the system lacks something", "apt it."),
        ),
    ],
)
def test_the_table_of_libraries(
    wanted: Library, version: str | None, code: int, finding: Finding
) -> None:
    assert library(wanted, version, Answer(code=code)) == finding


def test_a_library_that_hangs() -> None:
    found = library(NEEDED, "1.2", Answer(code=None))
    assert (found.level, found.text) == (Level.FAIL, "Needed 1.2 does not finish loading")
    assert found.remedy


def test_without_moonshine_another_engine_is_named() -> None:
    (moonshine,) = (each for each in LIBRARIES if each.name == "moonshine-voice")
    found = library(moonshine, None, Answer(code=0))
    assert found.level is Level.WARN
    assert "--engine vllm" in found.remedy


def test_everything_that_the_tests_run_on_is_found_well() -> None:
    found: list[Finding] = []

    async def work() -> None:
        await check_python(found.append)
        await check_libraries(found.append, platform="linux")

    asyncio.run(work())
    assert [each for each in found if each.level is not Level.OK] == []
    assert len(found) == len(LIBRARIES) + 2


def test_each_way_to_be_broken_is_seen_in_a_real_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "crashing.py").write_text("import os; os.abort()")
    (tmp_path / "lacking.py").write_text("raise OSError('libsomething.so: not found')")
    broken = (
        Library(name="absent", distributions=("surtitle-is-not-this",), module="x"),
        Library(name="hollow", distributions=("also-not", "numpy"), module="numpy.is_not_this"),
        Library(name="crashing", distributions=("numpy",), module="crashing"),
        Library(name="lacking", distributions=("numpy",), module="lacking", system="apt it."),
    )
    monkeypatch.setattr("surtitle.checks.installation.LIBRARIES", broken)
    found: list[Finding] = []
    asyncio.run(check_libraries(found.append, platform="win32"))
    assert [each.level for each in found] == [Level.FAIL] * 4
    names = [each.text.split()[0] for each in found]
    assert names == ["absent", "hollow", "crashing", "lacking"]
    assert "crashes" in found[2].text
    assert found[3].remedy == "apt it."
