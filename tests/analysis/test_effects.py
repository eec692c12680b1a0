"""Which policies affect a workload: compared by group and kind, whatever else has the same name."""

from __future__ import annotations

import pytest

from eastgate.analysis.cluster import Cluster
from eastgate.analysis.describing.tables import effect_of
from eastgate.policy import PolicyRef
from eastgate.world import GATEWAY_GROUP
from tests.dialects.linkerd.cluster import gateway_route, pod, route, server
from tests.dialects.linkerd.reading import authority

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
def test_of_two_routes_with_one_name_those_are_enforced_that_are_attached(
    routes: str, linkerd: str, gateway_api: str
) -> None:
    cluster = Cluster(authority(pod() + server() + routes))
    assert effect_of(cluster, OF_LINKERD, "shop/web") == linkerd
    assert effect_of(cluster, OF_GATEWAY_API, "shop/web") == gateway_api
    policies = {policy.ref: policy for policy in cluster.policies}
    if OF_LINKERD in policies:
        affected = ["shop/web"] if linkerd == "enforced" else []
        assert cluster.affected(policies[OF_LINKERD]) == affected
        assert cluster.affected_counts[OF_LINKERD] == len(affected)


def test_a_server_is_enforced_on_the_pods_whose_port_it_owns() -> None:
    cluster = Cluster(authority(pod() + server() + server("later", metadata="creationTimestamp: 2024-01-01T00:00:00Z")))
    owners = [
        name
        for name in ("web", "later")
        if effect_of(cluster, PolicyRef("Server", "shop", name, GROUP), "shop/web") == "enforced"
    ]
    assert owners == ["web"]
