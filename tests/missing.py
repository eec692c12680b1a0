"""Programs and rights that a machine may lack. In CI the test fails; elsewhere it is skipped and listed at the end."""

from __future__ import annotations

import os
from collections import Counter
from typing import NoReturn

import pytest

_LACKS = "this machine lacks "


def lacks(what: str, remedy: str) -> str:
    """Return the reason for skipping a test, which the end of the run lists."""
    return f"{_LACKS}{what}: {remedy}"


def give_up(what: str, remedy: str) -> NoReturn:
    """Fail the test in CI, or skip it elsewhere, because the machine lacks something."""
    if os.environ.get("CI"):
        pytest.fail(lacks(what, remedy))
    pytest.skip(lacks(what, remedy))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skipped tests with their remedies."""
    skipped = [
        report.longrepr[2] for report in terminalreporter.getreports("skipped") if isinstance(report.longrepr, tuple)
    ]
    lines = Counter(reason.partition(_LACKS)[2] for reason in skipped if _LACKS in reason)
    if not lines:
        return
    terminalreporter.write_sep("=", f"{lines.total()} tests did not run on this machine", yellow=True, bold=True)
    for line, tests in lines.most_common():
        terminalreporter.write_line(f"{tests:5} without {line}")
