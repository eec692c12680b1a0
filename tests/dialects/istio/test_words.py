"""Descriptions of policies name the objects in the policies."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster import GATEWAY_GROUP, GatewayNamed, PodsOfService, Selector
from eastgate.dialects.istio.model import PolicyTarget
from eastgate.dialects.istio.targets import targets_of
from eastgate.dialects.istio.words import WORDS
from tests.dialects.istio.planes_building import tokens_policy


def test_a_target_is_found_by_its_whole_name() -> None:
    """A name may be the end of another, and a Service and a Gateway may have one name."""
    refs = (
        PolicyTarget("", "Service", "my-reviews"),
        PolicyTarget("", "Service", "reviews"),
        PolicyTarget(GATEWAY_GROUP, "Gateway", "reviews"),
        PolicyTarget(GATEWAY_GROUP, "GatewayClass", "reviews"),
    )
    policy = replace(tokens_policy("jwt", refs=refs), targets=targets_of("app", Selector.of(), refs, in_root=False))
    assert WORDS.targets is not None
    assert [each.target for each in WORDS.targets(policy) or ()] == [
        PodsOfService("app", "my-reviews"),
        PodsOfService("app", "reviews"),
        GatewayNamed("app", "reviews"),
        None,
    ]
