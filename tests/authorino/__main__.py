"""Build the programs, then run the tests in a network namespace with loopback only."""

from __future__ import annotations

import os
import shutil
import sys

from tests.authorino.running import PROGRAMS, definition
from tests.programs import find


def main() -> None:
    """Replace this process with the tests."""
    for name in PROGRAMS:
        find(name)
    definition()
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("running Authorino by itself needs unshare, of util-linux")
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "authorino",
        "-s",
        "-p",
        "no:xdist",
        "tests/authorino",
        *sys.argv[1:],
    ]
    script = 'ip link set lo up && exec "$@"'
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    os.execv(unshare, [unshare, *own_user, "--net", "sh", "-c", script, "sh", *tests])  # noqa: S606 - of the system


if __name__ == "__main__":
    main()
