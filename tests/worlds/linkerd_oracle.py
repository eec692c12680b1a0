"""An independent implementation of Linkerd's inbound policy, as in its controller and proxy, on plain manifests.

It shares no code with the product, and has Linkerd's structure. It finds the Server of the port, its routes, the best
match of the request, and then the first authorization that fits. All attributes of a call are known.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
Authz = Manifest  # {"networks": [...] or None, "who": [...] or None}, as the proxy gets it: None is no condition

ALL_POLICIES = (
    "all-unauthenticated",
    "all-authenticated",
    "cluster-unauthenticated",
    "cluster-authenticated",
    "deny",
    "audit",
)
CLUSTER = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8"]
NO_CALLER: Authz = {"networks": [], "who": []}


@dataclass(frozen=True)
class Call:
    """One request, or one connection without HTTP (then without a method)."""

    name: str | None  # in the client's certificate
    address: str
    port: int
    method: str | None = None
    path: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()


class Mesh:
    """The manifests of a cluster with one cluster-wide default."""

    def __init__(self, manifests: list[Manifest], default: str, *, native: bool) -> None:
        self.manifests = manifests
        self.native = native  # with Linkerd's own proxy, calls have the sent path, otherwise the compared one
        self.default = default

    def status(self, pod: Manifest, call: Call) -> int | None:
        """Return 200, 403, 404, or 0 for a closed connection; None for other bytes at an HTTP port."""
        server = next((s for s in self._servers(pod) if call.port in _numbers(s["spec"]["port"], pod)), None)
        authzs = [*self._on_server(server), *self._on_workload(pod)] if server else self._without_server(pod, call.port)
        if server:
            authzs.append(_default_authz(server["spec"].get("accessPolicy", "deny")))
        protocol = server["spec"].get("proxyProtocol", "unknown") if server else self._default_protocol(pod, call.port)
        if protocol in ("opaque", "TLS") or (protocol == "unknown" and call.method is None):
            return 200 if _authorized(authzs, call) else 0
        if call.method is None:
            return None
        kind = "GRPCRoute" if protocol == "gRPC" else "HTTPRoute"
        routes = self._routes(server, kind) if server else []
        if not routes:
            probe = kind == "HTTPRoute" and call.method == "GET" and call.path in _probes(pod, call.port)
            return 200 if probe or _authorized(authzs, call) else 403
        best = _best(routes, call, self.native)
        if best is None:
            return 404
        return 200 if _authorized([*self._on_route(best), *authzs], call) else 403

    # Servers

    def _of(self, kind: str, namespace: str) -> list[Manifest]:
        return [m for m in self.manifests if m["kind"] == kind and m["metadata"]["namespace"] == namespace]

    def _servers(self, pod: Manifest) -> list[Manifest]:
        found = [
            s
            for s in self._of("Server", pod["metadata"]["namespace"])
            if not _is_audit(s) and _selects(s["spec"]["podSelector"], pod["metadata"]["labels"])
        ]
        return sorted(found, key=lambda s: (s["metadata"].get("creationTimestamp", ""), s["metadata"]["name"]))

    def _without_server(self, pod: Manifest, port: int) -> list[Authz]:
        on_workload = self._on_workload(pod)
        if on_workload:
            return on_workload
        default = self._default(pod)
        annotation = "config.linkerd.io/proxy-require-identity-inbound-ports"
        if str(port) in pod["metadata"].get("annotations", {}).get(annotation, "").split(","):
            default = default.replace("-unauthenticated", "-authenticated")
        return [_default_authz(default)]

    def _default(self, pod: Manifest) -> str:
        namespace: Manifest = next(
            (m for m in self.manifests if m["kind"] == "Namespace" and m["metadata"]["name"] == _namespace(pod)),
            {"metadata": {}},
        )
        for holder in (pod, namespace):
            written = holder["metadata"].get("annotations", {}).get("config.linkerd.io/default-inbound-policy")
            if written is not None:  # the injector copies a namespace's annotation to pods without one
                return str(written) if written in ALL_POLICIES else self.default
        return self.default

    def _default_protocol(self, pod: Manifest, port: int) -> str:
        opaque = pod["metadata"].get("annotations", {}).get("config.linkerd.io/opaque-ports", "")
        return "opaque" if str(port) in opaque.split(",") else "unknown"

    # Authorizations

    def _on_server(self, server: Manifest) -> list[Authz]:
        namespace, found = server["metadata"]["namespace"], []
        for one in self._of("ServerAuthorization", namespace):
            wanted = one["spec"]["server"]
            chosen = (
                wanted["name"] == server["metadata"]["name"]
                if "name" in wanted
                else _selects(wanted["selector"], server["metadata"].get("labels", {}))
            )
            if chosen and not _is_audit(one):
                found.append(_server_authz(one))
        for kind, name in (("server", server["metadata"]["name"]), ("namespace", namespace)):
            found += self._policies(namespace, kind, name)
        return found

    def _on_route(self, route: Manifest) -> list[Authz]:
        return self._policies(
            route["metadata"]["namespace"],
            route["kind"].lower(),
            route["metadata"]["name"],
            route["apiVersion"].partition("/")[0],
        )

    def _on_workload(self, pod: Manifest) -> list[Authz]:
        namespace = _namespace(pod)
        return [
            *self._policies(namespace, "pod", pod["metadata"]["name"]),
            *self._policies(namespace, "serviceaccount", pod["spec"]["serviceAccountName"]),
        ]

    def _policies(self, namespace: str, kind: str, name: str, group: str | None = None) -> list[Authz]:
        found = []
        for one in self._of("AuthorizationPolicy", namespace):
            target = one["spec"]["targetRef"]
            right = target["kind"].lower() == kind and target["name"] == name
            if right and (group is None or target["group"] == group) and not _is_audit(one):
                found.append(self._policy_authz(one))
        return found

    def _policy_authz(self, policy: Manifest) -> Authz:
        """Return the authorization of a policy. ALL of its conditions must hold."""
        own = policy["metadata"]["namespace"]
        demands = [self._demand(ref, own) for ref in policy["spec"]["requiredAuthenticationRefs"]]
        return {"all": demands}

    def _demand(self, ref: Manifest, own: str) -> Authz:
        namespace = ref.get("namespace", own)
        if ref["kind"] == "ServiceAccount":
            return {"networks": None, "who": [account_name(namespace, ref["name"])]}
        found = [m for m in self._of(ref["kind"], namespace) if m["metadata"]["name"] == ref["name"]]
        if not found:
            return NO_CALLER
        spec = found[0]["spec"]
        if ref["kind"] == "NetworkAuthentication":
            return {"networks": spec["networks"], "who": None}
        who = list(spec.get("identities", []))
        for one in spec.get("identityRefs", []):
            if one["kind"] == "Namespace":
                who.append("*." + account_name(one["name"], "").removeprefix("."))
            else:
                who.append(account_name(one.get("namespace", namespace), one["name"]))
        return {"networks": None, "who": who}

    # Routes

    def _routes(self, server: Manifest, kind: str) -> list[Manifest]:
        namespace, name = server["metadata"]["namespace"], server["metadata"]["name"]
        attached = [
            route
            for one in ("HTTPRoute", "GRPCRoute")
            for route in self._of(one, namespace)
            if any(parent["name"] == name for parent in route["spec"]["parentRefs"])
        ]
        if kind == "HTTPRoute" and any(route["kind"] == "GRPCRoute" for route in attached):
            return []
        return sorted(
            (route for route in attached if route["kind"] == kind),
            key=lambda r: (
                "creationTimestamp" not in r["metadata"],
                r["metadata"].get("creationTimestamp", ""),
                r["metadata"]["name"],
                r["apiVersion"],
            ),
        )


def _best(routes: list[Manifest], call: Call, native: bool) -> Manifest | None:
    """Return the best route as in the proxy: the greatest summary wins, and the first of equals."""
    best: tuple[tuple[int, ...], Manifest] | None = None
    for route in routes:
        hosts = [h for name in route["spec"].get("hostnames", []) if (h := _host(name, call.host)) is not None]
        if route["spec"].get("hostnames") and not hosts:
            continue
        summaries = list(_summaries(route, call, native))
        if summaries:
            summary = (*(max(hosts) if hosts else (0, 0)), *max(summaries))
            if best is None or summary > best[0]:
                best = summary, route
    return best[1] if best else None


def _host(name: str, host: str) -> tuple[int, int] | None:
    if name.startswith("*."):
        return (1, len(name) - 1) if host.endswith(name[1:]) else None
    return (2, len(name)) if host == name else None


def _summaries(route: Manifest, call: Call, native: bool) -> Iterator[tuple[int, ...]]:
    for rule in route["spec"]["rules"]:
        implicit: list[Manifest | None] = [{}] if route["kind"] == "HTTPRoute" else [None]
        for match in rule.get("matches", implicit):
            found = _http(match, call, native) if route["kind"] == "HTTPRoute" else _grpc(match, call)
            if found is not None:
                yield found


def _headers(match: Manifest, call: Call) -> int | None:
    wanted = match.get("headers", [])
    return len(wanted) if all((h["name"], h["value"]) in call.headers for h in wanted) else None


def _http(match: Manifest, call: Call, native: bool) -> tuple[int, ...] | None:
    path, length = match.get("path", {"type": "PathPrefix", "value": "/"}), None
    value = path["value"]
    if not native and path.get("type") != "RegularExpression":
        value = value.replace("%61", "a")
    match path.get("type", "PathPrefix"):
        case "Exact" if call.path == value:
            length = len(value)
        case "RegularExpression" if _expression(value, call.path, native):
            length = len(call.path)
        case "PathPrefix" if value == "/":
            length = 1
        case "PathPrefix":
            prefix, rest = value.rstrip("/"), call.path.rstrip("/")
            if rest == prefix or rest.startswith(prefix + "/"):
                length = len(prefix)
    headers = _headers(match, call)
    if length is None or headers is None or match.get("method", call.method) != call.method:
        return None
    return length, headers, int("method" in match)


def _expression(value: str, path: str, native: bool) -> bool:
    """Match as Linkerd's proxy does: it finds the first match, which must span the whole path."""
    if not native:
        return re.fullmatch(value, path) is not None
    found = re.search(value, path)
    return found is not None and found.span() == (0, len(path))


