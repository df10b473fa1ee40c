"""The command line: what it understands, what it says of mistakes, and its exit codes."""

import os
import re
import shutil
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from fakes.engine import ScriptedEngines
from fakes.pulse import PrivatePulse, private_pulse
from fakes.speech import say
from surtitle import cli
from surtitle.core.errors import EngineError, MediaError, SurtitleError, UsageError
from surtitle.server.faults import Cut, FaultKind
from surtitle.server.sagemaker import SECRET_VARIABLE, STANDIN_CREDENTIALS
from surtitle.storage.places import Places
from surtitle.storage.transcripts import TranscriptStore

CAPTION = {
    "source": "talk.mp4", "engine.name": None, "format": None, "output": None,
    "pace": "fast", "device": None,
}  # fmt: skip

REALTIME = {
    "server": "realtime", "host": "127.0.0.1", "port": 8081, "model": "surtitle",
    "max_sessions": 4, "max_model_len": 131_072, "api_key_env": None,
}  # fmt: skip
SAGEMAKER = {
    "server": "sagemaker", "host": "127.0.0.1", "port": 8443, "ca_out": Path("ca.pem"),
    "container": "ws://127.0.0.1:8080/invocations-bidirectional-stream", "endpoint": None,
    "max_sessions": None, "session_limit": 1800.0, "cut": "end", "fault": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "command", "options"),
    [
        ("", None, {"data_dir": None}),
        ("--data-dir d", None, {"data_dir": "d"}),
        ("demo", "demo", {}),
        ("devices", "devices", {}),
        ("--data-dir d doctor", "doctor", {"data_dir": "d"}),
        ("caption talk.mp4", "caption", CAPTION),
        ("caption -", "caption", CAPTION | {"source": "-"}),
        ("caption mic --device Cam", "caption", CAPTION | {"source": "mic", "device": "Cam"}),
        ("caption --format vtt talk.mp4", "caption", CAPTION | {"format": "vtt"}),
        ("caption talk.mp4 --output x --pace real-time", "caption",
         CAPTION | {"output": "x", "pace": "real-time"}),
        ("caption --engine on-device -- --odd-name", "caption",
         CAPTION | {"engine.name": "on-device", "source": "--odd-name"}),
        ("serve realtime", "serve", REALTIME),
        (("serve realtime --port 0 --host ::1 --model m --max-sessions 1 --max-model-len 99"
          " --api-key-env KEY"), "serve",
         REALTIME | {"port": 0, "host": "::1", "model": "m", "max_sessions": 1,
                     "max_model_len": 99, "api_key_env": "KEY"}),
        ("serve sagemaker --ca-out ca.pem", "serve", SAGEMAKER),
        (("serve sagemaker --ca-out ca.pem --port 1 --host h --container ws://c/x --endpoint e"
          " --max-sessions 2 --session-limit 2.5 --cut rst --fault busy --fault rst@3"), "serve",
         SAGEMAKER | {"port": 1, "host": "h", "container": "ws://c/x", "endpoint": "e",
                      "max_sessions": 2, "session_limit": 2.5, "cut": "rst",
                      "fault": ["busy", "rst@3"]}),
    ],
)  # fmt: skip
def test_what_is_understood(
    arguments: str, command: str | None, options: Mapping[str, object]
) -> None:
    parsed = vars(cli._parser().parse_args(arguments.split()))
    assert parsed.pop("command") == command
    assert {**parsed, **options} == parsed


