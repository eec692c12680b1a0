"""An independent implementation of Kubernetes network policies, from upstream's documents, on plain manifests.

It shares no code with the product. It expands a question to every possible connection: each pod of an account, each
unknown address, each missing port. It decides each connection in every order that upstream allows. The question is
allowed if all of these are allowed. `None` means that upstream does not define the answer.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Names = frozenset[str]
Verdict = tuple[bool, Names]  # with the possible deciding policies; "none" if none decides

NONE = frozenset({"none"})
TEMPLATES = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job")
GROUP = "policy.networking.k8s.io"
KINDS = ("NetworkPolicy", "ClusterNetworkPolicy", "AdminNetworkPolicy", "BaselineAdminNetworkPolicy")


@dataclass(frozen=True)
class Ask:
    """A question of a decision table."""

    source: str
    to: str
    port: int | None = None
    protocol: str = "tcp"
    source_ip: str | None = None


@dataclass(frozen=True)
class Pod:
    """A pod, or the common part of all pods of a template."""

    kind: str
    namespace: str
    name: str
    labels: tuple[tuple[str, str], ...]
    account: str = "default"
    host_network: bool = False
    addresses: tuple[Address, ...] = ()
    nodes: tuple[Address, ...] = ()  # the addresses of its own node
    ports: tuple[tuple[str, int, str], ...] = ()  # name, number, protocol

    @property
    def labelled(self) -> dict[str, str]:
        return dict(self.labels)


@dataclass(frozen=True)
class End:
    """One end of a connection: a pod, a node or an outside host, with one address. `host` is its name, if known."""

    pod: Pod | None
    address: Address
    host: str | None = None

    @property
    def selectable(self) -> Pod | None:
        """Return the pod that selectors see. For them, a pod on the host network is its node, so None."""
        return None if self.pod is None or self.pod.host_network else self.pod


@dataclass(frozen=True)
class Connection:
    source: End
    destination: End
    port: int
    protocol: str
    through_service: bool = False

    @property
    def is_to_itself(self) -> bool:
        pod = self.source.pod
        return pod is not None and pod.kind == "Pod" and pod == self.destination.pod and not self.through_service


class Network:
    """The manifests of a cluster with a network that enforces policies."""

    def __init__(self, manifests: Iterable[Manifest], *, trust_domain: str = "cluster.local") -> None:
        self.manifests = [manifest for manifest in manifests if not _is_audit(manifest)]
        self.trust_domain = trust_domain
        self.pods = [pod for manifest in self.manifests if (pod := read_pod(manifest)) is not None]
        self.policies = {
            kind: [{**m, "spec": m.get("spec") or {}} for m in self.manifests if _is_policy(m, kind)] for kind in KINDS
        }
        self.namespaces = {
            m["metadata"]["name"]: m["metadata"].get("labels") or {}
            for m in self.manifests
            if m["kind"] == "Namespace" and m["apiVersion"] == "v1"
        }

    # Questions

    def decide(self, ask: Ask) -> tuple[bool | None, Names]:
        """Return the verdict, and the possible deciding policies."""
        connections = list(self.connections(ask))
        strict = [self.decide_connection(connection, to_own_node=False) for connection in connections]
        lenient = [self.decide_connection(connection, to_own_node=True) for connection in connections]
        denied = [names for allowed, names in strict if not allowed]
        if bool(denied) != any(not allowed for allowed, _ in lenient):
            return None, NONE
        chosen = denied or [names for _, names in strict]
        return not denied, frozenset().union(*chosen)

    def connections(self, ask: Ask) -> Iterator[Connection]:
        """Yield every possible connection of a question.

        Egress is decided by the address of the destination, ingress by the address of the source. So for two unknown
        addresses, the pairs with the first address of either end are enough.
        """
        for pod, through_service, port in self._destinations(ask):
            destinations = list(self._ends(pod)) if pod else list(self._outside(ask.to))
            ports = [port] if port is not None else self._some_ports()
            for _, group in itertools.groupby(self._sources(ask), key=lambda end: end.pod):
                sources = list(group)
                pairs = (
                    (source, destination)
                    for (here, source), (there, destination) in itertools.product(
                        enumerate(sources), enumerate(destinations)
                    )
                    if (here == 0 or there == 0 or len(sources) + len(destinations) <= 4)
                    and not _is_impossible(source, destination)
                )
                for (source, destination), number in itertools.product(pairs, ports):
                    yield Connection(source, destination, number, ask.protocol.upper(), through_service)

    def _destinations(self, ask: Ask) -> Iterator[tuple[Pod | None, bool, int | None]]:
        kind, _, name = ask.to.partition(":")
        if kind in ("ip", "host"):
            yield None, False, ask.port
        elif kind == "pod":
            yield self.pod(name), False, ask.port
        else:
            namespace, _, service_name = name.partition("/")
            service = next(
                m
                for m in self.manifests
                if m["kind"] == "Service" and (_namespace(m), m["metadata"]["name"]) == (namespace, service_name)
            )
            for pod in self.pods:
                if pod.namespace == namespace and service["spec"]["selector"].items() <= pod.labelled.items():
                    yield pod, True, _target_port(service, ask, pod)

    def _sources(self, ask: Ask) -> Iterator[End]:
        given = address_of(ask.source_ip) if ask.source_ip else None
        kind, _, name = ask.source.partition(":")
        prefix = f"spiffe://{self.trust_domain}/ns/"
        if ask.source.startswith(prefix):
            namespace, _, account = ask.source.removeprefix(prefix).partition("/sa/")
            kind, name = "sa", f"{namespace}/{account}"
        if kind == "pod":
            yield from self._ends(self.pod(name), given)
        elif kind == "sa":
            for pod in self._pods_of_account(*name.split("/")):
                yield from self._ends(pod, given)
        elif kind == "ip" or given is not None:
            address = given or address_of(name)
            yield End(self._pod_at(address), address)
        else:
            yield from (End(None, address) for address in self._some_addresses())

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.pods if f"{pod.namespace}/{pod.name}" == name)

    def _pod_at(self, address: Address) -> Pod | None:
        return next((pod for pod in self.pods if address in pod.addresses and not pod.host_network), None)

    def _pods_of_account(self, namespace: str, account: str) -> Iterator[Pod]:
        declared = [pod for pod in self.pods if (pod.namespace, pod.account) == (namespace, account)]
        yield from declared
        if not declared:
            for labels in self._some_labels():
                yield Pod("Pod", namespace, "", labels, account)

    # Completions of unknown attributes

    def _ends(self, pod: Pod, given: Address | None = None) -> Iterator[End]:
        known = [given] if given else pod.addresses or (pod.nodes if pod.host_network else ())
        nodes = [address for node in self.manifests if node["kind"] == "Node" for address in node_addresses(node)]
        anywhere = [*self._some_addresses(), *(nodes if pod.host_network else ())]
        yield from (End(pod, address) for address in known or anywhere)

    def _outside(self, to: str) -> Iterator[End]:
        """Yield a destination outside the cluster: by its address, or by its name, which may have any address."""
        kind, _, name = to.partition(":")
        addresses = [address_of(name)] if kind == "ip" else self._some_addresses()
        yield from (End(None, address, name if kind == "host" else None) for address in addresses)

    def _some_addresses(self) -> set[Address]:
        """Return an address of each class that the blocks of the policies distinguish."""
        networks = [_network_of(text) for text in _strings(self.policies, "/")]
        starts = {address_of("0.0.0.0"), address_of("::"), *(network[0] for network in networks)}  # noqa: S104
        ends = {network[-1] for network in networks}
        return starts | {end + 1 for end in ends if int(end) + 1 < 2**end.max_prefixlen}

    def _some_ports(self) -> set[int]:
        """Return a port of each class that the policies distinguish."""
        numbers = {number for number in _numbers(self.policies) if 1 <= number <= 65535}
        declared = {number for pod in self.pods for _, number, _ in pod.ports}
        bounds = {1, 65535, *numbers, *declared}
        return {port for bound in bounds for port in (bound, bound + 1) if port <= 65535}

    def _some_labels(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """Yield labels of each class that the selectors of the policies distinguish."""
        wanted: dict[str, set[str | None]] = {}
        for selector in _selectors(self.policies):
            for key, value in (selector.get("matchLabels") or {}).items():
                wanted.setdefault(key, {None, "something-else"}).add(value)
            for expression in selector.get("matchExpressions") or []:
                wanted.setdefault(expression["key"], {None, "something-else"}).update(expression.get("values") or [])
        keys = sorted(wanted)
        for values in itertools.product(*(sorted(wanted[key], key=str) for key in keys)):
            yield tuple((key, value) for key, value in zip(keys, values, strict=True) if value is not None)

    # Decisions

    def decide_connection(self, connection: Connection, *, to_own_node: bool) -> Verdict:
        """Decide a connection without unknown attributes. Both ends must allow it."""
        egress: Verdict = (True, NONE)
        source, destination = connection.source.selectable, connection.destination.selectable
        if source is not None:
            exempt = to_own_node and connection.destination.address in source.nodes
            egress = self._check(source, connection.destination, connection, "egress", from_own_node=exempt)
            if not egress[0]:
                return egress
        if destination is None:
            return egress[0], egress[1] | NONE
        own = connection.source.selectable is None and connection.source.address in destination.nodes
        ingress = self._check(destination, connection.source, connection, "ingress", from_own_node=own)
        return (True, ingress[1] | egress[1]) if ingress == (True, NONE) else ingress

    def _check(self, pod: Pod, peer: End, connection: Connection, way: str, *, from_own_node: bool) -> Verdict:
        if connection.is_to_itself:
            return True, NONE
        verdicts = []
        for action, name in self._first_matches(pod, peer, connection, way, "Admin"):
            if action in ("Allow", "Accept", "Deny"):
                verdicts.append((action != "Deny", frozenset({name})))
            elif self._isolating(pod, way):
                verdicts.append(self._by_network_policies(pod, peer, connection, way, from_own_node=from_own_node))
            else:
                verdicts += [
                    (action != "Deny", frozenset({name}) if action in ("Allow", "Accept", "Deny") else NONE)
                    for action, name in self._first_matches(pod, peer, connection, way, "Baseline")
                ]
        denied = [verdict for verdict in verdicts if not verdict[0]]
        return not denied, frozenset().union(*(names for _, names in denied or verdicts))

    def _first_matches(
        self, pod: Pod, peer: End, connection: Connection, way: str, tier: str
    ) -> list[tuple[str | None, str]]:
        """Return the action of each policy that decides first in some order of a tier."""
        older = "AdminNetworkPolicy" if tier == "Admin" else "BaselineAdminNetworkPolicy"
        newer = [policy for policy in self.policies["ClusterNetworkPolicy"] if policy["spec"]["tier"] == tier]
        first = []
        for policies in (self.policies[older], newer):
            matches = [
                (policy["spec"].get("priority", 0), action, f"{policy['kind']}/{policy['metadata']['name']}")
                for policy in policies
                if self._is_subject(policy["spec"]["subject"], pod)
                for action in [self._action(policy, peer, connection, way)]
                if action is not None
            ]
            least = min((priority for priority, _, _ in matches), default=None)
            first += [(action, name) for priority, action, name in matches if priority == least]
        return [*first] or [(None, "none")]

    def _action(self, policy: Manifest, peer: End, connection: Connection, way: str) -> str | None:
        for rule in policy["spec"].get(way) or []:
            peers, ports = rule["from" if way == "ingress" else "to"], rule.get("ports") or rule.get("protocols")
            if any(self._is_admin_peer(item, peer) for item in peers) and (
                ports is None or any(_is_admin_port(item, connection) for item in ports)
            ):
                return str(rule["action"])
        return None

    def _is_subject(self, subject: Manifest, pod: Pod) -> bool:
        return not pod.host_network and self._is_selected(subject, pod)

    def _is_selected(self, item: Manifest, pod: Pod) -> bool:
        if item.get("namespaces") is not None:
            return selects(item["namespaces"], self.namespace_labels(pod.namespace))
        pods = item["pods"]
        return selects(pods.get("namespaceSelector"), self.namespace_labels(pod.namespace)) and selects(
            pods["podSelector"], pod.labelled
        )

    def _is_admin_peer(self, item: Manifest, peer: End) -> bool:
        if "networks" in item:
            return any(_is_inside(peer.address, cidr) for cidr in item["networks"])
        if "nodes" in item:
            return peer.selectable is None and any(
                peer.address in node_addresses(node)
                for node in self.manifests
                if node["kind"] == "Node" and selects(item["nodes"], node["metadata"].get("labels") or {})
            )
        if "domainNames" in item:
            return any(
                _is_named(peer.host, name) for name in item["domainNames"]
            )  # never for an unknown name: these rules only accept
        return peer.selectable is not None and self._is_selected(item, peer.selectable)

    # NetworkPolicy

    def _isolating(self, pod: Pod, way: str) -> list[Manifest]:
        return [
            policy
            for policy in self.policies["NetworkPolicy"]
            if _namespace(policy) == pod.namespace
            and way.capitalize() in policy_types(policy["spec"])
            and selects(policy["spec"].get("podSelector"), pod.labelled)
        ]

    def _by_network_policies(
        self, pod: Pod, peer: End, connection: Connection, way: str, *, from_own_node: bool
    ) -> Verdict:
        allowing = frozenset(
            f"NetworkPolicy/{_namespace(policy)}/{policy['metadata']['name']}"
            for policy in self._isolating(pod, way)
            if any(self._is_allowed_by(rule, policy, peer, connection, way) for rule in policy["spec"].get(way) or [])
        )
        return bool(allowing) or from_own_node, (allowing if allowing and not from_own_node else allowing | NONE)

    def _is_allowed_by(self, rule: Manifest, policy: Manifest, peer: End, connection: Connection, way: str) -> bool:
        peers, ports = rule.get("from" if way == "ingress" else "to"), rule.get("ports")
        return (not peers or any(self._is_peer(item, _namespace(policy), peer) for item in peers)) and (
            not ports or any(_is_port(item, connection) for item in ports)
        )

    def _is_peer(self, item: Manifest, own: str, peer: End) -> bool:
        block = item.get("ipBlock")
        if block is not None:
            return _is_inside(peer.address, block["cidr"]) and not any(
                _is_inside(peer.address, cidr) for cidr in block.get("except") or []
            )
        pod, namespaces = peer.selectable, item.get("namespaceSelector")
        if pod is None:
            return False
        there = (
            pod.namespace == own if namespaces is None else selects(namespaces, self.namespace_labels(pod.namespace))
        )
        return there and selects(item.get("podSelector"), pod.labelled)

    def namespace_labels(self, name: str) -> dict[str, str]:
        return {**self.namespaces.get(name, {}), "kubernetes.io/metadata.name": name}


def policy_types(spec: Manifest) -> list[str]:
    written = spec.get("policyTypes")
    return list(written) if written else ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def selects(selector: Manifest | None, labels: dict[str, str]) -> bool:
    """Return whether a selector selects the labels. A missing or empty selector selects everything."""
    selector = selector or {}
    return (selector.get("matchLabels") or {}).items() <= labels.items() and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def _holds(expression: Manifest, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


# Ports


def _is_port(item: Manifest, connection: Connection) -> bool:
    if (item.get("protocol") or "TCP") != connection.protocol:
        return False
    port = item.get("port")
    if port is None:
        return True
    if isinstance(port, str):
        return (port, connection.port, connection.protocol) in _declared_ports(connection)
    last = item["endPort"] if item.get("endPort") is not None else port
    return bool(port <= connection.port <= last)


def _is_admin_port(item: Manifest, connection: Connection) -> bool:
    name = item.get("namedPort") or item.get("destinationNamedPort")
    if name is not None:
        return (name, connection.port, connection.protocol) in _declared_ports(connection)
    if "portNumber" in item or "portRange" in item:
        bounds = item.get("portRange") or {"start": item["portNumber"]["port"], "end": item["portNumber"]["port"]}
        protocol = (item.get("portRange") or item["portNumber"]).get("protocol", "TCP")
    else:
        ((protocol, fields),) = item.items()
        port = fields["destinationPort"]
        bounds = port.get("range") or {"start": port["number"], "end": port["number"]}
    return protocol.upper() == connection.protocol and bool(bounds["start"] <= connection.port <= bounds["end"])


def _declared_ports(connection: Connection) -> tuple[tuple[str, int, str], ...]:
    pod = connection.destination.selectable
    return pod.ports if pod is not None else ()


def _target_port(service: Manifest, ask: Ask, pod: Pod) -> int | None:
    for port in service["spec"]["ports"]:
        if port["port"] == ask.port and port.get("protocol", "TCP") == ask.protocol.upper():
            target = port.get("targetPort", ask.port)
            if isinstance(target, int):
                return target
            return next(number for name, number, _ in pod.ports if name == target)
    return ask.port


# Addresses


def address_of(text: str) -> Address:
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def _is_inside(address: Address, cidr: str) -> bool:
    return address in _network_of(cidr)


def _network_of(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the network. IPv4 in IPv6 form becomes IPv4."""
    start, _, bits = cidr.partition("/")
    if address_of(start).version == 4 and ":" in start:
        return ipaddress.IPv4Network((int(address_of(start)), int(bits) - 96), strict=False)
    return ipaddress.ip_network(cidr, strict=False)


