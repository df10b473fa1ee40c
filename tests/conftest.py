"""What every test gets: a home of its own, no screen, and guards that notice what it leaves."""

import asyncio
import gc
import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

# Few examples a run keep the core's tests quick; each run has others.
# SURTITLE_EXAMPLES=1000 looks harder.
settings.register_profile(
    "surtitle", max_examples=int(os.environ.get("SURTITLE_EXAMPLES", "10")), deadline=None
)
settings.load_profile("surtitle")

# Before Qt is imported anywhere: it reads this once, when the application is made.
os.environ["QT_QPA_PLATFORM"] = "offscreen"

_ROOT = Path(__file__).resolve().parent.parent
_GRACE = 2.0
"""Seconds a thread that was told to end may take to do so."""
_HOMES = count()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "logs(pattern): the test logs a warning or worse that matches, and nothing else"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say beside the tests' result that something else failed: `packaging/dev.py test` sets it."""
    if failed := os.environ.get("SURTITLE_CHECKS_FAILED"):
        terminalreporter.write_line(f"Failed before the tests, see above: {failed}", red=True)


@pytest.fixture(autouse=True)
def _guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Put every guard around the test: one fixture, since six took longer than many tests do."""
    with (
        _own_world(request, tmp_path_factory),
        _no_surprising_logs(request.node),
        _no_tasks_left(),
        _no_threads_left(),
    ):
        yield
        if "qapp" in request.fixturenames:
            # Collect windows here: PySide dies when another thread happens to find them.
            gc.collect()


@contextmanager
def _own_world(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's files and screen out of it, also for programs that the test starts."""
    if "tmp_path" in request.fixturenames:
        home: Path = request.getfixturevalue("tmp_path") / "surtitle-home"
    else:  # made only by who writes there: a folder a test is dear, and most need none
        home = folders.getbasetemp() / f"surtitle-home-{next(_HOMES)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURTITLE_HOME", str(home))
        if request.node.get_closest_marker("screen"):
            patch.delenv("QT_QPA_PLATFORM")
        yield


@contextmanager
def _no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        # Threads of C libraries that once called Python stay listed and cannot be joined.
        if not isinstance(thread, threading._DummyThread):
            thread.join(_GRACE)
            assert not thread.is_alive(), f"left a thread behind: {thread.name}"


@contextmanager
def _no_tasks_left() -> Iterator[None]:
    """Catch the tasks that `asyncio.run` would cancel without a word, and those of other loops."""
    left: set[str] = set()
    cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined] # private

    def note_and_cancel(loop: asyncio.AbstractEventLoop) -> None:
        left.update(map(_describe, asyncio.all_tasks(loop)))
        cancel_all(loop)

    before = _pending()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.runners, "_cancel_all_tasks", note_and_cancel)
        yield
    left.update(map(_describe, _pending() - before))
    assert not left, f"left tasks behind: {', '.join(sorted(left))}"


def _pending() -> set[asyncio.Task[object]]:
    """Return the tasks of every loop that are not done."""
    tasks: set[asyncio.Task[object]] = set(asyncio.tasks._scheduled_tasks)  # type: ignore[attr-defined] # private
    return {task for task in tasks if not task.done()}


def _describe(task: asyncio.Task[object]) -> str:
    return f"{task.get_name()} ({getattr(task.get_coro(), '__qualname__', task.get_coro())})"


class _Memory(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.name}: {record.getMessage()}")


@contextmanager
def _no_surprising_logs(test: pytest.Item) -> Iterator[None]:
    """Fail on a warning that no `logs` marker announces, and on a marker that announces nothing."""
    memory = _Memory()
    logging.getLogger().addHandler(memory)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(memory)
    patterns = [str(mark.args[0]) for mark in test.iter_markers("logs")]
    for pattern in patterns:
        assert any(re.search(pattern, text) for text in memory.messages), (
            f"announced but not logged: {pattern}"
        )
    surprising = [t for t in memory.messages if not any(re.search(p, t) for p in patterns)]
    assert not surprising, f"logged without being announced: {surprising}"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of speech recordings, which is not part of the repository."""
    folder = Path(os.environ.get("SURTITLE_CORPUS") or _ROOT.parent / "shared" / "speech")
    if not folder.is_dir():
        pytest.skip(f"no speech recordings in {folder}; set SURTITLE_CORPUS to their folder")
    return folder
