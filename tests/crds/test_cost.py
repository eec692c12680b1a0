"""No rule costs an API server more than it allows, or it would refuse the definition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eastgate.crds import definitions
from tests.crds.cost import LARGEST_REQUEST, Schema, estimated

ONE_RULE = 10_000_000
ONE_DEFINITION = 100_000_000


def rules(schema: Schema, times: int = 1) -> Iterator[tuple[str, int]]:
    """Each rule, and what it may cost in one object: as often as there may be entries around it."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["rule"], times * estimated(rule["rule"], schema)
    for one in schema.get("properties", {}).values():
        yield from rules(one, times)
    if "items" in schema:
        yield from rules(schema["items"], times * schema.get("maxItems", LARGEST_REQUEST))
    if "additionalProperties" in schema:
        yield from rules(schema["additionalProperties"], times * schema.get("maxProperties", LARGEST_REQUEST))


@pytest.mark.parametrize("one", definitions(), ids=lambda one: str(one["spec"]["names"]["kind"]))
def test_an_api_server_can_afford_every_rule(one: Schema) -> None:
    costs = [cost for version in one["spec"]["versions"] for cost in rules(version["schema"]["openAPIV3Schema"])]
    assert [(rule, cost) for rule, cost in costs if cost > ONE_RULE / 2] == []  # the estimate is not theirs
    assert sum(cost for _, cost in costs) < ONE_DEFINITION / 2
