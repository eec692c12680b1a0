"""Build the programs that `make test` needs, while other things run: `python -m tests.programs`."""

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
    """Build everything. What does not succeed is left to the tests that need it, which say why."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends what is being built, too
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
