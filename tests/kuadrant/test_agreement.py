"""On generated clusters kuadrant-operator and the oracle have the same effective policies and the same status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from tests.kuadrant.kuadrant_operator import KuadrantOperator
from tests.worlds import kuadrant_paths_generate as generate
from tests.worlds.kuadrant_paths_oracle import Manifest, Rule, Topology, in_order, key_of

pytestmark = pytest.mark.kuadrant


@pytest.fixture(scope="module")
def operator() -> Iterator[KuadrantOperator]:
    running = KuadrantOperator()
    yield running
    running.stop()


def without_empty(value: Any) -> Any:
    """Return a value without empty fields, which Go writes or leaves out depending on the type."""
    if isinstance(value, dict):
        held = {key: without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in held.items() if inner not in ({}, [], "", None, 0, False)}
    return [without_empty(inner) for inner in value] if isinstance(value, list) else value


def value_of(key: str, rule: Rule) -> tuple[Any, str]:
    """Return the content and the source of a rule, the list of a pattern set without its wrapper."""
    value = rule.value
    if key.startswith("patterns#") and isinstance(value, dict):
        value = value["allOf"]
    return without_empty(value), rule.source


@settings(max_examples=1000, deadline=None)
@given(generate.clusters(whole=True))
def test_effective_policies_and_status_agree(operator: KuadrantOperator, manifests: list[Manifest]) -> None:
    topology = Topology(manifests)
    report = operator.report(generate.with_status(manifests))
    expected = {path.identifier: rules for path in topology.paths() if (rules := topology.effective(path)) is not None}
    assert report.paths.keys() == expected.keys()
    for path, rules in expected.items():
        given_rules = {key: value_of(key, rule) for key, rule in report.paths[path].items()}
        assert given_rules == {key: value_of(key, rule) for key, rule in rules.items()}, path
    for policy in topology.policies:
        conditions = [in_order(condition) for condition in report.policies[key_of(policy)]]
        assert conditions == [in_order(condition) for condition in sorted(topology.conditions(policy))], key_of(policy)
