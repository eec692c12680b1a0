"""After any puts and removals, the world equals one with the same objects, and every change was reported."""

from __future__ import annotations

from typing import Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster import (
    CONTROLLER_KINDS,
    Backend,
    BackendNamed,
    Change,
    ContainerPort,
    Controller,
    Everything,
    ExternalsMatching,
    ExternalWorkload,
    Gateway,
    GatewayNamed,
    GrantFrom,
    GrantTo,
    HttpProbe,
    LiveWorld,
    Namespace,
    ObjectId,
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
    Workload,
    WorldObject,
)
from eastgate.cluster.slices import Endpoint, EndpointSlice
from tests.cluster.naive import Facts, NaiveWorld

# Few names, so that they collide: `x-1` is a pod, a ReplicaSet of Deployment `x`, and a Job of CronJob `x`.
NAMESPACES = ["a", "b"]
NAMES = ["x", "x-1", "y", "prometheus-x", "x-00001-deployment"]
ADDRESSES = ["10.0.0.1", "10.0.0.2"]
KEYS, VALUES = ["app", "pod-template-hash"], ["1", "2"]

namespaces, names = st.sampled_from(NAMESPACES), st.sampled_from(NAMES)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
owners = st.none() | st.builds(
    Owner, st.sampled_from([*CONTROLLER_KINDS, "ReplicaSet", "Job", "StatefulSet.example.com"]), names
)
pods = st.builds(
    Pod,
    namespaces,
    names,
    labels,
    annotations=st.sampled_from([{}, {"k": "v"}]),
    service_account=st.sampled_from(["default", "bot"]),
    ports=st.sampled_from([(), (ContainerPort(80, "http"),)]),
    ips=st.lists(st.sampled_from(ADDRESSES), max_size=2).map(tuple),
    owner=owners,
    finished=st.integers(0, 5).map(lambda n: n == 0),
    init_ports=st.sampled_from([(), (ContainerPort(81, "http"),)]),
    probes=st.sampled_from([(), (HttpProbe(80, "/"),)]),
)
externals = st.builds(
    ExternalWorkload,
    namespaces,
    names,
    st.sampled_from(["one.example.com", "two.example.com"]),
    labels,
    st.sampled_from([{}, {"k": "v"}]),
    st.sampled_from([(), (ContainerPort(80, "http"),)]),
    st.lists(st.sampled_from(ADDRESSES), max_size=1).map(tuple),
)
controllers = st.builds(
    Controller, st.sampled_from(list(CONTROLLER_KINDS)), st.builds(Pod, namespaces, names, labels), owners
)
services = st.builds(
    Service,
    namespaces,
    names,
    labels,
    st.sampled_from([(), ()]),
    st.sampled_from(["ClusterIP", "ClusterIP", "ExternalName"]),
)
slices = st.builds(
    EndpointSlice,
    namespaces,
    names,
    st.none() | names,
    st.lists(
        st.builds(
            Endpoint,
            st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=2).map(tuple),
            st.none() | st.builds("{}/{}".format, namespaces, names),
        ),
        max_size=2,
    ).map(tuple),
)
others = st.one_of(
    slices,
    st.builds(Gateway, namespaces, names, gateway_class=st.sampled_from(["", "c"])),
    st.builds(Route, st.sampled_from(["HTTPRoute", "TCPRoute"]), namespaces, names),
    st.builds(ServiceAccount, namespaces, names),
    st.builds(
        Backend,
        namespaces,
        names,
        st.none(),
        st.just("mcp.example.com"),
        st.sampled_from([80, 443]),
        group=st.sampled_from(["new.example.com", "old.example.com"]),
        kind=st.just("XBackend"),
    ),
    st.builds(
        ReferenceGrant,
        namespaces,
        names,
        st.just((GrantFrom("g", "HTTPRoute", "a"),)),
        st.sampled_from([(), (GrantTo("", "Service"),), (GrantTo("", "Service", "x"),)]),
    ),
)
namespace_objects = st.builds(Namespace, namespaces, labels, st.sampled_from([{}, {"k": "v"}]))
objects: st.SearchStrategy[WorldObject] = st.one_of(
    pods, pods, controllers, controllers, externals, services, namespace_objects, others
)


class _Slotted(Protocol):
    __slots__: tuple[str, ...]


Step = tuple[list[WorldObject], list[int]]  # objects to put, and declared objects to remove
steps = st.lists(
    st.tuples(st.lists(objects, max_size=3), st.lists(st.integers(0, 30), max_size=2)), min_size=1, max_size=12
)

SELECTORS = [
    Selector(),
    Selector.of({"app": "1"}),
    Selector.of({"app": "1", "pod-template-hash": "1"}),
    Selector.of({}, [Requirement("app", Operator.NOT_IN, frozenset({"1"}))]),
    Selector.of({}, [Requirement("app", Operator.IN, frozenset({"1", "2"}))]),
    Selector.of({"pod-template-hash": "2"}, [Requirement("app", Operator.EXISTS)]),
]
TARGETS: list[Target] = [
    *(PodsMatching(namespace, selector) for namespace in NAMESPACES for selector in SELECTORS),
    *(PodsOfService(namespace, name) for namespace in NAMESPACES for name in NAMES),
    *(PodsAcross(one, other) for one in SELECTORS for other in SELECTORS[:2]),
    PodsAcross(Selector.of({"kubernetes.io/metadata.name": "a"}), Selector()),
    Everything(None),
    *(Everything(name) for name in ("a", "b", "nowhere")),
    *(PodsOwnedBy(namespace, kind, name) for namespace in NAMESPACES for kind in CONTROLLER_KINDS for name in NAMES),
    *(PodsOfAccount(namespace, account) for namespace in NAMESPACES for account in ("default", "bot", "")),
    *(PodNamed(namespace, name) for namespace in NAMESPACES for name in NAMES),
    *(ExternalsMatching(namespace, selector) for namespace in NAMESPACES for selector in SELECTORS),
    GatewayNamed("a", "x"),
    BackendNamed("a", "x"),
]