def _grpc(match: Manifest | None, call: Call) -> tuple[int, ...] | None:
    if match is None:
        return 0, 0, 0
    headers, segments, rpc = _headers(match, call), call.path.split("/"), match.get("method", {})
    if call.method != "POST" or headers is None or len(segments) < 3:
        return None
    if rpc.get("service", segments[1]) != segments[1] or rpc.get("method", segments[2]) != segments[2]:
        return None
    return len(rpc.get("service", "")), len(rpc.get("method", "")), headers


# Clients


def _authorized(authzs: list[Authz], call: Call) -> bool:
    return call.address in ("127.0.0.1", "::1") or any(_fits(authz, call) for authz in authzs)


def _fits(authz: Authz, call: Call) -> bool:
    if "all" in authz:
        return all(_fits(one, call) for one in authz["all"])
    where = authz["networks"] is None or any(_inside(n, call.address) for n in authz["networks"])
    who = authz["who"] is None or any(_is(wanted, call.name) for wanted in authz["who"])
    return where and who


def _inside(network: Manifest, address: str) -> bool:
    ip = ipaddress.ip_address(address)
    return ip in ipaddress.ip_network(network["cidr"]) and not any(
        ip in ipaddress.ip_network(one) for one in network.get("except", [])
    )


def _is(wanted: str, name: str | None) -> bool:
    if name is None or name.startswith("spiffe://"):
        return name == wanted
    if wanted == "TLS":
        return True
    return name == wanted or (wanted.startswith("*") and name.endswith(wanted[1:]))


