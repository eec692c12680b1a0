"""The model of cost agrees with a real API server.

A server reports a cost only if it is too high, and to six digits only if it is less than half too high. So each rule is
put into a list with enough entries to make it a little too expensive.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.programs import ApiServer
from tests.reports.crds.cost import Rule, Schema, rules
from tests.reports.crds.test_cost import ONE_RULE, SCHEMAS

pytestmark = pytest.mark.apiserver

_PLURAL, _GROUP = "costs", "measured.test"


def without_rules(schema: Any) -> Any:
    """Return the same sizes without any rules."""
    match schema:
        case list():
            return [without_rules(inner) for inner in schema]
        case dict():
            return {name: without_rules(inner) for name, inner in schema.items() if name != "x-kubernetes-validations"}
        case _:
            return schema


def multiplied(rule: Rule) -> tuple[Schema, int]:
    """Return the list that makes a rule too expensive, and its cost in the model."""
    times = ONE_RULE * 5 // 4 // rule.cost
    item = without_rules(rule.schema) | {"x-kubernetes-validations": [{"rule": rule.text}]}
    return {"type": "array", "maxItems": times, "items": item}, times * rule.cost


def definition(properties: Schema) -> Schema:
    schema = {"type": "object", "properties": properties}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Cluster",
            "names": {"kind": "Cost", "plural": _PLURAL},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_the_estimate_is_the_servers(schema: Schema, api_server: ApiServer) -> None:
    expected, properties = {}, {}
    for number, rule in enumerate(rules(schema)):
        properties[f"rule{number}"], expected[number] = multiplied(rule)
    if not expected:
        pytest.skip("there is no rule")
    told = api_server.kubectl(
        "create", "--dry-run=server", "-f", "-", stdin=json.dumps(definition(properties)), fails=True
    )
    found = re.findall(r"\[rule(\d+)\]\.items\.x-kubernetes-validations.*?budget by factor of ([\d.]+)x", told)
    assert {int(number): pytest.approx(float(factor) * ONE_RULE, abs=6) for number, factor in found} == expected
