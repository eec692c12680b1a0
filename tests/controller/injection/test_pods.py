"""An API server accepts an injected pod, and its containers enforce, as processes in namespaces."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from eastgate.controller.injection import InjectionOptions, inject
from tests.controller.injection.kubelet import PodSandbox
from tests.controller.injection.network import NODE, Network, need_namespaces
from tests.controller.injection.plane import Plane
from tests.faults.worlds import allow, deny
from tests.patience import PATIENCE
from tests.programs import ApiServer

pytestmark = [pytest.mark.real, pytest.mark.apiserver]

Plain = dict[str, Any]
HERE = Path(__file__).parent
SPACE = "injected"
ADDRESSES = {"cart": "198.18.0.10", "web": "198.18.0.20", "stranger": "198.18.0.30"}
SERVICE = "10.96.77.77"
DECLARED, UNDECLARED, NAMED, LOOPBACK = 8080, 9999, 9998, 9000
APPLICATION, PROXY = 1000, 1337  # users


def manifest_of(name: str) -> Plain:
    container: Plain = {"name": "main", "image": name}
    if name == "cart":
        container |= {
            "ports": [{"name": "http", "containerPort": DECLARED}],
            "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 1},
            "readinessProbe": {"httpGet": {"path": "/ready?now=1", "port": "http"}, "periodSeconds": 1},
            "startupProbe": {"tcpSocket": {"port": LOOPBACK}, "periodSeconds": 1},
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "labels": {"app": name}},
        "spec": {"serviceAccountName": name, "containers": [container]},
    }


class Cluster:
    """Three pods with sidecars, a Service, and the policies about them."""

    def __init__(self, api: ApiServer, network: Network, folder: Path) -> None:
        self.api = api
        self.network = network
        self.folder = folder
        self.plane = Plane(api, network.node)
        self.pods: dict[str, PodSandbox] = {}
        self.manifests: list[Plain] = []

    def create(self) -> None:
        self._post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        spec = {"selector": {"app": "cart"}, "clusterIP": SERVICE, "ports": [{"port": 80, "targetPort": "http"}]}
        service = {"metadata": {"name": "cart", "namespace": SPACE}, "spec": spec}
        self.manifests.append(self._post(f"/api/v1/namespaces/{SPACE}/services", service))
        for name, address in ADDRESSES.items():
            self._create_pod(name, address)
        self.network.add_service(SERVICE, 80, f"{ADDRESSES['cart']}:{DECLARED}")
        allowed = [allow("web", "web", "cart", app="cart"), allow("named", "stranger", app="cart", ports=[NAMED])]
        for policy in allowed:
            policy["metadata"]["namespace"] = SPACE
        self.manifests += allowed

    def _post(self, path: str, body: Plain) -> Plain:
        status, answer = self.api.request("POST", path, body)
        assert status == 201, answer
        kinds = {"namespaces": "Namespace", "services": "Service", "pods": "Pod"}
        return {"apiVersion": "v1", "kind": kinds.get(path.rpartition("/")[2], ""), **answer}

    def _create_pod(self, name: str, address: str) -> None:
        accounts = f"/api/v1/namespaces/{SPACE}/serviceaccounts"
        self._post(accounts, {"metadata": {"name": name}})
        injected = inject(manifest_of(name), InjectionOptions(concurrency=1))
        assert injected is not None
        pod = self._post(f"/api/v1/namespaces/{SPACE}/pods?fieldValidation=Strict", injected)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": pod["metadata"]["uid"]}
        token = self._post(f"{accounts}/{name}/token", {"spec": {"audiences": ["eastgate"], "boundObjectRef": bound}})
        pod["status"] = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
        self.manifests.append(pod | {"apiVersion": "v1", "kind": "Pod"})
        files = {"eastgate-token": {"token": token["status"]["token"]}, "eastgate-ca": {"ca.crt": self.plane.root}}
        namespace = self.network.add_pod(name, address)
        self.pods[name] = PodSandbox(self.manifests[-1], namespace, self.folder / name, files)

    def start_application(self) -> None:
        ports = [f"0.0.0.0:{port}" for port in (DECLARED, UNDECLARED, NAMED)] + [f"127.0.0.1:{LOOPBACK}"]
        script = [sys.executable, str(HERE / "application.py"), str(self.folder / "ready"), *ports]
        self.pods["cart"].start_program("application", self._as("cart", APPLICATION, script))
        until(lambda: self.call("cart", "127.0.0.1", LOOPBACK) == "200")

    def _as(self, pod: str, user: int, command: list[str]) -> list[str]:
        entered = ["nsenter", "--net", "--target", str(self.pods[pod].namespace.pid), "--", "setpriv"]
        return [*entered, "--pdeathsig", "KILL", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]

    def call(self, pod: str, host: str, port: int, path: str = "/", user: int = APPLICATION) -> str:
        """Call from a process of a pod; return the status, or `closed`."""
        command = self._as(pod, user, [sys.executable, str(HERE / "client.py"), host, str(port), path])
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout.split(" ")[0].strip()

    def call_from_node(self, port: int, path: str) -> str:
        """Call the pod of the application like the kubelet."""
        command = [sys.executable, str(HERE / "client.py"), ADDRESSES["cart"], str(port), path]
        return self.network.node.run(*command).split(" ")[0].strip()

    def stop(self) -> None:
        for pod in self.pods.values():
            pod.stop()
        self.plane.stop()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def closed_cluster(api_server: ApiServer) -> Iterator[Cluster]:
    """Yield pods with redirected connections, and without proxies yet."""
    need_namespaces()
    with TemporaryDirectory(prefix="eastgate-pods-") as name, Network() as network:
        Path(name).chmod(0o755)  # containers run as several users
        made = Cluster(api_server, network, Path(name))
        try:
            made.create()
            for pod in made.pods.values():
                pod.run("eastgate-redirect")
            made.start_application()
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def cluster(closed_cluster: Cluster) -> Cluster:
    """Return the same pods with proxies and a control plane. Before these run, no call is answered."""
    assert closed_cluster.call("web", ADDRESSES["cart"], DECLARED) == "closed"
    assert closed_cluster.call_from_node(DECLARED, "/") == "closed"
    for pod in closed_cluster.pods.values():
        pod.start("eastgate-proxy")
    until(lambda: (closed_cluster.pods["cart"].folder / "eastgate-admin" / "admin.sock").exists())
    assert closed_cluster.call_from_node(DECLARED, "/") == "closed"
    assert closed_cluster.call_from_node(15021, "/healthz/ready") == "closed"
    closed_cluster.plane.start()
    closed_cluster.plane.enforce(closed_cluster.manifests)
    closed_cluster.plane.wait(*(f"{SPACE}/{name}" for name in closed_cluster.pods))
    assert closed_cluster.plane.rejected() == []
    until(lambda: closed_cluster.call_from_node(15021, "/healthz/ready") == "200")
    return closed_cluster


def test_without_a_proxy_and_without_a_control_plane_nothing_is_answered(cluster: Cluster) -> None:
    assert cluster.plane.rejected() == []  # the other calls happened before the proxies began


@pytest.mark.parametrize(
    ("caller", "host", "port", "status"),
    [
        ("web", ADDRESSES["cart"], DECLARED, "200"),
        ("web", SERVICE, 80, "200"),
        ("web", ADDRESSES["cart"], UNDECLARED, "200"),
        ("web", ADDRESSES["cart"], NAMED, "200"),
        ("web", ADDRESSES["cart"], LOOPBACK, "closed"),
        ("web", ADDRESSES["cart"], 15001, "closed"),
        ("web", ADDRESSES["cart"], 15006, "closed"),
        ("cart", SERVICE, 80, "200"),
        ("cart", ADDRESSES["cart"], DECLARED, "200"),
        ("cart", ADDRESSES["cart"], 15006, "closed"),
        ("cart", "127.0.0.1", 15006, "closed"),
        ("cart", "127.0.0.1", 15001, "closed"),
        ("stranger", ADDRESSES["cart"], DECLARED, "closed"),
        ("stranger", SERVICE, 80, "closed"),
        ("stranger", ADDRESSES["cart"], UNDECLARED, "closed"),
        ("stranger", ADDRESSES["cart"], NAMED, "200"),
    ],
)
def test_policies_decide_by_the_account_of_the_calling_pod(
    cluster: Cluster, caller: str, host: str, port: int, status: str
) -> None:
    assert cluster.call(caller, host, port) == status


@pytest.mark.parametrize("port", [DECLARED, UNDECLARED, NAMED, LOOPBACK])
def test_a_caller_that_bypasses_its_own_proxy_is_refused(cluster: Cluster, port: int) -> None:
    assert cluster.call("web", ADDRESSES["cart"], port, user=PROXY) == "closed"
    assert cluster.call_from_node(port, "/") == "closed"


def test_root_does_not_bypass_the_proxy(cluster: Cluster) -> None:
    assert cluster.call("web", ADDRESSES["cart"], DECLARED, user=0) == "200"
    assert cluster.call("stranger", ADDRESSES["cart"], DECLARED, user=0) == "closed"


def test_a_refused_connection_is_logged_with_its_destination(cluster: Cluster) -> None:
    assert cluster.call("stranger", ADDRESSES["cart"], UNDECLARED) == "closed"
    called = f"{ADDRESSES['cart']}:{UNDECLARED}"

    def is_logged() -> bool:
        records = cluster.pods["cart"].records()
        peers = {each["peer"] for each in records if each.get("originalDestination") == called}
        return f"spiffe://cluster.local/ns/{SPACE}/sa/stranger" in peers

    until(is_logged)


def test_a_destination_without_a_sidecar_is_called_without_mtls(cluster: Cluster) -> None:
    command = [sys.executable, str(HERE / "application.py"), "-", f"{NODE}:8000"]
    entered = ["nsenter", "--net", "--target", str(cluster.network.node.pid), "--", "setpriv", "--pdeathsig", "KILL"]
    cluster.pods["web"].start_program("elsewhere", [*entered, *command])
    until(lambda: cluster.call("web", NODE, 8000) == "200")
    assert cluster.call("web", NODE, 8001) == "closed"


def test_probes_return_the_answer_of_the_application(cluster: Cluster) -> None:
    live, ready, start = (f"/probes/main/{kind}Probe" for kind in ("liveness", "readiness", "startup"))
    until(lambda: cluster.call_from_node(15021, live) == "200")
    assert cluster.call_from_node(15021, ready) == "503"
    assert cluster.call_from_node(15021, start) == "503"  # it listens on loopback only
    (cluster.folder / "ready").touch()
    until(lambda: cluster.call_from_node(15021, ready) == "200")
    (cluster.folder / "ready").unlink()
    until(lambda: cluster.call_from_node(15021, ready) == "503")


@pytest.mark.parametrize("path", ["/", "/live", "/probes/main/livenessProbe?x=1", "/probes/main/", "/config_dump"])
def test_nothing_else_is_answered_there(cluster: Cluster, path: str) -> None:
    assert cluster.call_from_node(15021, path) == "404"


def test_a_changed_policy_is_enforced(cluster: Cluster) -> None:
    denied = deny("nobody-there", "web", app="cart", ports=[UNDECLARED])
    denied["metadata"]["namespace"] = SPACE
    cluster.plane.enforce([*cluster.manifests, denied])
    assert cluster.call("web", ADDRESSES["cart"], UNDECLARED) == "closed"
    assert cluster.call("web", ADDRESSES["cart"], NAMED) == "200"
    cluster.plane.enforce(cluster.manifests)
    assert cluster.call("web", ADDRESSES["cart"], UNDECLARED) == "200"


def test_requests_are_decided_one_by_one_at_any_port(cluster: Cluster) -> None:
    only = allow("only", "web", app="cart", paths=["/open"], methods=["GET"])
    only["metadata"]["namespace"] = SPACE
    cluster.plane.enforce([*(each for each in cluster.manifests if each["kind"] != "AuthorizationPolicy"), only])
    for port in (DECLARED, UNDECLARED):
        assert cluster.call("web", ADDRESSES["cart"], port, "/open") == "200"
        assert cluster.call("web", ADDRESSES["cart"], port, "/closed") == "403"
        assert cluster.call("stranger", ADDRESSES["cart"], port, "/open") == "403"
        assert cluster.call_from_node(port, "/open") == "403"
    assert cluster.plane.rejected() == []
    cluster.plane.enforce(cluster.manifests)


def test_a_port_that_becomes_known_is_decided_as_itself(cluster: Cluster) -> None:
    assert cluster.call("stranger", ADDRESSES["cart"], UNDECLARED) == "closed"
    named = allow("now", "stranger", app="cart", ports=[UNDECLARED])
    named["metadata"]["namespace"] = SPACE
    cluster.plane.enforce([*cluster.manifests, named])
    assert cluster.call("stranger", ADDRESSES["cart"], UNDECLARED) == "200"
    cluster.plane.enforce(cluster.manifests)
    assert cluster.call("stranger", ADDRESSES["cart"], UNDECLARED) == "closed"


def test_only_the_redirecting_container_offends_the_baseline_of_pod_security(cluster: Cluster) -> None:
    name = f"{SPACE}-baseline"
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    pod = inject(manifest_of("cart"), InjectionOptions())
    assert pod is not None
    pod["metadata"]["namespace"] = name
    created = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    cluster.api.kubectl(*created, stdin=json.dumps(pod), fails=True)
    first = pod["spec"]["initContainers"].pop(0)
    assert first["name"] == "eastgate-redirect"
    cluster.api.kubectl(*created, stdin=json.dumps(pod))


def test_connections_stay_open_while_other_pods_and_ports_come_and_go(cluster: Cluster) -> None:
    with cluster.network.pods["web"].entered():
        open_ones = [
            http.client.HTTPConnection(ADDRESSES["cart"], DECLARED, timeout=PATIENCE),
            http.client.HTTPConnection(ADDRESSES["cart"], UNDECLARED, timeout=PATIENCE),
            http.client.HTTPConnection(SERVICE, 80, timeout=PATIENCE),
        ]
        for connection in open_ones:
            connection.connect()
    for connection in open_ones:
        assert _get(connection) == 200
    other = deepcopy(next(each for each in cluster.manifests if each["metadata"]["name"] == "stranger"))
    other["metadata"]["name"] = "another"
    other["spec"]["serviceAccountName"] = "another"
    other["status"] = {"podIP": "198.18.0.40", "podIPs": [{"ip": "198.18.0.40"}], "phase": "Running"}
    named = allow("more", "stranger", app="cart", ports=[7777])
    named["metadata"]["namespace"] = SPACE
    cluster.plane.enforce([*cluster.manifests, other, named])
    for connection in open_ones:
        assert _get(connection) == 200
        connection.close()
    cluster.plane.enforce(cluster.manifests)


def _get(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    return answer.status
