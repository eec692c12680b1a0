"""Native policies on a real API server: they follow their source, and no other object changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from eastgate import Settings
from eastgate.authority.sources.source import ClusterSource
from eastgate.convert.native import NativeMesh, NativePlan, NativeState, NativeWriter, Unwritable, wanted
from eastgate.convert.native.model import SOURCE_UID
from eastgate.reading.kubernetes import connect
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

ISTIO = "authorizationpolicies.security.istio.io"
LINKERD = (
    "servers.policy.linkerd.io,httproutes.policy.linkerd.io,meshtlsauthentications.policy.linkerd.io,"
    "authorizationpolicies.policy.linkerd.io"
)
GEP = "authorizationpolicies.gateway.networking.x-k8s.io"
_DENIES = Settings.from_mapping({"linkerdDefaultPolicy": "deny"})


def policy(namespace: str, action: str, name: str = "cart", **spec: Any) -> dict[str, Any]:
    rule = {"authorizationSource": {"serviceAccounts": ["web"]}, "networkAttributes": {"ports": [8080]}}
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "cart"}}}],
            "action": action,
            "rules": [rule],
            **spec,
        },
    }


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    api_server.install("eastgate", "istio", "linkerd")
    return api_server


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    name = server.namespace("native")
    yield name
    for kinds in (GEP, ISTIO, LINKERD):
        server.kubectl("delete", kinds, "--all", "-n", name)


def reconcile(
    server: ApiServer,
    namespace: str,
    mesh: NativeMesh = NativeMesh.ISTIO,
    chosen: Settings | None = None,
    unwritable: Unwritable = Unwritable.LEAVE,
) -> NativePlan:
    """Do once the steps of the controller after each change."""

    async def run() -> NativePlan:
        async with (
            connect(server.kubeconfig) as connection,
            ClusterSource(connection, chosen or Settings(), namespace=namespace) as source,
        ):
            plan = wanted(source.authority, mesh, unwritable=unwritable)
            assert await NativeWriter(connection).write(plan) == []
            return plan

    return asyncio.run(run())


def natives(server: ApiServer, namespace: str, kinds: str = ISTIO) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in server.get(kinds, "-n", namespace)["items"]}


def uids(objects: dict[str, Any]) -> dict[str, str]:
    return {name: item["metadata"]["uid"] for name, item in objects.items()}


def test_a_policy_of_istio_follows_its_source(server: ApiServer, namespace: str) -> None:
    server.apply(policy(namespace, "ALLOW"))
    source = server.get(GEP, "cart", "-n", namespace)
    reconcile(server, namespace)
    (native,) = natives(server, namespace).values()
    assert native["spec"]["action"] == "ALLOW"
    assert native["spec"]["selector"] == {"matchLabels": {"app": "cart"}}
    metadata = native["metadata"]
    assert metadata["labels"][SOURCE_UID] == source["metadata"]["uid"]
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == [source["metadata"]["uid"]]
    first = uids(natives(server, namespace))
    reconcile(server, namespace)
    assert uids(natives(server, namespace)) == first  # nothing is written twice
    assert natives(server, namespace)[metadata["name"]]["metadata"]["generation"] == 1

    server.apply(policy(namespace, "DENY"))
    reconcile(server, namespace)
    actions = sorted(item["spec"]["action"] for item in natives(server, namespace).values())
    assert actions == ["ALLOW", "DENY"]  # with an ALLOW of nothing
    assert not first.keys() & natives(server, namespace).keys()

    server.kubectl("delete", GEP, "cart", "-n", namespace)
    reconcile(server, namespace)
    assert natives(server, namespace) == {}


def test_policies_of_linkerd_follow_their_source(server: ApiServer, namespace: str) -> None:
    server.apply(policy(namespace, "ALLOW"), policy(namespace, "ALLOW", "more", rules=[{}]))
    reconcile(server, namespace, NativeMesh.LINKERD, _DENIES)
    kinds = sorted(item["kind"] for item in natives(server, namespace, LINKERD).values())
    assert kinds == ["AuthorizationPolicy", "MeshTLSAuthentication", "Server"]
    first = natives(server, namespace, LINKERD)
    reconcile(server, namespace, NativeMesh.LINKERD, _DENIES)
    again = natives(server, namespace, LINKERD)
    versions = [{name: item["metadata"]["resourceVersion"] for name, item in each.items()} for each in (first, again)]
    assert versions[0] == versions[1]
    server.apply(policy(namespace, "ALLOW", rules=[{"networkAttributes": {"ports": [8080]}}]))
    reconcile(server, namespace, NativeMesh.LINKERD, _DENIES)
    changed = natives(server, namespace, LINKERD)
    assert sorted(item["kind"] for item in changed.values()) == ["AuthorizationPolicy", "Server"]
    reconcile(server, namespace)  # the other mesh
    assert natives(server, namespace, LINKERD) == {}
    assert len(natives(server, namespace)) == 2


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"rules": [{}]}},
        {"metadata": {"annotations": {"istio.io/dry-run": "true"}}},
        {"metadata": {"labels": {"istio.io/rev": "other"}}},
        {"spec": {"selector": None}},
    ],
    ids=["rules", "dry run", "revision", "selector"],
)
def test_an_edit_is_put_back(server: ApiServer, namespace: str, patch: dict[str, Any]) -> None:
    server.apply(policy(namespace, "ALLOW"))
    reconcile(server, namespace)
    ((name, before),) = natives(server, namespace).items()
    server.kubectl("patch", ISTIO, name, "-n", namespace, "--type=merge", "-p", json.dumps(patch))
    reconcile(server, namespace)
    ((_, restored),) = natives(server, namespace).items()
    assert restored["spec"] == before["spec"]
    for field in ("labels", "annotations", "ownerReferences", "uid"):
        assert restored["metadata"][field] == before["metadata"][field]


def test_what_is_not_ours_is_never_touched(server: ApiServer, namespace: str) -> None:
    server.apply(policy(namespace, "ALLOW"))
    reconcile(server, namespace)
    ((name, ours),) = natives(server, namespace).items()
    metadata = {"namespace": namespace, "labels": ours["metadata"]["labels"]}
    spec = {"selector": {"matchLabels": {"app": "other"}}, "action": "DENY", "rules": [{}]}
    kind = {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "spec": spec}
    plain = {**kind, "metadata": {"name": "by-hand", "namespace": namespace}}
    claimed = {**kind, "metadata": {**metadata, "name": "claimed"}}  # labels alone do not mark an object as Eastgate's
    server.apply(plain, claimed)
    before = uids(natives(server, namespace))
    reconcile(server, namespace)
    assert uids(natives(server, namespace)) == before

    # An object of Eastgate without its label belongs to the user. While its content is right, no other one is needed.
    server.kubectl("label", ISTIO, name, "-n", namespace, f"{SOURCE_UID}-")
    (outcome,) = reconcile(server, namespace).outcomes
    assert outcome.state is NativeState.COVERED
    assert uids(natives(server, namespace)) == before
    server.kubectl("delete", GEP, "cart", "-n", namespace)
    reconcile(server, namespace)
    assert uids(natives(server, namespace)) == before


def test_what_cannot_be_written_closes_its_pods(server: ApiServer, namespace: str) -> None:
    hard = {"matchLabels": {"app": "cart"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
    targets = [{"kind": "Pod", "selector": hard}]
    everybody = [{"networkAttributes": {"ports": [8080]}}]
    server.apply(policy(namespace, "ALLOW", rules=everybody), policy(namespace, "DENY", "hard", targetRefs=targets))
    left = reconcile(server, namespace)
    assert left.is_wider
    assert [item["spec"]["action"] for item in natives(server, namespace).values()] == ["ALLOW"]
    plan = reconcile(server, namespace, unwritable=Unwritable.CLOSE)
    assert not plan.is_wider
    assert [str(outcome.state) for outcome in plan.outcomes] == ["Written", "Closed"]
    assert [loss.code.id for loss in plan.outcomes[1].losses] == ["EG7101"]
    specs = [item["spec"] for item in natives(server, namespace).values()]
    closing = {"selector": {"matchLabels": {"app": "cart"}}, "action": "DENY", "rules": [{}]}
    assert closing in specs
