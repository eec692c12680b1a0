"""No scheme crashes the reader: whatever stands in whatever place, there is a scheme or there is a reason.

Each value of the largest scheme of each style is replaced by every sort of wrong value, and left out.
"""

from __future__ import annotations

import json

import pytest

from eastgate.diagnostics import render
from eastgate.manifests import Plain, read_text
from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths
from tests.dialects.kuadrant.scheme_texts import NEW, OLD, judge_node, node

HEAD = {"apiVersion": "kuadrant.example/v1", "kind": "Scheme", "metadata": {"name": "s"}}


def findings(value: Plain) -> int:
    """Read a scheme; tells how many findings there are."""
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
        within_patterns = path[0] == "patterns"  # which conditions refer to
        assert findings(changed(value, path)) <= 1 or within_patterns, path
        for wrong in WRONG:
            said = findings(changed(value, path, wrong))
            assert said <= 1 or isinstance(wrong, dict) or within_patterns, (path, wrong)
