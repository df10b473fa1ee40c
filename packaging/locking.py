"""Writing the pinned requirements anew from what pyproject.toml asks for."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import REQUIREMENTS, ROOT, find_interpreter, uv
from terminal import SetupError, run, say

__all__ = ["lock"]

_HEAD = "# Written by: python3 packaging/dev.py lock\n"
_TO_RUN = ("desktop", "aws", "serve")
_EDITABLE = "editables"  # what hatchling asks for at run time to link a working copy into .venv


def lock(options: list[str]) -> int:
    """Write every file of requirements; pins stay as they are unless they must change.

    Args:
        options: More options for `uv pip compile`, such as `--upgrade`.

    Raises:
        SetupError: uv cannot be had or cannot resolve the requirements.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 - starts on 3.9, which has no tomllib
        interpreter = find_interpreter()
        if interpreter is None:
            raise SetupError("Renewing the requirements needs Python 3.12 or 3.13; install one.")
        return run([interpreter.path, str(ROOT / "packaging" / "dev.py"), "lock", *options])
    import tomllib  # noqa: PLC0415 - does not exist on 3.9

    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    backend = "\n".join([*build["requires"], _EDITABLE])
    project = str(ROOT / "pyproject.toml")
    same = ["-c", str(REQUIREMENTS / "run.txt")]  # one version of everything in both files
    with tempfile.TemporaryDirectory(prefix="surtitle-uv-") as folder:
        program = uv(folder)
        if program is None:
            raise SetupError("uv could not be installed; pip's message is above.")
        compiler = [
            *(program, "pip", "compile", "-q", "--universal", "--python-version", "3.12"),
            *("--generate-hashes", "--no-header", "--no-annotate", *options),
        ]
        extras = [word for name in _TO_RUN for word in ("--extra", name)]
        _compile([*compiler, project, "-", *extras], backend, "run")
        _compile([*compiler, project, "-", "--all-extras", *same], backend, "dev")
        _compile([*compiler, "-"], "uv", "uv")
    return 0


def _compile(command: list[str], wanted: str, name: str) -> None:
    """Resolve one file; without addresses, so that each machine uses the index it is set to."""
    target = REQUIREMENTS / f"{name}.txt"
    say(f"Resolving {target.relative_to(ROOT)}")
    with tempfile.TemporaryDirectory(prefix="surtitle-lock-") as folder:
        output = Path(folder) / "requirements.txt"
        if target.exists():
            output.write_text(target.read_text(encoding="utf-8"), encoding="utf-8")
        full = [*command, "-o", str(output)]
        done = subprocess.run(full, check=False, input=wanted, text=True, timeout=600)
        if done.returncode != 0:
            raise SetupError(f"uv could not resolve the requirements of {target.name}.")
        lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = (
        line for line in lines if not re.match(r"#|--?(index|extra-index|find-links|f|i)\b", line)
    )
    target.write_text(_HEAD + "".join(kept), encoding="utf-8")
