"""Who may import whom. Read it as the map of the code; it fails where the code departs."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src"
OURS = "surtitle"
SHELLS = ("audio", "engines", "server", "storage", "ui")

# What the core must not even have in hand: devices, files, clocks, chance, loops and threads.
IMPURE = {
    *("asyncio", "concurrent", "contextvars", "glob", "http", "importlib", "io", "locale"),
    *("logging", "multiprocessing", "os", "pathlib", "platform", "queue", "random", "secrets"),
    *("select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys"),
    *("tempfile", "threading", "time", "urllib", "uuid", "zoneinfo"),
}
PURE_LIBRARIES = {"msgspec", "numpy", "pysubs2", "soxr"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import of one module, wherever in its file it stands."""

    importer: str
    target: str
    """Full dotted name, with the imported name: `surtitle.core.audio.Block`."""

    @property
    def library(self) -> str:
        return self.target.partition(".")[0]

    @property
    def part(self) -> str:
        """Which part of Surtitle is imported, empty for anything else."""
        return part_of(self.target) if self.library == OURS else ""

    @property
    def standard(self) -> bool:
        return self.library in sys.stdlib_module_names

    def __str__(self) -> str:
        return f"{self.importer} imports {self.target}"


def part_of(module: str) -> str:
    """`core` for `surtitle.core.audio`, `surtitle` for the package itself."""
    return module.split(".")[1] if "." in module else OURS


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SRC / OURS).rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_in(module: str, source: str, *, package: bool = False) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield Import(importer=module, target=name.name)
            case ast.ImportFrom(module=name, names=names, level=level):
                up = module.split(".") if level else []
                if level:
                    up = up[: len(up) - level + package]
                base = ".".join([*up, *([name] if name else [])])
                for imported in names:
                    yield Import(importer=module, target=f"{base}.{imported.name}")


