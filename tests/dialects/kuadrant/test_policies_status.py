"""What the status of an AuthPolicy of today shows."""

from __future__ import annotations

from eastgate import Settings
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.policy import conditions_of
from tests.differential.world import Manifest
from tests.worlds.test_generated_clusters import authority_of

_API = "gateway.networking.k8s.io"
_GATEWAY: Manifest = {
    "apiVersion": f"{_API}/v1",
    "kind": "Gateway",
    "metadata": {"name": "gw", "namespace": "n"},
    "spec": {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
_ROUTE: Manifest = {
    "apiVersion": f"{_API}/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "toys", "namespace": "n"},
    "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "toys", "port": 80}]}]},
}


def _policy(name: str, **metadata: str) -> Manifest:
    return {
        "apiVersion": "kuadrant.io/v1",
        "kind": "AuthPolicy",
        "metadata": {"name": name, "namespace": "n", **metadata},
        "spec": {
            "targetRef": {"group": _API, "kind": "HTTPRoute", "name": "toys"},
            "rules": {"authentication": {"anybody": {"anonymous": {}}}},
        },
    }


def _statuses(*policies: Manifest) -> dict[str, list[tuple[str, str, str]]]:
    cluster = Cluster(authority_of([_GATEWAY, _ROUTE, *policies], Settings()))
    return {
        policy.ref.name: [(each.type, each.status, each.reason) for each in conditions_of(cluster, policy)]
        for policy in cluster.policies
    }


def test_a_policy_that_is_being_deleted_overrides_none_and_has_no_conditions() -> None:
    older = _policy("older", creationTimestamp="2026-01-01T00:00:00Z")
    newer = {"creationTimestamp": "2026-02-01T00:00:00Z"}
    accepted, enforced = ("Accepted", "True", "Accepted"), ("Enforced", "True", "Enforced")
    assert _statuses(older, _policy("newer", **newer)) == {
        "older": [accepted, ("Enforced", "False", "Overridden")],
        "newer": [accepted, enforced],
    }
    deleted = _policy("newer", **newer, deletionTimestamp="2026-03-01T00:00:00Z")
    assert _statuses(older, deleted) == {"older": [accepted, enforced], "newer": []}
