"""Install what is missing, then run, test, check or measure Surtitle.

Runs on any Python from 3.9 on and needs nothing installed. The second time it
starts at once.
"""

from __future__ import annotations

import os
import sys

import environment
import locking
import vllm
from terminal import SetupError, become, run, say

USAGE = """\
Usage: python3 packaging/dev.py [--no-system] VERB [arguments]

  setup    install everything, start nothing
  demo     show captions of a recorded speech
  run      start Surtitle; arguments are Surtitle's own
  test     types, lint and tests; arguments go to pytest
  check    types, lint and import rules
  bench    measure; arguments go to the benchmark
  lock     renew packaging/requirements; --upgrade for the newest versions
  vllm     the tests against a real vLLM server (3.6 GB once); arguments go to pytest

Each verb first installs what is missing: into .venv, and from the system's
packages (as root, or through sudo). --no-system leaves the system alone."""

VERBS = ("setup", "demo", "run", "test", "check", "bench", "lock", "vllm")


def check() -> list[str]:
    """Run every checker to its end and return the names of those that object."""
    checkers = {
        "types": [environment.script("mypy")],
        "lint": [environment.script("ruff"), "check"],
        "format": [environment.script("ruff"), "format", "--check"],
    }
    failed = []
    for name, command in checkers.items():
        say(f"Checking {name}")
        if run(command) != 0:
            failed.append(name)
    return failed


def test(arguments: list[str]) -> int:
    """Check, then run the tests in any case; pytest's summary comes last and names both."""
    failed = check()
    say("Running the tests")
    command = [environment.script("python"), "-m", "pytest", *arguments]
    code = run(command, env={"SURTITLE_CHECKS_FAILED": " ".join(failed)})
    return code or int(bool(failed))


def start(verb: str, arguments: list[str]) -> int:
    """Do what a verb stands for, everything being installed, and return the exit code."""
    python, surtitle = environment.script("python"), environment.script("surtitle")
    programs = {
        "demo": [surtitle, "demo"],
        "run": [surtitle],
        "bench": [python, str(environment.ROOT / "tests" / "bench" / "run.py")],
    }
    if verb in programs:
        return become([*programs[verb], *arguments])
    if verb == "test":
        return test(arguments)
    if verb == "vllm":
        return vllm.conform(arguments)
    if verb == "check":
        failed = check()
        say("Checking imports")
        rules = [python, "-m", "pytest", "-q", "tests/test_architecture.py"]
        return run(rules) or int(bool(failed))
    say(f"All is installed. Start Surtitle with: {surtitle}")
    return 0


def main(arguments: list[str]) -> int:
    """Do what the command line says and return the exit code.

    Raises:
        SetupError: It cannot be done; the text says why and what to do.
    """
    system = "--no-system" not in arguments[:1]
    verb, *rest = arguments[0 if system else 1 :] or [""]
    if verb in ("help", "-h", "--help"):
        say(USAGE)
        return 0
    if verb not in VERBS:
        print(f"Unknown verb: {verb}\n\n{USAGE}" if verb else USAGE, file=sys.stderr)
        return 2
    if verb == "lock":
        return locking.lock(rest)
    for_users = verb in ("demo", "run")
    environment.prepare(tests=not for_users, system=system)
    if not for_users:
        os.chdir(environment.ROOT)  # where the tools find their configuration
    return start(verb, rest)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as problem:
        print(problem, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
