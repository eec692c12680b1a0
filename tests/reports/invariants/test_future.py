"""Workloads that do not exist yet: the imagined ones, and the world that is unchanged afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate import Authority, Question, Settings
from eastgate.cluster import Namespace, Pod, Selector, ends
from eastgate.reports.invariants import StatementStanding, prove
from eastgate.reports.invariants.future import Cover, ImaginedPod, imagine
from eastgate.reports.invariants.model import CallerGroup, CallerSelector, Quantifier, RequestSelector
from tests.reports.invariants.stating import statement, to
from tests.worlds.test_generated_clusters import authority_of

SHOP = Selector.of({"kubernetes.io/metadata.name": "shop"})
NOBODY_ELSE = CallerSelector(CallerGroup(accounts=frozenset({("shop", "web")})))


def policy(name: str, ref: dict[str, Any], account: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "targetRefs": [ref],
            "action": "ALLOW",
            "rules": [{"authorizationSource": {"serviceAccounts": [account]}}],
        },
    }


CLOSED = policy("closed", {"kind": "Pod", "selector": {}}, "shop/web")
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "shop"},
    "spec": {"selector": {"behind": "s"}, "ports": [{"port": 80}]},
}


def world(*more: dict[str, Any]) -> Authority:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "x"}}}
    return authority_of([pod, CLOSED, *more], Settings())


def every(authority: Authority, cover: Cover) -> list[ImaginedPod]:
    return [pod for together in imagine(authority, [cover]) for pod in together]


def labels(authority: Authority, pods: Selector) -> list[dict[str, str]]:
    return [dict(each.pod.labels) for each in every(authority, Cover(pods, SHOP))]


def test_labels_that_policies_select_by() -> None:
    authority = world(policy("q", {"kind": "Pod", "selector": {"matchLabels": {"app": "db"}}}, "shop/db"))
    assert labels(authority, Selector.of()) == [{}, {"app": "db"}]
    assert labels(authority, Selector.of({"app": "web"})) == [{"app": "web"}]


def test_labels_by_which_a_service_selects_that_a_policy_targets() -> None:
    assert labels(world(SERVICE), Selector.of()) == [{}]
    targeted = world(SERVICE, policy("q", {"kind": "Service", "name": "s"}, "shop/db"))
    assert labels(targeted, Selector.of()) == [{}, {"behind": "s"}]


@pytest.mark.parametrize(
    "more",
    [
        (policy("q", {"kind": "Pod", "selector": {"matchLabels": {"app": "db"}}}, "shop/db"),),
        (SERVICE, policy("q", {"kind": "Service", "name": "s"}, "shop/db")),
    ],
)
def test_a_request_that_only_a_future_workload_allows_breaks_a_statement(more: tuple[dict[str, Any], ...]) -> None:
    authority = world(*more)
    stated = statement(Quantifier.ONLY, NOBODY_ELSE, to(Selector.of(), SHOP), RequestSelector())
    finding = prove(authority, stated)
    assert finding.counterexample is not None
    assert finding.counterexample.question.source == ends.ServiceAccount("shop", "db")
    assert finding.counterexample.imagined is not None
    existing = statement(Quantifier.ONLY, NOBODY_ELSE, to(Selector.of(), SHOP), RequestSelector(), include_future=False)
    assert prove(authority, existing).standing is StatementStanding.HOLDS


def test_new_namespaces_have_the_labels_that_cluster_policies_select_by() -> None:
    cluster = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": {"name": "c"},
        "spec": {
            "tier": "Admin",
            "priority": 1,
            "subject": {"namespaceSelector": {"matchLabels": {"env": "test"}}},
            "action": "DENY",
            "rules": [{}],
        },
    }
    authority = world(cluster)
    imagined = every(authority, Cover(Selector.of(), Selector.of()))
    new = [each.namespace for each in imagined if each.namespace is not None]
    assert [(each.name, each.labels.get("env")) for each in new] == [
        ("new-namespace-1", None),
        ("new-namespace-2", "test"),
    ]


def test_a_statement_may_name_a_future_namespace() -> None:
    imagined = every(world(), Cover(Selector.of(), Selector.of({"kubernetes.io/metadata.name": "later"})))
    assert [each.key for each in imagined] == ["later/new-pod-1"]


def test_a_world_is_unchanged_afterwards() -> None:
    authority = world()
    before = dict(authority.world.workloads), authority.world.namespaces_in_use()
    prove(authority, statement(Quantifier.NEVER, NOBODY_ELSE, to(Selector.of()), RequestSelector()))
    assert (dict(authority.world.workloads), authority.world.namespaces_in_use()) == before
    with authority.imagining([Namespace("n"), Pod("n", "p")]):
        assert authority.decide(Question.of("anonymous", "pod:n/p", port=80)).allowed
    assert dict(authority.world.workloads) == before[0]


def test_a_namespace_in_which_there_are_only_policies_may_have_any_labels() -> None:
    in_production = Selector.of({"env": "production"})
    authority = authority_of([CLOSED], Settings())
    stated = statement(
        Quantifier.ALWAYS,
        CallerSelector(CallerGroup(anonymous=True)),
        to(Selector.of(), in_production),
        RequestSelector(),
    )
    finding = prove(authority, stated)
    assert finding.counterexample is not None
    assert finding.counterexample.question.destination == ends.Pod("shop", "new-pod-1")
    assert finding.counterexample.imagined is not None
    assert finding.counterexample.imagined.to_manifests()[0]["metadata"] == {
        "name": "shop",
        "labels": {"env": "production"},
    }


def test_pods_behind_a_service_have_the_ports_that_it_names() -> None:
    service = {**SERVICE, "spec": {"selector": {"behind": "s"}, "ports": [{"port": 80, "targetPort": "http"}]}}
    authority = world(service, policy("q", {"kind": "Service", "name": "s"}, "shop/db"))
    finding = prove(authority, statement(Quantifier.ONLY, NOBODY_ELSE, to(services=("shop/s",)), RequestSelector()))
    assert finding.counterexample is not None
    assert finding.counterexample.question.arguments[:4] == ["--from", "sa:shop/db", "--to", "service:shop/s"]


def test_a_service_without_pods_says_nothing() -> None:
    service = {**SERVICE, "spec": {"ports": [{"port": 80}]}}
    finding = prove(
        world(service), statement(Quantifier.NEVER, NOBODY_ELSE, to(services=("shop/s",)), RequestSelector())
    )
    assert (finding.standing, finding.why) == (
        StatementStanding.NOT_PROVEN,
        "no manifest declares its destinations",
    )
