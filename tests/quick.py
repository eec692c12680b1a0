"""The quick tests, which `make quick` runs: they start no process and connect to no other machine.

This module lists all other tests by folder or file, so that no marker can be forgotten. A single test of a quick file
has the marker `real` or `slow` itself. A quick test fails if it starts a process or connects to another machine.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

__all__ = [
    "MAX_EXAMPLES",
    "QUICK_EXAMPLES",
    "fewer_examples",
    "give_settings",
    "is_quick",
    "mark_of",
    "more_examples",
    "settings_of",
    "watch",
    "without_processes",
]

ROOT = Path(__file__).parent

REAL = (
    "agents",
    "attacks",
    "authorino",
    "control/authorizer/test_deceived_proxies.py",
    "control/authorizer/test_foreign_envoys.py",
    "control/authorizer/test_nginx.py",
    "control/authorizer/test_service.py",
    "cli/test_broken_saves.py",
    "cli/test_call.py",
    "cli/test_call_gateways.py",
    "cli/test_identities.py",
    "cli/test_lazy.py",
    "cli/test_openness.py",
    "cli/test_saving.py",
    "cli/test_up.py",
    "control/test_outbound.py",
    "deploy",
    "reports/diff/test_action.py",
    "reports/diff/test_revisions.py",
    "differential",
    "docs/test_console.py",
    "expressions/test_upstream.py",
    "faults",
    "istio/test_generated.py",
    "istio/test_tables.py",
    "control/identity",
    "reports/lint/test_integrations.py",
    "reading/mcp/lua",
    "local",
    "convert/native/test_on_server.py",
    "programs",
    "reading/manifests/test_kustomize.py",
    "reading/repository/test_builds.py",
    "reading/repository/test_builds_cached.py",
    "reading/repository/test_builds_charts.py",
    "reading/repository/test_builds_hostile.py",
    "reading/repository/test_builds_together.py",
    "test_bench.py",
    "test_demo.py",
    "envoy/server",
)
"""Folders and files of tests that start Envoys, commands or servers."""

SLOW = (
    "reports/test_speed.py",
    "reports/crds/test_agreement.py",
    "dialects/accesspolicy/test_no_document_crashes.py",
    "dialects/kuadrant/test_schemes_no_document_crashes.py",
    "dialects/linkerd/test_no_document_crashes.py",
    "dialects/gep3779/test_no_document_crashes.py",
    "engine/test_long_lists.py",
    "envoy/config/test_drawn_layers.py",
    "dialects/kuadrant/authorino/gjson/test_bounds.py",
    "reading/manifests/test_limits.py",
)
"""Other slow tests."""

QUICK_EXAMPLES = 10
"""The most examples that a generated test draws in a quick run."""

MAX_EXAMPLES = 200
"""The most examples in other runs. `make soak` draws as many as a test asks for, and more."""

_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "subprocess.Popen"}

_SETTINGS = "_hypothesis_internal_use_settings"

_forbidden = False


def mark_of(path: Path) -> str | None:
    """Return the marker of all tests of a file that are not quick."""
    relative = path.relative_to(ROOT).as_posix()
    for marker, files in (("real", REAL), ("slow", SLOW)):
        if any(relative == file or relative.startswith(f"{file}/") for file in files):
            return marker
    return None


@contextmanager
def without_processes() -> Iterator[None]:
    """Make code fail that starts a process or connects to another machine."""
    global _forbidden
    _forbidden = True
    try:
        yield
    finally:
        _forbidden = False


def watch() -> None:
    """Install the audit hook. It forbids nothing until `without_processes`."""
    sys.addaudithook(_check_event)


def _check_event(event: str, arguments: tuple[object, ...]) -> None:
    if not _forbidden:
        return
    if event in _STARTS:
        raise AssertionError(f"a quick test starts a process ({event}): mark it `real`, or list its file in {__name__}")
    if event == "socket.connect" and not _is_here(arguments[1]):
        raise AssertionError(f"a test connects to {arguments[1]!r}, which is not this machine")


def _is_here(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a unix socket
    host = str(address[0])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_quick(item: pytest.Item) -> bool:
    """Return whether a test is quick, by its markers."""
    return not any(map(item.get_closest_marker, ("real", "slow", "apiserver")))


def fewer_examples(test: object, most: int = QUICK_EXAMPLES) -> None:
    """Limit the examples of a generated test, even if the test asks for more."""
    own = settings_of(test)
    if own is not None and own.max_examples > most:
        give_settings(test, settings(own, max_examples=most))


def more_examples(test: object, times: int) -> None:
    """Multiply the examples of a generated test."""
    own = settings_of(test)
    if own is not None:
        give_settings(test, settings(own, max_examples=own.max_examples * times))


def settings_of(test: object) -> settings | None:
    """Return the settings of a generated test, or None for another test."""
    own = getattr(test, _SETTINGS, None)
    return own if isinstance(own, settings) else None


def give_settings(test: object, given: settings) -> None:
    """Replace the settings of a generated test."""
    setattr(getattr(test, "__func__", test), _SETTINGS, given)
