"""`python -m surtitle` is `surtitle`."""

import sys

from surtitle.cli import main

sys.exit(main())
