"""JSON Schemas for editors: they accept valid manifests, and refuse the errors that a schema can see."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from jsonschema import Draft7Validator

from eastgate.reports.crds import combine_schemas, editor_schemas
from tests.reports.crds.corpus import samples


@cache
def validator() -> Any:
    return Draft7Validator(combine_schemas(editor_schemas()))


def test_nothing_good_is_underlined() -> None:
    wrong = [
        f"{sample.name}: {found[0].message}"
        for sample in samples()
        if not sample.errors and (found := _underlined(sample.node.plain()))
    ]
    assert wrong == []


def _underlined(plain: object) -> list[Any]:
    """Return all errors in an editor except nulls: where a policy may have a null, it should leave the field out."""
    return [error for error in validator().iter_errors(plain) if error.instance is not None]


def policy(**spec: object) -> dict[str, object]:
    good = {"targetRefs": [{"kind": "Pod", "selector": {}}], "action": "ALLOW"}
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "p"},
        "spec": good | spec,
    }


BAD = {
    "an unknown field": policy(rule=[]),
    "a misspelt selector": policy(targetRefs=[{"kind": "Pod", "selector": {"matchExpression": []}}]),
    "an action in small letters": policy(action="allow"),
    "a port out of range": policy(rules=[{"networkAttributes": {"ports": [0]}}]),
    "every service account": policy(rules=[{"authorizationSource": {"serviceAccounts": ["*"]}}]),
    "a path that is not one": policy(rules=[{"applicationAttributes": {"paths": ["/a/../b"]}}]),
    "an unknown mode": policy() | {"metadata": {"name": "p", "annotations": {"eastgate.dev/mode": "dry-run"}}},
    "no name": policy() | {"metadata": {}},
}


@pytest.mark.parametrize("what", BAD)
def test_an_editor_underlines(what: str) -> None:
    assert list(validator().iter_errors(policy())) == []
    assert list(validator().iter_errors(BAD[what])) != []


def test_other_kinds_are_left_alone() -> None:
    assert list(validator().iter_errors({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {}})) == []
