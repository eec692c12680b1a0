"""The examples are clean: each finding at the default threshold is suppressed there, or explained here."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.basics.diagnostics import Severity
from eastgate.reports.lint import lint

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/manifests"))

# Findings that an example has on purpose, and why. Shorten this list; never extend it without a reason.
EXPLAINED: dict[str, dict[str, str]] = {}


@pytest.mark.parametrize("example", FOLDERS)
def test_an_example_is_clean(example: str) -> None:
    manifests = read_manifests([EXAMPLES / example / "manifests"])
    findings = [f for f in lint(Authority(manifests), manifests) if f.severity is not Severity.INFO]
    explained = EXPLAINED.get(example, {})
    assert [f.render() for f in findings if f.code.id not in explained] == []
    assert explained.keys() <= {f.code.id for f in findings}, "an explanation is not needed any more"


def test_there_are_examples() -> None:
    assert {"shop", "linkerd", "payment"} <= set(FOLDERS)
    assert EXPLAINED.keys() <= set(FOLDERS)
