"""Stands in for the on-device engine's process: the first argument says how it behaves."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

from surtitle.engines.worker import HEADER

behaviour = sys.argv[1]


def say(*message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hang() -> None:
    threading.Event().wait()


def frames() -> tuple[int, int]:
    """Start and end of the next chunk; both 0 at the end."""
    header = sys.stdin.buffer.read(HEADER.size)
    if len(header) < HEADER.size:
        sys.exit(0)  # the other side is gone
    start, size = HEADER.unpack(header)
    sys.stdin.buffer.read(size)
    return start, start + size // 2


match behaviour:
    case "exits":
        sys.exit(3)
    case "never-ready":
        hang()
    case "cannot-load":
        say("failed", "RuntimeError")
        sys.exit(1)
    case "garbage-first":
        sys.stdout.buffer.write(b"\xff\xfe\x00 hello\n")
        sys.stdout.flush()
        hang()
    case "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
say("ready")
number = 0
while True:
    start, end = frames()
    number += 1
    if end == 0:
        break
    match behaviour:
        case "garbage":
            sys.stdout.buffer.write(b"\xff\xfe{]\n")
            sys.stdout.flush()
        case "nested":
            sys.stdout.write("[" * 100_000 + "\n")
            sys.stdout.flush()
        case "endless-line":
            while True:
                sys.stdout.write("a" * 65536)
        case "other":
            say("weather", 12)
        case "null":
            say()
        case "fails":
            say("failed", "ValueError")
            sys.exit(1)
        case "killed" if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs" | "stubborn" if number == 3:
            hang()
        case "gated":
            while not Path(sys.argv[2]).exists():
                threading.Event().wait(0.01)
        case "floods":
            while True:
                say("voice", start, end, 0.5)
    say("partial", 1, "hello", 0, end)
    say("voice", start, end, 0.5)
    say("progress", 0)
    say("heard", end)
if behaviour == "never-done":
    hang()
say("final", 1, "hello there", 0, end)
say("done")
