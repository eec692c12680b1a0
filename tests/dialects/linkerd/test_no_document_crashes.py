"""No document crashes the reader: each value of the largest documents is replaced by every sort of wrong value."""

from __future__ import annotations

from itertools import product

import pytest

from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths, read
from tests.dialects.linkerd.reading import DEFAULT, VERSIONS, manifest
from tests.dialects.linkerd.test_accepted import MAXIMAL
from tests.dialects.reading import document
from tests.tracing import trace_some


@pytest.mark.parametrize(("kind", "version"), [(kind, v) for kind, versions in VERSIONS.items() for v in versions])
def test_there_is_a_resource_or_there_is_a_reason(kind: str, version: str) -> None:
    node = document(manifest(kind, MAXIMAL[kind], version=version)).node
    assert node is not None
    whole = node.plain()
    before = read(whole, DEFAULT)
    for path in paths(whole):
        read(changed(whole, path), DEFAULT)
    for path, wrong in trace_some(product(paths(whole), WRONG)):
        findings = read(changed(whole, path, wrong), DEFAULT)
        assert findings <= before + 1 or isinstance(wrong, dict | list), (path, wrong)
