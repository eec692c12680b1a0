"""No scheme crashes the reader. For any value at any place, the result is a scheme or a diagnostic.

Each value of the largest scheme of each style is replaced by every sort of wrong value, and left out.
"""

from __future__ import annotations

import json
from itertools import product

import pytest

from eastgate.basics.diagnostics import render
from eastgate.reading.manifests import Plain, read_text
from tests.dialects.gep3779.test_no_document_crashes import WRONG, Path, changed, paths
from tests.dialects.kuadrant.scheme_texts import NEW, OLD, judge_node, node
from tests.tracing import trace_some

HEAD = {"apiVersion": "kuadrant.example/v1", "kind": "Scheme", "metadata": {"name": "s"}}


def findings(value: Plain) -> int:
    """Read a scheme; return the number of findings."""
    text = json.dumps({**HEAD, "spec": value})
    (document,) = read_text("policy.json", text, positioned=lambda *_: True).documents
    assert document.node is not None
    read, found = judge_node(document.node["spec"])
    assert (read is None) == any(one.is_error for one in found)
    assert all(one.span is not None and one.help and render(one) for one in found)
    return len(found)


@pytest.mark.parametrize("text", [OLD, NEW], ids=["old", "new"])
def test_there_is_a_scheme_or_there_is_a_reason(text: str) -> None:
    value = node(text).plain()
    assert findings(value) == 0
    for path in paths(value):
        assert findings(changed(value, path)) <= 1 or is_pattern(path), path
    for path, wrong in trace_some(product(paths(value), WRONG)):
        number = findings(changed(value, path, wrong))
        assert number <= 1 or isinstance(wrong, dict) or is_pattern(path), (path, wrong)


def is_pattern(path: Path) -> bool:
    """Return whether conditions may refer to the value at a path."""
    return path[0] == "patterns"
