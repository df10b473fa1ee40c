"""Window tests draw off screen, unless the environment says otherwise."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
