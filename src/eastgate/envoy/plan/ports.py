"""The plan of a sidecar for one port: who may connect, and what each request must pass.

A port is read as HTTP where a layer there needs it; otherwise bytes go through as they are. On a port that is read as
HTTP, bytes that are not HTTP are let in only where everything would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from eastgate.collection import no_collection
from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.codes import TOO_LARGE, Inexpressible
from eastgate.envoy.plan.combining import TooManyEnds, or_else, then, unread
from eastgate.envoy.plan.decisions import NOT_ENFORCED, UNOPPOSED_NAME, Node, ProxyVerdict, policy_name
from eastgate.envoy.plan.fields import RequestField, looked_at
from eastgate.envoy.plan.flow import Flow
from eastgate.ir import Is, Layer, PolicyRef, Refusal, is_network
from eastgate.ir.attributes import PATH
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.symbolic.callers import CallerCell, CallerCells
from eastgate.symbolic.trees import leaves

__all__ = ["CLOSED", "UNOPPOSED", "PortPlan", "Requests", "plan_port"]

_MOST_TESTS = 400_000  # at one port, for all cells of callers
UNOPPOSED: Node = ProxyVerdict(True, 200, UNOPPOSED_NAME)
CLOSED: Node = ProxyVerdict(False, int(Refusal.CLOSED), NOT_ENFORCED)


@dataclass(frozen=True, slots=True)
class Requests:
    """The decisions that each HTTP request must pass: ALL layers, those that decide connections included.

    All layers are ONE decision: a change of several policies takes effect at once, and no request is allowed by some of
    the old policies and some of the new ones. `refusal` decides where `ENCODED_SLASH` holds, and `respelled`
    where it does not and `ENCODED_CHARACTER` does. Where `BAD_HOST` holds, the request is refused. `fields` are what
    has to be noted of a request first.
    """

    decision: ByCaller[Node]
    refusal: ByCaller[Node] | None
    respelled: ByCaller[Node] | None
    audit: ByCaller[Node] | None
    fields: tuple[RequestField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PortPlan:
    """All decisions at one port of a workload.

    `connect`: who may make a connection. Where the port is read as HTTP there are `requests`, and `raw` says who may
    connect with something else. `refused`: why the port is closed, where it is.
    """

    port: int
    connect: ByCaller[Node]
    raw: ByCaller[Node] | None
    requests: Requests | None
    audit: ByCaller[Node] | None
    policies: frozenset[str]
    refused: Inexpressible | None = None

    @property
    def reads_http(self) -> bool:
        """Return whether requests are decided one by one."""
        return self.requests is not None


def plan_port(layers: Sequence[Layer], port: int, settings: Settings, known: Iterable[str] = ()) -> PortPlan:
    """Plan a port that these layers govern; every known identity gets a decision of its own."""
    callers = CallerCells(settings)
    try:
        with no_collection():
            return _PortPlanner([Flow(layer, port, callers) for layer in layers], port, callers, known).plan()
    except Inexpressible as refused:
        cells = callers.cells((), known)
        closed = ByCaller.of(cells, dict.fromkeys(cells, CLOSED))
        return PortPlan(port, closed, None, None, None, frozenset(map(policy_name, refused.policies)), refused)


class _PortPlanner:
    def __init__(self, flows: Sequence[Flow], port: int, callers: CallerCells, known: Iterable[str]) -> None:
        self.port = port
        self.callers = callers
        self.flows = flows
        self.network = [flow for flow in flows if is_network(flow.layer)]
        self._identities = frozenset(known)
        self._tests = 0
        self._combined: dict[tuple[bool, tuple[int, ...]], tuple[tuple[Node, ...], Node]] = {}
        self._concluded: dict[tuple[bool, tuple[Node, ...]], Node] = {}  # the same for decisions that ask nothing

    def plan(self) -> PortPlan:
        reads_http = len(self.network) < len(self.flows)
        return PortPlan(
            self.port,
            self._connecting(self.network),
            self._connecting(self.flows) if reads_http else None,
            self._requests() if reads_http else None,
            self._audit(self.network, http=False),
            _names(policy for flow in self.flows for policy in flow.policies),
        )

    def _cells(self, flows: Iterable[Flow], known: Iterable[str] = ()) -> list[CallerCell]:
        return self.callers.cells((atom for flow in flows for atom in flow.asked if isinstance(atom, Is)), known)

    def _connecting(self, flows: Sequence[Flow]) -> ByCaller[Node]:
        """Decide connections by these layers, one after the other; HTTP in them is not read."""
        cells = self._cells(flows, self._identities)
        decided = {c: self._joined((flow.decision(c, http=False) for flow in flows), read=False) for c in cells}
        return ByCaller.of(cells, decided)

    def _requests(self) -> Requests:
        cells = self._cells(self.flows)
        decided = {c: self._joined(flow.decision(c, http=True) for flow in self.flows) for c in cells}
        looks_at = frozenset().union(*(flow.layer.looks_at for flow in self.flows))
        refused = respelled = decided
        if PATH in looks_at:
            refused = {c: self._joined(flow.refusal(c) for flow in self.flows) for c in cells}
            respelled = {c: self._joined(flow.respelled(c) for flow in self.flows) for c in cells}
        return Requests(
            ByCaller.of(cells, decided),
            ByCaller.of(cells, refused) if refused != decided else None,
            ByCaller.of(cells, respelled) if respelled != decided else None,
            self._audit([flow for flow in self.flows if flow not in self.network], http=True),
            looked_at((atom for flow in self.flows for atom in flow.asked), looks_at),
        )

    def _joined(self, nodes: Iterable[Node], *, read: bool = True) -> Node:
        """Combine the decisions of layers: ALL must allow. Callers with the same decisions share the result.

        `read`: whether HTTP is read. Where it is not, nothing of it is known.
        """
        decisions = tuple(nodes)
        key = read, tuple(map(id, decisions))
        if key not in self._combined:
            combined = self._combine(decisions, read=read)
            self._tests += sum(1 for _ in leaves(combined))
            if self._tests > _MOST_TESTS:
                raise self._too_large(f"its callers have more than {_MOST_TESTS} tests to pass")
            self._combined[key] = decisions, combined
        return self._combined[key][1]

    def _combine(self, decisions: tuple[Node, ...], *, read: bool) -> Node:
        asks_nothing = all(isinstance(node, ProxyVerdict) for node in decisions)
        if asks_nothing and (read, decisions) in self._concluded:
            return self._concluded[read, decisions]
        try:
            combined = reduce(then, decisions if read else map(unread, decisions), UNOPPOSED)
        except TooManyEnds as error:
            raise self._too_large(str(error)) from None
        if asks_nothing:
            self._concluded[read, decisions] = combined
        return combined

    def _too_large(self, message: str) -> Inexpressible:
        return Inexpressible(TOO_LARGE, message, (policy for flow in self.flows for policy in flow.policies))

    def _audit(self, flows: Sequence[Flow], *, http: bool) -> ByCaller[Node] | None:
        """Return the first rule in audit mode that matches, of all layers."""
        cells = self._cells(flows)
        audits: dict[CallerCell, Node] = {}
        for caller in cells:
            observed = [node for flow in flows if (node := flow.audit(caller, http=http)) is not None]
            if observed:
                audits[caller] = reduce(or_else, observed)
        return ByCaller.of(cells, audits) if audits else None


def _names(policies: Iterable[PolicyRef]) -> frozenset[str]:
    return frozenset(policy_name(policy) for policy in policies)
