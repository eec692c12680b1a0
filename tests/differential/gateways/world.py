"""The servers behind gateways and the callers, which stay the same for all drawn routes and policies."""

from __future__ import annotations

from eastgate import Settings
from tests.differential.asking import TRUST_DOMAIN, Caller
from tests.differential.world import Manifest
from tests.worlds.access_generate import SEED
from tests.worlds.kuadrant_generate import SECRETS

__all__ = ["AUTHORIZERS", "BACKENDS", "CALLERS", "GATEWAY", "HTTPS", "PASSED", "PLAIN", "SERVERS", "SETTINGS", "WORLD"]

SETTINGS = Settings.from_mapping({"trustDomain": TRUST_DOMAIN}).enforced()
GATEWAY = "gateway:n/g"
PLAIN, HTTPS, PASSED = (8080, 8081), (8443,), (8444,)  # ports of HTTP, HTTPS and TLS passthrough
SERVERS = {"s1": ("n/servers", 8001), "s2": ("n/servers", 8002), "s3": ("m/servers", 8003)}  # Services and their pods
BACKENDS = {"b1": "s1", "b2": "s2", "b3": "s3"}  # XBackends and their Services
AUTHORIZERS = {1: ("n/servers", 9001), 2: ("n/servers", 9002)}  # the first speaks gRPC, the second HTTP


def _pod(key: str) -> Manifest:
    namespace, name = key.split("/")
    ports = [port for pod, port in (*SERVERS.values(), *AUTHORIZERS.values()) if pod == key]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "serviceAccountName": name,
            "containers": [{"name": "c", "ports": [{"containerPort": port} for port in ports]}],
        },
    }


def _service(name: str, namespace: str, ports: dict[int, int]) -> Manifest:
    listed = [{"name": f"p{port}", "port": port, "targetPort": target} for port, target in ports.items()]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": "servers"}, "ports": listed},
    }


def _backend(name: str, service: str) -> Manifest:
    return {
        "apiVersion": SEED,
        "kind": "XBackend",
        "metadata": {"name": name, "namespace": SERVERS[service][0].partition("/")[0]},
        "spec": {"mcp": {"serviceName": service, "port": 80}},
    }


def _namespace(name: str, labels: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


WORLD: list[Manifest] = [
    _namespace("n", {"team": "a", "shared": "yes"}),
    _namespace("m", {"team": "b", "shared": "yes"}),
    *(_pod(key) for key in ("n/servers", "m/servers")),
    *(_service(name, pod.partition("/")[0], {80: port}) for name, (pod, port) in SERVERS.items()),
    _service("authz", "n", {port: target for port, (_, target) in AUTHORIZERS.items()}),
    *(_backend(name, service) for name, service in BACKENDS.items()),
    *SECRETS,
]

_OWN = [
    "spiffe://td/ns/n/sa/x",
    "spiffe://td/ns/n/sa/y",
    "spiffe://td/ns/m/sa/x",
    "spiffe://td/ns/n/sa/nobody-declares-it",
    "spiffe://td/ns/elsewhere/sa/x",
    "spiffe://td/workload",
]
_FOREIGN = ["spiffe://evil/ns/n/sa/x", "spiffe://evil/workload"]
CALLERS = {
    "HTTP": [Caller(identity, "127.0.0.2") for identity in (*_OWN, *_OWN[:2], *_FOREIGN, None, None)],
    "HTTPS": [Caller(identity, "127.0.0.2") for identity in (*_OWN, None, None, None)],
}
