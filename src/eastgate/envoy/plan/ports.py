"""The plan of a sidecar for one port: the callers that may connect, and the layers that each request must pass.

A port is read as HTTP if a layer there needs it; otherwise bytes pass unchanged. On a port that is read as HTTP, other
bytes are allowed only if every request would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Protocol

from eastgate.basics.collection import no_collection
from eastgate.basics.records import dataclass
from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.codes import NOT_A_TEST, TOO_LARGE, Inexpressible
from eastgate.envoy.plan.combining import TooManyEnds, noting, or_else, then, unread
from eastgate.envoy.plan.decisions import NOT_ENFORCED, UNOPPOSED_NAME, Node, ProxyVerdict, policy_name
from eastgate.envoy.plan.fields import RequestField, looked_at
from eastgate.envoy.plan.flow import Flow
from eastgate.ir import AccountsOf, Is, Layer, OneOf, PolicyRef, Present, Refusal, is_network
from eastgate.ir.attributes import IDENTITY, PATH, PORT
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.trees import leaves, map_leaves
from eastgate.settings import Settings

_MAX_TESTS = 400_000  # at one port, for all cells of callers
_OPEN = ProxyVerdict(True, 200, UNOPPOSED_NAME)
UNOPPOSED: Node = _OPEN
CLOSED: Node = ProxyVerdict(False, int(Refusal.CLOSED), NOT_ENFORCED)


@dataclass(frozen=True, slots=True)
class Requests:
    """The decisions about each HTTP request: ALL layers, including those that decide connections.

    All layers are ONE decision: a change of several policies takes effect at once, and no request meets a mix of old
    and new policies. `refusal` decides if `ENCODED_SLASH` holds, and `respelled` if only `ENCODED_CHARACTER` does. If
    `BAD_HOST` holds, the request is refused. `fields` must be noted for each request first.
    """

    decision: ByCaller[Node]
    refusal: ByCaller[Node] | None
    respelled: ByCaller[Node] | None
    audit: ByCaller[Node] | None
    fields: tuple[RequestField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PortPlan:
    """All decisions at one port of a workload.

    `connect` decides about connections. For a port that is read as HTTP, there are `requests`, and `raw` decides about
    connections with other bytes. `refused`: the reason why the port is closed, or None.
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


class ConnectionTable(Protocol):
    """Decisions about connections before all layers: those of network policies, if a proxy enforces them.

    Its `identities`, and the accounts of its `namespaces`, have cells. `untold` is the would-be decision if it is
    unknown; None if no such policy is audited.
    """

    @property
    def identities(self) -> frozenset[str]: ...

    @property
    def namespaces(self) -> Iterable[str]: ...

    @property
    def policies(self) -> frozenset[str]: ...

    @property
    def untold(self) -> ProxyVerdict | None: ...

    def decision(self, caller: CallerCell) -> Node: ...

    def would(self, caller: CallerCell) -> Node:
        """Return the decision with all audited policies in force."""
        ...


def plan_port(
    layers: Sequence[Layer],
    port: int,
    settings: Settings,
    known: Iterable[str] = (),
    network: ConnectionTable | None = None,
) -> PortPlan:
    """Plan a port that these layers govern; every known identity gets a decision of its own."""
    callers = CallerCells(settings)
    try:
        with no_collection():
            flows = [Flow(layer, port, callers) for layer in layers]
            return _PortPlanner(flows, port, callers, known, network).plan()
    except Inexpressible as refused:
        cells = callers.cells((), known)
        closed = ByCaller.of(cells, dict.fromkeys(cells, CLOSED))
        return PortPlan(port, closed, None, None, None, frozenset(map(policy_name, refused.policies)), refused)


