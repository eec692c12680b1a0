"""The graph of callers and destinations: nodes, and edges in bundles.

A bundle has an edge from EACH source to EACH target on EACH port, all with the same outcome. The edges of a large
cluster are listed only on request.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field

from eastgate.authority.trace_json import origin_to_json
from eastgate.basics.records import brief, dataclass
from eastgate.ir import Origin
from eastgate.reading.repository import LeftOut


class NodeKind(enum.StrEnum):
    """The kinds of nodes: callers, destinations, and groups of them."""

    SERVICE_ACCOUNT = "serviceAccount"
    OTHER_ACCOUNTS = "otherAccounts"
    SPIFFE = "spiffe"
    NAME = "name"
    OUTSIDE = "outside"
    ANONYMOUS = "anonymous"
    POD = "pod"
    GATEWAY = "gateway"
    ROUTE = "route"
    BACKEND = "backend"
    SERVICE = "service"
    APP = "app"
    NAMESPACE = "namespace"
    FUTURE_PODS = "futurePods"
    ADDRESSES = "addresses"
    ANYONE = "anyone"


ANY_ADDRESS = "ip:any"
"""The node of all addresses outside the cluster."""

_OUTSIDERS = frozenset({NodeKind.SPIFFE, NodeKind.NAME, NodeKind.OUTSIDE, NodeKind.ANONYMOUS})


_WHOLE = frozenset({*_OUTSIDERS, NodeKind.ADDRESSES, NodeKind.ANYONE})


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A caller, a destination, or a group of them. `size` is the number of callers or destinations in it."""

    id: str
    kind: NodeKind
    namespace: str | None = None
    account: str | None = None  # of a pod: the node of its service account
    app: str | None = None
    size: int = 1
    is_protected: bool = True  # whether a policy decides about its callers

    def __repr__(self) -> str:
        return brief(self, self.id)

    @property
    def is_external(self) -> bool:
        """Return whether the caller is external: without an identity, or with one that this cluster does not issue."""
        return self.kind in _OUTSIDERS

    @property
    def name(self) -> str:
        """Return the id without the parts that the kind and the namespace repeat."""
        if self.kind in _WHOLE:
            return self.id
        rest = self.id.partition(":")[2] or self.id
        return rest.removeprefix(f"{self.namespace}/")

    def to_json(self) -> dict[str, object]:
        """Return the node in its JSON form."""
        optional = {"namespace": self.namespace, "serviceAccount": self.account, "app": self.app}
        data: dict[str, object] = {"id": self.id, "kind": str(self.kind)}
        data |= {key: value for key, value in optional.items() if value is not None}
        if self.size != 1:
            data["size"] = self.size
        return data | ({} if self.is_protected else {"protected": False})