def _is_impossible(source: End, destination: End) -> bool:
    """Return whether a connection mixes address families, although the pods have one in common."""
    if source.pod is None or destination.pod is None:
        return False
    families = {address.version for address in source.pod.addresses}
    common = families & {address.version for address in destination.pod.addresses}
    return bool(common) and source.address.version != destination.address.version


def node_addresses(node: Manifest) -> list[Address]:
    written = (node.get("status") or {}).get("addresses") or []
    return [address_of(item["address"]) for item in written if item["type"] in ("InternalIP", "ExternalIP")]


# Manifests


def read_pod(manifest: Manifest) -> Pod | None:
    kind, status = manifest["kind"], manifest.get("status") or {}
    if kind in TEMPLATES:
        template = manifest["spec"]["template"]
    elif kind == "CronJob":
        template = manifest["spec"]["jobTemplate"]["spec"]["template"]
    elif kind == "Pod":
        template = manifest
    else:
        return None
    spec = template.get("spec") or {}
    several = [item["ip"] for item in status.get("podIPs") or []] if kind == "Pod" else []
    addresses = several or ([status["podIP"]] if kind == "Pod" and "podIP" in status else [])
    hosts = [item["ip"] for item in status.get("hostIPs") or []] or [
        status[key] for key in ("hostIP",) if key in status
    ]
    return Pod(
        kind,
        _namespace(manifest),
        manifest["metadata"]["name"],
        tuple(sorted(((template.get("metadata") or {}).get("labels") or {}).items())),
        spec.get("serviceAccountName", "default"),
        bool(spec.get("hostNetwork")),
        tuple(map(address_of, addresses)),
        tuple(map(address_of, hosts)),
        tuple(
            (port["name"], port["containerPort"], port.get("protocol", "TCP"))
            for container in spec.get("containers") or []
            for port in container.get("ports") or []
            if "name" in port
        ),
    )


