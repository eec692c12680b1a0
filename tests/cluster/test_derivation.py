"""The workloads of a world: real pods, and derived pods of controllers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from eastgate.cluster import (
    ContainerPort,
    Controller,
    HttpProbe,
    LiveWorld,
    Namespace,
    ObjectId,
    Owner,
    Pod,
    WorldObject,
)
from tests.cluster.differences import difference

D, RS, SS, DS, J, CJ = "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"


def made(kind: str, name: str, owner: tuple[str, str] | None = None, **labels: str) -> Controller:
    return Controller(kind, Pod("a", name, labels), Owner(*owner) if owner else None)


def pod(name: str, owner: tuple[str, str] | None = None, *, finished: bool = False, **labels: str) -> Pod:
    fixed = {key.replace("_", "-"): value for key, value in labels.items()}
    return Pod("a", name, fixed, owner=Owner(*owner) if owner else None, finished=finished)


def summary(objects: Iterable[WorldObject]) -> dict[str, tuple[tuple[str, str], ...]]:
    """The keys of the workloads with their owners; a derived one ends in `*`."""
    workloads = LiveWorld.of(objects).workloads.values()
    return {w.key + ("*" if w.derived else ""): tuple((o.kind, o.name) for o in w.owners) for w in workloads}


CASES: dict[str, tuple[list[WorldObject], dict[str, tuple[tuple[str, str], ...]]]] = {
    "a pod": ([pod("p")], {"a/p": ()}),
    "a Deployment without pods": ([made(D, "web")], {"a/web*": ((D, "web"),)}),
    "every kind derives": (
        [made(kind, kind.lower()) for kind in (D, SS, DS, RS, J, CJ)],
        {f"a/{kind.lower()}*": ((kind, kind.lower()),) for kind in (D, SS, DS, RS, J, CJ)},
    ),
    "a Deployment with its pod, through the ReplicaSet": (
        [made(D, "web"), made(RS, "web-5d", (D, "web")), pod("web-5d-x", (RS, "web-5d"))],
        {"a/web-5d-x": ((RS, "web-5d"), (D, "web"))},
    ),
    "the ReplicaSet is not declared: its name without the hash is the Deployment's": (
        [made(D, "web"), pod("web-5d-x", (RS, "web-5d"), pod_template_hash="5d")],
        {"a/web-5d-x": ((RS, "web-5d"), (D, "web"))},
    ),
    "neither ReplicaSet nor Deployment is declared": (
        [pod("web-5d-x", (RS, "web-5d"), pod_template_hash="5d")],
        {"a/web-5d-x": ((RS, "web-5d"), (D, "web"))},
    ),
    "without the hash label nothing is inferred, and the Deployment derives": (
        [made(D, "web"), pod("web-5d-x", (RS, "web-5d"))],
        {"a/web*": ((D, "web"),), "a/web-5d-x": ((RS, "web-5d"),)},
    ),
    "the hash must be the end of the name": (
        [made(D, "web"), pod("x", (RS, "web-5d"), pod_template_hash="d")],
        {"a/web*": ((D, "web"),), "a/x": ((RS, "web-5d"),)},
    ),
    "a declared ReplicaSet without owner is nobody's, whatever its name": (
        [made(D, "web"), made(RS, "web-5d"), pod("x", (RS, "web-5d"), pod_template_hash="5d")],
        {"a/web*": ((D, "web"),), "a/x": ((RS, "web-5d"),)},
    ),
    "the Deployment speaks for its ReplicaSets": (
        [made(D, "web"), made(RS, "web-1", (D, "web")), made(RS, "web-2", (D, "web"))],
        {"a/web*": ((D, "web"),)},
    ),
    "a ReplicaSet whose Deployment is not declared speaks for itself": (
        [made(RS, "web-1", (D, "web"))],
        {"a/web-1*": ((RS, "web-1"), (D, "web"))},
    ),
    "a ReplicaSet of something foreign speaks for itself": (
        [made(D, "web"), made(RS, "web-1", ("Rollout.argoproj.io", "web"))],
        {"a/web*": ((D, "web"),), "a/web-1*": ((RS, "web-1"), ("Rollout.argoproj.io", "web"))},
    ),
    "only the StatefulSet that has pods derives nothing": (
        [made(SS, "db"), made(SS, "cache"), pod("db-0", (SS, "db"))],
        {"a/cache*": ((SS, "cache"),), "a/db-0": ((SS, "db"),)},
    ),
    "a CronJob speaks for its Jobs": (
        [made(CJ, "nightly"), made(J, "nightly-28", (CJ, "nightly"))],
        {"a/nightly*": ((CJ, "nightly"),)},
    ),
    "a CronJob with its pod, through the Job": (
        [made(CJ, "nightly"), made(J, "nightly-28", (CJ, "nightly")), pod("nightly-28-x", (J, "nightly-28"))],
        {"a/nightly-28-x": ((J, "nightly-28"), (CJ, "nightly"))},
    ),
    "the Job is not declared: the CronJob of that name without the digits": (
        [made(CJ, "nightly"), pod("x", (J, "nightly-28"))],
        {"a/x": ((J, "nightly-28"), (CJ, "nightly"))},
    ),
    "no CronJob of that name: a Job of its own": ([pod("x", (J, "nightly-28"))], {"a/x": ((J, "nightly-28"),)}),
    "the end of the Job's name must be digits": (
        [made(CJ, "nightly"), pod("x", (J, "nightly-2x"))],
        {"a/nightly*": ((CJ, "nightly"),), "a/x": ((J, "nightly-2x"),)},
    ),
    "a declared Job without owner is nobody's, whatever its name": (
        [made(CJ, "nightly"), made(J, "nightly-28"), pod("x", (J, "nightly-28"))],
        {"a/nightly*": ((CJ, "nightly"),), "a/x": ((J, "nightly-28"),)},
    ),
    "controllers of one name have keys of their own, in the order of kinds": (
        [made(CJ, "x"), made(SS, "x"), made(D, "x")],
        {"a/x*": ((D, "x"),), "a/x (StatefulSet)*": ((SS, "x"),), "a/x (CronJob)*": ((CJ, "x"),)},
    ),
    "a controller that derives nothing takes no key": (
        [made(D, "x"), made(SS, "x"), pod("y", (D, "x"))],
        {"a/x*": ((SS, "x"),), "a/y": ((D, "x"),)},
    ),
    "an unrelated pod of the name has the plain key": (
        [made(D, "x"), pod("x")],
        {"a/x": (), "a/x (Deployment)*": ((D, "x"),)},
    ),
    "a pod that bears its controller's name stands for it": ([made(J, "x"), pod("x", (J, "x"))], {"a/x": ((J, "x"),)}),
    "a finished pod is no workload, and its controller derives": (
        [made(J, "x"), pod("x-1", (J, "x"), finished=True), pod("y", finished=True)],
        {"a/x*": ((J, "x"),)},
    ),
    "a foreign owner is kept as it is": (
        [made(SS, "x"), pod("x-0", ("StatefulSet.apps.kruise.io", "x"))],
        {"a/x*": ((SS, "x"),), "a/x-0": (("StatefulSet.apps.kruise.io", "x"),)},
    ),
    "the chain goes on above a Deployment": (
        [made(D, "web", ("Kafka.strimzi.io", "k")), pod("p", (D, "web"))],
        {"a/p": ((D, "web"), ("Kafka.strimzi.io", "k"))},
    ),
    "owners that own each other end somewhere": (
        [made(D, "x", (SS, "y")), made(SS, "y", (D, "x")), pod("p", (D, "x"))],
        {"a/p": ((D, "x"), (SS, "y"))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_workloads_that_follow_in_any_order(case: str) -> None:
    objects, expected = CASES[case]
    for order in permutations(objects) if len(objects) < 5 else [objects]:
        assert summary(order) == expected
        one_by_one = LiveWorld()
        for declared in order:
            one_by_one.put(declared)
        assert one_by_one.workloads == LiveWorld.of(objects).workloads


def test_owners_are_looked_for_in_the_pods_own_namespace_only() -> None:
    elsewhere = Pod("b", "web-0", owner=Owner(SS, "web"))
    assert summary([made(SS, "web"), elsewhere]) == {"a/web*": ((SS, "web"),), "b/web-0": ((SS, "web"),)}


def test_a_derived_workload_is_what_the_template_says() -> None:
    probes, ports = (HttpProbe(80, "/"),), (ContainerPort(1, "setup"),)
    template = Pod("a", "web", {"app": "web"}, {"k": "v"}, "bot", ips=("10.0.0.1",), init_ports=ports, probes=probes)
    found = LiveWorld.of([Controller(D, template)]).workloads["a/web"]
    assert (found.labels, found.annotations, found.service_account) == ({"app": "web"}, {"k": "v"}, "bot")
    assert (found.name, found.derived, found.ips) == ("web", True, ())
    assert (found.init_ports, found.probes) == (ports, probes)
    assert (found.kind, found.is_pod, found.mesh_name) == ("Pod", True, None)


def test_the_derived_workload_goes_when_the_first_pod_comes_and_comes_back_when_the_last_goes() -> None:
    world = LiveWorld.of([Namespace("a"), made(D, "web")])
    one, two = pod("p1", (D, "web")), pod("p2", (D, "web"))
    came = world.put(one)
    assert difference(came) == {"added": ["a/p1"], "removed": ["a/web"]}
    assert world.put(two).workloads == {"a/p2"}
    assert world.remove(one.id).workloads == {"a/p1"}
    went = world.remove(two.id)
    assert difference(went) == {"added": ["a/web"], "removed": ["a/p2"]}


def test_a_key_that_passes_to_another_workload_is_reported_on_both_sides() -> None:
    world = LiveWorld.of([made(SS, "x")])
    change = world.put(made(D, "x"))
    assert difference(change) == {"added": ["a/x (StatefulSet)"], "changed": ["a/x"]}


FIND = [
    ("p", ["a/p"]),
    ("web", ["a/web-1-x", "a/web-2-x"]),
    ("web-1", ["a/web-1-x"]),
    ("db", ["a/db"]),
    ("x", ["a/x"]),
    ("both", ["a/both", "a/both (StatefulSet)"]),
    ("nothing", []),
    ("web-1-x", ["a/web-1-x"]),
]


@pytest.mark.parametrize(("name", "keys"), FIND)
def test_a_workload_is_found_by_its_own_name_or_else_by_an_owners(name: str, keys: list[str]) -> None:
    world = LiveWorld.of(
        [
            pod("p"),
            made(D, "web"),
            pod("web-1-x", (RS, "web-1"), pod_template_hash="1"),
            pod("web-2-x", (RS, "web-2"), pod_template_hash="2"),
            made(SS, "db"),
            pod("x"),
            made(D, "x"),
            made(D, "both"),
            made(SS, "both"),
        ]
    )
    assert [w.key for w in world.find_workloads("a", name)] == keys
    assert world.find_workloads("b", name) == ()


def test_what_is_not_there_can_be_removed_without_effect() -> None:
    world = LiveWorld.of([pod("p")])
    for kind in (
        "Pod",
        D,
        "ExternalWorkload",
        "Service",
        "Namespace",
        "Gateway",
        "HTTPRoute",
        "ReferenceGrant",
        "ServiceAccount",
    ):
        assert not world.remove(ObjectId("", kind, "a", "no"))
