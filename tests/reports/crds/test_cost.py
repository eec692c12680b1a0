"""No rule costs an API server more than its limits: for the definition, and for an object."""

from __future__ import annotations

import pytest

from eastgate.reports.crds import definitions
from tests.reports.crds.cost import Schema, rules

ONE_RULE = 10_000_000
ONE_DEFINITION = 100_000_000
ONE_EVALUATION = 1_000_000

SCHEMAS = {
    f"{one['spec']['names']['kind']} {version['name']}": version["schema"]["openAPIV3Schema"]
    for one in definitions()
    for version in one["spec"]["versions"]
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_api_server_can_afford_every_rule(schema: Schema) -> None:
    costs = {rule.text: rule.times * rule.cost for rule in rules(schema)}
    assert {rule: cost for rule, cost in costs.items() if cost > ONE_RULE} == {}
    assert sum(rule.times * rule.cost for rule in rules(schema)) < ONE_DEFINITION


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_no_object_is_too_large_for_a_rule(schema: Schema) -> None:
    spent = {rule.text: rule.spent for rule in rules(schema)}
    assert {rule: cost for rule, cost in spent.items() if cost > ONE_EVALUATION} == {}
