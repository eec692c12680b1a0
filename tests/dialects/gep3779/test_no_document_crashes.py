"""No document crashes the reader. For any value at any place, the result is a policy or a diagnostic.

Each value of the largest valid document of each form is replaced by every sort of wrong value, and left out. A
replacement without fields is one mistake, and gets one diagnostic.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import product

import pytest

from eastgate import dialects
from eastgate.basics.diagnostics import Reporter, render
from eastgate.reading.manifests import Plain, read_text
from eastgate.settings import Settings
from tests.dialects.gep3779.test_accepted import MAXIMAL
from tests.dialects.reading import AMBIENT, SIDECAR, document, manifest
from tests.tracing import trace_some

WRONG: list[Plain] = [
    None,
    True,
    0,
    -1,
    65536,
    1.5,
    "",
    "x",
    "*",
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": 1},
    {"kind": "Pod"},
]

Path = tuple[str | int, ...]


def paths(value: Plain, here: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values in this value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in inner:
        yield (*here, step)
        yield from paths(child, (*here, step))


def changed(value: Plain, path: Path, *new: Plain) -> Plain:
    """Return the value with one place in it replaced or left out."""
    result = copy.deepcopy(value)
    parent = result
    for step in path[:-1]:
        parent = parent[step]  # type: ignore[index] # the path was found in it
    if new:
        parent[path[-1]] = new[0]  # type: ignore[index]
    else:
        del parent[path[-1]]  # type: ignore[union-attr,arg-type]
    return result


def read(value: Plain, settings: Settings) -> int:
    """Read a document as the commands do; return the number of findings in its policy."""
    reading = read_text("policy.json", json.dumps(value), positioned=dialects.reads)
    assert len(reading.documents) + len(reading.reporter.errors) > 0
    for one in filter(dialects.is_policy, reading.documents):
        reporter = Reporter()
        policy = dialects.read_policy(one, settings, reporter)
        assert (policy is None) == bool(reporter.errors)
        assert all(found.span is not None and found.help and render(found) for found in reporter)
        return len(reporter.diagnostics)
    return 0


@pytest.mark.parametrize("settings", [SIDECAR, AMBIENT], ids=["sidecar", "ambient"])
@pytest.mark.parametrize("form", MAXIMAL)
def test_there_is_a_policy_or_there_is_a_reason(form: str, settings: Settings) -> None:
    node = document(manifest(form, MAXIMAL[form])).node
    assert node is not None
    whole = node.plain()
    for path in paths(whole):
        read(changed(whole, path), settings)
    for path, wrong in trace_some(product(paths(whole), WRONG)):
        findings = read(changed(whole, path, wrong), settings)
        assert findings <= 1 or isinstance(wrong, dict) or settings is AMBIENT
