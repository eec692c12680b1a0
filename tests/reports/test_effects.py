"""The policies that affect a workload are compared by group and kind, even if other objects have the same name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.authority.authority import programs_of
from eastgate.cluster import GATEWAY_GROUP
from eastgate.ir import Outcome, PolicyRef, Request
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT, SERVICE
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.tables import effect_of
from tests.dialects.linkerd.cluster import gateway_route, pod, route, server
from tests.dialects.linkerd.reading import authority
from tests.worlds import linkerd_generate
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest
from tests.worlds.test_generated_clusters import authority_of, every_request, situations
from tests.worlds.test_generated_linkerd import compared, request_of

GROUP = "policy.linkerd.io"
OF_LINKERD = PolicyRef("HTTPRoute", "shop", "api", GROUP)
OF_GATEWAY_API = PolicyRef("HTTPRoute", "shop", "api", GATEWAY_GROUP)


@pytest.mark.parametrize(
    ("routes", "linkerd", "gateway_api"),
    [
        (route("api", "/api"), "enforced", "none"),
        (gateway_route("api", "/api"), "none", "enforced"),
        (route("api", "/api", server="other") + gateway_route("api", "/api"), "none", "enforced"),
        (route("api", "/api") + gateway_route("api", "/api", server="other"), "enforced", "none"),
        (route("api", "/api") + gateway_route("api", "/api"), "enforced", "enforced"),
    ],
)
def test_of_two_routes_with_one_name_the_attached_one_is_enforced(routes: str, linkerd: str, gateway_api: str) -> None:
    cluster = Cluster(authority(pod() + server() + routes))
    assert effect_of(cluster, OF_LINKERD, "shop/web") == linkerd
    assert effect_of(cluster, OF_GATEWAY_API, "shop/web") == gateway_api
    policies = {policy.ref: policy for policy in cluster.policies}
    if OF_LINKERD in policies:
        affected = ["shop/web"] if linkerd == "enforced" else []
        assert cluster.affected(policies[OF_LINKERD]) == affected
        assert cluster.affected_counts[OF_LINKERD] == len(affected)


def test_a_server_is_enforced_on_pods_with_its_port() -> None:
    cluster = Cluster(authority(pod() + server() + server("later", metadata="creationTimestamp: 2024-01-01T00:00:00Z")))
    owners = [
        name
        for name in ("web", "later")
        if effect_of(cluster, PolicyRef("Server", "shop", name, GROUP), "shop/web") == "enforced"
    ]
    assert owners == ["web"]


# Removing a policy


def _decisions(cluster: Cluster, key: str, requests: list[Request]) -> list[Outcome]:
    program = programs_of(cluster.authority).program(key)
    return [program.outcome(program.decide(request)) for request in requests]


def _check_removals(manifests: list[Manifest], chosen: Settings, requests: list[Request]) -> None:
    """Remove each policy. If any decision changes, the policy must have been shown as enforced there."""
    cluster = Cluster(authority_of(manifests, chosen))
    for policy in cluster.policies:
        without = Cluster(authority_of(manifests, chosen))
        without.authority.update(remove=[policy.ref])
        for key in cluster.authority.world.workloads:
            before, after = (_decisions(one, key, requests) for one in (cluster, without))
            changed = [one.allowed for one in before] != [one.allowed for one in after]
            assert not changed or policy.ref in cluster.effects(key).enforced, (str(policy.ref), key)


@settings(max_examples=40, deadline=None)
@given(situations())
def test_a_policy_is_enforced_if_its_removal_changes_a_decision(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    _check_removals(
        manifests,
        chosen,
        [
            Request({IDENTITY: identity, PORT: port, METHOD: method, PATH: path, SERVICE: service})
            for identity, port, method, path in every_request()
            for service in (None, "a/s0")
        ],
    )


@settings(max_examples=40, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    linkerd_generate.calls,
)
def test_a_linkerd_resource_is_enforced_if_its_removal_changes_a_decision(
    pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str, calls: list[Call]
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default})
    asked = [request_of(call, chosen.data_plane) for call in compared(calls, chosen.data_plane)]
    _check_removals([namespace, *pods, *resources], chosen, asked)
