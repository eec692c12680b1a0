"""Builds the program, then runs the tests in a network namespace in which every address is local."""

from __future__ import annotations

import os
import shutil
import sys

from tests.programs import find

# Pods and callers have the addresses in the tables.
_SCRIPT = """
ip link set lo up
ip route add local 0.0.0.0/0 dev lo
ip -6 route add local ::/0 dev lo
echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind
exec "$@"
"""


def main() -> None:
    """Replace this process with the tests."""
    find("istio")
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("a network of its own for Istio needs unshare, of util-linux")
    options = ("-m", "istio", "-s", "-p", "no:xdist")
    tests = [sys.executable, "-m", "pytest", *options, "tests/istio", *sys.argv[1:]]
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = [unshare, *own_user, "--net", "sh", "-ec", _SCRIPT, "sh", *tests]
    os.execv(unshare, command)  # noqa: S606 - of the system


if __name__ == "__main__":
    main()
