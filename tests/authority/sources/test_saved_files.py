"""After any saves of files, an authority and its proxies have the same state as after a new reading."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from eastgate.authority.authority import Authority, Touched
from eastgate.authority.changes import changes_between
from eastgate.authority.questions import Question
from eastgate.authority.reading import Manifests, read_manifests
from eastgate.cluster import Change, GatewayNamed
from eastgate.cluster.unread import Handling
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import SiteChange, everything
from eastgate.control.gateway_nodes import gateway_node, ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.control.sites import ProxySite, identity_of, ports_of
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server import Store
from eastgate.settings import Settings
from tests.control.seeing import seen, verdict_of

SETTINGS = Settings().enforced()


def _pod(name: str, labels: str, namespace: str = "shop") -> str:
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}
spec: {{serviceAccountName: {name}, containers: [{{name: c, ports: [{{containerPort: 80}}]}}]}}
"""


def _istio(name: str, rules: str) -> str:
    return f"""apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: shop}}
spec: {{selector: {{matchLabels: {{app: cart}}}}, rules: {rules}}}
"""


def _auth_policy(route: str) -> str:
    return f"""apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {{name: keys, namespace: shop}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: HTTPRoute, name: {route}}}
  rules: {{authentication: {{keys: {{anonymous: {{}}}}}}}}
"""


def _network(name: str, app: str) -> str:
    return f"""apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
  podSelector: {{matchLabels: {{app: cart}}}}
  ingress: [{{from: [{{podSelector: {{matchLabels: {{app: {app}}}}}}}]}}]
"""


FROM_WEB = '[{from: [{source: {principals: ["cluster.local/ns/shop/sa/web"]}}]}]'
GATEWAY = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: x, listeners: [{name: http, port: 8080, protocol: HTTP}]}
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: carts, namespace: shop}
spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
"""
SERVICE = """apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{port: 80}]}
"""
MESH = """apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomainAliases: [old.local]"}
"""
UNREAD = """apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: unread, namespace: shop}
spec: {endpointSelector: {matchLabels: {app: %s}}}
"""
# Each object in some versions; a folder has each at most once
OBJECTS = {
    "cart": [_pod("cart", "{app: cart}"), _pod("cart", "{app: cart, tier: back}"), _pod("cart", "{app: other}")],
    "web": [_pod("web", "{app: web}"), _pod("web", "{app: front}")],
    "namespace": [
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: a}}\n",
    ],
    "service": [SERVICE, SERVICE.replace("port: 80", "port: 81")],
    "allow": [_istio("allow", FROM_WEB), _istio("allow", "[{}]"), _istio("allow", "[{from: nobody}]")],
    "second": [_istio("second", FROM_WEB), _istio("second", FROM_WEB.replace("web", "cart"))],
    "mesh": [MESH, MESH.replace("old.local", "older.local")],
    "gateway": [GATEWAY, GATEWAY.replace("8080", "8081")],
    "route": [ROUTE, ROUTE.replace("parentRefs", "hostnames: [a.example], parentRefs")],
    "keys": [_auth_policy("carts"), _auth_policy("missing")],
    "network": [_network("network", "web"), _network("network", "front")],
    "unread": [UNREAD % "cart", UNREAD % "web"],
}
PADDING = "# a comment\n"


FILES = ("a.yaml", "b.yaml")
FIRST: Final[Mapping[str, str | None]] = {name: versions[0] for name, versions in OBJECTS.items()}
ABSENT: Final[Mapping[str, str | None]] = dict.fromkeys(OBJECTS)


@st.composite
def saves(draw: st.DrawFn) -> list[dict[str, str]]:
    """The texts of the files after each save. A save changes a few objects, and may move the rest to other lines."""
    present = dict(draw(st.sampled_from([FIRST, ABSENT])))
    homes = {name: draw(st.sampled_from(FILES)) for name in OBJECTS}
    found = [_texts(present, homes, "")]
    for _ in range(draw(st.integers(1, 5))):
        for name in draw(st.lists(st.sampled_from([*OBJECTS]), min_size=1, max_size=3)):
            present[name] = draw(st.sampled_from([*OBJECTS[name], None]))
        found.append(_texts(present, homes, draw(st.sampled_from(["", PADDING]))))
    return found


def _texts(present: Mapping[str, str | None], homes: Mapping[str, str], head: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {file: [head] for file in FILES}
    for name, text in present.items():
        if text is not None:
            parts[homes[name]].append(text)
    return {file: "---\n".join(texts) for file, texts in parts.items()}


@given(saves())
def test_after_any_saves_everything_is_as_if_it_had_been_read_anew(saved: list[dict[str, str]]) -> None:
    following: _Following | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for texts in saved:
            for file, text in texts.items():
                (folder / file).write_text(text)
            after = read_manifests([folder], SETTINGS)
            if after.unattributed_errors or after.unknown_objects:
                continue  # no part of it is in force
            fresh = _Following(after)
            if following is None:
                following = fresh
                continue
            following.save(after)
            assert list(following.seen()) == list(fresh.seen())


def test_a_change_of_the_last_line_of_a_file_counts(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    head = "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: x, namespace: shop}\n"
    text = f"{head}spec: {{endpointSelector: {{matchLabels: {{app: %s}}}}}}\n"
    readings = []
    for app in ("cart", "web"):
        file.write_text(text % app)
        readings.append(read_manifests([tmp_path], SETTINGS))
    assert changes_between(*readings).names.changed == ("CiliumNetworkPolicy/shop/x",)


class _Following:
    """A control plane that follows saved files."""

    def __init__(self, manifests: Manifests) -> None:
        self._manifests = manifests
        self._authority = _authority(manifests)
        self._store = Store()
        self._enforcement = Enforcement(self._authority, self._store, session_key="key")
        self._place()
        self._enforcement.follow(SiteChange(*self._sites()), everything(self._authority.world))

    def save(self, manifests: Manifests) -> None:
        touched = self._authority.apply(changes_between(self._manifests, manifests))
        self._manifests = manifests
        placed = self._place()
        touched |= Touched(placed.workloads, placed)
        self._enforcement.follow(self._enforcement.changes_to(*self._sites()), touched)
        self._enforcement.renew()

    def _place(self) -> Change:
        keys = sorted(self._authority.world.workloads)
        return self._authority.assign_addresses({key: f"127.0.1.{1 + keys.index(key)}" for key in keys})

    def _sites(self) -> tuple[dict[str, ProxySite], dict[str, GatewaySite]]:
        world = self._authority.world
        sites = {}
        for key, workload in world.workloads.items():
            assert identity_of(workload, SETTINGS) is not None
            ports = {port: port for port in sorted(ports_of(world, workload))}
            address = world.address_of(workload)
            assert address is not None
            sites[key] = ProxySite(key, address, ports, {port: SocketAddress(f"/{key}/{port}") for port in ports})
        gateways = {}
        for gateway in world.gateways.values():
            ports = {port: port for port in sorted(ports_of_gateway(world, gateway))}
            node = gateway_node(gateway.namespace, gateway.name)
            gateways[node] = GatewaySite(GatewayNamed(gateway.namespace, gateway.name), "127.0.1.99", ports)
        return sites, gateways

    def seen(self) -> Iterator[object]:
        """All visible state of the control plane."""
        yield from seen(self._authority, self._enforcement, 80)
        entry = Question.of("anonymous", "gateway:shop/edge", port=8080, method="GET", path="/", host="a.example")
        yield verdict_of(self._authority, entry)


def _authority(manifests: Manifests) -> Authority:
    return Authority(manifests, strict=False, unread=Handling.IGNORE)
