"""What a sidecar is to do at one port: who may connect, and what each request must pass.

A port is read as HTTP where a layer there needs it; otherwise bytes go through as they are. On a port that is read as
HTTP, bytes that are not HTTP are let in only where everything would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from eastgate.collection import no_collection
from eastgate.policy import Is, Layer, PolicyRef, Refusal
from eastgate.policy.attributes import PATH, Attribute
from eastgate.settings import Settings
from eastgate.targets.envoy.callers import ByCaller, Caller, Naming
from eastgate.targets.envoy.codes import Inexpressible
from eastgate.targets.envoy.decisions import OPEN, Node, Verdict, policy_name, then, unread
from eastgate.targets.envoy.flow import Flow, is_network

__all__ = ["HttpFilter", "PortPlan", "plan_port"]

_OPEN: Node = Verdict(True, 200, OPEN)
CLOSED: Node = Verdict(False, int(Refusal.CLOSED), "cannot-be-enforced")


@dataclass(frozen=True, slots=True)
class HttpFilter:
    """One layer that looks at HTTP requests. `refusal` decides where `ENCODED_SLASH` holds."""

    layer: str
    decision: ByCaller[Node]
    refusal: ByCaller[Node] | None
    audit: ByCaller[Node] | None
    looks_at: frozenset[Attribute]
    policies: frozenset[str]


@dataclass(frozen=True, slots=True)
class PortPlan:
    """Everything that is decided at one port of a workload.

    `connect`: who may make a connection, for HTTP where there are `filters`; `raw`: the same for connections of
    something else on such a port. `refused`: why the port is closed, where it is.
    """

    port: int
    connect: ByCaller[Node]
    raw: ByCaller[Node] | None
    filters: tuple[HttpFilter, ...]
    audit: ByCaller[Node] | None
    policies: frozenset[str]
    refused: Inexpressible | None = None

    @property
    def reads_http(self) -> bool:
        """Whether requests are decided one by one."""
        return self.raw is not None


def plan_port(layers: Sequence[Layer], port: int, settings: Settings, known: Iterable[str] = ()) -> PortPlan:
    """The plan of a port that these layers govern; every known identity has a decision of its own."""
    naming = Naming(settings)
    try:
        with no_collection():
            return _Port([Flow(layer, port, naming) for layer in layers], port, naming, known).plan()
    except Inexpressible as refused:
        cells = naming.cells((), known)
        closed = naming.by_caller(cells, dict.fromkeys(cells, CLOSED))
        return PortPlan(port, closed, None, (), None, frozenset(map(policy_name, refused.policies)), refused)


class _Port:
    def __init__(self, flows: Sequence[Flow], port: int, naming: Naming, known: Iterable[str]) -> None:
        self.port = port
        self.naming = naming
        self.network = [flow for flow in flows if is_network(flow.layer)]
        self.application = [flow for flow in flows if not is_network(flow.layer)]
        self.known = frozenset(known)

    def plan(self) -> PortPlan:
        return PortPlan(
            self.port,
            self._connecting(self.network),
            self._connecting([*self.network, *self.application]) if self.application else None,
            tuple(self._filter(flow) for flow in self.application),
            self._audit(self.network, http=False),
            _names(policy for flow in (*self.network, *self.application) for policy in flow.policies),
        )

    def _cells(self, flows: Iterable[Flow], known: Iterable[str] = ()) -> list[Caller]:
        return self.naming.cells((atom for flow in flows for atom in flow.asked if isinstance(atom, Is)), known)

    def _connecting(self, flows: Sequence[Flow]) -> ByCaller[Node]:
        """What these layers say of a connection, one after the other; of HTTP in it, nothing is known."""
        cells = self._cells(flows, self.known)
        decided = {
            caller: reduce(then, (unread(flow.decision(caller, http=False)) for flow in flows), _OPEN)
            for caller in cells
        }
        return self.naming.by_caller(cells, decided)

    def _filter(self, flow: Flow) -> HttpFilter:
        cells = self._cells([flow])
        decided = {caller: flow.decision(caller, http=True) for caller in cells}
        refused = {caller: flow.refusal(caller) for caller in cells} if PATH in flow.layer.looks_at else decided
        return HttpFilter(
            flow.layer.name,
            self.naming.by_caller(cells, decided),
            self.naming.by_caller(cells, refused) if refused != decided else None,
            self._audit([flow], http=True),
            flow.layer.looks_at,
            _names(flow.policies),
        )

    def _audit(self, flows: Sequence[Flow], *, http: bool) -> ByCaller[Node] | None:
        for flow in flows:
            cells = self._cells([flow])
            found = {caller: node for caller in cells if (node := flow.audit(caller, http=http)) is not None}
            if found:
                return self.naming.by_caller(cells, found)
        return None


def _names(policies: Iterable[PolicyRef]) -> frozenset[str]:
    return frozenset(policy_name(policy) for policy in policies)