class _PortPlanner:
    def __init__(
        self,
        flows: Sequence[Flow],
        port: int,
        callers: CallerCells,
        known: Iterable[str],
        table: ConnectionTable | None,
    ) -> None:
        self.port = port
        self.callers = callers
        self.flows = flows
        self.network = [flow for flow in flows if is_network(flow.layer)]
        self._identities = frozenset(known)
        self._table = table
        self._tests = 0
        self._names_left_out: dict[int, tuple[Node, Node]] = {}
        self._combined: dict[tuple[bool, tuple[int, ...]], tuple[tuple[Node, ...], Node]] = {}
        self._concluded: dict[tuple[bool, tuple[Node, ...]], Node] = {}  # the same decision without an authorizer

    def plan(self) -> PortPlan:
        reads_http = len(self.network) < len(self.flows)
        return PortPlan(
            self.port,
            self._connecting(self.network),
            self._connecting(self.flows) if reads_http else None,
            self._requests() if reads_http else None,
            self._audit(self.network, http=False),
            _names(policy for flow in self.flows for policy in flow.policies)
            | (self._table.policies if self._table is not None else frozenset()),
        )

    def _cells(
        self, flows: Iterable[Flow], known: Iterable[str] = (), table: ConnectionTable | None = None
    ) -> list[CallerCell]:
        asked = [atom for flow in flows for atom in flow.asked if isinstance(atom, Is)]
        if table is None:
            return self.callers.cells(asked, known)
        domain = self.callers.domain
        asked += [Is(IDENTITY, AccountsOf(domain, namespace)) for namespace in sorted(table.namespaces)]
        return self.callers.cells(asked, {*known, *table.identities})

    def _connecting(self, flows: Sequence[Flow]) -> ByCaller[Node]:
        """Decide connections by the network and by these layers, one after the other, without reading HTTP."""
        cells = self._cells(flows, self._identities, self._table)
        before = [self._table.decision] if self._table is not None else []
        return ByCaller.of(
            cells,
            {
                cell: self._joined(
                    [*(decide(cell) for decide in before), *(flow.decision(cell, http=False) for flow in flows)],
                    read=False,
                )
                for cell in cells
            },
        )

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

        `read`: HTTP is read. Otherwise nothing is known about it.
        """
        decisions = tuple(nodes)
        key = read, tuple(map(id, decisions))
        if key not in self._combined:
            combined = self._combine(decisions, read=read)
            self._tests += sum(1 for _ in leaves(combined))
            if self._tests > _MAX_TESTS:
                raise self._too_large(f"its callers have more than {_MAX_TESTS} tests to pass")
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
        """Return the would-be decision of all layers with their audited policies in force, or else the matching rule.

        `flows` are the layers with observed rules. The result is None if none of them has audited policies.
        """
        audited = any(flow.layer.audit is not None for flow in self.flows if http or flow in flows)
        every = self.flows if http else flows
        table = self._table if self._table is not None and self._table.untold is not None else None
        cells = self._cells(every, (), table)
        audited = audited or (table is not None and any(table.would(cell) != table.decision(cell) for cell in cells))
        audits: dict[CallerCell, Node] = {}
        for caller in cells:
            observed = [node for flow in flows if (node := flow.audit(caller, http=http)) is not None]
            matches = reduce(or_else, observed) if observed else None
            if audited:
                would = self._would(every, table, caller, http=http)
                audits[caller] = would if matches is None else noting(would, matches)
            elif matches is not None:
                audits[caller] = matches
        return ByCaller.of(cells, audits) if audits else None

    def _would(self, flows: Sequence[Flow], table: ConnectionTable | None, caller: CallerCell, *, http: bool) -> Node:
        before = [] if table is None else [self._unnamed(table.would(caller)) if http else table.would(caller)]
        in_force = [flow.in_force for flow in flows]
        try:
            return self._joined([*before, *(flow.would(caller, http=http) for flow in in_force)], read=http)
        except Inexpressible:  # it has too many ends
            untold = [flow.in_force.untold for flow in flows if flow.layer.audit is not None]
            return next(iter([*untold, *([table.untold] if table is not None and table.untold is not None else [])]))

    def _unnamed(self, node: Node) -> Node:
        """Return a decision about connections for the requests on them: its allows are not named after a rule."""
        if id(node) not in self._names_left_out:
            unnamed = map_leaves(node, lambda verdict: verdict if verdict.is_final else _OPEN)
            self._names_left_out[id(node)] = node, unnamed
        return self._names_left_out[id(node)][1]


def _names(policies: Iterable[PolicyRef]) -> frozenset[str]:
    return frozenset(policy_name(policy) for policy in policies)


# The plan for all ports that no policy distinguishes: one port represents them.


def named_ports(layers: Iterable[Layer]) -> frozenset[int] | None:
    """Return the ports that layers name; None if layers distinguish other ports too."""
    named: set[int] = set()
    for layer in layers:
        for atom in layer.atoms(observed=True):
            if not isinstance(atom, Is):
                if PORT in atom.attributes:
                    return None
            elif atom.attribute == PORT:
                match atom.matcher:
                    case OneOf(values):
                        named |= {port for port in values if isinstance(port, int)}
                    case Present():
                        pass
                    case _:
                        return None
    return frozenset(named)


def plan_any_port(layers: Sequence[Layer], port: int, settings: Settings, known: Iterable[str] = ()) -> PortPlan:
    """Plan, as `port`, all ports that no layer names. If layers distinguish these, they are closed."""
    named = named_ports(layers)
    if named is not None:
        some = next(number for number in count(1) if number not in named)
        return replace(plan_port(layers, some, settings, known), port=port)
    refused = Inexpressible(NOT_A_TEST, "it distinguishes ports that no manifest declares", _policies(layers))
    cells = CallerCells(settings).cells((), known)
    closed = ByCaller.of(cells, dict.fromkeys(cells, CLOSED))
    return PortPlan(port, closed, None, None, None, frozenset(map(policy_name, refused.policies)), refused)


def _policies(layers: Iterable[Layer]) -> Iterator[PolicyRef]:
    rules = (rule for layer in layers for chain in layer.chains for rule in chain.rules(observed=True))
    return (rule.origin.policy for rule in rules if rule.origin.policy is not None)