IMPORTS = [
    found
    for module, path in MODULES.items()
    for found in imports_in(module, path.read_text("utf-8"), package=path.stem == "__init__")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What some parts must not import."""

    sentence: str
    parts: Callable[[str], bool]
    """Whether the rule is for the part that imports."""
    allowed: Callable[[Import], bool]


RULES = (
    Rule(
        sentence="the core has no clock, chance, device, file, loop or thread",
        parts=lambda part: part == "core",
        allowed=lambda it: it.library not in IMPURE,
    ),
    Rule(
        sentence="the core knows the standard library, msgspec, numpy, pysubs2 and soxr",
        parts=lambda part: part == "core",
        allowed=lambda it: it.standard or it.library in PURE_LIBRARIES or it.part == "core",
    ),
    Rule(
        sentence="the conductor and its relay know only the core",
        parts=lambda part: part in ("captioner", "relay"),
        allowed=lambda it: it.standard or it.part in ("core", "relay"),
    ),
    Rule(
        sentence="a shell knows the core and its own library, no other part",
        parts=lambda part: part in SHELLS,
        allowed=lambda it: it.part in ("", "core", part_of(it.importer)),
    ),
    Rule(
        sentence="only qt_loop knows qasync",
        parts=lambda part: part != "qt_loop",
        allowed=lambda it: it.library != "qasync",
    ),
    Rule(
        sentence="only ui and the loop know Qt",
        parts=lambda part: part not in ("ui", "qt_loop"),
        allowed=lambda it: it.library not in ("PySide6", "shiboken6"),
    ),
    Rule(
        sentence="only one module knows the SDK of AWS",
        parts=lambda _part: True,
        allowed=lambda it: (
            it.importer == "surtitle.engines.sagemaker_sdk"
            or not it.library.startswith(("aws_sdk", "awscrt", "smithy"))
        ),
    ),
    Rule(
        sentence="only one module knows botocore",
        parts=lambda _part: True,
        allowed=lambda it: (
            it.importer == "surtitle.engines.aws_credentials" or it.library != "botocore"
        ),
    ),
    Rule(
        sentence="nobody imports app but the command line",
        parts=lambda part: part not in ("app", "cli", "__main__"),
        allowed=lambda it: it.part != "app",
    ),
    Rule(
        sentence="nobody imports the command line",
        parts=lambda part: part not in ("cli", "__main__"),
        allowed=lambda it: it.part != "cli",
    ),
)


def broken(found: Import) -> list[str]:
    """Say which rules an import breaks."""
    part = part_of(found.importer)
    return [r.sentence for r in RULES if r.parts(part) and not r.allowed(found)]


def test_imports_keep_to_the_map() -> None:
    assert len(MODULES) > 8, "the source was not found"
    wrong = [f"{found}: {rule}" for found in IMPORTS for rule in broken(found)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("surtitle.core.a", "import os"),
        ("surtitle.core.a", "from time import monotonic"),
        ("surtitle.core.a", "import asyncio.events"),
        ("surtitle.core.a", "import sounddevice"),
        ("surtitle.core.a", "from surtitle.ui import overlay"),
        ("surtitle.core.a", "from ..captioner import Engine"),
        ("surtitle.core.a", "from surtitle import captioner"),
        ("surtitle.core.a", "def f():\n    import random"),
        ("surtitle.captioner", "import numpy"),
        ("surtitle.captioner", "from surtitle.audio.files import open_media"),
        ("surtitle.audio.a", "from surtitle.storage import secrets"),
        ("surtitle.audio.a", "from surtitle.captioner import Source"),
        ("surtitle.ui.a", "import surtitle.audio.files"),
        ("surtitle.ui.a", "import qasync"),
        ("surtitle.ui.a", "from surtitle.app import main"),
        ("surtitle.cli", "from PySide6 import QtCore"),
        ("surtitle.storage.a", "import PySide6.QtCore"),
        ("surtitle.app", "from surtitle import cli"),
    ],
)
def test_the_rules_catch(module: str, line: str) -> None:
    assert any(broken(found) for found in imports_in(module, line))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("surtitle.core.a", "import dataclasses, enum, math, json, numpy, soxr, pysubs2"),
        ("surtitle.core.a", "from surtitle.core.errors import SurtitleError"),
        ("surtitle.core.a", "from .errors import SurtitleError"),
        ("surtitle.captioner", "import asyncio\nfrom surtitle.core.audio import Block"),
        ("surtitle.audio.a", "import sounddevice\nfrom surtitle.audio.devices import find"),
        (
            "surtitle.ui.a",
            "from PySide6.QtWidgets import QWidget\nfrom surtitle.core import health",
        ),
        ("surtitle.qt_loop", "import qasync, PySide6.QtCore\nfrom surtitle.ui import overlay"),
        ("surtitle.cli", "def f():\n    from surtitle import app"),
        ("surtitle.__main__", "from surtitle.cli import main"),
    ],
)
def test_the_rules_allow(module: str, line: str) -> None:
    assert not [rule for found in imports_in(module, line) for rule in broken(found)]


def nested_loops(source: str) -> list[int]:
    """Return the lines that start a Qt loop inside the one that runs: qasync dies of it."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("exec", "exec_")
    ]


def test_no_qt_loop_is_nested() -> None:
    assert nested_loops("dialog.exec()\nmenu.exec_(p)\nexecute()\nmenu.popup(p)") == [1, 2]
    wrong = [
        f"{module}:{line}"
        for module, path in MODULES.items()
        for line in nested_loops(path.read_text("utf-8"))
    ]
    assert not wrong, f"open() and popup() instead of exec(): {wrong}"


WITHOUT_OUTSIDE = """
import importlib, sys

BLOCKED = {"PySide6", "shiboken6", "qasync", "sounddevice", "awscrt", "moonshine_voice", "av"}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not here")

sys.meta_path.insert(0, Absent())
try:
    import sounddevice
except ModuleNotFoundError:
    pass
else:
    sys.exit("the block does not work")
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_the_core_imports_where_nothing_else_is_installed() -> None:
    names = [m for m in MODULES if part_of(m) == "core" or m == "surtitle.captioner"]
    command = [sys.executable, "-W", "error", "-c", WITHOUT_OUTSIDE, *names]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
