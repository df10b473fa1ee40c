from collections.abc import Sequence
from pathlib import Path

import pytest

import system_packages
from system_packages import APT, DNF, Packages, ensure, missing
from terminal import SetupError


@pytest.mark.parametrize(
    ("wanted", "installed", "lacking"),
    [
        (["a"], {"a"}, []),
        (["a", "b"], {"b"}, ["a"]),
        (["a|b"], {"b"}, []),
        (["a|b"], {"a", "b"}, []),
        (["a|b", "c"], set(), ["a|b", "c"]),
        (["a"], {"a-dev"}, ["a"]),
    ],
)
def test_missing(wanted: list[str], installed: set[str], lacking: list[str]) -> None:
    assert missing(wanted, installed) == lacking


@pytest.mark.parametrize("packages", [APT, DNF])
def test_nothing_is_asked_for_twice(packages: Packages) -> None:
    every = [*packages.to_run, *packages.to_test]
    assert len(every) == len(set(every))


class Machine:
    """A computer with some packages, which notes what it is told to do."""

    def __init__(self, installed: Sequence[str], known: Sequence[str] = ()) -> None:
        self.installed = installed
        self.known = known
        self.commands: list[list[str]] = []
        self.fails = False

    def ask(self, command: Sequence[str], *, seconds: float = 30) -> str | None:
        assert seconds > 0
        match command:
            case ["dpkg-query", *_]:
                return (
                    "".join(f"installed {name}\n" for name in self.installed) + "config-files x\n"
                )
            case ["apt-cache", "policy", name]:
                candidate = "1.0" if name in self.known else "(none)"
                return f"{name}:\n  Candidate: {candidate}\n"
        raise AssertionError(command)

    def run(self, command: Sequence[str]) -> int:
        self.commands.append(list(command))
        return int(self.fails and "install" in command)


def machine(monkeypatch: pytest.MonkeyPatch, made: Machine, *, root: bool = True) -> Machine:
    monkeypatch.setattr("sys.platform", "linux")
    programs = ["apt-get", "dpkg-query"]
    monkeypatch.setattr("shutil.which", lambda name: name if name in programs else None)
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(system_packages, "ask", made.ask)
    monkeypatch.setattr(system_packages, "run", made.run)
    return made


def everything() -> list[str]:
    return [need.split("|")[-1] for need in (*APT.to_run, *APT.to_test)]


def names(command: list[str]) -> list[str]:
    return [word for word in command[command.index("install") :] if not word.startswith("-")][1:]


def test_a_complete_machine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(monkeypatch, Machine(everything()))
    ensure(tests=True)
    assert made.commands == []


def test_only_what_is_missing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(monkeypatch, Machine([n for n in everything() if n not in ("xvfb", "picom")]))
    ensure(tests=False)
    assert made.commands == []
    ensure(tests=True, extra=["python3.13-venv"])
    update, install = made.commands
    assert update[-1] == "update"
    assert names(install) == ["picom", "xvfb", "python3.13-venv"]
    assert "--no-remove" in install


@pytest.mark.parametrize("release", ["libglib2.0-0", "libglib2.0-0t64"])
def test_the_name_of_the_release_is_used(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    installed = [name for name in everything() if "glib" not in name]
    made = machine(monkeypatch, Machine(installed, known=[release]))
    ensure(tests=False)
    assert names(made.commands[-1]) == [release]


def test_a_sound_set_up_in_use_is_never_pushed_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = [name for name in everything() if name not in ("pulseaudio", "libasound2-plugins")]
    made = machine(monkeypatch, Machine([*installed, "pipewire-alsa"]))
    ensure(tests=True)
    assert made.commands == []
    assert "pulseaudio is not installed, because pipewire-alsa" in capsys.readouterr().out


def test_without_root_the_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(monkeypatch, Machine([n for n in everything() if n != "xvfb"]), root=False)
    with pytest.raises(SetupError, match="apt-get install xvfb\n"):
        ensure(tests=True)
    assert made.commands == []


def test_a_failed_installation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(monkeypatch, Machine([]))
    made.fails = True
    with pytest.raises(SetupError, match="could not install"):
        ensure(tests=False)


def test_where_there_is_no_package_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    with pytest.raises(SetupError, match="PortAudio"):
        ensure(tests=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: str(Path("libportaudio.so.2")))
    ensure(tests=False)
