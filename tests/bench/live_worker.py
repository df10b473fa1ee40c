"""The engine's worker, asking its model as often as in real time, however fast it is fed."""

import os
import sys
from functools import partial

from surtitle.engines.recogniser import Schedule
from surtitle.engines.worker import load, main

if __name__ == "__main__":
    code = main(sys.argv[1:], loader=partial(load, schedule=Schedule(patience=0.0)))
    os._exit(code)
