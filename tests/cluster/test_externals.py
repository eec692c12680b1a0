"""A thing outside of the cluster is a workload, and never a pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import (
    ContainerPort,
    Controller,
    ExternalsMatching,
    ExternalWorkload,
    LiveWorld,
    Namespace,
    ObjectId,
    Owner,
    Pod,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    Selector,
    Service,
    Target,
    WorldObject,
)
from tests.cluster.differences import difference
from tests.cluster.manifests import errors, read

VERSION = "workload.linkerd.io/v1beta1"
MESH_NAME = "vm.mesh.example.com"
VM = ExternalWorkload("a", "vm", MESH_NAME, {"app": "x"}, ips=("192.0.2.1",))
PLAIN, KEYED = "a/vm", "a/vm (ExternalWorkload)"


def test_an_external_workload() -> None:
    found = read(
        VERSION,
        "ExternalWorkload",
        "vm",
        "a",
        metadata={"labels": {"app": "x"}, "annotations": {"k": "v"}},
        spec={
            "meshTLS": {"identity": MESH_NAME, "serverName": "vm.example.com"},
            "ports": [{"port": 80, "name": "http"}, {"port": 53, "protocol": "UDP"}],
            "workloadIPs": [{"ip": "FD00::0:1"}, {}],
        },
    )
    assert found == ExternalWorkload(
        "a",
        "vm",
        MESH_NAME,
        {"app": "x"},
        {"k": "v"},
        (ContainerPort(80, "http"), ContainerPort(53, None, "UDP")),
        ("fd00::1",),
    )
    assert found.id == ObjectId("workload.linkerd.io", "ExternalWorkload", "a", "vm")


@pytest.mark.parametrize("name", [MESH_NAME, "spiffe://root.example.com/vm"])
def test_its_name_in_the_mesh_is_a_dns_name_or_a_spiffe_id(name: str) -> None:
    found = read(VERSION, "ExternalWorkload", "vm", "a", spec={"meshTLS": {"identity": name}})
    assert found == ExternalWorkload("a", "vm", name)


def test_the_first_version_has_a_spelling_of_its_own() -> None:
    old = "workload.linkerd.io/v1alpha1"
    found = read(old, "ExternalWorkload", "vm", "a", spec={"meshTls": {"identity": MESH_NAME}})
    assert found == ExternalWorkload("a", "vm", MESH_NAME)
    (wrong,) = errors(old, "ExternalWorkload", "vm", "a", spec={"meshTLS": {"identity": MESH_NAME}})
    assert (wrong.message, wrong.help) == ("`spec.meshTls` is missing", "write `meshTls: ..` here")


def test_errors_in_its_name_are_reported() -> None:
    (wrong,) = errors(VERSION, "ExternalWorkload", "vm", "a", spec={"meshTLS": {"identity": "VM"}})
    assert wrong.message == (
        "`VM` is not the name of a workload in the mesh: it may hold only lower-case letters, digits, '-' and '.', "
        "and each part between dots starts and ends with a letter or digit"
    )
    assert wrong.help == "write the name that is in its certificate: a DNS name, or spiffe://.."


def test_it_is_a_workload_that_is_known_by_its_name_in_the_mesh() -> None:
    vm = LiveWorld.of([VM]).workloads[PLAIN]
    assert (vm.key, vm.namespace, vm.name, vm.labels, vm.ips) == (PLAIN, "a", "vm", {"app": "x"}, ("192.0.2.1",))
    assert (vm.kind, vm.is_pod, vm.derived, vm.owners, vm.probes) == ("ExternalWorkload", False, False, (), ())
    assert (vm.mesh_name, vm.service_account) == (MESH_NAME, "")


def test_a_name_stands_for_one_of_its_ports() -> None:
    ports = (ContainerPort(1, "http"), ContainerPort(2, "http"), ContainerPort(3, "http", "UDP"))
    vm = LiveWorld.of([replace(VM, ports=ports)]).workloads[PLAIN]
    assert vm.ports_named("http") == {2}
    assert vm.ports_named("other") == frozenset()


LOOKALIKE = Pod("a", "pod", {"app": "x"})
TARGETS: list[tuple[Target, set[str]]] = [
    (ExternalsMatching("a", Selector()), {PLAIN}),
    (ExternalsMatching("a", Selector.of({"app": "x"})), {PLAIN}),
    (ExternalsMatching("a", Selector.of({"app": "y"})), set()),
    (ExternalsMatching("b", Selector()), set()),
    (PodsMatching("a", Selector()), {"a/pod"}),
    (PodsMatching("a", Selector.of({"app": "x"})), {"a/pod"}),
    (PodsAcross(Selector(), Selector()), {"a/pod"}),
    (PodsOfService("a", "s"), {"a/pod"}),
    (PodsOwnedBy("a", "ExternalWorkload", "vm"), set()),
    (PodsOfAccount("a", "default"), {"a/pod"}),
    (PodsOfAccount("a", ""), set()),
    (PodNamed("a", "vm"), set()),
]


@pytest.mark.parametrize(("target", "keys"), TARGETS, ids=[str(row[0]) for row in TARGETS])
def test_only_a_target_of_its_own_means_it(target: Target, keys: set[str]) -> None:
    objects: list[WorldObject] = [VM, LOOKALIKE, Service("a", "s", {"app": "x"})]
    for order in (objects, objects[::-1]):
        world = LiveWorld()
        for declared in order:
            world.put(declared)
        assert world.select(target) == keys
        assert {key for key, w in world.workloads.items() if world.target_matches(target, w)} == keys
        assert world.services_of(PLAIN) == ()


NEIGHBOURS: list[tuple[str, list[WorldObject], str]] = [
    ("a pod", [Pod("a", "vm")], KEYED),
    ("a controller", [Controller("Deployment", Pod("a", "vm"))], KEYED),
    ("a pod and a controller", [Pod("a", "vm"), Controller("Job", Pod("a", "vm"))], KEYED),
    ("a pod elsewhere", [Pod("b", "vm")], PLAIN),
    ("a pod that has finished", [Pod("a", "vm", finished=True)], PLAIN),
    ("a controller that derives nothing", [Controller("Job", Pod("a", "vm")), Pod("a", "p", owner=Owner("Job", "vm"))],
     PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("_who", "others", "key"), NEIGHBOURS, ids=[row[0] for row in NEIGHBOURS])
def test_pods_and_controllers_come_before_it_where_they_bear_its_name(
    _who: str, others: list[WorldObject], key: str
) -> None:
    for order in ([VM, *others], [*others, VM]):
        world = LiveWorld()
        for declared in order:
            world.put(declared)
        assert [w.key for w in world.workloads.values() if not w.is_pod] == [key]
        assert world.select(ExternalsMatching("a", Selector())) == {key}


FOUND: list[tuple[str, list[WorldObject], list[str]]] = [
    ("by its name", [], [PLAIN]),
    ("not where a pod has the name", [Pod("a", "vm")], [PLAIN]),
    ("not where an owner has the name", [Pod("a", "p", owner=Owner("Job", "vm"))], ["a/p"]),
    ("not where a controller has it", [Controller("Job", Pod("a", "vm"))], [PLAIN]),
]


@pytest.mark.parametrize(("how", "others", "keys"), FOUND, ids=[row[0] for row in FOUND])
def test_it_is_found(how: str, others: list[WorldObject], keys: list[str]) -> None:
    found = LiveWorld.of([VM, *others]).find_workloads("a", "vm")
    assert [w.key for w in found] == keys
    assert all(w.is_pod for w in found) is (how != "by its name")


def test_it_has_an_address_like_a_pod() -> None:
    world = LiveWorld.of([VM])
    assert world.by_ip("192.0.2.1") == world.workloads[PLAIN]
    world.put(Pod("a", "thief", ips=("192.0.2.1",)))
    assert world.by_ip("192.0.2.1") is None


def test_it_comes_changes_and_goes() -> None:
    world = LiveWorld()
    assert difference(world.put(VM)) == {"added": [PLAIN]}
    assert not world.put(replace(VM, span=Span(SourceText("f.yaml", "x"), 1, 1, 1, 2)))
    for after in (
        replace(VM, labels={}),
        replace(VM, annotations={"k": "v"}),
        replace(VM, mesh_name="other.example.com"),
        replace(VM, ports=(ContainerPort(80),)),
        replace(VM, ips=()),
    ):
        change = world.put(after)
        assert difference(change) == {"changed": [PLAIN]}
        assert change.objects == {VM.id}
    assert difference(world.put(Namespace("a", {"team": "red"}))) == {"changed": [PLAIN]}
    assert world.namespaces_in_use() == ("a",)
    assert difference(world.remove(VM.id)) == {"removed": [PLAIN]}
    assert not world.remove(VM.id)
    assert world.workloads == {}


def test_a_pod_that_takes_its_key_stands_behind_services_and_it_does_not() -> None:
    world = LiveWorld.of([VM, Service("a", "s", {"app": "x"})])
    pod = Pod("a", "vm", {"app": "x"}, ips=VM.ips)
    assert world.pods_of("a/s") == ()
    assert difference(world.put(pod)) == {"added": [KEYED], "changed": [PLAIN], "services": ["a/s"]}
    assert world.pods_of("a/s") == (PLAIN,)
    assert world.select(PodsMatching("a", Selector())) == {PLAIN}
    assert difference(world.remove(pod.id)) == {"removed": [KEYED], "changed": [PLAIN], "services": ["a/s"]}
    assert world.pods_of("a/s") == ()
    assert world.select(PodsMatching("a", Selector())) == frozenset()
