"""A private PulseAudio with two outputs and a microphone, for tests of real capture.

Needs the Debian packages pulseaudio, pulseaudio-utils, libportaudio2 and
libasound2-plugins; without them the tests that ask for it are skipped.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["MIC", "MIC_SINK", "OTHER_SINK", "SINK", "PrivatePulse", "private_pulse"]

SINK = "ci_out"
"""The default output."""
OTHER_SINK = "ci_other"
"""Another output, as slow as PulseAudio lets an idle one be: its first sound may take 2 s."""
MIC_SINK = "ci_mic"
"""What is played here is what the microphone hears."""
MIC = "ci_micsrc"
"""The default microphone."""

# Without rewinds, sound comes in blocks of 50 ms, as from most hardware, and not of 2 s.
_SCRIPT = f"""
load-module module-native-protocol-unix
load-module module-null-sink sink_name={SINK} rate=48000 channels=2 norewinds=1 \
sink_properties=device.description=Loudspeakers
load-module module-null-sink sink_name={OTHER_SINK} rate=44100 channels=2 \
sink_properties=device.description=Headphones
load-module module-null-sink sink_name={MIC_SINK} rate=48000 channels=1 norewinds=1 \
sink_properties=device.description=Mouth
load-module module-remap-source master={MIC_SINK}.monitor source_name={MIC} \
source_properties=device.description=Table-microphone
set-default-sink {SINK}
set-default-source {MIC}
"""
_START_LIMIT = 20.0
_COMMAND_LIMIT = 10.0


class PrivatePulse:
    """A running server; this process and its children use it as theirs."""

    def __init__(self, *, server: subprocess.Popen[bytes]) -> None:
        self._server = server

    def pactl(self, *words: str) -> str:
        """Run a command of pactl and return what it prints."""
        return subprocess.run(
            ["pactl", *words], check=True, capture_output=True, text=True, timeout=_COMMAND_LIMIT
        ).stdout

    def play(self, wav: Path, *, sink: str) -> subprocess.Popen[bytes]:
        """Start to play a file into an output; the caller waits for the process or ends it."""
        return subprocess.Popen(["paplay", f"--device={sink}", str(wav)])

    def unplug(self, sink: str) -> None:
        """Take an output away."""
        modules = self.pactl("list", "short", "modules").splitlines()
        number = next(line.split()[0] for line in modules if f"sink_name={sink} " in line)
        self.pactl("unload-module", number)

    def end(self) -> None:
        """Kill the server."""
        self._server.kill()
        self._server.wait(timeout=_COMMAND_LIMIT)


@contextmanager
def private_pulse() -> Iterator[PrivatePulse]:
    """Start a server in a folder of its own, make it this process's, and stop it in the end."""
    if not all(map(shutil.which, ("pulseaudio", "pactl", "paplay"))):
        pytest.skip("needs the Debian packages pulseaudio and pulseaudio-utils")
    with tempfile.TemporaryDirectory(prefix="surtitle-pulse-") as name:
        folder = Path(name)
        script = folder / "start.pa"
        script.write_text(_SCRIPT, encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", name)
            patch.setenv("XDG_CONFIG_HOME", name)
            patch.setenv("PULSE_SERVER", f"unix:{name}/pulse/native")
            patch.setenv("DBUS_SESSION_BUS_ADDRESS", "disabled:")
            server = subprocess.Popen(
                ["pulseaudio", "-n", "-F", str(script), "--exit-idle-time=-1",
                 "--daemonize=no", f"--log-target=file:{folder / 'log'}"],
                env={key: value for key, value in os.environ.items() if key != "PULSE_SERVER"},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                _wait_until_ready(server, folder / "log")
                yield PrivatePulse(server=server)
            finally:
                server.terminate()
                try:
                    server.wait(timeout=_COMMAND_LIMIT)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait(timeout=_COMMAND_LIMIT)


def _wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_LIMIT
    while time.monotonic() < until and server.poll() is None:
        asked = subprocess.run(["pactl", "info"], check=False, capture_output=True, timeout=5)
        if asked.returncode == 0 and MIC in asked.stdout.decode():
            return
        time.sleep(0.1)  # nothing tells when it is ready
    said = log.read_text(encoding="utf-8") if log.exists() else ""
    pytest.fail(f"PulseAudio did not start: {said}")
