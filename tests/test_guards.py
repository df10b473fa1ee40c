"""The guards of conftest.py, tried on tests that ought to fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LEAKY = """
import asyncio, logging, os, threading
import pytest

held = threading.Event()
loops = []

def test_thread():
    threading.Thread(target=held.wait, name="lingering", daemon=True).start()

def test_thread_that_was_told_to_end():
    done = threading.Event()
    threading.Thread(target=done.wait).start()
    done.set()

def test_task_cancelled_by_run():
    async def main():
        keep.append(asyncio.create_task(asyncio.sleep(60)))
    keep = []
    asyncio.run(main())

def test_task_of_another_loop():
    loop = asyncio.new_event_loop()
    loops.append((loop, loop.create_task(asyncio.sleep(0))))

def test_task_that_ended():
    asyncio.run(asyncio.sleep(0))

def test_warning():
    logging.getLogger("a").warning("odd")

@pytest.mark.logs("a: od+")
def test_announced_warning():
    logging.getLogger("a").warning("odd")

@pytest.mark.logs("even")
def test_announced_but_quiet():
    pass

def test_home(tmp_path):
    assert os.environ["SURTITLE_HOME"].startswith(str(tmp_path))
    assert os.environ["QT_QPA_PLATFORM"] == "offscreen"

@pytest.mark.screen
def test_screen():
    assert "QT_QPA_PLATFORM" not in os.environ

def test_last():
    held.set()
    for loop, task in loops:
        loop.run_until_complete(task)
        loop.close()
"""

FAILING = {
    "test_thread": "left a thread behind: lingering",
    "test_task_cancelled_by_run": "left tasks behind: Task-",
    "test_task_of_another_loop": "left tasks behind: Task-",
    "test_warning": "logged without being announced: ['a: odd']",
    "test_announced_but_quiet": "announced but not logged: even",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("leaky")
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_leaky.py").write_text(LEAKY)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = screen: x\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-ra", "--strict-markers", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "COLUMNS": "500"},  # a summary that is not cut short
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("test", "reason"), FAILING.items())
def test_what_is_left_behind_fails_the_test(report: str, test: str, reason: str) -> None:
    lines = [line for line in report.splitlines() if f"::{test} - " in line]
    assert any(line.startswith("ERROR") for line in lines), report
    assert any(reason in line for line in lines), report


def test_nothing_else_fails(report: str) -> None:
    assert report.count("ERROR test_leaky.py") == len(FAILING), report
    assert "FAILED" not in report
