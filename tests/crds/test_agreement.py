"""What Eastgate rejects, an API server with our definitions and admission policies refuses; what it accepts, it takes.

Both are held against every policy in the tree. What an API server cannot know is listed here, and nowhere else.
"""

from __future__ import annotations

import pytest

from eastgate.crds import admission_policies, definitions
from eastgate.diagnostics import Diagnostic
from eastgate.dialects.kuadrant import GROUP as KUADRANT
from eastgate.schema import codes
from eastgate.settings import MeshMode
from tests.crds.api_server import refusals, used_rules
from tests.crds.corpus import Sample, samples

# What the API server has done away with, or has checked itself, before our rules see the object.
GONE = {
    "null": "a null is dropped while the object is decoded",
    "beside spec": "fields of the resource beside `spec` are dropped (kubectl refuses them, unless told not to)",
    "metadata": "names, labels and other metadata are the API server's own to check",
}


def excuse(error: Diagnostic, sample: Sample) -> str | None:
    """Why an API server may take what has this error."""
    if error.code is codes.NULL_VALUE:
        return GONE["null"]
    if error.code is codes.UNKNOWN_FIELD and error.span in [sample.node.key_span(key) for key in sample.node.keys]:
        return GONE["beside spec"]
    metadata = sample.node.get("metadata")
    if metadata is None or error.span is None or error.code is codes.BAD_MODE:
        return None
    first, last = (metadata.line, metadata.column), (metadata.end_line, metadata.end_column)
    return GONE["metadata"] if first <= (error.span.line, error.span.column) < last else None


def is_translated(sample: Sample) -> bool:
    """The demands of AuthPolicy are in Python only, but for types: its rules have no CEL beside them yet."""
    return not sample.manifest["apiVersion"].startswith(f"{KUADRANT}/")


def told(sample: Sample, found: list[str]) -> str:
    return f"{sample.name}: Eastgate says {[str(error) for error in sample.errors]}, the API server {found}"


def test_there_is_something_to_compare() -> None:
    good = [sample for sample in samples() if not sample.errors]
    assert len(good) > 500
    assert len(samples()) - len(good) > 500


def test_what_eastgate_rejects_an_api_server_refuses() -> None:
    taken = [
        told(sample, found)
        for sample in samples()
        if is_translated(sample) and any(excuse(error, sample) is None for error in sample.errors)
        if not (found := refusals(sample.manifest, sample.mode))
    ]
    assert taken == []


# A list of several targets in v1alpha1, whose Go type has one (ruling 5): a file may hold it, an API server does not.
ONLY_IN_FILES = ("conformance/AuthorizationPolicyCoreFeatures/provisional.yaml",)


def test_what_eastgate_accepts_an_api_server_takes() -> None:
    refused = [
        told(sample, found)
        for sample in samples()
        if not sample.errors and (found := refusals(sample.manifest, sample.mode))
        if not (sample.name.startswith(ONLY_IN_FILES) and isinstance(sample.manifest["spec"]["targetRefs"], list))
    ]
    assert refused == []


@pytest.mark.parametrize("why", GONE)
def test_every_excuse_is_needed(why: str) -> None:
    needed = [
        sample
        for sample in samples()
        if sample.errors and {excuse(error, sample) for error in sample.errors} == {GONE[why]}
        if not refusals(sample.manifest, sample.mode)
    ]
    assert needed


def all_rules() -> set[str]:
    """Every CEL rule that is written into a definition or an admission policy."""

    def within(value: object) -> list[str]:
        if isinstance(value, list):
            return [rule for one in value for rule in within(one)]
        if not isinstance(value, dict):
            return []
        own = [value[key] for key in ("rule", "expression") if isinstance(value.get(key), str)]
        return own + [rule for one in value.values() for rule in within(one)]

    return {rule for made in (definitions(), *map(admission_policies, MeshMode)) for rule in within(made)}


def test_every_rule_refuses_something_and_takes_something() -> None:
    for sample in samples():
        refusals(sample.manifest, sample.mode)
    assert {rule for rule in all_rules() if used_rules.get(rule) != {True, False}} == set()
