"""The doctor: every check comes to an end, says something useful, and prints it at once."""

import asyncio
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.pulse import PrivatePulse, private_pulse
from surtitle import doctor
from surtitle.checks.finding import Finding, Level, Report, fail, ok, warn
from surtitle.core.errors import EngineError, OutputError
from surtitle.doctor import CHECKS, Check, examine

LINE = re.compile(r"(ok {4}|warn {2}|FAIL {2})\S.*")
REMEDY = re.compile(r" {6}→ \S.*\.")


def check(*outcomes: Finding | Exception, limit: float = 5.0) -> Check:
    async def work(report: Report) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
            report(outcome)

    return Check(subject="The thing", limit=limit, work=work)


def look(*checks: Check) -> tuple[int, list[str]]:
    said: list[str] = []
    code = asyncio.run(doctor._run(checks, said.append))
    return code, said


@pytest.mark.parametrize(
    ("findings", "code", "summary"),
    [
        ([], 0, "Everything works."),
        ([ok("a"), ok("b")], 0, "Everything works."),
        ([ok("a"), warn("b", "Do.")], 0, "Nothing is broken; 1 to know about"),
        ([fail("a", "Do."), warn("b", "Do."), fail("c", "Do.")], 1, "2 to put right"),
    ],
)
def test_the_exit_code_and_the_summary(findings: list[Finding], code: int, summary: str) -> None:
    got, said = look(check(*findings))
    assert got == code
    assert summary in said[-1]


def test_how_findings_look() -> None:
    assert str(ok("fine")) == "ok    fine"
    assert str(warn("odd", "Look.")) == "warn  odd\n      → Look."
    assert str(fail("bad", "Mend.")) == "FAIL  bad\n      → Mend."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (EngineError("The engine broke.", remedy="Mend it."), "The engine broke"),
        (EngineError("The engine broke."), "The engine broke"),
        (ModuleNotFoundError("No module", name="numpy"), "without the library numpy"),
        (TimeoutError(), "no answer"),
        (ZeroDivisionError("what was said in private"), "unexpected fault (ZeroDivisionError)"),
        (ExceptionGroup("several", [ValueError()]), "unexpected fault (ExceptionGroup)"),
    ],
)
def test_whatever_goes_wrong_in_a_check_is_a_finding(error: Exception, text: str) -> None:
    code, said = look(check(ok("first"), error), check(ok("next")))
    assert code == 1
    assert [line[:6] for line in said[:3]] == ["ok    ", "FAIL  ", "ok    "]
    assert text in said[1]
    assert "→" in said[1]
    assert "private" not in said[1]


def test_a_check_that_hangs_is_given_up() -> None:
    async def hang(report: Report) -> None:
        report(ok("so far"))
        await asyncio.Event().wait()

    found: list[Finding] = []
    asyncio.run(examine(Check(subject="The thing", limit=0.05, work=hang), found.append))
    assert [each.level for each in found] == [Level.OK, Level.FAIL]
    assert "no answer" in found[1].text


@pytest.mark.parametrize("error", [OutputError("Full."), BrokenPipeError()])
def test_when_nothing_can_be_printed_it_ends(error: Exception) -> None:
    def say(_text: str) -> None:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(doctor._run([check(ok("a"))], say))


def test_every_check_has_a_limit() -> None:
    assert all(0 < each.limit <= 90 for each in CHECKS)


# For real.


@pytest.fixture
def pulse() -> Iterator[PrivatePulse]:
    with private_pulse() as server:
        yield server


def surtitle_doctor(*, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment["PYTHONIOENCODING"] = "utf-8"
    return subprocess.run(
        [sys.executable, "-m", "surtitle", "doctor"],
        check=False,
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def test_a_computer_with_sound_and_no_display(pulse: PrivatePulse, tmp_path: Path) -> None:
    del pulse
    done = surtitle_doctor()
    assert (done.returncode, done.stderr) == (0, "")
    *lines, blank, summary = done.stdout.splitlines()
    assert (blank, summary[:17]) == ("", "Nothing is broken")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert LINE.fullmatch(line) or REMEDY.fullmatch(line), line
        assert line.startswith("warn") == bool(REMEDY.fullmatch(following)), line
    for subject in (
        "ok    Python 3.1",
        "ok    PySide6 6.",
        "ok    PortAudio 19.",
        "ok    Sound server pulseaudio",
        "warn  Microphone “Table-microphone”  [..........] silence: nothing but exact zeros",
        "ok    Output “Loudspeakers”  [..........] silence, as it should be while nothing plays",
        "ok    2 more outputs: “Headphones”, “Mouth”",
        "warn  There is no display",
        f"ok    Data folder {tmp_path}",
    ):
        assert any(line.startswith(subject) for line in lines), subject
    # How long it takes depends on what else this computer does.
    engine = [line for line in lines if "On-device engine" in line]
    assert len(engine) == 1
    assert re.fullmatch(r"(ok  |warn)  .*: 1 s of sound takes \d+\.\d\d s.*", engine[0])


def test_a_folder_that_cannot_be_made_and_a_poor_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURTITLE_HOME", "/dev/null/home")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    monkeypatch.setenv("PULSE_SERVER", "unix:/nowhere")
    terminal = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(terminal, encoding="ascii"))
    checks = [each for each in CHECKS if each.subject in {"Sound", "The data folder"}]
    assert len(checks) == 2
    assert asyncio.run(doctor._run(checks, doctor._print)) == 1
    said = terminal.getvalue().decode("ascii")
    assert "FAIL  The folder /dev/null/home/data cannot be made" in said
    assert "warn  No sound server answers" in said
    assert "      -> Choose another" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        done = surtitle_doctor(stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr == ("surtitle: The output cannot be written: No space left on device.\n")
