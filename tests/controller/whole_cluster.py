"""A whole cluster on this machine: a real API server, replicas of the controller, and pods with running containers.

Everything runs in the network namespace of a node, including the thread of the test. The test plays the user of
kubectl, the kubelet, the scheduler and kube-proxy.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from eastgate.controller.admission.configuration import webhook_configurations
from eastgate.reports.crds import Webhook, definitions
from tests.controller.injection.kubelet import PodSandbox
from tests.controller.injection.network import Network
from tests.controller.replicas import SYSTEM, Replicas
from tests.patience import PATIENCE
from tests.programs import ApiServer, ControllerManager
from tests.programs.building import find
from tests.programs.crds import crds

Plain = dict[str, Any]

SHOP, EDGE = "shop", "edge"
REPLICAS = {"eastgate-a": "198.18.255.11", "eastgate-b": "198.18.255.12"}
ADDRESSES = {"cart": "198.18.0.10", "web": "198.18.0.20", "stranger": "198.18.0.30", "gateway": "198.18.0.40"}
CONTROL_PLANE, CART, GATEWAY = "10.96.200.1", "10.96.200.2", "10.96.200.3"  # addresses of Services
PORT = 8080
GATEWAY_GROUP = "gateway.networking.k8s.io"
AGENTIC_GROUP = "agentic.prototype.x-k8s.io"
GROUP = "gateway.networking.x-k8s.io"
_PORTS = {"xds": 15010, "authorizer": 15011, "tools": 15012, "webhooks": 443, "http": 8080}
_TARGETS = {443: 9443}
_NAMES = ("eastgate.eastgate-system.svc", "eastgate.eastgate-system.svc.cluster.local")
_HOSTS = dict.fromkeys(_NAMES, CONTROL_PLANE)
_DEFINITIONS = ("gateway-api", "kuadrant")
_WEBHOOK = Webhook(SYSTEM, "eastgate")
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/eastgate"
_DEPLOY = Path(__file__).parents[2] / "deploy"
_PROGRAMS = Path(__file__).parent / "injection"
_APPLICATION = 1000  # the user of applications


def until(is_so: Callable[[], object], about: Callable[[], object] = str) -> float:
    """Wait for a condition, and return the seconds that it took."""
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() < start + PATIENCE, f"it never came: {about()}"
        time.sleep(0.02)
    return time.monotonic() - start


def named(kind: str, name: str, namespace: str | None = None, api: str = "v1", **more: Any) -> Plain:
    """Return a manifest."""
    metadata: Plain = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def permissions() -> list[Plain]:
    """Return the roles of the installed controller and their bindings. API keys need the roles for Secrets."""
    installed = _read(_DEPLOY / "manifests" / "install.yaml")
    roles = [each for each in installed if each["apiVersion"].startswith("rbac.authorization.k8s.io/")]
    [rules] = _read(_DEPLOY / "chart" / "eastgate" / "generated" / "rules" / "secrets.yaml")
    api, name = "rbac.authorization.k8s.io/v1", "eastgate-secrets"
    account = {"kind": "ServiceAccount", "name": "eastgate", "namespace": SYSTEM}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    bound = named("ClusterRoleBinding", name, api=api, roleRef=role, subjects=[account])
    return [*roles, named("ClusterRole", name, api=api, rules=rules), bound]


def _read(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as text:
        return [each for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]


def pod_of(name: str) -> Plain:
    """Return a pod of the shop."""
    container: Plain = {"name": "main", "image": name}
    if name == "cart":
        container["ports"] = [{"name": "http", "containerPort": PORT}]
    spec = {"serviceAccountName": name, "automountServiceAccountToken": False, "containers": [container]}
    return named("Pod", name, SHOP, metadata={"labels": {"app": name}}, spec=spec)


class WholeCluster:
    """A cluster with a shop of three pods. Create it with `run_whole_cluster`."""

    def __init__(self, api: ApiServer, replicas: Replicas, network: Network, folder: Path) -> None:
        self.api = api
        self.replicas = replicas
        self.network = network
        self.folder = folder
        self.pods: dict[str, PodSandbox] = {}

    # The user

    def kubectl_apply(self, *manifests: Plain) -> str:
        """Apply manifests, and return the output of kubectl, including warnings."""
        listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
        done = self.api.try_kubectl("apply", "-f", "-", stdin=json.dumps(listed))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def kubectl_refuses(self, manifest: Plain) -> str:
        """Apply a manifest that is refused, and return the error of kubectl."""
        return self.api.kubectl("apply", "-f", "-", stdin=json.dumps(manifest), fails=True)

    def remove_policies(self) -> None:
        """Remove all policies and routes, and wait until every call is allowed again."""
        kinds = [f"authorizationpolicies.{GROUP}", "authpolicies.kuadrant.io", "invariants.eastgate.dev"]
        kinds += [f"xaccesspolicies.{AGENTIC_GROUP}", f"httproutes.{GATEWAY_GROUP}"]
        for kind in reversed(kinds):
            self.api.kubectl("delete", kind, "--all", "-n", SHOP)
        until(lambda: self.call("stranger") == "200")

    # Kubernetes

    def install(self) -> None:
        """Install the objects of the chart, and start the replicas."""
        api = self.api
        api.apply(*definitions(_WEBHOOK))
        api.install(*_DEFINITIONS)
        labels = {"app.kubernetes.io/name": "eastgate"}
        ports = [{"name": name, "port": port, "targetPort": _TARGETS.get(port, port)} for name, port in _PORTS.items()]
        service = {"selector": labels, "clusterIP": CONTROL_PLANE, "ports": ports}
        api.apply(
            named("Namespace", SYSTEM),
            named("ServiceAccount", "eastgate", SYSTEM),
            named("Service", "eastgate", SYSTEM, spec=service),
            named(
                "GatewayClass",
                "eastgate",
                api=f"{GATEWAY_GROUP}/v1",
                spec={"controllerName": "eastgate.dev/gateway-controller"},
            ),
            *webhook_configurations(_WEBHOOK),
        )
        spec = {"serviceAccountName": "eastgate", "containers": [{"name": "controller", "image": "eastgate"}]}
        for name, address in REPLICAS.items():
            api.apply(named("Pod", name, SYSTEM, metadata={"labels": labels}, spec=spec))
            api.run_pod(SYSTEM, name, address)
        self.network.add_node_addresses(*REPLICAS.values())
        self.replicas.start_all(*REPLICAS)
        self.balance(*REPLICAS)
        until(self._are_webhooks_trusted, self.replicas.logs)

    def _are_webhooks_trusted(self) -> bool:
        configurations = (self.api.request("GET", _CONFIGURATIONS.format(kind)) for kind in ("validating", "mutating"))
        return all(
            "caBundle" in webhook["clientConfig"] for _, each in configurations for webhook in each.get("webhooks", ())
        )

    def restart_replica(self, name: str) -> None:
        """Restart a replica like a rolling update: it gets no new connections, ends, and starts again."""
        self.balance(*(other for other in REPLICAS if other != name))
        self.replicas.lose(name, is_asked=True)
        self.bring_back(name)

    def bring_back(self, name: str) -> None:
        """Start a stopped replica, and send connections to all replicas once it is ready."""
        self.replicas.start_all(name)
        self.balance(*REPLICAS)

    def balance(self, *names: str) -> None:
        """Forward calls of the controller's Service to these replicas."""
        for port in _PORTS.values():
            target = _TARGETS.get(port, port)
            self.network.balance_service(CONTROL_PLANE, port, [f"{REPLICAS[name]}:{target}" for name in names])

    def open_shop(self) -> None:
        """Create the pods of the shop, and run them."""
        namespace = named("Namespace", SHOP, metadata={"labels": {"eastgate.dev/injection": "enabled"}})
        accounts = [named("ServiceAccount", name, SHOP) for name in ("cart", "web", "stranger")]
        spec = {"selector": {"app": "cart"}, "clusterIP": CART, "ports": [{"port": 80, "targetPort": "http"}]}
        service = named("Service", "cart", SHOP, spec=spec)
        self.kubectl_apply(namespace, *accounts, service, *map(pod_of, ("cart", "web", "stranger")))
        self.network.add_service(CART, 80, f"{ADDRESSES['cart']}:{PORT}")
        for name in ("cart", "web", "stranger"):
            self.start_pod(SHOP, name, name).run("eastgate-redirect")
            self.pods[name].start("eastgate-proxy")
        script = [sys.executable, str(_PROGRAMS / "application.py"), "-", f"0.0.0.0:{PORT}"]
        self.pods["cart"].start_program("application", self.as_application("cart", script))
        for name in ("cart", "web", "stranger"):
            until(lambda name=name: self.is_pod_ready(name), self.logs)  # type: ignore[misc]

    def open_gateway(self) -> None:
        """Create a Gateway of Eastgate's class, run its pod, and forward its Service there, once."""
        if "gateway" in self.pods:
            return
        listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
        spec: Plain = {"gatewayClassName": "eastgate", "listeners": [listener]}
        spec["addresses"] = [{"type": "IPAddress", "value": GATEWAY}]
        parameters = {"group": "", "kind": "ConfigMap", "name": "parameters"}
        spec["infrastructure"] = {"parametersRef": parameters}
        self.kubectl_apply(
            named("Namespace", EDGE),
            named("ConfigMap", "parameters", EDGE, data={"replicas": "1", "serviceType": "ClusterIP"}),
            named("Gateway", "entry", EDGE, f"{GATEWAY_GROUP}/v1", spec=spec),
        )
        pods = f"/api/v1/namespaces/{EDGE}/pods"
        until(lambda: self.api.request("GET", pods)[1]["items"], self.logs)
        [pod] = self.api.request("GET", pods)[1]["items"]
        self.start_pod(EDGE, pod["metadata"]["name"], "gateway").start("envoy")
        self.network.balance_service(GATEWAY, 80, [f"{ADDRESSES['gateway']}:80"])
        until(lambda: self.is_pod_ready("gateway"), self.logs)

    def start_pod(self, namespace: str, name: str, role: str) -> PodSandbox:
        """Prepare a pod like a scheduler and a kubelet, before its containers start."""
        address = ADDRESSES[role]
        self.api.run_pod(namespace, name, address)
        pod = self.api.get("pod", name, "-n", namespace)
        token = self.api.token_of(f"{namespace}/{pod['spec']['serviceAccountName']}", "eastgate", pod=pod)
        trust = f"/api/v1/namespaces/{namespace}/configmaps/eastgate-ca"
        until(lambda: self.api.request("GET", trust)[0] == 200)
        _, config_map = self.api.request("GET", trust)
        contents = {"eastgate-token": {"token": token}, "eastgate-ca": config_map["data"]}
        contents |= {name.removeprefix("eastgate-"): files for name, files in contents.items()}
        sandbox = PodSandbox(pod, self.network.add_pod(role, address), self.folder / role, contents, _HOSTS)
        self.pods[role] = sandbox
        return sandbox

    def restart_proxy(self, role: str) -> None:
        """Restart the sidecar of a pod, and wait until it is ready."""
        self.pods[role].stop_program("eastgate-proxy")
        self.pods[role].start("eastgate-proxy")
        until(lambda: self.is_pod_ready(role), self.logs)

    def is_pod_ready(self, role: str) -> bool:
        """Return whether a pod is ready, by the probe of a kubelet at its proxy."""
        return self.call_from_node(ADDRESSES[role], 15021, "/healthz/ready") == "200"

    # Traffic

    def as_application(self, role: str, command: list[str]) -> list[str]:
        """Return a command that runs as a process of a pod's application."""
        entered = ["nsenter", "--net", "--target", str(self.pods[role].namespace.pid), "--", "setpriv"]
        user = [f"--reuid={_APPLICATION}", f"--regid={_APPLICATION}", "--clear-groups"]
        return [*entered, "--pdeathsig", "KILL", *user, *command]

    def call(self, caller: str, path: str = "/", address: str = CART) -> str:
        """Call port 80 as an application; return the status, or `closed`."""
        return self.call_for_answer(caller, path, address).split(" ")[0].strip()

    def call_for_answer(self, caller: str, path: str, address: str, *options: str) -> str:
        """Call, and return the status and the answer. `options` are those of `client.py`."""
        client = [sys.executable, str(_PROGRAMS / "client.py"), address, "80", path, *options]
        command = self.as_application(caller, client)
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout

    def call_from_node(self, host: str, port: int, path: str = "/", headers: Mapping[str, str] | None = None) -> str:
        """Call from outside of all pods; return the status, or `closed`."""
        connection = http.client.HTTPConnection(host, port, timeout=30)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            return str(connection.getresponse().status)
        except (http.client.HTTPException, OSError):
            return "closed"
        finally:
            connection.close()

    @contextmanager
    def load(self, caller: str | None, *target: str) -> Iterator[None]:
        """Call continuously, from an application or from outside; every request must get 200."""
        command = [sys.executable, str(Path(__file__).parent / "load.py"), *target]
        if caller is not None:
            command = self.as_application(caller, command)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield
            output, _ = process.communicate("end\n", timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
        answers = json.loads(output)
        print(f"{caller or 'outside'} to {target[0]}: {answers}")
        assert list(answers) == ["200"], f"{answers}\n{self.logs()}"

    # Status

    def conditions(self, kind: str, name: str, namespace: str = SHOP) -> dict[str, Plain]:
        """Return the conditions of an object for its newest generation, by type."""
        obj = self.api.get(kind, name, "-n", namespace)
        status = obj.get("status") or {}
        entries = status.get("ancestors") or status.get("parents") or [status]
        return {
            each["type"]: each
            for entry in entries
            for each in entry.get("conditions") or ()
            if each.get("observedGeneration") == obj["metadata"]["generation"]
        }

    def is_condition(self, kind: str, name: str, condition: str = "Programmed", namespace: str = SHOP) -> bool:
        """Return whether a condition holds for the newest generation of an object."""
        return self.conditions(kind, name, namespace).get(condition, {}).get("status") == "True"

    def connected(self, replica: str) -> int:
        """Return the number of connected proxies of a replica."""
        metrics = (self.replicas.fetch(replica, "/metrics") or b"").decode()
        [line] = [each for each in metrics.splitlines() if each.startswith("eastgate_xds_connected_proxies ")]
        return int(float(line.split()[1]))

    def refusals(self) -> list[str]:
        """Return the requests of replicas that the API server refused, from their logs."""
        logs = "".join(path.read_text() for path in self.replicas.folder.glob("*.log"))
        return [line for line in logs.splitlines() if "forbidden" in line.lower()]

    def logs(self) -> str:
        """Return the ends of all logs."""
        logs = [self.replicas.logs()]
        for role, pod in self.pods.items():
            logs += [f"{role} {path.name}: {path.read_text()[-1500:]}" for path in sorted(pod.folder.glob("*.log"))]
        return "\n".join(logs)

    def stop(self) -> None:
        for pod in self.pods.values():
            pod.stop()


@contextmanager
def run_whole_cluster(options: Sequence[str] = ()) -> Iterator[WholeCluster]:
    """Run a cluster with two replicas of the controller and the shop."""
    for program in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"):
        find(program)  # a build downloads modules, which is not possible in the network namespace of the node
    for project in _DEFINITIONS:
        crds(project)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="eastgate-whole-")))
        folder.chmod(0o755)  # containers run as several users
        network = stack.enter_context(Network())
        stack.enter_context(network.node.entered())
        for name in ("api", "replicas"):
            (folder / name).mkdir()
        api = stack.enter_context(ApiServer(folder / "api", pods_need_accounts=True))
        lasting = "--controllers=*,-node-lifecycle-controller"  # no kubelet reports the node as alive
        stack.enter_context(ControllerManager(api, [lasting]))
        api.apply(named("Namespace", SYSTEM), *permissions())
        account = api.kubeconfig_for(f"{SYSTEM}/eastgate")
        replicas = stack.enter_context(Replicas(api, folder / "replicas", options, account, REPLICAS))
        cluster = WholeCluster(api, replicas, network, folder)
        stack.callback(cluster.stop)
        cluster.install()
        cluster.open_shop()
        yield cluster
