"""`surtitle doctor`: what works on this computer, what does not, and what to do."""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from surtitle.checks.finding import Finding, Level, Report, fail
from surtitle.checks.installation import check_libraries, check_python
from surtitle.core.errors import OutputError, SurtitleError

__all__ = ["CHECKS", "Check", "examine", "run"]

_REPORT = "Please report it with all that is printed here."
_PLAIN = str.maketrans({"→": "->", "“": '"', "”": '"'})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that the doctor looks at."""

    subject: str
    """What it is about."""
    limit: float
    """Seconds after which it is given up."""
    work: Callable[[Report], Awaitable[None]]


# Imported when their turn comes: a library that is missing must be a finding, not an error.


async def _sound(report: Report) -> None:
    from surtitle.checks.sound import check_sound  # noqa: PLC0415 - see above

    await check_sound(report)


async def _engine(report: Report) -> None:
    from surtitle.checks.engine import check_engine  # noqa: PLC0415 - see above

    await check_engine(report)


async def _service(report: Report) -> None:
    from surtitle.checks.service import check_service  # noqa: PLC0415 - see above

    await check_service(report)


async def _desktop(report: Report) -> None:
    from surtitle.checks.desktop import check_desktop  # noqa: PLC0415 - see above

    await check_desktop(report)


async def _folders(report: Report) -> None:
    from surtitle.checks.folders import check_folders  # noqa: PLC0415 - see above

    await check_folders(report)


CHECKS = (
    Check(subject="Python", limit=5.0, work=check_python),
    Check(subject="The libraries", limit=90.0, work=check_libraries),
    Check(subject="Sound", limit=60.0, work=_sound),
    Check(subject="The on-device engine", limit=60.0, work=_engine),
    Check(subject="The speech server", limit=30.0, work=_service),
    Check(subject="The display", limit=30.0, work=_desktop),
    Check(subject="The data folder", limit=10.0, work=_folders),
)


def run() -> int:
    """Look at everything and print each finding at once.

    Returns the exit code: 0 when nothing has to be put right.

    Raises:
        OutputError: Nothing can be printed.
    """
    return asyncio.run(_run(CHECKS, _print))


async def _run(checks: Sequence[Check], say: Callable[[str], None]) -> int:
    count: Counter[Level] = Counter()

    def report(finding: Finding) -> None:
        count[finding.level] += 1
        say(str(finding))

    for check in checks:
        await examine(check, report)
    say("\n" + _summary(count))
    return 1 if count[Level.FAIL] else 0


async def examine(check: Check, report: Report) -> None:
    """Carry out a check. Whatever goes wrong in it is a finding.

    What `report` itself raises is passed on.
    """
    try:
        async with asyncio.timeout(check.limit):
            await check.work(report)
    except (OutputError, BrokenPipeError):
        raise  # printing failed; checks make findings of their own errors
    except TimeoutError:
        report(
            fail(
                f"{check.subject}: no answer within {check.limit:.0f} seconds",
                "Restart the computer, then try again.",
            )
        )
    except SurtitleError as error:
        report(fail(error.message.rstrip("."), error.remedy or _REPORT))
    except ModuleNotFoundError as error:
        library = error.name or "that is missing"
        report(
            fail(
                f"{check.subject}: cannot be looked at without the library {library}",
                "Install Surtitle again: its libraries are incomplete.",
            )
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks go on
        report(fail(f"{check.subject}: unexpected fault ({type(error).__name__})", _REPORT))


def _summary(count: Mapping[Level, int]) -> str:
    failed, warned = count[Level.FAIL], count[Level.WARN]
    if failed:
        return f"{failed} to put right: see FAIL above."
    if warned:
        return f"Nothing is broken; {warned} to know about: see warn above."
    return "Everything works."


def _print(text: str) -> None:
    """Print at once, with a replacement for what the terminal or file has no letters for."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # the command line knows: nobody is left to tell
    except OSError as error:
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error
