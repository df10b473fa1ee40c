"""A process that crashes or hangs is an answer too."""

import asyncio
import time
from pathlib import Path

import pytest

from surtitle.checks.child import Answer, run_python


def ask(*arguments: str, limit: float = 20.0) -> Answer:
    return asyncio.run(run_python(*arguments, limit=limit))


def test_the_last_line_is_the_answer() -> None:
    noisy = "import sys; print('noise'); print('answer'); print(); sys.exit(5)"
    assert ask("-c", noisy) == Answer(code=5, output="answer")


@pytest.mark.parametrize(
    ("code", "crashed"), [("pass", False), ("1 / 0", False), ("import os; os.abort()", True)]
)
def test_a_crash_is_told_from_an_error(code: str, *, crashed: bool) -> None:
    assert ask("-c", code).crashed is crashed


def test_who_hangs_is_killed() -> None:
    begun = time.monotonic()
    answer = ask("-c", "import time; time.sleep(60)", limit=0.3)
    assert answer == Answer(code=None)
    assert not answer.crashed
    assert time.monotonic() - begun < 30, "it was waited for"


def test_a_file_of_the_users_is_not_taken_for_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wave.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert ask("-c", "import wave").code == 0
