"""An API server with our definitions and admission policies refuses the manifests that Eastgate rejects, and accepts
the others.

Both are compared on every policy in the repository. The exceptions, which an API server cannot know, are listed here
only.
"""

from __future__ import annotations

import re

import pytest

from eastgate.basics.diagnostics import Diagnostic
from eastgate.dialects.kuadrant.proposal import GROUP as KUADRANT
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import codes
from eastgate.reports.crds import admission_policies, definitions
from eastgate.settings import MeshMode
from tests.reports.crds.api_server import refusals, used_rules
from tests.reports.crds.corpus import ROOT, Sample, samples

# The reasons why an API server may accept a manifest that Eastgate rejects. docs/reference/crds.md has the same list.
GONE = {
    "metadata": "names, labels and other metadata are the API server's own to check",
    "expressions": "regular expressions, CEL and Rego are checked by who evaluates them",
    "either style": "sections of an auth scheme that are a list or a mapping have no type",
    "many fields": "unknown fields of an auth scheme are kept and not counted: there are too many known ones",
    "by value": "whether something may stand in an auth scheme depends on the value of something else",
}
_BY_CODE = {
    **dict.fromkeys(("EG5107", "EG5109", "EG5110"), "expressions"),
    **dict.fromkeys(("EG5101", "EG5104", "EG5115", "EG5131"), "by value"),
}


def excuse(error: Diagnostic, sample: Sample) -> str | None:
    """Return the reason why an API server may accept a manifest with this error."""
    why = _excuse(error, sample)
    return GONE[why] if why is not None else None


def _excuse(error: Diagnostic, sample: Sample) -> str | None:
    node, is_unknown = sample.node, error.code is codes.UNKNOWN_FIELD
    if error.code is not codes.BAD_MODE and _is_in(error, node.get("metadata")):
        return "metadata"
    if sample.manifest["apiVersion"].startswith(f"{KUADRANT}/"):
        alone = (node.get("spec") or node).get("authScheme")
        schemes = [*node.nearest("spec", "authSchemes"), *([alone] if alone is not None else [])]
        if error.code.id in _BY_CODE:
            return _BY_CODE[error.code.id]
        if any(_is_in(error, scheme.get(name)) for scheme in schemes for name in _EITHER_STYLE):
            return "either style"
        if is_unknown and any(_is_in(error, scheme) for scheme in schemes):
            return "many fields"
    return None


_EITHER_STYLE = ("metadata", "authorization", "response")


def _is_in(error: Diagnostic, node: Node | None) -> bool:
    if node is None or error.span is None:
        return False
    first, last = (node.line, node.column), (node.end_line, node.end_column)
    return first <= (error.span.line, error.span.column) < last


def told(sample: Sample, found: list[str]) -> str:
    return f"{sample.name}: Eastgate says {[str(error) for error in sample.errors]}, the API server {found}"


def test_there_is_something_to_compare() -> None:
    good = [sample for sample in samples() if not sample.errors]
    assert len(good) > 500
    assert len(samples()) - len(good) > 500


def test_an_api_server_refuses_the_manifests_that_eastgate_rejects() -> None:
    taken = [
        told(sample, found)
        for sample in samples()
        if any(excuse(error, sample) is None for error in sample.errors)
        if not (found := refusals(sample.manifest, sample.mode))
    ]
    assert taken == []


# A list of several targets in v1alpha1, whose Go type has one (ruling 5): a file may have it, an API server does not.
ONLY_IN_FILES = ("conformance/AuthorizationPolicyCoreFeatures/provisional.yaml",)


def is_only_in_files(sample: Sample) -> bool:
    """Return whether an API server may refuse it: several targets of v1alpha1."""
    return sample.name.startswith(ONLY_IN_FILES) and isinstance(sample.manifest["spec"]["targetRefs"], list)


def test_an_api_server_accepts_the_manifests_that_eastgate_accepts() -> None:
    refused = [
        told(sample, found)
        for sample in samples()
        if not sample.errors and (found := refusals(sample.manifest, sample.mode))
        if not is_only_in_files(sample)
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


def test_every_exception_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "reference" / "crds.md").read_text(encoding="utf-8")
    told = {f"EG{number}" for number in re.findall(r"EG(\d{4})", page)}
    told |= {
        f"EG{number}"
        for first, last in re.findall(r"EG(\d{4}) to EG(\d{4})", page)
        for number in range(int(first), int(last) + 1)
    }
    taken = [sample for sample in samples() if sample.errors and not refusals(sample.manifest, sample.mode)]
    errors = [error for sample in taken for error in sample.errors if excuse(error, sample) != GONE["metadata"]]
    assert {error.code.id for error in errors} - told == set()


def all_rules() -> set[str]:
    """Yield every CEL rule of a definition or an admission policy."""

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
