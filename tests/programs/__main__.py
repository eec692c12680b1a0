"""Build the programs that `make test` needs, in the background: `python -m tests.programs`."""

from __future__ import annotations

import shutil
import signal
import sys

import pytest

from tests.order import PROGRAMS
from tests.programs.building import find
from tests.programs.crds import NAMES, crds
from tests.programs.mcp_environment import python_with_mcp_1


def main() -> None:
    """Build all programs. If one fails, the tests that need it report the reason."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # this also ends the current build
    _attempt(python_with_mcp_1)
    if shutil.which("go") is None:
        return
    for name in PROGRAMS:
        _attempt(find, name)
    for name in NAMES:
        _attempt(crds, name)


def _attempt(make: object, *arguments: str) -> None:
    try:
        make(*arguments)  # type: ignore[operator]
    except (pytest.fail.Exception, pytest.skip.Exception):
        return


if __name__ == "__main__":
    main()
