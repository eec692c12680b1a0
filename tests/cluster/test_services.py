"""The pods behind a Service, and the targets of its ports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import ContainerPort, Controller, LiveWorld, Pod, PodsOfService, Service, ServicePort, WorldObject
from tests.cluster.differences import difference

WEB = Pod(
    "a", "web", {"app": "web", "env": "prod"}, ports=(ContainerPort(8080, "http"), ContainerPort(9000, "x", "UDP"))
)
DB = Pod("a", "db", {"app": "db", "env": "prod"})
ELSEWHERE = Pod("b", "web", {"app": "web", "env": "prod"})


@pytest.mark.parametrize(
    ("service", "pods"),
    [
        (Service("a", "s", {"app": "web"}), ("a/web",)),
        (Service("a", "s", {"env": "prod"}), ("a/db", "a/web")),
        (Service("a", "s", {"app": "web", "env": "prod"}), ("a/web",)),
        (Service("a", "s", {"app": "web", "env": "test"}), ()),
        (Service("a", "s", {}), ()),
        (Service("a", "s", {"app": "web"}, type="ExternalName"), ()),
        (Service("a", "s", {"app": "web"}, type="LoadBalancer"), ("a/web",)),
        (Service("b", "s", {"app": "web"}), ("b/web",)),
        (Service("c", "s", {"app": "web"}), ()),
    ],
)
def test_a_service_has_the_pods_of_its_namespace_that_it_selects(service: Service, pods: tuple[str, ...]) -> None:
    pods_first: list[WorldObject] = [WEB, DB, ELSEWHERE, service]
    for order in (pods_first, pods_first[::-1]):
        world = LiveWorld()
        for declared in order:
            world.put(declared)
        assert world.pods_of(service.key) == pods
        assert world.select(PodsOfService(service.namespace, "s")) == set(pods)
        for key in world.workloads:
            assert world.services_of(key) == ((service.key,) if key in pods else ())


def test_a_derived_pod_stands_behind_services_too() -> None:
    world = LiveWorld.of([Controller("Deployment", WEB), Service("a", "s", {"app": "web"})])
    assert world.pods_of("a/s") == ("a/web",)


def test_what_does_not_exist_has_no_pods_and_no_services() -> None:
    assert LiveWorld().pods_of("a/s") == ()
    assert LiveWorld().services_of("a/p") == ()
    assert LiveWorld().select(PodsOfService("a", "s")) == frozenset()


def test_a_pod_that_is_relabelled_changes_services() -> None:
    world = LiveWorld.of([WEB, DB, Service("a", "web", {"app": "web"}), Service("a", "all", {"env": "prod"})])
    assert world.services_of("a/web") == ("a/all", "a/web")
    change = world.put(Pod("a", "web", {"app": "other", "env": "prod"}))
    assert difference(change) == {"changed": ["a/web"], "services": ["a/web"]}
    assert world.services_of("a/web") == ("a/all",)


def test_a_service_that_comes_or_goes_changes_its_pods() -> None:
    world = LiveWorld.of([WEB, DB])
    service = Service("a", "s", {"app": "web"})
    came = world.put(service)
    assert difference(came) == {"changed": ["a/web"], "services": ["a/s"]}
    assert came.objects == {service.id}
    again = world.put(Service("a", "s", {"app": "web"}))
    assert not again
    ports = world.put(Service("a", "s", {"app": "web"}, (ServicePort(80, 80),)))
    assert difference(ports) == {"services": ["a/s"]}
    gone = world.remove(service.id)
    assert difference(gone) == {"changed": ["a/web"], "services": ["a/s"]}


@pytest.mark.parametrize(
    ("before", "after", "behind"),
    [
        (Service("a", "s", {"app": "web"}), Service("a", "s", {"env": "prod"}), ("a/s",)),
        (Service("a", "s", {"app": "web"}), Service("a", "s", {"app": "db"}), ()),
        (Service("a", "s", {"app": "web"}), Service("a", "s", {"app": "web"}, type="ExternalName"), ()),
        (Service("a", "s", {"app": "web"}, type="ExternalName"), Service("a", "s", {"app": "web"}), ("a/s",)),
        (Service("a", "s", {"app": "web"}), Service("a", "s"), ()),
    ],
)
def test_only_what_a_service_says_now_counts(before: Service, after: Service, behind: tuple[str, ...]) -> None:
    world = LiveWorld.of([WEB, before])
    world.put(after)
    assert world.services_of("a/web") == behind
    late = Pod("a", "late", WEB.labels)
    world.put(late)
    assert world.services_of("a/late") == behind
    assert world.pods_of("a/s") == (("a/late", "a/web") if behind else ())


def test_a_service_that_only_moved_in_its_file_has_not_changed() -> None:
    service = Service("a", "s", {"app": "web"})
    world = LiveWorld.of([WEB, service])
    assert not world.put(replace(service, span=Span(SourceText("f.yaml", "x"), 1, 1, 1, 2)))


PORTS = (
    ServicePort(80, 8080),
    ServicePort(81, "http", "named"),
    ServicePort(82, "missing"),
    ServicePort(83, "x"),
    ServicePort(84, "x", protocol="UDP"),
    ServicePort(85, 85),
    ServicePort(53, 5353),
    ServicePort(53, 5354, protocol="UDP"),
)


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        (80, (8080,)),
        (81, (8080,)),
        (82, ()),
        (83, ()),
        (84, (9000,)),
        (85, (85,)),
        (53, (5353, 5354)),
        (8080, ()),
        (None, (85, 5353, 5354, 8080, 9000)),
    ],
)
def test_a_service_port_leads_to_a_port_of_the_pod(port: int | None, expected: tuple[int, ...]) -> None:
    service = Service("a", "s", {"app": "web"}, PORTS)
    world = LiveWorld.of([WEB, service])
    assert world.target_ports(service, port, world.workloads["a/web"]) == expected


def test_the_first_port_of_a_name_counts() -> None:
    twice = Pod("a", "p", ports=(ContainerPort(1, "http", "UDP"), ContainerPort(2, "http"), ContainerPort(3, "http")))
    service = Service("a", "s", {}, (ServicePort(80, "http"),))
    world = LiveWorld.of([twice])
    assert world.target_ports(service, 80, world.workloads["a/p"]) == (2,)
