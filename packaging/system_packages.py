"""The libraries and programs that come from the system and not from PyPI.

On Windows and macOS the Python packages bring everything along.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from terminal import SetupError, ask, run, say

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["APT", "DNF", "Packages", "ensure", "missing"]


@dataclass(frozen=True)
class Packages:
    """What one package manager calls the things we need.

    `a|b` means that either will do; the first one that the release has is installed.
    """

    to_run: tuple[str, ...]
    to_test: tuple[str, ...]


APT = Packages(
    to_run=(
        "libportaudio2",
        "libasound2-plugins|pipewire-alsa",  # PortAudio reaches the sound server by it
        "libpulse0",
        # What Qt's own libraries and its xcb and wayland platforms are linked with.
        "libdbus-1-3",
        "libegl1",
        "libfontconfig1",
        "libgl1",
        "libglib2.0-0|libglib2.0-0t64",
        "libgssapi-krb5-2",
        "libwayland-client0",
        "libwayland-cursor0",
        "libwayland-egl1",
        "libx11-xcb1",
        "libxcb-cursor0",
        "libxcb-glx0",
        "libxcb-icccm4",
        "libxcb-image0",
        "libxcb-keysyms1",
        "libxcb-randr0",
        "libxcb-render-util0",
        "libxcb-shape0",
        "libxcb-shm0",
        "libxcb-sync1",
        "libxcb-xfixes0",
        "libxcb-xkb1",
        "libxkbcommon-x11-0",
        "libxkbcommon0",
        "fonts-dejavu-core",
    ),
    to_test=(
        "imagemagick",
        "openbox",
        "picom",
        "pulseaudio",
        "pulseaudio-utils",
        "x11-utils",
        "xdotool",
        "xvfb",
    ),
)

DNF = Packages(
    to_run=(
        "portaudio",
        "pipewire-alsa|alsa-plugins-pulseaudio",
        "pulseaudio-libs",
        "dbus-libs",
        "fontconfig",
        "glib2",
        "krb5-libs",
        "libX11-xcb",
        "libwayland-client",
        "libwayland-cursor",
        "libwayland-egl",
        "libxcb",
        "libxkbcommon",
        "libxkbcommon-x11",
        "mesa-libEGL|libglvnd-egl",
        "mesa-libGL|libglvnd-glx",
        "xcb-util-cursor",
        "xcb-util-image",
        "xcb-util-keysyms",
        "xcb-util-renderutil",
        "xcb-util-wm",
        "dejavu-sans-fonts",
    ),
    to_test=(
        "ImageMagick",
        "openbox",
        "picom",
        "pulseaudio",
        "pulseaudio-utils",
        "xdotool",
        "xorg-x11-server-Xvfb",
        "xprop",
        "xwininfo",
    ),
)

_SOUND_SERVER = "pulseaudio"
_RIVAL = "pipewire-alsa"


def missing(wanted: Sequence[str], installed: Collection[str]) -> list[str]:
    """Return those of `wanted` of which no alternative is among `installed`."""
    return [need for need in wanted if not any(name in installed for name in need.split("|"))]


def ensure(*, tests: bool, extra: Sequence[str] = ()) -> None:
    """Install what is missing, as root, through sudo, or by telling the user the command.

    Args:
        tests: Whether what the tests need is wanted too.
        extra: More names in Debian's spelling.

    Raises:
        SetupError: Something is missing and could not be installed.
    """
    if not sys.platform.startswith("linux"):
        return
    if shutil.which("apt-get") and shutil.which("dpkg-query"):
        _ensure_apt([*APT.to_run, *(APT.to_test if tests else ()), *extra])
    elif shutil.which("dnf") and shutil.which("rpm"):
        _ensure_dnf([*DNF.to_run, *(DNF.to_test if tests else ())])
    elif ctypes.util.find_library("portaudio") is None:
        raise SetupError(
            "The PortAudio library is missing, and this system has neither apt nor dnf. "
            "Install PortAudio with your package manager, then run this again."
        )


def _ensure_apt(wanted: list[str]) -> None:
    listing = ask(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"]) or ""
    pairs = (line.split(" ", 1) for line in listing.splitlines())
    installed = {name for status, name in pairs if status == "installed"}
    lacking = missing(_without_rival(wanted, installed), installed)
    if not lacking:
        return
    say(f"System packages missing: {' '.join(lacking)}")
    prefix = _privileged("apt-get", [_first_known(need) for need in lacking])
    quiet = ["-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=120"]
    if run([*prefix, "apt-get", *quiet, "update"]) != 0:
        say("Updating the package lists failed; going on with the old ones.")
    # --no-remove: never take anything away from the user's machine.
    install = ["apt-get", *quiet, "install", "-y", "--no-install-recommends", "--no-remove"]
    names = [_first_known(need) for need in lacking]  # apt may only know now
    if run([*prefix, "env", "DEBIAN_FRONTEND=noninteractive", *install, *names]) != 0:
        raise SetupError(
            "apt-get could not install the system packages; its message is above. "
            "Install them by hand, or add --no-system to go on without them."
        )


def _without_rival(wanted: list[str], installed: Collection[str]) -> list[str]:
    """Leave PulseAudio out where it would push out the sound set-up that is in use."""
    if _SOUND_SERVER not in wanted or _SOUND_SERVER in installed or _RIVAL not in installed:
        return wanted
    say(
        f"{_SOUND_SERVER} is not installed, because {_RIVAL}, which this computer uses, "
        "excludes it: tests that need a sound server of their own cannot run."
    )
    return [need for need in wanted if need != _SOUND_SERVER]


def _first_known(need: str) -> str:
    """Choose the alternative that this release has, the first one if apt knows none."""
    names = need.split("|")
    for name in names if len(names) > 1 else []:
        policy = ask(["apt-cache", "policy", name])
        if policy and "Candidate: (none)" not in policy:
            return name
    return names[0]


def _ensure_dnf(wanted: list[str]) -> None:
    names = [name for need in wanted for name in need.split("|")]
    installed = {name for name in names if ask(["rpm", "-q", "--whatprovides", name])}
    lacking = [need.split("|")[0] for need in missing(_without_rival(wanted, installed), installed)]
    if not lacking:
        return
    say(f"System packages missing: {' '.join(lacking)}")
    prefix = _privileged("dnf", lacking)
    if run([*prefix, "dnf", "install", "-y", "--setopt=install_weak_deps=False", *lacking]) != 0:
        raise SetupError(
            "dnf could not install the system packages; its message is above. "
            "Install them by hand, or add --no-system to go on without them."
        )


def _privileged(manager: str, names: Sequence[str]) -> list[str]:
    """Return what to put before a command so that it runs as root.

    Raises:
        SetupError: There is no way; the text has the command for someone who may.
    """
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        silent = subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True)
        if silent.returncode == 0 or sys.stdin.isatty():
            return ["sudo"]
    raise SetupError(
        "Only root may install system packages. Ask someone who may to run:\n"
        f"  {manager} install {' '.join(names)}\n"
        "then run this again, or add --no-system to go on without them."
    )