class ReachVerdict(enum.StrEnum):
    """The outcome of an edge: all requests are allowed, some are, or none."""

    ALLOW = "allow"
    DEPENDS = "depends"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AllowedWay:
    """Allowed requests: their condition (None: all), the rules that allow them, and the nodes behind the
    destination.
    """

    condition: str | None
    by: tuple[Origin, ...] = ()
    leads_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairs:
    """The number of pairs of a caller and a destination in an edge between groups."""

    open: int  # every request is allowed
    reached: int  # some request is allowed
    all: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge: from a caller to a destination, on a port.

    Port None means every port without an edge of its own, except the closed ports of the bundle.
    """

    source: str
    target: str
    port: int | None
    bundle: Bundle

    def __repr__(self) -> str:
        return brief(self, f"{self.source} -> {self.target} port {self.port or '*'}: {self.bundle.verdict_text}")

    def to_json(self) -> dict[str, object]:
        """Return the edge in its JSON form."""
        return self.with_ends(self.bundle.verdict_to_json())

    def with_ends(self, verdict_data: Mapping[str, object]) -> dict[str, object]:
        """Return its ends with the common data of its bundle, as in JSON."""
        data = {"from": self.source, "to": self.target, "port": self.port, **verdict_data}
        if self.port is None and self.bundle.closed_ports:
            data["exceptPorts"] = list(self.bundle.closed_ports)
        if self.port is None and self.bundle.port_ranges:
            data["portRanges"] = [list(stretch) for stretch in self.bundle.port_ranges]
        return data


@dataclass(frozen=True, slots=True)
class Bundle:
    """Edges with the same outcome. `other_ports`: also every port that no edge of these targets names.

    `closed_ports` are not among the other ports: no caller may use them, so no edge names them. `any_port`: the edges
    cover all ports. `service`: requests that are addressed to this Service. `denied_by`: the rules that refuse, if all
    is denied. `port_ranges`: the ranges of other ports. `doubts` are unread policies that could change the verdict.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    ports: tuple[int, ...]
    other_ports: bool
    verdict: ReachVerdict
    ways: tuple[AllowedWay, ...] = ()
    denied_by: tuple[Origin, ...] = ()
    service: str | None = None
    tls: bool | None = None
    pairs: Pairs | None = None
    any_port: bool = False
    closed_ports: tuple[int, ...] = ()
    port_ranges: tuple[tuple[int, int], ...] = ()
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"sources={len(self.sources)} targets={len(self.targets)} {self.verdict_text}")

    @property
    def is_open_egress(self) -> bool:
        """Return whether workloads may connect to any address outside the cluster on any port."""
        return self.targets == (ANY_ADDRESS,) and self.any_port and self.verdict is ReachVerdict.ALLOW

    @property
    def verdict_text(self) -> str:
        """Return the verdict, with a question mark if an unread policy could change it."""
        return f"{self.verdict}?" if self.doubts else str(self.verdict)

    @property
    def condition(self) -> str | None:
        """Return the condition under which requests are allowed; None without one."""
        if self.verdict is not ReachVerdict.DEPENDS:
            return None
        return "; or ".join(way.condition for way in self.ways if way.condition) or None

    @property
    def deciders(self) -> tuple[Origin, ...]:
        """Return the rules that allow, or those that deny if nothing is allowed."""
        return tuple(dict.fromkeys(origin for way in self.ways for origin in way.by)) or self.denied_by

    @property
    def leads_to(self) -> tuple[str, ...]:
        """Return the nodes that requests reach behind the target."""
        return tuple(dict.fromkeys(node for way in self.ways for node in way.leads_to))

    def verdict_to_json(self) -> dict[str, object]:
        """Return the common data of its edges in their JSON form."""
        data: dict[str, object] = {"verdict": str(self.verdict), "condition": self.condition}
        data |= _rule_to_json(self.deciders[0] if self.deciders else None)
        if self.pairs is not None:
            data["ports"] = [*self.ports, *(["other"] if self.other_ports else [])]
            data["pairs"] = {"open": self.pairs.open, "reached": self.pairs.reached, "all": self.pairs.all}
        if self.service is not None:
            data["service"] = f"service:{self.service}"
        if self.tls is not None:
            data["tls"] = self.tls
        if self.leads_to:
            data["leadsTo"] = list(self.leads_to)
        if self.doubts:
            data["unread"] = list(self.doubts)
        if len(self.ways) > 1 or len(self.deciders) > 1:
            data["ways"] = [_way_to_json(way) for way in self.ways]
        return data

    def edges_to_json(self) -> Iterator[dict[str, object]]:
        """Yield the edges in their JSON form."""
        verdict_data = self.verdict_to_json()
        return (edge.with_ends(verdict_data) for edge in self.edges())

    def edges(self) -> Iterator[Edge]:
        """Yield the edges one by one."""
        ports: list[int | None] = [*self.ports, *([None] if self.other_ports else [])]
        if self.pairs is not None:
            ports = [self.ports[0] if len(self.ports) == 1 and not self.other_ports else None]
        for source in self.sources:
            for target in self.targets:
                for port in ports:
                    yield Edge(source, target, port, self)


def _way_to_json(way: AllowedWay) -> dict[str, object]:
    data: dict[str, object] = {"condition": way.condition, "by": [_rule_to_json(origin) for origin in way.by]}
    return data | ({"leadsTo": list(way.leads_to)} if way.leads_to else {})


def _rule_to_json(origin: Origin | None) -> dict[str, object]:
    fields = ("policy", "rule", "file", "line")
    if origin is None:
        return dict.fromkeys(fields)
    data = origin_to_json(origin)
    return {field_name: data[field_name] for field_name in fields}


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by their ids, and bundles of edges. `notes` list the nodes that the graph leaves out or groups.

    `everybody`: all callers; empty if the selection names callers. `by_pod`: edges begin at pods where network policies
    decide. `is_whole`: the nodes include all destinations. `left_out` are unread parts that could change the graph.
    `preface` comes before the table.
    """

    nodes: Mapping[str, GraphNode]
    bundles: tuple[Bundle, ...]
    everybody: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    by_pod: bool = False
    is_whole: bool = False
    left_out: tuple[LeftOut, ...] = ()
    preface: str | None = None

    def __repr__(self) -> str:
        return brief(self, f"nodes={len(self.nodes)} bundles={len(self.bundles)}")

    @property
    def is_empty(self) -> bool:
        """Return whether the graph has no edge and no unreached destination."""
        return not self.bundles and not any(node.kind is NodeKind.POD for node in self.nodes.values())

    @property
    def edges(self) -> Iterator[Edge]:
        """Yield every edge."""
        return (edge for bundle in self.bundles for edge in bundle.edges())

    def to_json(self) -> dict[str, object]:
        """Return the graph in its JSON form."""
        data: dict[str, object] = {
            "nodes": [node.to_json() for node in self.nodes.values()],
            "edges": [edge for bundle in self.bundles for edge in bundle.edges_to_json()],
        }
        notes: list[object] = [*([self.preface] if self.preface is not None else []), *self.notes]
        lost: dict[str, object] = {"complete": False, "leftOut": [part.to_json() for part in self.left_out]}
        return data | ({"notes": notes} if notes else {}) | (lost if self.left_out else {})
