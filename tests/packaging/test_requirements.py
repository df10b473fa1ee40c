"""The pinned requirements: complete, hashed, and free of addresses."""

import re
import tomllib
from pathlib import Path

import pytest

from environment import REQUIREMENTS, ROOT

FILES = ("run", "dev", "uv")
PIN = re.compile(r"(?P<name>[a-z0-9.-]+)==(?P<version>[^ ;]+)(?P<marker> ;[^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def lines_of(name: str) -> list[str]:
    head, *lines = (REQUIREMENTS / f"{name}.txt").read_text("utf-8").splitlines()
    assert head.startswith("# Written by: ")
    return lines


def pins(name: str) -> dict[str, str]:
    found = [match for line in lines_of(name) if (match := PIN.fullmatch(line))]
    return {match["name"]: match["version"] for match in found}


def wanted(requirements: list[str]) -> set[str]:
    names = (re.split(r"[<>=; \[]", requirement, maxsplit=1)[0] for requirement in requirements)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_each_line_is_a_pin_or_its_hash(name: str) -> None:
    lines = lines_of(name)
    assert PIN.fullmatch(lines[0])
    for line, after in zip(lines, [*lines[1:], "end"], strict=True):
        assert PIN.fullmatch(line) or HASH.fullmatch(line), line
        if PIN.fullmatch(line):
            assert HASH.fullmatch(after), f"no hash: {line}"


def test_everything_that_the_project_asks_for_is_pinned(project: dict[str, object]) -> None:
    about, build = project["project"], project["build-system"]
    assert isinstance(about, dict)
    assert isinstance(build, dict)
    extras: dict[str, list[str]] = about["optional-dependencies"]
    base = wanted([*about["dependencies"], *build["requires"]])
    to_run = wanted([need for name in ("desktop", "aws", "serve") for need in extras[name]])
    assert base | to_run <= pins("run").keys()
    assert base | wanted([one for extra in extras.values() for one in extra]) <= pins("dev").keys()


def test_both_sets_agree() -> None:
    both = pins("run").items() - pins("dev").items()
    assert not both, "python3 packaging/dev.py lock puts this right"


@pytest.mark.parametrize("path", [ROOT / "pyproject.toml", *sorted(REQUIREMENTS.iterdir())])
def test_no_marker_compares_the_kernel_release(path: Path) -> None:
    # pip 24.1 to 25.1 stops with InvalidVersion on Debian's `6.1.0-25-amd64`.
    assert not re.search(r"platform_release\s*[<>=!~]", path.read_text("utf-8"))
