"""Benchmarks: `python3 packaging/dev.py bench wer|nothing|live|hops [options]`; prints JSON."""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    wer = verbs.add_parser("wer", help="word error rate and unstable words")
    wer.add_argument("--condition", action="append", default=[])
    wer.add_argument("--schedule", action="append", choices=["live", "fast"], default=[])
    nothing = verbs.add_parser("nothing", help="silence, noise and music")
    nothing.add_argument("--seconds", type=float, default=600.0)
    live = verbs.add_parser("live", help="delays and load on real-time sound through PulseAudio")
    live.add_argument("--recording", default="long-two-cities")
    live.add_argument("--seconds", type=float, default=0.0)
    verbs.add_parser("hops", help="what each hop to a speech service costs, and what we add")
    options = parser.parse_args()
    if options.verb == "wer":
        from bench.wer import run

        result = run(options.condition, options.schedule or ["fast", "live"])
    elif options.verb == "nothing":
        from bench.nothing import run as run_nothing

        result = run_nothing(options.seconds)
    elif options.verb == "hops":
        from bench.hops import run as run_hops

        result = run_hops()
    else:
        from bench.live import run as run_live

        result = run_live(options.recording, options.seconds)
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
