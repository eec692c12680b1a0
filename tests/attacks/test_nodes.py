"""One wrong node in a valid manifest always leads to an error with a code, or to an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster.question import Question
from eastgate.settings import Settings
from tests.attacks.nodes import REPLACEMENTS, UNREAD, WORLDS, World, outcomes, places, replaced, worlds_in


@st.composite
def _tries(draw: st.DrawFn) -> tuple[World, int, Any]:
    path = draw(st.sampled_from(WORLDS))
    world = draw(st.sampled_from([*worlds_in(path), UNREAD]))
    number = draw(st.integers(0, len(world.objects) - 1))
    place = draw(st.sampled_from([*places(world.objects[number])]))
    by = draw(st.sampled_from(REPLACEMENTS))
    return world, number, replaced(world.objects[number], place, by)


@pytest.mark.untraced
@settings(max_examples=60)
@given(_tries())
def test_no_node_in_the_place_of_another_is_a_crash(tried: tuple[World, int, Any]) -> None:
    assert all(outcomes(*tried))


@pytest.mark.parametrize("number", range(len(UNREAD.objects)), ids=lambda number: UNREAD.objects[number]["kind"])
def test_no_node_of_an_unread_kind_is_a_crash(number: int) -> None:
    for place in places(UNREAD.objects[number]):
        for by in REPLACEMENTS:
            assert all(outcomes(UNREAD, number, replaced(UNREAD.objects[number], place, by)))


_BLOCK: dict[str, Any] = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "block", "namespace": "shop"},
    "spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": [None]}}]}]},
}
_OF_NO_TYPE: dict[str, Any] = {
    "apiVersion": "gateway.envoyproxy.io/v1alpha1",
    "kind": "SecurityPolicy",
    "metadata": {"name": "odd", "namespace": "shop"},
    "spec": {"targetRef": {"kind": ["Gateway"], "name": "web"}},
}
_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [(_BLOCK, "NetworkPolicy/shop/block cannot be read"), (_OF_NO_TYPE, "EG1310")],
    ids=["a null among exceptions", "a list for the kind of a target"],
)
def test_what_was_found(found: dict[str, Any], expected: str) -> None:
    world = World("found", Settings(), [_POD, found], (Question.of("sa:shop/web", "pod:shop/web"),))
    assert any(expected in each for each in outcomes(world, 1, found)), json.dumps(outcomes(world, 1, found))
