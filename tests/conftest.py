"""How generated tests run: anew each time on a developer's machine, the same each time in CI."""

from __future__ import annotations

import os

from hypothesis import settings

# A shared machine may stand still for a while, so no single example is held to a deadline.
settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
