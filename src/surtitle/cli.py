"""The command line: parses, calls, prints."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from surtitle.core.errors import OutputError, SurtitleError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code."""
    options = _parser().parse_args(arguments)
    if options.data_dir:
        os.environ["SURTITLE_HOME"] = str(Path(options.data_dir).expanduser())
    try:
        return int(_COMMANDS[options.command or "run"](options))
    except SurtitleError as error:
        print(f"surtitle: {error}", file=sys.stderr)
        return error.exit_code
    except ImportError as error:
        # Only the first line: some libraries write an essay.
        what = error.name or str(error).partition("\n")[0]
        print(
            f"surtitle: A library that this needs cannot be loaded ({what}). "
            "See what is missing: surtitle doctor.",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody left to tell
    except KeyboardInterrupt:
        return 130
    finally:
        _let_go_of_output()


def _let_go_of_output() -> None:
    """What could not be written was told; Python must not try again at its very end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surtitle",
        description="Live captions for everything this computer hears. "
        "Without a command: the caption window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"surtitle {version('surtitle')}")
    parser.add_argument(
        "--data-dir", metavar="FOLDER", help="keep settings and transcripts here (or SURTITLE_HOME)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    commands.add_parser(
        "demo",
        help="see the window caption a recorded speech",
        description="Captions a recorded speech in the window. Without a display it prints "
        "the captions, draws the window off screen and prints where the picture is.",
    )
    caption = commands.add_parser(
        "caption",
        help="caption a file, standard input, the microphone or the computer's sound",
        description="Writes captions of a source to standard output or to a file.",
        allow_abbrev=False,
    )
    caption.add_argument(
        "source",
        metavar="SOURCE",
        help="a media file; '-' for raw sound on standard input (16-bit, 16 kHz, mono); "
        "'mic'; 'system'",
    )
    caption.add_argument(
        "--engine", choices=["on-device"], default="on-device", help="what makes the text"
    )
    caption.add_argument(
        "--format",
        choices=["text", "srt", "vtt", "json"],
        help="default: what the name of the output file says, else text",
    )
    caption.add_argument("--output", metavar="FILE", help="write here, not to standard output")
    caption.add_argument(
        "--pace",
        choices=["real-time", "fast"],
        default="fast",
        help="read a file as it would be heard, or as fast as it can be captioned (default)",
    )
    caption.add_argument("--device", metavar="NAME", help="which microphone or output")
    commands.add_parser("devices", help="what can be listened to")
    commands.add_parser("doctor", help="what works here, what does not, and what to do")
    return parser


def _run(_options: argparse.Namespace) -> int:
    from surtitle.app import run  # noqa: PLC0415 - Qt is heavy, and may not be installed

    return run()


def _demo(_options: argparse.Namespace) -> int:
    from surtitle.demo import run  # noqa: PLC0415 - Qt is heavy, and may not be installed

    return run()


def _caption(options: argparse.Namespace) -> int:
    from surtitle.listening import caption  # noqa: PLC0415 - numpy and PyAV take their time

    return caption(
        options.source,
        form=options.format,
        output=Path(options.output) if options.output else None,
        pace=options.pace,
        device=options.device,
    )


def _devices(_options: argparse.Namespace) -> int:
    from surtitle.listening import describe_devices  # noqa: PLC0415 - as above

    devices = describe_devices()
    try:
        print(devices, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error
    return 0


def _doctor(_options: argparse.Namespace) -> int:
    from surtitle.doctor import run  # noqa: PLC0415 - as above

    return run()


_COMMANDS = {
    "run": _run,
    "demo": _demo,
    "caption": _caption,
    "devices": _devices,
    "doctor": _doctor,
}