def _default_authz(policy: str) -> Authz:
    if policy == "deny":
        return NO_CALLER
    return {
        "networks": [{"cidr": cidr} for cidr in CLUSTER] if policy.startswith("cluster-") else None,
        "who": ["*"] if policy.endswith("-authenticated") else None,
    }


def _server_authz(one: Manifest) -> Authz:
    client = one["spec"]["client"]
    networks = client.get("networks", [{"cidr": cidr} for cidr in CLUSTER])
    if client.get("unauthenticated"):
        return {"networks": networks, "who": None}
    mesh = client["meshTLS"]
    accounts = [
        account_name(a.get("namespace", one["metadata"]["namespace"]), a["name"])
        for a in mesh.get("serviceAccounts", [])
    ]
    return {"networks": networks, "who": [*mesh.get("identities", []), *accounts]}


def account_name(namespace: str, name: str) -> str:
    return f"{name}.{namespace}.serviceaccount.identity.linkerd.cluster.local"


# Pods


def _namespace(pod: Manifest) -> str:
    return str(pod["metadata"]["namespace"])


def _numbers(port: int | str, pod: Manifest) -> set[int]:
    if isinstance(port, int):
        return {port}
    return {p["containerPort"] for c in pod["spec"]["containers"] for p in c["ports"] if p["name"] == port}


def _probes(pod: Manifest, port: int) -> set[str]:
    probes = [c["livenessProbe"]["httpGet"] for c in pod["spec"]["containers"] if "livenessProbe" in c]
    return {probe["path"] for probe in probes if probe["port"] == port}


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def _is_audit(one: Manifest) -> bool:
    return bool(one["metadata"].get("annotations", {}).get("eastgate.dev/mode") == "audit")