def _namespace(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace", "default"))


def _is_policy(manifest: Manifest, kind: str) -> bool:
    group = "networking.k8s.io" if kind == "NetworkPolicy" else GROUP
    return bool(manifest["kind"] == kind) and str(manifest["apiVersion"]).startswith(f"{group}/")


def _is_audit(manifest: Manifest) -> bool:
    return bool((manifest["metadata"].get("annotations") or {}).get("eastgate.dev/mode") == "audit")


def _strings(value: object, part: str) -> Iterator[str]:
    """Yield every CIDR of the policies: all strings of the specs with a slash and a digit after it."""
    if isinstance(value, dict):
        yield from itertools.chain.from_iterable(
            _strings(item, part) for key, item in value.items() if key not in ("apiVersion", "metadata", "podSelector")
        )
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(_strings(item, part) for item in value)
    elif isinstance(value, str) and part in value and value.rpartition(part)[2].isdigit():
        yield value


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        yield from itertools.chain.from_iterable(_numbers(item) for item in value.values())
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(_numbers(item) for item in value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def _selectors(value: object) -> Iterator[Manifest]:
    if isinstance(value, dict):
        if "matchLabels" in value or "matchExpressions" in value:
            yield value
        yield from itertools.chain.from_iterable(_selectors(item) for item in value.values())
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(_selectors(item) for item in value)


def _is_named(host: str | None, pattern: str) -> bool:
    """Return whether a pattern matches a host name. `*.` matches one or more labels."""
    if host is None:
        return False
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