@pytest.mark.parametrize(
    "arguments",
    [
        "nonsense",
        "--nonsense",
        "--data",
        "--data-dir",
        "demo more",
        "devices --device x",
        "doctor --fix",
        "caption",
        "caption a b",
        "caption a --format",
        "caption a --format pdf",
        "caption a --form srt",
        "caption a --pace slow",
        "caption a --engine magic",
        "serve",
        "serve nothing",
        "serve realtime --port x",
        "serve realtime --max 4",
        "serve sagemaker",
        "serve sagemaker --ca-out",
        "serve sagemaker --ca-out f --cut gently",
        "serve sagemaker --ca-out f --session-limit long",
    ],
)
def test_wrong_use_is_explained(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("usage: surtitle")
    assert "error:" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--version"], f"surtitle {version('surtitle')}\n"),
        (["--help"], "usage: surtitle"),
        (["caption", "--help"], "usage: surtitle caption"),
        (["serve", "--help"], "usage: surtitle serve"),
        (["serve", "realtime", "--help"], "usage: surtitle serve realtime"),
        (["serve", "sagemaker", "--help"], "usage: surtitle serve sagemaker"),
        (["serve", "sagemaker", "--fault", "help"], "NAME[:ARGUMENT]"),
    ],
)
def test_version_and_help(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (UsageError("No.", remedy="Ask otherwise."), 2, "surtitle: No. Ask otherwise.\n"),
        (MediaError("No sound.", usage=True), 2, "surtitle: No sound.\n"),
        (MediaError("The disk broke."), 1, "surtitle: The disk broke.\n"),
        (EngineError("It broke.", remedy="Mend it."), 1, "surtitle: It broke. Mend it.\n"),
        (SurtitleError("It broke."), 1, "surtitle: It broke.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_how_a_command_ends(
    outcome: int | BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr("surtitle.doctor.run", run)
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr().err == said


def test_the_faults_that_may_be_ordered_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["serve", "sagemaker", "--fault", "help"])
    listed = capsys.readouterr().out.splitlines()[3:]
    assert [line.partition(" ")[0] for line in listed] == list(FaultKind)


def test_a_session_may_be_cut_in_every_way_there_is() -> None:
    for cut in Cut:
        arguments = ["serve", "sagemaker", "--ca-out", "f", "--cut", cut]
        assert cli._parser().parse_args(arguments).cut == cut


@pytest.mark.parametrize("server", ["realtime", "sagemaker"])
def test_what_a_server_is_asked_for_reaches_it(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []

    def serve(**options: object) -> int:
        asked.append(options)
        return 3

    monkeypatch.setattr(f"surtitle.serving.serve_{server}", serve)
    expected = REALTIME if server == "realtime" else SAGEMAKER
    assert cli.main(["serve", server, *["--ca-out=ca.pem"][: server == "sagemaker"]]) == 3
    expected = {"faults" if k == "fault" else k: v for k, v in expected.items() if k != "server"}
    assert asked == [expected]


def test_the_help_tells_what_to_sign_with(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["serve", "sagemaker", "--help"])
    words = capsys.readouterr().out.split()
    told = {STANDIN_CREDENTIALS.access_key, f"{STANDIN_CREDENTIALS.secret}.", SECRET_VARIABLE}
    assert told <= set(words)


def test_the_data_folder_may_be_in_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surtitle.doctor.run", lambda: 0)
    cli.main(["--data-dir", "~/captions", "doctor"])
    assert os.environ["SURTITLE_HOME"] == str(Path.home() / "captions")


# For real: what a person sees.

PYTHON = (sys.executable, "-m", "surtitle")


def surtitle(
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    program: Sequence[str] = PYTHON,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments],
        check=False,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


type Surtitle = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def surtitle_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Surtitle:
    """Return what does the same in this process, without a model: a fraction of the time."""
    spoken = say("It was the best of times", at=0.5)
    monkeypatch.setattr("surtitle.speech_engines.OnDeviceEngine", ScriptedEngines([spoken]))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = cli.main(list(arguments))
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return the only line that was said, with its remedy."""
    assert "Traceback" not in done.stderr
    assert re.fullmatch(r"surtitle: [^\n]+\.\n", done.stderr), done.stderr
    return done.stderr.removeprefix("surtitle: ").rstrip()


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """Return some seconds of the recording that comes with the engine."""
    spec = find_spec("moonshine_voice")
    assert spec is not None
    assert spec.origin is not None
    path = tmp_path / "speech.wav"
    recording = Path(spec.origin).parent / "assets" / "two_cities.wav"
    with wave.open(str(recording), "rb") as whole, wave.open(str(path), "wb") as part:
        part.setparams(whole.getparams())
        part.writeframes(whole.readframes(3 * whole.getframerate()))
    return path


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.wav", None, "There is no file"),
        ("empty.wav", b"", "is empty"),
        ("letter.txt", b"Dear reader\n", "is no media file"),
        ("folder", None, "is a folder"),
    ],
)
def test_a_file_that_cannot_be_captioned(
    tmp_path: Path, surtitle_here: Surtitle, name: str, content: bytes | None, said: str
) -> None:
    (tmp_path / "folder").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = surtitle_here("caption", str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    sentence = one_sentence(done)
    assert said in sentence
    assert name in sentence


def test_a_file_that_must_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "diary.wav"
    path.touch(mode=0)
    program: Sequence[str] = PYTHON
    if os.access(path, os.R_OK):  # as root: give up what makes root special
        setpriv = shutil.which("setpriv") or pytest.skip("needs a user, or setpriv")
        program = (setpriv, "--bounding-set=-dac_override,-dac_read_search", *PYTHON)
    done = surtitle("caption", str(path), program=program)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not allowed to read" in one_sentence(done)


def test_standard_input_that_ends_at_once() -> None:
    done = surtitle("caption", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No sound came from standard input" in one_sentence(done)


def test_standard_input_that_is_closed() -> None:
    program = ("sh", "-c", '"$@" <&-', "sh", *PYTHON)
    done = surtitle("caption", "-", program=program)
    assert done.returncode in {1, 2}
    assert "tandard input" in one_sentence(done)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("there.srt", "exists already"),
        ("nowhere/new.srt", "folder does not exist"),
        ("folder", "is a folder"),
    ],
)
def test_an_output_that_cannot_be_made(
    tmp_path: Path, surtitle_here: Surtitle, speech: Path, name: str, said: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.srt").write_text("kept")
    done = surtitle_here("caption", str(speech), "--output", str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in one_sentence(done)
    assert (tmp_path / "there.srt").read_text() == "kept"


def test_a_mistake_leaves_no_empty_output_behind(tmp_path: Path, surtitle_here: Surtitle) -> None:
    request = ("caption", str(tmp_path / "missing.wav"), "--output", str(tmp_path / "new.srt"))
    # The second time it must not be said that it exists already.
    for done in (surtitle(*request), surtitle_here(*request)):
        assert "There is no file" in one_sentence(done)
        assert not (tmp_path / "new.srt").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_ends_it_but_what_was_heard_is_kept(
    surtitle_here: Surtitle, speech: Path, *, named: bool
) -> None:
    if named:
        done = surtitle_here("caption", str(speech), "--output", "/dev/full")
    else:
        with Path("/dev/full").open("w") as full:
            done = surtitle("caption", str(speech), stdout=full.fileno())
    assert done.returncode == 1
    sentence = one_sentence(done)
    assert "disk is full" in sentence or "No space left" in sentence
    store = TranscriptStore(Places.find(os.environ).transcripts)
    (session,) = store.sessions()
    assert "best" in " ".join(entry.text for entry in store.entries(session.id))


def test_device_goes_with_devices_only(surtitle_here: Surtitle, speech: Path) -> None:
    done = surtitle_here("caption", str(speech), "--device", "Headset")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--device" in one_sentence(done)


@pytest.fixture
def pulse() -> Iterator[PrivatePulse]:
    with private_pulse() as server:
        yield server


def test_a_device_that_is_unknown_or_several(pulse: PrivatePulse) -> None:
    del pulse
    unknown = surtitle("caption", "system", "--device", "Headphoness")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    sentence = one_sentence(unknown)
    assert "no output called “Headphoness”" in sentence
    assert "“Headphones”" in sentence
    several = surtitle("caption", "system", "--device", "o")
    assert several.returncode == 2
    assert "“Loudspeakers”, “Headphones”, “Mouth”" in one_sentence(several)


NO_LIBRARY = "raise OSError('PortAudio library not found')"
NO_DEVICE = """
class PortAudioError(Exception): pass
def query_hostapis(): return ()
def _initialize(): pass
_terminate = _initialize
"""


@pytest.mark.parametrize(
    ("sounddevice", "source", "said"),
    [
        (NO_LIBRARY, "mic", "PortAudio library is not installed"),
        (NO_LIBRARY, "system", "PortAudio library is not installed"),
        (NO_DEVICE, "mic", "no microphone that can be used"),
        (NO_DEVICE, "system", "cannot be heard"),
    ],
)
def test_a_computer_without_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sounddevice: str, source: str, said: str
) -> None:
    (tmp_path / "sounddevice.py").write_text(sounddevice)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PULSE_SERVER", "unix:/nowhere")
    done = surtitle("caption", source)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in one_sentence(done)


@pytest.mark.parametrize(
    ("arguments", "library"),
    [((), "PySide6"), (("demo",), "PySide6"), (("caption", "x.wav"), "av")],
)
def test_a_library_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], library: str
) -> None:
    absent = f"raise ModuleNotFoundError('No module named {library}', name='{library}')"
    (tmp_path / f"{library}.py").write_text(absent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    done = surtitle(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert "surtitle doctor" in one_sentence(done)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_that_cannot_be_printed() -> None:
    with Path("/dev/full").open("w") as full:
        done = surtitle("devices", stdout=full.fileno())
    assert done.returncode == 1
    assert "No space left on device" in one_sentence(done)


def test_nobody_reads_what_is_printed() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = surtitle("devices", stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
