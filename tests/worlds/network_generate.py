"""Generated clusters with network policies of all four kinds, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.worlds.network_oracle import Ask

Manifest = dict[str, Any]
Strategy = st.SearchStrategy[Any]

GROUP = "policy.networking.k8s.io"
NAMESPACES = ("n", "m")
IPV4 = ("10.1.1.1", "10.1.2.1", "10.2.0.1", "10.1.1.2", "10.3.0.1")
IPV6 = ("fd00:1::1", "fd00:1::2", "fd00:2::1", "fd00:1::3", "fd00:3::1")
NODES = ("192.168.0.1", "192.168.0.2")
OUTSIDE = ("8.8.8.8", "9.9.9.9", "2001:db8::1")
PORTS = (80, 85, 90, 53, 8080, 9, 65535)


@dataclass(frozen=True)
class Scope:
    """The possible contents of a generated cluster: everything, or only features of a simpler tool."""

    blocks: tuple[Manifest, ...]
    networks: tuple[str, ...]
    whole: bool = True  # pods without addresses, on the host network, of templates; nodes, names, equal priorities


def _block(cidr: str, *exceptions: str) -> Manifest:
    return {"cidr": cidr, **({"except": list(exceptions)} if exceptions else {})}


EVERYTHING = Scope(
    blocks=(
        _block("0.0.0.0/0"),
        _block("::/0"),
        _block("10.1.0.0/16", "10.1.2.0/24"),
        _block("10.1.2.1/32"),
        _block("10.2.0.77/16"),
        _block("192.168.0.0/24"),
        _block("192.168.0.1/32"),
        _block("8.0.0.0/8", "8.8.8.0/24", "8.8.8.8/32"),
        _block("fd00:1::/32", "fd00:1::2/128"),
        _block("0.0.0.0/1"),
        _block("128.0.0.0/1"),
    ),
    networks=("0.0.0.0/0", "::/0", "10.1.0.0/16", "10.1.2.0/24", "8.8.8.8/32", "192.168.0.0/24", "fd00:1::/32"),
)
PODS_BY_SELECTORS = Scope(
    blocks=(_block("8.0.0.0/8", "8.8.0.0/16"), _block("8.8.8.8/32"), _block("9.9.9.0/24"), _block("128.0.0.0/1")),
    networks=("8.0.0.0/8", "8.8.8.8/32", "9.9.9.9/32", "128.0.0.0/1"),
    whole=False,
)
"""In this scope, no block has the address of a pod."""


def _sometimes(required: dict[str, Strategy], optional: dict[str, Strategy]) -> Strategy:
    return st.fixed_dictionaries(required, optional=optional)


def _expression(key: str, operator: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


pod_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"app": "a"}},
        {"matchLabels": {"app": "b"}},
        {"matchLabels": {"app": "a", "tier": "f"}},
        _expression("tier", "Exists"),
        _expression("tier", "DoesNotExist"),
        _expression("app", "NotIn", "a"),
        _expression("app", "In", "a", "c"),
        {"matchLabels": {"app": "b"}, **_expression("tier", "NotIn", "f")},
    ]
)
namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"kubernetes.io/metadata.name": "n"}},
        {"matchLabels": {"team": "red"}},
        _expression("kubernetes.io/metadata.name", "NotIn", "n"),
        _expression("team", "DoesNotExist"),
        _expression("team", "In", "red", "blue"),
    ]
)

# The cluster

labels = st.sampled_from(
    [
        {key: value for key, value in (("app", app), ("tier", tier)) if value is not None}
        for app in ("a", "b", "c", None)
        for tier in ("f", "g", None)
    ]
)
container_ports: Strategy = st.lists(
    st.sampled_from(
        [
            {"name": "http", "containerPort": 80},
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns", "containerPort": 53},
            {"containerPort": 90},
        ]
    ),
    max_size=2,
    unique_by=lambda port: str(port.get("name")),
)


@st.composite
def pod(draw: st.DrawFn, index: int, namespace: str, scope: Scope, *, dual: bool) -> Manifest:
    """Draw a pod with its own address, or one on the host network with the address of its node."""
    template: Manifest = {
        "metadata": {"labels": draw(labels)},
        "spec": {
            "serviceAccountName": draw(st.sampled_from(["x", "y"])),
            "containers": [{"name": "main", "image": "i", "ports": draw(container_ports)}],
        },
    }
    name: Manifest = {"name": f"p{index}", "namespace": namespace}
    if scope.whole and draw(st.integers(0, 5)) == 0:
        template["spec"]["hostNetwork"] = draw(st.booleans())
        spec = {"replicas": 2, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": name, "spec": spec}
    status: Manifest = {}
    host_network = scope.whole and draw(st.integers(0, 4)) == 0
    if not scope.whole or draw(st.integers(0, 3)) > 0:
        status["hostIP"] = draw(st.sampled_from(NODES))
        status["podIP"] = status["hostIP"] if host_network else IPV4[index]
        if dual and not host_network:
            status["podIPs"] = [{"ip": IPV4[index]}, {"ip": IPV6[index]}]
    if host_network:
        template["spec"]["hostNetwork"] = True
    metadata = {**name, **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": status}


@st.composite
def clusters(draw: st.DrawFn, scope: Scope) -> list[Manifest]:
    """Draw namespaces, nodes, pods and a Service."""
    dual = scope.whole and draw(st.booleans())
    namespaces: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": draw(_sometimes({}, {"team": st.sampled_from(["red", "blue"])}))},
        }
        for name in NAMESPACES
    ]
    nodes: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": {"role": role}},
            "status": {"addresses": [{"type": "InternalIP", "address": NODES[index]}]},
        }
        for index, role in enumerate(["worker", "control"])
    ]
    homes = draw(st.permutations([*NAMESPACES, *NAMESPACES]))
    pods = [draw(pod(index, home, scope, dual=dual)) for index, home in enumerate(homes)]
    ports = [
        {"name": "web", "port": 80, "targetPort": 8080, "protocol": "TCP"},
        {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
    ]
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "service", "namespace": "n"},
        "spec": {"selector": {"app": "a"}, "ports": ports},
    }
    return [*namespaces, *(nodes if scope.whole else []), *pods, *([service] if scope.whole else [])]


# NetworkPolicy

network_policy_ports: Strategy = st.sampled_from(
    [
        {},
        {"port": 80},
        {"port": 80, "endPort": 90},
        {"port": 85, "endPort": 90},
        {"port": 53, "endPort": 85},
        {"port": 86, "endPort": 8080},
        {"port": 90, "endPort": 90, "protocol": "TCP"},
        {"port": 1, "endPort": 65535},
        {"protocol": "UDP"},
        {"port": 53, "protocol": "UDP"},
        {"port": "http"},
        {"port": "dns"},
        {"port": "dns", "protocol": "UDP"},
        {"port": "nothing"},
        {"port": 9, "protocol": "SCTP"},
    ]
)
numeric_ports: Strategy = network_policy_ports.filter(lambda port: not isinstance(port.get("port"), str))


def _shaped(items: Strategy, most: int) -> Strategy:
    """Draw a list, which is rarely empty."""
    full = st.lists(items, min_size=1, max_size=most)
    return st.one_of(full, full, full, full, st.just([]))


@st.composite
def _network_policy_rule(draw: st.DrawFn, side: str, scope: Scope) -> Manifest:
    fields = draw(st.sampled_from([(side, "ports"), (side, "ports"), (side, "ports"), (side,), ("ports",), ()]))
    peer = st.one_of(
        st.fixed_dictionaries({"podSelector": pod_selectors}),
        st.fixed_dictionaries({"namespaceSelector": namespace_selectors}),
        st.fixed_dictionaries({"namespaceSelector": namespace_selectors, "podSelector": pod_selectors}),
        st.fixed_dictionaries({"ipBlock": st.sampled_from(scope.blocks)}),
    )
    # the simpler tool fails on names of ports without `to`
    ports = network_policy_ports if scope.whole or side == "from" else numeric_ports
    absent: Strategy = st.none() if scope.whole else st.just([])
    choices = {side: _shaped(peer, 3) | absent, "ports": _shaped(ports, 3) | absent}
    return {field: draw(choices[field]) for field in fields}


@st.composite
def _network_policy_spec(draw: st.DrawFn, scope: Scope) -> Manifest:
    types = draw(st.sampled_from([None, ["Ingress", "Egress"], ["Ingress"], ["Egress"], [], ["Egress", "Egress"]]))
    spec: Manifest = {"podSelector": draw(pod_selectors)}
    if types is not None:
        spec["policyTypes"] = types
    for way, side in (("ingress", "from"), ("egress", "to")):
        if draw(st.integers(0, 4)) < 4:
            spec[way] = draw(_shaped(_network_policy_rule(side, scope), 3))
    return spec


def network_policy(name: str, scope: Scope) -> Strategy:
    return _resource(
        "networking.k8s.io/v1", "NetworkPolicy", name, _network_policy_spec(scope), st.sampled_from(NAMESPACES), scope
    )


@st.composite
def _resource(
    draw: st.DrawFn, version: str, kind: str, name: str, spec: Strategy, namespace: Strategy | None, scope: Scope
) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = draw(namespace)
    if scope.whole and draw(st.integers(0, 7)) == 0:
        metadata["annotations"] = {"eastgate.dev/mode": "audit"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": draw(spec)}


# Cluster policies, of both generations


def _numbered(number: Manifest) -> Manifest:
    """Return a port of the newer generation in the form of the older one."""
    ((protocol, fields),) = number.items()
    port = fields["destinationPort"]
    if "number" in port:
        return {"portNumber": {"protocol": protocol.upper(), "port": port["number"]}}
    return {"portRange": {"protocol": protocol.upper(), **port["range"]}}


protocols: list[Manifest] = [
    {"tcp": {"destinationPort": {"number": 80}}},
    {"tcp": {"destinationPort": {"range": {"start": 80, "end": 90}}}},
    {"udp": {"destinationPort": {"number": 53}}},
    {"udp": {"destinationPort": {"range": {"start": 1, "end": 65535}}}},
    {"sctp": {"destinationPort": {"number": 9}}},
]
names = ["http", "dns", "nothing"]
peers = st.one_of(
    st.fixed_dictionaries({"namespaces": namespace_selectors}),
    st.fixed_dictionaries(
        {"pods": st.fixed_dictionaries({"namespaceSelector": namespace_selectors, "podSelector": pod_selectors})}
    ),
)


@st.composite
def _cluster_rule(draw: st.DrawFn, side: str, actions: list[str], scope: Scope, *, newer: bool) -> Manifest:
    items = draw(st.lists(peers, min_size=1, max_size=2))
    named = True
    if side == "to" and draw(st.booleans()):
        named = False
        networks = st.lists(st.sampled_from(scope.networks), min_size=1, max_size=2, unique=True)
        choices = [networks.map(lambda cidrs: {"networks": cidrs})]
        if scope.whole:
            choices.append(st.sampled_from([{"nodes": {}}, {"nodes": {"matchLabels": {"role": "worker"}}}]))
        items.insert(draw(st.integers(0, len(items))), draw(st.one_of(choices)))
    rule: Manifest = {"action": draw(st.sampled_from(actions)), side: items}
    if rule["action"] == "Accept" and side == "to" and scope.whole and draw(st.integers(0, 5)) == 0:
        rule[side], named = [{"domainNames": ["example.com"]}], False
    numbers = protocols if newer else [*map(_numbered, protocols), {"portRange": {"start": 85, "end": 85}}]
    named_ports = [{"destinationNamedPort" if newer else "namedPort": name} for name in names] if named else []
    if draw(st.integers(0, 2)) > 0:
        rule["protocols" if newer else "ports"] = draw(
            st.lists(st.sampled_from([*numbers, *named_ports]), min_size=1, max_size=3)
        )
    return rule


def cluster_policy(kind: str, name: str, priority: Strategy, scope: Scope) -> Strategy:
    newer = kind == "ClusterNetworkPolicy"
    actions = ["Accept", "Deny", "Pass"] if newer else ["Allow", "Deny", "Pass"]
    if kind == "BaselineAdminNetworkPolicy":
        actions.remove("Pass")
    required: dict[str, Strategy] = {"subject": peers}
    if newer:
        required["tier"] = st.sampled_from(["Admin", "Baseline"])
    if kind != "BaselineAdminNetworkPolicy":
        required["priority"] = priority
    required |= {
        way: st.lists(_cluster_rule(side, actions, scope, newer=newer), min_size=1, max_size=3)
        for way, side in (("ingress", "from"), ("egress", "to"))
    }
    version = f"{GROUP}/{'v1alpha2' if newer else 'v1alpha1'}"
    return _resource(version, kind, name, st.fixed_dictionaries(required), None, scope)


def policies(scope: Scope) -> Strategy:
    """Draw policies of each kind. The smaller scope has only the older generation, with unique priorities."""
    several = [_mostly(network_policy(f"np{index}", scope)) for index in range(3)]
    for index in range(2):
        priority = st.sampled_from([1, 2]) if scope.whole else st.just(index)
        several.append(_mostly(cluster_policy("AdminNetworkPolicy", f"anp{index}", priority, scope)))
        if scope.whole:
            several.append(_mostly(cluster_policy("ClusterNetworkPolicy", f"cnp{index}", priority, scope)))
    several.append(_mostly(cluster_policy("BaselineAdminNetworkPolicy", "default", st.none(), scope)))
    return st.tuples(*several).map(lambda lists: [policy for some in lists for policy in some])


@st.composite
def _mostly(draw: st.DrawFn, strategy: Strategy) -> list[Manifest]:
    return [draw(strategy)] if draw(st.integers(0, 3)) < 3 else []


# Questions


@st.composite
def asks(draw: st.DrawFn, cluster: list[Manifest]) -> Ask:
    """Draw a question about a cluster."""
    pods = [manifest for manifest in cluster if manifest["kind"] in ("Pod", "Deployment")]
    named = [f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]
    accounts = [f"{namespace}/{account}" for namespace in (*NAMESPACES, "elsewhere") for account in ("x", "nobody")]
    callers = [
        *named,
        *(f"sa:{account}" for account in accounts),
        "spiffe://cluster.local/ns/n/sa/x",
        "spiffe://elsewhere.example/ns/n/sa/x",
        *(f"ip:{address}" for address in (*OUTSIDE, *NODES, *IPV4[:2])),
    ]
    is_backed = any(
        pod["metadata"]["namespace"] == "n"
        and (pod["spec"].get("template") or pod)["metadata"]["labels"].get("app") == "a"
        for pod in pods
    )
    source = draw(st.one_of(st.sampled_from(named), st.sampled_from(callers)))
    others = [name for name in named if name != source]
    outside = [f"ip:{address}" for address in (*OUTSIDE, *NODES)]
    to = draw(st.sampled_from([*others, *named, *others, *(["service:n/service"] if is_backed else []), *outside]))
    if to.startswith("service:"):
        return Ask(source, to, *draw(st.sampled_from([(80, "tcp"), (53, "udp")])))
    port = draw(st.sampled_from([*PORTS, None]))
    protocol = draw(st.sampled_from(["tcp", "tcp", "udp", "sctp"]))
    given = draw(st.sampled_from([None, None, "10.1.1.9", "8.8.8.8"])) if source.startswith("pod:") else None
    return Ask(source, to, port, protocol, given)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Manifest], list[Ask]]:
    """Draw a cluster with policies, and questions about it."""
    cluster = draw(clusters(EVERYTHING))
    return [*cluster, *draw(policies(EVERYTHING))], draw(st.lists(asks(cluster), min_size=8, max_size=8))
