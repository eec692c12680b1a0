"""Namespaces, targets, addresses, grants, and the reported changes of an update."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import (
    NAME_LABEL,
    Backend,
    BackendNamed,
    ContainerPort,
    Controller,
    Everything,
    ExternalsMatching,
    Gateway,
    GatewayNamed,
    GrantFrom,
    GrantTo,
    HttpProbe,
    LiveWorld,
    Namespace,
    Operator,
    Owner,
    Pod,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    ReferenceGrant,
    Requirement,
    Route,
    Selector,
    Service,
    ServiceAccount,
    Target,
    WorldObject,
)
from tests.cluster.differences import difference

A1, A2 = Pod("a", "one", {"app": "x", "tier": "web"}), Pod("a", "two", {"app": "x"})
A3 = Pod("a", "three", {"tier": "db"})
B1 = Pod("b", "one", {"app": "x"})
PEOPLE: list[WorldObject] = [Namespace("a", {"team": "red"}), A1, A2, B1]


def only(key: str, operator: Operator, *values: str) -> Selector:
    return Selector.of(expressions=[Requirement(key, operator, frozenset(values))])


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        (PodsMatching("a", Selector()), {"a/one", "a/three", "a/two"}),
        (PodsMatching("b", Selector()), {"b/one"}),
        (PodsMatching("nowhere", Selector()), set()),
        (PodsMatching("a", Selector.of({"app": "x"})), {"a/one", "a/two"}),
        (PodsMatching("a", Selector.of({"app": "x", "tier": "web"})), {"a/one"}),
        (PodsMatching("a", Selector.of({"app": "x", "tier": "db"})), set()),
        (PodsMatching("a", only("tier", Operator.NOT_IN, "web")), {"a/three", "a/two"}),
        (PodsMatching("a", only("tier", Operator.DOES_NOT_EXIST)), {"a/two"}),
        (PodsMatching("a", only("tier", Operator.EXISTS)), {"a/one", "a/three"}),
        (PodsMatching("a", only("tier", Operator.IN, "web", "db")), {"a/one", "a/three"}),
        (PodsMatching("a", only("tier", Operator.IN, "web")), {"a/one"}),
        (PodsAcross(Selector(), Selector()), {"a/one", "a/three", "a/two", "b/one"}),
        (Everything(None), {"a/one", "a/three", "a/two", "b/one"}),
        (Everything("b"), {"b/one"}),
        (PodsAcross(Selector.of({"team": "red"}), Selector()), {"a/one", "a/three", "a/two"}),
        (PodsAcross(only("team", Operator.DOES_NOT_EXIST), Selector()), {"b/one"}),
        (PodsAcross(Selector.of({NAME_LABEL: "b"}), Selector()), {"b/one"}),
        (PodsAcross(Selector(), Selector.of({"tier": "web"})), {"a/one"}),
        (PodsAcross(Selector.of({"team": "blue"}), Selector()), set()),
    ],
    ids=lambda value: str(value) if isinstance(value, PodsMatching | PodsAcross) else "",
)
def test_a_target_means_these_workloads(target: Target, keys: set[str]) -> None:
    world = LiveWorld.of([*PEOPLE, A3])
    assert world.select(target) == keys
    assert {key for key, workload in world.workloads.items() if world.target_matches(target, workload)} == keys


MADE: list[WorldObject] = [
    Controller("Deployment", Pod("a", "web", {}, service_account="bot")),
    Controller("StatefulSet", Pod("a", "web")),
    Pod("a", "web-1-x", {"pod-template-hash": "1"}, service_account="bot", owner=Owner("ReplicaSet", "web-1")),
    Pod("a", "web-1", owner=Owner("StatefulSet.example.com", "web")),
    Pod("b", "web", {}, service_account="bot"),
    Controller("CronJob", Pod("b", "nightly")),
]


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        (PodsOwnedBy("a", "Deployment", "web"), {"a/web-1-x"}),
        (PodsOwnedBy("a", "ReplicaSet", "web-1"), {"a/web-1-x"}),
        (PodsOwnedBy("a", "StatefulSet", "web"), {"a/web"}),
        (PodsOwnedBy("a", "StatefulSet.example.com", "web"), {"a/web-1"}),
        (PodsOwnedBy("a", "DaemonSet", "web"), set()),
        (PodsOwnedBy("b", "Deployment", "web"), set()),
        (PodsOwnedBy("b", "CronJob", "nightly"), {"b/nightly"}),
        (PodsOfAccount("a", "bot"), {"a/web-1-x"}),
        (PodsOfAccount("a", "default"), {"a/web", "a/web-1"}),
        (PodsOfAccount("b", "bot"), {"b/web"}),
        (PodsOfAccount("a", "nobody"), set()),
        (PodsOfAccount("nowhere", "default"), set()),
        (PodNamed("a", "web-1"), {"a/web-1"}),
        (PodNamed("a", "web"), set()),
        (PodNamed("b", "web"), {"b/web"}),
        (PodNamed("b", "web-1"), set()),
    ],
    ids=lambda value: "" if isinstance(value, set) else str(value),
)
def test_a_target_means_pods_by_their_controller_their_account_or_their_name(target: Target, keys: set[str]) -> None:
    world = LiveWorld.of(MADE)
    assert world.select(target) == keys
    assert {key for key, workload in world.workloads.items() if world.target_matches(target, workload)} == keys


def test_an_undeclared_namespace_exists_with_the_label_of_its_name() -> None:
    world = LiveWorld.of(PEOPLE)
    assert world.namespace("b") == Namespace("b")
    assert world.namespace("b").labels == {NAME_LABEL: "b"}
    assert world.namespace("a").labels == {NAME_LABEL: "a", "team": "red"}
    assert set(world.namespaces) == {"a"}
    assert world.namespaces_in_use() == ("a", "b")


def test_a_namespace_that_gets_other_labels_or_annotations_changes_its_workloads() -> None:
    world = LiveWorld.of(PEOPLE)
    assert world.put(Namespace("b")).workloads == set()
    assert world.put(Namespace("b", {"team": "red"})).changed == {"b/one"}
    assert world.select(PodsAcross(Selector.of({"team": "red"}), Selector())) == {"a/one", "a/two", "b/one"}
    assert world.put(Namespace("b", {"team": "red"}, {"k": "v"})).changed == {"b/one"}
    assert world.remove(Namespace("a").id).changed == {"a/one", "a/two"}
    assert world.select(PodsAcross(Selector.of({"team": "red"}), Selector())) == {"b/one"}


@pytest.mark.parametrize(
    "after",
    [
        replace(A1, labels={"app": "y"}),
        replace(A1, annotations={"k": "v"}),
        replace(A1, service_account="other"),
        replace(A1, ports=(ContainerPort(80),)),
        replace(A1, ips=("10.0.0.1",)),
        replace(A1, init_ports=(ContainerPort(80),)),
        replace(A1, probes=(HttpProbe(80, "/"),)),
    ],
    ids=["labels", "annotations", "service account", "ports", "addresses", "ports of init containers", "probes"],
)
def test_a_pod_changes_with_anything_that_a_policy_can_see(after: Pod) -> None:
    world = LiveWorld.of(PEOPLE)
    change = world.put(after)
    assert difference(change) == {"changed": ["a/one"]}
    assert change.objects == {A1.id}


def test_a_pod_that_only_moved_in_its_file_has_not_changed_but_is_found_where_it_is() -> None:
    world = LiveWorld.of(PEOPLE)
    span = Span(SourceText("f.yaml", "x"), 1, 1, 1, 2)
    assert not world.put(replace(A1, span=span))
    assert world.workloads["a/one"].span is span


def test_several_changes_at_once_are_reported_as_one() -> None:
    world = LiveWorld.of(PEOPLE)
    other = Pod("a", "three", {"app": "x"})
    service = Service("a", "s", {"app": "x"})
    change = world.update(put=[other, service, A1], remove=[A1.id, A2.id, B1.id])
    assert difference(change) == {
        "added": ["a/three"],
        "removed": ["a/two", "b/one"],
        "changed": ["a/one"],
        "services": ["a/s"],
    }
    assert change.objects == {other.id, service.id, A2.id, B1.id}
    back = world.update(put=[A2, B1], remove=[other.id, service.id])
    assert world.workloads == LiveWorld.of(PEOPLE).workloads
    assert back.workloads == change.workloads


def test_of_two_objects_with_one_name_the_last_counts() -> None:
    assert LiveWorld.of([A1, replace(A1, labels={})]).workloads["a/one"].labels == {}


def test_gateways_routes_and_service_accounts_come_and_go() -> None:
    declared: list[WorldObject] = [Gateway("a", "g"), Route("HTTPRoute", "a", "r"), Route("GRPCRoute", "a", "r")]
    declared.append(ServiceAccount("a", "bot"))
    world = LiveWorld.of(declared)
    assert (list(world.gateways), sorted(world.routes)) == (["a/g"], ["GRPCRoute/a/r", "HTTPRoute/a/r"])
    assert list(world.service_accounts) == ["a/bot"]
    assert set(world.objects) == {d.id for d in declared}
    changed = world.put(Gateway("a", "g", gateway_class="x"))
    assert changed.objects == {declared[0].id}
    assert difference(changed) == {}
    world.update(remove=[d.id for d in declared])
    assert [*world.gateways, *world.routes, *world.service_accounts, *world.objects] == []


def backend(port: int = 80, group: str = "new.example.com") -> Backend:
    return Backend("a", "mcp", "tools", None, port, group=group, kind="XBackend")


def test_a_backend_comes_and_goes_like_a_gateway() -> None:
    world = LiveWorld()
    assert world.put(backend()).objects == {backend().id}
    assert world.backends == {"a/mcp": backend()}
    assert backend().path == "/mcp"
    assert not world.put(backend())
    changed = world.put(backend(8080))
    assert changed.objects == {backend().id}
    assert difference(changed) == {}
    assert world.backends["a/mcp"].port == 8080
    assert world.remove(backend().id).objects == {backend().id}
    assert [*world.backends, *world.objects] == []


def test_of_two_backends_with_one_name_the_first_by_group_counts_whatever_came_first() -> None:
    new, old = backend(), backend(group="old.example.com")
    for order in ([new, old], [old, new]):
        world = LiveWorld.of(order)
        assert world.backends == {"a/mcp": new}
        world.remove(new.id)
        assert world.backends == {"a/mcp": old}


@pytest.mark.parametrize("target", [GatewayNamed("a", "one"), BackendNamed("a", "one")])
def test_a_gateway_and_a_backend_are_no_workloads(target: Target) -> None:
    world = LiveWorld.of([*PEOPLE, Gateway("a", "one")])
    assert world.select(target) == frozenset()
    assert not any(world.target_matches(target, workload) for workload in world.workloads.values())


def test_a_target_says_what_it_is() -> None:
    assert str(GatewayNamed("a", "one")) == "Gateway a/one"
    assert str(BackendNamed("a", "one")) == "Backend a/one"
    assert str(PodsOfService("a", "one")) == "pods of Service a/one"
    assert str(PodsOwnedBy("a", "Deployment", "one")) == "pods of Deployment a/one"
    assert str(PodsOfAccount("a", "one")) == "pods of ServiceAccount a/one"
    assert str(PodNamed("a", "one")) == "Pod a/one"
    assert str(ExternalsMatching("a", Selector.of({"app": "x"}))) == "external workloads {app: x} in a"


def test_a_pod_is_found_by_its_address_in_any_spelling() -> None:
    world = LiveWorld.of([replace(A1, ips=("10.0.0.1", "fd00::1")), replace(A2, ips=("fd00:0::2",))])
    found = {
        ip: world.by_ip(ip) for ip in ("10.0.0.1", "FD00:0:0::1", "fd00::2", "::ffff:10.0.0.1", "10.0.0.2", "x", "")
    }
    assert {ip: w.key if w else None for ip, w in found.items()} == {
        "10.0.0.1": "a/one",
        "FD00:0:0::1": "a/one",
        "fd00::2": "a/two",
        "::ffff:10.0.0.1": "a/one",
        "10.0.0.2": None,
        "x": None,
        "": None,
    }


def test_an_address_that_two_pods_claim_belongs_to_neither() -> None:
    one, two = replace(A1, ips=("10.0.0.1",)), replace(A2, ips=("10.0.0.1",))
    world = LiveWorld.of([one, two])
    assert world.by_ip("10.0.0.1") is None
    world.remove(one.id)
    assert world.by_ip("10.0.0.1") == world.workloads["a/two"]
    world.remove(two.id)
    assert world.by_ip("10.0.0.1") is None


GRANT = ReferenceGrant(
    "backends",
    "g",
    (GrantFrom("gw", "HTTPRoute", "shop"), GrantFrom("gw", "TCPRoute", "shop")),
    (GrantTo("", "Service", "web"), GrantTo("", "Secret")),
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (("gw", "HTTPRoute", "shop", "", "Service", "shop", "any"), True),
        (("gw", "HTTPRoute", "shop", "", "Service", "backends", "web"), True),
        (("gw", "TCPRoute", "shop", "", "Service", "backends", "web"), True),
        (("gw", "HTTPRoute", "shop", "", "Service", "backends", "other"), False),
        (("gw", "HTTPRoute", "shop", "", "Secret", "backends", "any"), True),
        (("gw", "HTTPRoute", "shop", "x", "Service", "backends", "web"), False),
        (("gw", "HTTPRoute", "shop", "", "ConfigMap", "backends", "web"), False),
        (("gw", "GRPCRoute", "shop", "", "Service", "backends", "web"), False),
        (("other", "HTTPRoute", "shop", "", "Service", "backends", "web"), False),
        (("gw", "HTTPRoute", "evil", "", "Service", "backends", "web"), False),
        (("gw", "HTTPRoute", "shop", "", "Service", "elsewhere", "web"), False),
    ],
)
def test_a_reference_across_namespaces_needs_a_grant(
    question: tuple[str, str, str, str, str, str, str], expected: bool
) -> None:
    world = LiveWorld.of([GRANT])
    assert world.granted(*question) is expected
    world.remove(GRANT.id)
    assert world.granted(*question) is (question[2] == question[5])


def test_two_grants_do_not_add_up_to_what_neither_gives() -> None:
    one = ReferenceGrant("b", "one", (GrantFrom("gw", "HTTPRoute", "shop"),), (GrantTo("", "Service", "x"),))
    two = ReferenceGrant("b", "two", (GrantFrom("gw", "HTTPRoute", "blog"),), (GrantTo("", "Service", "y"),))
    world = LiveWorld.of([one, two])
    assert world.granted("gw", "HTTPRoute", "blog", "", "Service", "b", "y")
    assert not world.granted("gw", "HTTPRoute", "shop", "", "Service", "b", "y")
