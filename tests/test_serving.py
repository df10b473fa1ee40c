"""The wiring of the local servers: what is checked, what is warned of, what is told."""

import inspect
import io
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from surtitle import cli, serving
from surtitle.core.errors import EngineError, OutputError
from surtitle.server import realtime, sagemaker
from surtitle.server.realtime import RealtimeServer
from surtitle.server.sagemaker import StandinOptions

REALTIME = ("serve", "realtime", "--port", "0")


@pytest.fixture
def sagemaker_arguments(tmp_path: Path) -> tuple[str, ...]:
    return ("serve", "sagemaker", "--port", "0", "--ca-out", str(tmp_path / "ca.pem"))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The servers that would have run: each is noted, and is over before it listens."""
    found: list[object] = []

    async def run(server: RealtimeServer, *, say: Callable[[str], None]) -> None:
        found.append(server)
        say("ready")

    def serve(
        options: StandinOptions, _environment: object, *, say: Callable[[str], None], log: object
    ) -> int:
        found.append((options, log))
        say("ready")
        return 0

    monkeypatch.setattr(realtime, "run", run)
    monkeypatch.setattr(sagemaker, "serve", serve)
    return found


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("--port 99999", 2, "There is no port 99999. Give a number"),
        ("--port -1", 2, "There is no port -1."),
        ("--max-sessions 0", 2, "Max sessions cannot be 0."),
        ("--max-model-len 39", 2, "Max model len cannot be 39. Give 40 or more."),
        ("--model=", 2, "The model needs a name"),
        ("--host=", 2, "'' is no host."),
        ("--host nowhere.invalid", 2, "The host nowhere.invalid is not known."),
        ("--host 192.0.2.1", 2, "192.0.2.1 is no address of this computer."),
        ("--api-key-env NOT_SET_HERE", 2, "variable NOT_SET_HERE is not set."),
    ],
)
def test_a_realtime_server_that_cannot_be_meant(
    arguments: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*REALTIME, *arguments.split()]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("--port 65536", 2, "There is no port 65536."),
        ("--max-sessions -1", 2, "Max sessions cannot be -1."),
        ("--session-limit 0", 2, "Session limit cannot be 0.0."),
        ("--session-limit nan", 2, "Session limit cannot be nan."),
        ("--container http://127.0.0.1:8080/x", 2, "is no address of a container."),
        ("--fault nothing", 2, "There is no fault 'nothing'."),
        ("--fault http", 2, "The fault 'http' cannot have no argument."),
        ("--host=ü", 2, "'ü' is no host."),
        ("--host nowhere.invalid", 2, "The host nowhere.invalid is not known."),
        ("--host 192.0.2.1", 2, "192.0.2.1 is no address of this computer."),
        ("--ca-out /missing/folder/ca.pem", 2, "'/missing/folder/ca.pem' cannot be written: no"),
        ("--ca-out .", 2, "'.' cannot be written: it is no file."),
    ],
)
def test_a_stand_in_that_cannot_be_meant(
    arguments: str,
    code: int,
    words: str,
    sagemaker_arguments: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([*sagemaker_arguments, *arguments.split()]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such files")
def test_a_device_is_not_replaced_by_the_certificate(
    tmp_path: Path, sagemaker_arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link):
        assert cli.main([*sagemaker_arguments, "--ca-out", str(path)]) == 2
        assert f"{str(path)!r} cannot be written: it is no file." in capsys.readouterr().err
        assert pipe.is_fifo()


@pytest.mark.parametrize("server", ["realtime", "sagemaker"])
def test_a_port_that_is_taken(
    server: str, sagemaker_arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = REALTIME if server == "realtime" else sagemaker_arguments
        assert cli.main([*arguments, "--port", str(port)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"surtitle: Port {port} of 127.0.0.1 is taken: another program listens there. "
        "End it, or choose another port with --port.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ""),
        (["--host", "localhost"], ""),
        (["--host", "::1"], ""),
        (["--host", "127.8.8.8"], ""),
        (["--host", "0.0.0.0"], "everybody, for it wants no key"),  # noqa: S104 - to be warned of
        (["--host", "::"], "everybody"),
        (["--host", "office.home"], "reach this server at office.home"),
        (["--host", "0.0.0.0", "--api-key-env", "SOME_KEY"], "whoever has the key"),  # noqa: S104 - same
    ],
)
def test_a_realtime_server_that_others_can_reach_is_warned_of(
    arguments: list[str],
    words: str,
    served: list[object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SOME_KEY", "of-nobody")
    assert cli.main([*REALTIME, *arguments]) == 0
    assert len(served) == 1
    said = capsys.readouterr()
    assert said.out == "ready\n"
    assert words in said.err
    assert len(said.err.splitlines()) == bool(words)
    assert "of-nobody" not in said.err


def test_a_stand_in_that_others_can_reach_is_warned_of(
    served: list[object],
    sagemaker_arguments: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([*sagemaker_arguments]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main([*sagemaker_arguments, "--host", "0.0.0.0"]) == 0  # noqa: S104 - to be warned of
    assert len(served) == 2
    assert "Others in the network can reach this stand-in" in capsys.readouterr().err


def test_the_command_lines_defaults_are_those_of_the_servers(
    served: list[object], tmp_path: Path
) -> None:
    parse = cli._parser().parse_args
    given = vars(parse(["serve", "realtime"]))
    for name, parameter in inspect.signature(RealtimeServer).parameters.items():
        if name in given and name != "port":  # where 0 is for programs
            assert given[name] == parameter.default, name
    path = tmp_path / "ca.pem"
    assert cli.main(["serve", "sagemaker", "--ca-out", str(path)]) == 0
    assert served == [(StandinOptions(ca_out=path, fault=[]), serving._log)]


def test_no_server_begins_without_an_engine(
    served: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def locate(_: object) -> Path:
        raise EngineError("There is none.", remedy="Get one.")

    monkeypatch.setattr("surtitle.engines.models.locate", locate)
    assert cli.main([*REALTIME]) == 1
    assert capsys.readouterr().err == "surtitle: There is none. Get one.\n"
    assert not served


def test_a_library_that_is_missing_is_named_with_what_to_do(
    sagemaker_arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delitem(sys.modules, "surtitle.server.sagemaker")
    monkeypatch.delitem(sys.modules, "surtitle.server.standin")
    monkeypatch.delitem(sys.modules, "surtitle.server.http2", raising=False)
    monkeypatch.setitem(sys.modules, "h2.config", None)
    assert cli.main([*sagemaker_arguments]) == 1
    assert "pip install 'surtitle[serve]'" in capsys.readouterr().err


class Broken(io.StringIO):
    """What is written to it goes nowhere, and that is told."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, _: str, /) -> int:
        raise self._error


def test_a_log_that_nobody_can_read_does_not_end_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Broken(OSError(28, "No space left on device")))
    serving._log("a line")


def test_a_line_that_cannot_be_told_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        serving._say("ready")
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError()))
    with pytest.raises(BrokenPipeError):
        serving._say("ready")
