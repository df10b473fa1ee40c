"""The report of a conformance run: what was expected and what was seen, on both servers."""

from collections.abc import Callable
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_NOTES = pytest.StashKey[list[tuple[str, str, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash.setdefault(_NOTES, [])
    config.addinivalue_line("markers", "vllm: needs real vLLM servers: packaging/dev.py vllm")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here, and leave it out unless marks are asked for: it takes minutes."""
    ours = [item for item in items if item.path.is_relative_to(_HERE)]
    for item in ours:
        item.add_marker(pytest.mark.vllm)
    if ours and not config.option.markexpr:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Add a line to the report: what was expected, what was seen."""
    notes = request.config.stash[_NOTES]
    name = request.node.name.removeprefix("test_").replace("_", " ")
    return lambda expected, seen: notes.append((name, expected, seen))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    notes = config.stash.get(_NOTES, [])
    if not notes:
        return
    terminalreporter.section("conformance")
    for name, expected, seen in notes:
        terminalreporter.write_line(name, bold=True)
        terminalreporter.write_line(f"    expected  {expected}")
        terminalreporter.write_line(f"    seen      {seen}")