def answers(world: LiveWorld) -> dict[str, object]:
    """All answers of a world."""
    return {
        "objects": dict(world.objects),
        "workloads": dict(world.workloads),
        "services": dict(world.services),
        "namespaces": dict(world.namespaces),
        "gateways": dict(world.gateways),
        "routes": dict(world.routes),
        "backends": dict(world.backends),
        "service accounts": dict(world.service_accounts),
        "namespaces in use": world.namespaces_in_use(),
        "pods of": {key: world.pods_of(key) for key in world.services},
        "services of": {key: world.services_of(key) for key in world.workloads},
        "selected": {target: world.select(target) for target in TARGETS},
        "found": {(n, name): world.find_workloads(n, name) for n in NAMESPACES for name in NAMES},
        "addresses": {address: world.by_ip(address) for address in ADDRESSES},
        "granted": [
            world.granted("g", "HTTPRoute", one, "", "Service", other, name)
            for one in NAMESPACES
            for other in NAMESPACES
            for name in NAMES
        ],
    }


def take(world: LiveWorld, declared: dict[ObjectId, WorldObject], step: Step) -> Change:
    """One step, in the world and in a plain dictionary of its expected content."""
    put, positions = step
    removed = [list(declared)[n] for n in positions if n < len(declared)]
    for identity in removed:
        declared.pop(identity, None)
    declared.update((o.id, o) for o in put)
    if len(put) == 1 and not removed:
        return world.put(put[0])
    if len(removed) == 1 and not put:
        return world.remove(removed[0])
    return world.update(put, removed)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_world_that_was_changed_is_the_world_of_its_objects(steps: list[Step]) -> None:
    world, declared = LiveWorld(), dict[ObjectId, WorldObject]()
    for step in steps:
        take(world, declared, step)
    assert answers(world) == answers(LiveWorld.of(declared.values()))
    assert answers(world) == answers(LiveWorld.of(list(declared.values())[::-1]))


@settings(max_examples=100, deadline=None)
@given(steps)
def test_a_world_from_which_everything_was_removed_holds_on_to_nothing(steps: list[Step]) -> None:
    world, declared = LiveWorld(), dict[ObjectId, WorldObject]()
    for step in steps:
        take(world, declared, step)
    for identity in declared:
        world.remove(identity)
    inside = world._has
    parts: list[_Slotted] = [inside, inside.index, inside.membership, inside.namespace_labels, inside._ownership]
    tables = {f"{type(p).__name__}.{name}": getattr(p, name) for p in parts for name in type(p).__slots__}
    assert {name: table for name, table in tables.items() if isinstance(table, dict) and table} == {}


def seen_of(w: Workload, services: tuple[str, ...]) -> tuple[object, ...]:
    who = w.service_account or w.mesh_name
    own = (w.probes, w.init_ports) if w.is_pod else ((), ())
    return (w.kind, w.namespace, w.name, w.labels, w.annotations, who, w.ports, *own, w.owners, w.derived, services)


def said_of(f: Facts) -> tuple[object, ...]:
    p = f.pod
    who, own = (p.service_account, (p.probes, p.init_ports)) if isinstance(p, Pod) else (p.mesh_name, ((), ()))
    return (p.kind, p.namespace, p.name, p.labels, p.annotations, who, p.ports, *own, f.owners, f.derived, f.services)


@settings(max_examples=300, deadline=None)
@given(st.lists(objects, max_size=20))
def test_a_world_is_what_its_objects_say(objects: list[WorldObject]) -> None:
    world, naive = LiveWorld.of(objects), NaiveWorld(objects)
    seen = {key: seen_of(w, world.services_of(key)) for key, w in world.workloads.items()}
    assert seen == {key: said_of(facts) for key, facts in naive.workloads.items()}
    assert all(w.key == key for key, w in world.workloads.items())
    for target in TARGETS:
        expected = naive.select(target)
        assert world.select(target) == expected
        assert {key for key, w in world.workloads.items() if world.target_matches(target, w)} == expected
    for namespace in NAMESPACES:
        for name in NAMES:
            found = [w.key for w in world.find_workloads(namespace, name)]
            assert found == naive.find(namespace, name)
    for address in ADDRESSES:
        at = world.by_ip(address)
        assert (at.key if at else None) == naive.by_ip(address)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_change_tells_exactly_what_differs(steps: list[Step]) -> None:
    world, declared = LiveWorld(), dict[ObjectId, WorldObject]()
    for step in steps:
        before, objects_before = NaiveWorld(declared.values()), dict(declared)
        change = take(world, declared, step)
        after = NaiveWorld(declared.values())
        assert change.added == after.workloads.keys() - before.workloads.keys()
        assert change.removed == before.workloads.keys() - after.workloads.keys()
        both = before.workloads.keys() & after.workloads.keys()
        assert change.changed == {key for key in both if before.workloads[key] != after.workloads[key]}
        assert change.services == different_services(before, after)
        everything = objects_before.keys() | declared.keys()
        assert change.objects == {i for i in everything if objects_before.get(i) != declared.get(i)}


def different_services(before: NaiveWorld, after: NaiveWorld) -> set[str]:
    def described(world: NaiveWorld) -> dict[str, tuple[Service, set[str]]]:
        return {s.key: (s, world.select(PodsOfService(s.namespace, s.name))) for s in world.services}

    one, other = described(before), described(after)
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
