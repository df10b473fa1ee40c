"""The script itself, run as a person runs it, and the parts that decide without installing."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import environment
from environment import ROOT, Interpreter
from terminal import SetupError

DEV = ROOT / "packaging" / "dev.py"


def dev(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, str(DEV), *arguments], check=False, capture_output=True, text=True, timeout=60
    )


def old_python() -> str | None:
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = sorted(versions.glob("3.9.*/bin/python3.9"))
    return str(found[0]) if found else shutil.which("python3.9")


@pytest.mark.parametrize("path", sorted(DEV.parent.glob("*.py")), ids=lambda path: path.name)
def test_python_3_9_can_read_it(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
    imports = {
        name.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    ours = {other.stem for other in DEV.parent.glob("*.py")}
    assert imports <= sys.stdlib_module_names | ours


def test_python_3_9_can_run_it() -> None:
    python = old_python()
    if python is None:
        pytest.skip("no Python 3.9 on this computer")
    assert dev("help", python=python).returncode == 0


@pytest.mark.parametrize("arguments", [(), ("fly",), ("--no-system",), ("--no-system", "fly")])
def test_an_unknown_verb_shows_the_usage(arguments: tuple[str, ...]) -> None:
    done = dev(*arguments)
    assert done.returncode == 2
    assert "Usage:" in done.stderr
    assert done.stdout == ""


def test_help_names_every_verb() -> None:
    done = dev("--help")
    assert done.returncode == 0
    for verb in ("setup", "demo", "run", "test", "check", "bench", "lock"):
        assert f"\n  {verb} " in done.stdout


def fake_python(path: Path, answer: str, *, code: int = 0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}'\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(os.name == "nt", reason="the fakes are shell scripts")
class TestFindingPython:
    """Only what the test puts there is found: the running one does not count."""

    @pytest.fixture(autouse=True)
    def _bare(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.version_info", (3, 11, 2))
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        monkeypatch.setattr("shutil.which", lambda name: self._which(tmp_path / "bin" / name))

    @staticmethod
    def _which(path: Path) -> str | None:
        return str(path) if path.exists() else None

    def test_there_may_be_none(self) -> None:
        assert environment.find_interpreter() is None

    def test_in_the_folder_of_pyenv(self, tmp_path: Path) -> None:
        path = tmp_path / "pyenv/versions/3.12.1/bin/python3.12"
        fake_python(path, "3 12 1 /real/python")
        assert environment.find_interpreter() == Interpreter(
            path="/real/python", version=(3, 12), ensurepip=True
        )

    def test_a_shim_that_does_not_run_is_passed_over(self, tmp_path: Path) -> None:
        fake_python(tmp_path / "bin/python3.13", "not chosen", code=127)
        path = tmp_path / "pyenv/versions/3.13.0/bin/python3.13"
        fake_python(path, "3 13 1 /pyenv/python")
        found = environment.find_interpreter()
        assert found is not None
        assert found.path == "/pyenv/python"

    def test_one_that_lies_about_its_version_is_passed_over(self, tmp_path: Path) -> None:
        fake_python(tmp_path / "bin/python3.13", "3 14 1 /new/python")
        assert environment.find_interpreter() is None

    def test_debian_without_venv_is_seen(self, tmp_path: Path) -> None:
        fake_python(tmp_path / "bin/python3.13", "3 13 0 /usr/bin/python3.13")
        found = environment.find_interpreter()
        assert found is not None
        assert not found.ensurepip


class TestStamp:
    @pytest.fixture(autouse=True)
    def _project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        venv, requirements = tmp_path / ".venv", tmp_path / "requirements"
        monkeypatch.setattr(environment, "ROOT", tmp_path)
        monkeypatch.setattr(environment, "REQUIREMENTS", requirements)
        monkeypatch.setattr(environment, "_VENV", venv)
        monkeypatch.setattr(environment, "_STAMP", venv / "surtitle-setup")
        for path in (
            requirements / "run.txt",
            requirements / "dev.txt",
            tmp_path / "pyproject.toml",
            venv / "pyvenv.cfg",
            Path(environment.script("python")),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
        monkeypatch.setattr(environment, "run", lambda _: 0)
        monkeypatch.setattr(environment, "_venv_works", lambda: True)

    @pytest.mark.parametrize(("tests", "kinds"), [(False, {"run"}), (True, {"run", "dev"})])
    def test_what_was_installed_is_known(self, kinds: set[str], *, tests: bool) -> None:
        assert environment._stamped() == set()
        environment.prepare(tests=tests, system=False)
        assert environment._stamped() == kinds

    @pytest.mark.parametrize("name", ["pyproject.toml", "requirements/run.txt", ".venv/pyvenv.cfg"])
    def test_a_change_asks_for_a_new_installation(self, tmp_path: Path, name: str) -> None:
        environment.prepare(tests=False, system=False)
        (tmp_path / name).write_text("changed")
        assert environment._stamped() == set()

    def test_a_failed_installation_leaves_no_stamp(self, monkeypatch: pytest.MonkeyPatch) -> None:
        environment.prepare(tests=False, system=False)
        monkeypatch.setattr(environment, "run", lambda _: 1)
        with pytest.raises(SetupError, match="pip could not"):
            environment.prepare(tests=True, system=False)
        assert environment._stamped() == set()

    def test_a_python_that_went_away_is_noticed(self) -> None:
        environment.prepare(tests=False, system=False)
        Path(environment.script("python")).unlink()
        assert environment._stamped() == set()


RUNNING = """
import sys, os
sys.path.insert(0, sys.argv[1])
from terminal import run
sys.exit(run([sys.executable, "-c", sys.argv[2]]))
"""


@pytest.mark.parametrize(
    ("child", "code"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_exit_codes_are_passed_on(child: str, code: int) -> None:
    command = [sys.executable, "-c", RUNNING, str(DEV.parent), child]
    assert subprocess.run(command, check=False, timeout=60).returncode == code


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_program_end_in_its_own_way(number: signal.Signals) -> None:
    child = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: sys.exit(9))
print("ready", flush=True)
signal.pause()
"""
    command = [sys.executable, "-c", RUNNING, str(DEV.parent), child]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        assert process.wait(30) == 9
