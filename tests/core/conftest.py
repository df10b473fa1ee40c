"""The core has nothing to do with Qt, so its tests alone start without it."""

from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Leave the plugin out that imports Qt: that takes as long as five hundred of these tests."""
    named = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    if all(path.resolve().is_relative_to(_HERE) for path in named):
        config.pluginmanager.unregister(name="pytest-qt")


@pytest.fixture(autouse=True)
def _guarded() -> None:
    """Guard nothing: the core starts no thread, task or log (tests/test_architecture.py)."""
