"""Talking to the person at the terminal and running programs for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SetupError", "ask", "become", "run", "say"]


class SetupError(Exception):
    """Setting up cannot go on; the text says why and what to do."""


def say(text: str) -> None:
    """Print a line at once, so that it stands before what programs print themselves."""
    print(text, flush=True)


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None) -> int:
    """Run a program in the foreground.

    Ctrl-C reaches the program from the terminal; a request to end is passed on.

    Args:
        command: The program and its arguments.
        env: Variables to add to the environment.

    Returns:
        Its exit code, or 128 + n if signal n ended it.

    Raises:
        SetupError: The program does not exist or may not be run.
    """
    # Not left to KeyboardInterrupt: raised in the midst of waiting it loses the exit code.
    # A handler, unlike SIG_IGN, is not inherited by the program.
    interrupt = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        child = subprocess.Popen(command, env={**os.environ, **(env or {})})
        terminate = signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
        try:
            code = child.wait()
        finally:
            signal.signal(signal.SIGTERM, terminate)
    except OSError as error:
        raise SetupError(f"{command[0]} cannot be run: {error.strerror}.") from error
    finally:
        signal.signal(signal.SIGINT, interrupt)
    return code if code >= 0 else 128 - code


def become(command: Sequence[str]) -> int:
    """Let a program take this one's place, so that signals and exit code are its own.

    Returns:
        Its exit code, where the system has no way to replace a program.

    Raises:
        SetupError: The program does not exist or may not be run.
    """
    if os.name != "posix":
        return run(command)
    sys.stdout.flush()
    try:
        os.execv(command[0], list(command))  # noqa: S606 - no shell is the point
    except OSError as error:
        raise SetupError(f"{command[0]} cannot be run: {error.strerror}.") from error


def ask(command: Sequence[str], *, seconds: float = 30) -> str | None:
    """Return what a program prints, or None if it fails or takes longer than `seconds`."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
