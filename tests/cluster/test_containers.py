"""Declarations of the containers of a pod: the ports of init containers, and the probes of the kubelet."""

from __future__ import annotations

import pytest

from eastgate.cluster import ContainerPort, Controller, HttpProbe, Pod, Workload
from tests.cluster.manifests import errors, read

HTTP, STATS = {"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "stats"}
UDP = {"containerPort": 53, "name": "http", "protocol": "UDP"}


def pod_of(**spec: object) -> Pod:
    found = read("v1", "Pod", "x", spec=spec)
    assert isinstance(found, Pod)
    return found


def get(port: object, path: object = None, **more: object) -> dict[str, object]:
    return {"httpGet": {"port": port, "path": path, **more}}


PATHS: list[tuple[object, str]] = [
    (None, "/"),
    ("", "/"),
    ("/", "/"),
    ("/healthz", "/healthz"),
    ("/healthz/", "/healthz/"),
    ("healthz", "/healthz"),
    ("/healthz?verbose=1", "/healthz"),
    ("?verbose", "/"),
    ("/a#b", "/a"),
    ("/a//b/./%7Ec", "/a//b/./%7Ec"),
]


@pytest.mark.parametrize(("written", "path"), PATHS)
def test_the_path_of_a_probe_is_what_the_kubelet_asks_for_without_the_query(written: object, path: str) -> None:
    rooted = not written or str(written).startswith("/")
    assert pod_of(containers=[{"livenessProbe": get(80, written)}]).probes == (HttpProbe(80, path, rooted),)


PORTS: list[tuple[str, list[dict[str, object]], tuple[HttpProbe, ...]]] = [
    ("a number need not be declared", [{"livenessProbe": get(81)}], (HttpProbe(81, "/"),)),
    ("a name is that of a port", [{"ports": [STATS, HTTP], "livenessProbe": get("http")}], (HttpProbe(8080, "/"),)),
    ("a name is that of a TCP port", [{"ports": [UDP, HTTP], "livenessProbe": get("http")}], (HttpProbe(8080, "/"),)),
    ("and of no other", [{"ports": [UDP], "livenessProbe": get("http")}], ()),
    ("of the same container", [{"ports": [HTTP]}, {"livenessProbe": get("http")}], ()),
    ("an empty name is none", [{"ports": [{"containerPort": 1, "name": ""}], "livenessProbe": get("")}], ()),
    ("not that of a port without one", [{"ports": [{"containerPort": 1}], "livenessProbe": get("")}], ()),
]


@pytest.mark.parametrize(("_sentence", "containers", "probes"), PORTS, ids=[row[0] for row in PORTS])
def test_the_port_of_a_probe(
    _sentence: str, containers: list[dict[str, object]], probes: tuple[HttpProbe, ...]
) -> None:
    assert pod_of(containers=containers).probes == probes
    assert pod_of(initContainers=containers).probes == probes


def test_all_probes_of_all_containers_are_kept_once_and_in_order() -> None:
    pod = pod_of(
        initContainers=[
            {"startupProbe": get(4, "/init")},
            {"restartPolicy": "Always", "readinessProbe": get(5, "/sidecar"), "livenessProbe": get(1, "/live")},
        ],
        containers=[
            {"startupProbe": get(3), "readinessProbe": get(2, "/ready"), "livenessProbe": get(1, "/live")},
            {"livenessProbe": get(2, "/ready", scheme="HTTPS"), "readinessProbe": get(2, "/live", scheme="HTTP")},
        ],
    )
    assert pod.probes == (
        HttpProbe(1, "/live"),
        HttpProbe(2, "/ready"),
        HttpProbe(3, "/"),
        HttpProbe(2, "/live"),
        HttpProbe(4, "/init"),
        HttpProbe(5, "/sidecar"),
    )


@pytest.mark.parametrize(
    "probe", [None, {}, {"httpGet": None}, {"tcpSocket": {"port": 80}}, {"exec": {"command": ["true"]}}, {"grpc": {}}]
)
def test_a_probe_that_is_no_http_request_is_none_of_ours(probe: object) -> None:
    assert pod_of(containers=[{"livenessProbe": probe}]).probes == ()


def test_the_ports_of_init_containers_that_end_are_kept_apart() -> None:
    pod = pod_of(
        initContainers=[
            {"ports": [{"containerPort": 1, "name": "setup"}]},
            {"ports": [STATS], "restartPolicy": "Always"},
            {"ports": [{"containerPort": 2}], "restartPolicy": "OnFailure"},
        ],
        containers=[{"ports": [HTTP], "restartPolicy": "Never"}],
    )
    assert pod.ports == (ContainerPort(8080, "http"), ContainerPort(9090, "stats"))
    assert pod.init_ports == (ContainerPort(1, "setup"), ContainerPort(2))


def test_a_template_has_them_too() -> None:
    spec = {"containers": [{"livenessProbe": get(80)}], "initContainers": [{"ports": [HTTP]}]}
    found = read("apps/v1", "Deployment", "web", spec={"template": {"spec": spec}})
    assert isinstance(found, Controller)
    assert found.template.probes == (HttpProbe(80, "/"),)
    assert found.template.init_ports == (ContainerPort(8080, "http"),)


def test_a_broken_port_is_reported_once_although_a_probe_looks_at_it_too() -> None:
    container = {"ports": [{"containerPort": 0, "name": "http"}], "livenessProbe": get("http")}
    (found,) = errors("v1", "Pod", "x", spec={"containers": [container]})
    assert found.message == "port 0 is out of range"


NAMED = Workload(
    "a/x",
    "a",
    "x",
    ports=(ContainerPort(1, "http"), ContainerPort(2, "http"), ContainerPort(3, "http", "UDP"), ContainerPort(4)),
    init_ports=(ContainerPort(5, "http"), ContainerPort(6, "setup")),
)


@pytest.mark.parametrize(("name", "numbers"), [("http", {1, 2, 5}), ("setup", {6}), ("other", set())])
def test_a_name_stands_for_all_tcp_ports_that_bear_it(name: str, numbers: set[int]) -> None:
    assert NAMED.ports_named(name) == numbers


def test_a_service_does_not_lead_to_an_init_container() -> None:
    assert NAMED.port_named("http") == 1
    assert NAMED.port_named("setup") is None
