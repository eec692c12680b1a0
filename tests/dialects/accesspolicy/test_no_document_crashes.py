"""No document crashes the reader. For any value at any place, the result is a policy or a diagnostic.

Each value of the largest valid document of each form is replaced by every sort of wrong value, and left out. A
replacement without fields is one mistake, and gets one diagnostic.
"""

from __future__ import annotations

import json
from itertools import product

import pytest

from eastgate import dialects
from eastgate.basics.diagnostics import Reporter, render
from eastgate.reading.manifests import Plain, read_text
from tests.dialects.accesspolicy.reading import DEFAULT, backend_manifest, manifest
from tests.dialects.accesspolicy.test_accepted import MAXIMAL
from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths, read
from tests.dialects.reading import document
from tests.tracing import trace_some


def whole(text: str) -> Plain:
    node = document(text).node
    assert node is not None
    return node.plain()


@pytest.mark.parametrize("form", MAXIMAL)
def test_there_is_a_policy_or_there_is_a_reason(form: str) -> None:
    value = whole(manifest(form.split()[0], MAXIMAL[form]))
    for path in paths(value):
        assert read(changed(value, path), DEFAULT) <= 1, path
    for path, wrong in trace_some(product(paths(value), WRONG)):
        findings = read(changed(value, path, wrong), DEFAULT)
        assert findings <= 1 or isinstance(wrong, dict), (path, wrong)


@pytest.mark.parametrize("mcp", ["{serviceName: a, port: 80, path: /mcp}", "{hostname: a.example, port: 80}"])
def test_there_is_a_backend_or_there_is_a_reason(mcp: str) -> None:
    value = whole(backend_manifest(mcp))
    for path in paths(value):
        for text in (json.dumps(changed(value, path, *new)) for new in ((), *((wrong,) for wrong in WRONG))):
            for one in read_text("backend.json", text, positioned=dialects.reads).documents:
                if one.node is not None and not dialects.is_policy(one):
                    reporter = Reporter()
                    backend = dialects.read_object(one, DEFAULT, reporter)
                    assert (backend is None) == bool(reporter.errors)
                    assert all(found.span is not None and found.help and render(found) for found in reporter)
