"""From reachability to a graph: the nodes of callers and destinations, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.authority.questions import BAD_SOURCE, NOT_DECLARED, QuestionError
from eastgate.basics.diagnostics import Code, did_you_mean
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World, service_account_id
from eastgate.cluster.points import Point
from eastgate.ir import Between
from eastgate.ir.spiffe import SCHEME
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    CallerKind,
    IdentityCell,
    OtherAccounts,
    OtherNames,
)
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Destination, DestinationKind
from eastgate.reach.reachability import Reachability
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.reached import DestinationVerdicts, ReachOutcome, entrance_verdicts
from eastgate.reports.graph.selection import GraphSelection, facts_of
from eastgate.reports.graph.text import natural

# Nodes of callers, one for each cell of callers


_KINDS = {
    CallerKind.SERVICE_ACCOUNT: NodeKind.SERVICE_ACCOUNT,
    CallerKind.SPIFFE: NodeKind.SPIFFE,
    CallerKind.NAME: NodeKind.NAME,
    CallerKind.NAMESPACE: NodeKind.OTHER_ACCOUNTS,
    CallerKind.SUFFIX: NodeKind.NAME,
    CallerKind.OTHER_ACCOUNT: NodeKind.OTHER_ACCOUNTS,
    CallerKind.OTHER_SPIFFE: NodeKind.OUTSIDE,
    CallerKind.OTHER_NAME: NodeKind.NAME,
    CallerKind.NONE: NodeKind.ANONYMOUS,
}


def caller_node(cell: CallerCell, callers: CallerCells) -> GraphNode:
    """Return the node of a cell of callers."""
    kind = _KINDS[cell.kind_in(callers.domain)]
    if kind is NodeKind.NAME and cell.example("")[0] is not None:
        kind = NodeKind.SPIFFE
    namespace, _ = cell.account_in(callers.domain) or ("", "")
    return GraphNode(cell.id_in(callers.domain), kind, namespace or None)


def redundant_callers(reach: Reachability) -> CallerSet:
    """Return the cells that get the same verdicts as a more general cell, so that a graph can leave them out.

    Such cells are other accounts of a namespace that get the verdicts of the domain's other accounts, and other mesh
    names that get the verdicts of anonymous callers.
    """
    callers = reach.callers
    accounts = callers.set_of([OtherAccounts(callers.callers.domain)])
    anonymous_cells = callers.set_of([AnonymousCell()])
    like_accounts = like_anonymous = callers.everybody
    for destination in reach.destinations:
        for entrance in destination.entrances:
            for answer in reach.answers(entrance):
                if answer.callers & accounts:
                    like_accounts &= answer.callers
                if answer.callers & anonymous_cells:
                    like_anonymous &= answer.callers
    of_namespaces = callers.set_of(
        cell for cell in callers.cells if isinstance(cell, AccountsIn) and cell.domain == callers.callers.domain
    )
    return (like_accounts & of_namespaces) | (like_anonymous & callers.set_of([OtherNames()]))


_APP_LABELS = ("app.kubernetes.io/name", "app", "k8s-app")


@dataclass(frozen=True, slots=True)
class Survey:
    """The selected callers and destinations as nodes, and the outcomes between them."""

    reach: Reachability
    selection: GraphSelection
    callers: dict[int, GraphNode]  # by the number of their cell
    every_caller: dict[int, GraphNode]  # including redundant cells
    targets: dict[str, GraphNode]  # by id
    workloads: tuple[GraphNode, ...]  # all, selected or not
    chosen: CallerSet
    reached: tuple[DestinationVerdicts, ...]

    @property
    def points(self) -> list[Point]:
        """Return the points of enforcement that decide for the selected destinations."""
        points: dict[Point, None] = {}
        for reached in self.reached:
            destination = reached.destination
            is_class = destination.kind is DestinationKind.POD
            points.update(dict.fromkeys(name.partition(":")[2] for name in reached.members) if is_class else {})
            points.update({} if is_class else dict.fromkeys(destination.points))
        return list(points)

    @property
    def everybody(self) -> tuple[str, ...]:
        """Return the ids of all callers; none if the selection names callers."""
        if self.selection.sources or self.selection.external or self.selection.namespace:
            return ()
        return tuple(node.id for node in self.callers.values())

    @property
    def has_all_callers(self) -> bool:
        """Return whether the survey includes every caller of the selected destinations."""
        return not self.selection.sources and not self.selection.external

    def sources(self, callers: CallerSet) -> list[GraphNode]:
        """Return the nodes of a set of callers."""
        nodes = []
        left = callers & self.chosen
        while left:
            lowest = left & -left
            nodes.append(self.callers[lowest.bit_length() - 1])
            left ^= lowest
        return nodes


def survey(authority: Authority, selection: GraphSelection | None = None) -> Survey:
    """Find the selected callers, destinations and outcomes.

    Raises QuestionError for an unknown caller or destination.
    """
    chosen = selection or GraphSelection()
    reach = Reachability(authority, tuple(_identities(chosen.sources, authority)))
    nodes = [caller_node(cell, reach.callers.callers) for cell in reach.callers.cells]
    targets = {node.id: node for destination in reach.destinations for node in _nodes(destination, authority.world)}
    accounts = chosen.accounts(targets.values()) | set(_named_callers(chosen.sources, reach))
    behind = chosen.behind(authority.world)
    redundant = redundant_callers(reach) if not any(name.startswith("others:") for name in chosen.sources) else 0
    every = {number: node for number, node in enumerate(nodes) if chosen.chooses_source(node, accounts)}
    callers = {number: node for number, node in every.items() if not redundant >> number & 1}
    aimed = {name: node for name, node in targets.items() if chosen.chooses_target(node, behind)}
    if chosen.sources and not callers:
        raise _missing(BAD_SOURCE, "caller", chosen.sources, (node.id for node in nodes))
    if chosen.targets and not aimed:
        raise _missing(NOT_DECLARED, "destination", chosen.targets, targets)
    bits = sum(1 << number for number in callers)
    reached = tuple(_reached(reach, aimed, chosen))
    workloads = tuple(node for node in targets.values() if node.kind is NodeKind.POD)
    return Survey(reach, chosen, callers, every, aimed, workloads, bits, reached)


def _missing(code: Code, what: str, names: Iterable[str], known: Iterable[str]) -> QuestionError:
    wanted = next(iter(names))
    near = did_you_mean(wanted, known)
    return QuestionError(code, f"there is no {what} `{wanted}`", f"did you mean {near}?" if near else None)


def _identities(names: Iterable[str], authority: Authority) -> Iterator[str]:
    """Yield the identities that a selection names, so that they get cells of their own."""
    for name in names:
        kind, _, key = name.partition(":")
        if kind == "sa" and "*" not in key and key.count("/") == 1:
            yield service_account_id(authority.settings.trust_domain, *key.split("/"))
        elif name.startswith(SCHEME) and "*" not in name:
            yield name


def _named_callers(names: Iterable[str], reach: Reachability) -> Iterator[str]:
    """Yield the nodes of callers that a selection names by their name in the mesh."""
    callers = reach.callers
    for name in names:
        kind, _, key = name.partition(":")
        if kind == "id" and key and "*" not in key:
            cell = callers.callers.cell_of_name(key)
            known = callers.cell_of(cell.identity if isinstance(cell, IdentityCell) else None, key)
            if not isinstance(known, AnonymousCell):
                yield caller_node(known, callers.callers).id


def _reached(
    reach: Reachability, aimed: dict[str, GraphNode], selection: GraphSelection
) -> Iterator[DestinationVerdicts]:
    for destination in reach.destinations:
        members = tuple(name for name in destination.names if name in aimed)
        if members:
            verdicts = tuple(
                entrance_verdicts(reach, destination, selection.port, facts_of(selection), exact=selection.exact)
            )
            yield DestinationVerdicts(destination, members, verdicts)


def _nodes(destination: Destination, world: World) -> Iterator[GraphNode]:
    for key, name in zip(destination.members, destination.names, strict=True):
        namespace = key.partition("/")[0]
        if destination.kind is DestinationKind.POD:
            workload = world.workloads[key]
            account = f"sa:{namespace}/{workload.service_account}" if workload.is_pod else None
            yield GraphNode(name, NodeKind.POD, namespace, account, app_of(workload))
        else:
            yield GraphNode(name, NodeKind(destination.kind), namespace)


def app_of(workload: Workload) -> str:
    """Return the application of a workload: by the usual labels, its controller, or its name."""
    labelled = next((workload.labels[label] for label in _APP_LABELS if workload.labels.get(label)), None)
    return labelled or (workload.owners[-1].name if workload.owners else workload.name)


def list_graph(surveyed: Survey, *, why: bool = True) -> Graph:
    """Return the graph of single callers and destinations. Without `why`, edges do not name the rules that decide."""
    merged = merge_targets(bundle for reached in surveyed.reached for bundle in bundles_of(surveyed, reached, why=why))
    return Graph(nodes_of(surveyed, merged), tuple(merged), surveyed.everybody)


def merge_targets(bundles: Iterable[Bundle]) -> list[Bundle]:
    """Merge destinations whose bundles are equal, and sort them."""
    by_saying: dict[Bundle, list[str]] = {}
    for bundle in bundles:
        by_saying.setdefault(replace(bundle, targets=()), []).extend(bundle.targets)
    merged = [replace(alike, targets=tuple(sorted(targets, key=natural))) for alike, targets in by_saying.items()]
    return sorted(
        merged,
        key=lambda bundle: (
            [natural(name) for name in bundle.targets],
            not bundle.ports,
            bundle.ports,
            [natural(name) for name in bundle.sources],
        ),
    )


def bundles_of(surveyed: Survey, reached: DestinationVerdicts, *, why: bool) -> list[Bundle]:
    """Return the bundles of one destination. Ports with equal outcomes share a bundle."""
    ports_by_outcome: dict[tuple[ReachOutcome, str | None, bool | None], tuple[list[int], set[Between]]] = {}
    declared: dict[str | None, set[int]] = {}
    ranges: dict[str | None, set[Between]] = {}
    for entrance in reached.entrances:
        declared.setdefault(entrance.service, set()).update(entrance.ports)
        ranges.setdefault(entrance.service, set()).update(entrance.ranges if entrance.other_ports else ())
        for outcome in _without_reasons(entrance.outcomes) if not why else entrance.outcomes:
            if outcome.callers & surveyed.chosen and (
                outcome.verdict is not ReachVerdict.DENY or surveyed.selection.denied
            ):
                key = outcome, entrance.service, entrance.tls
                ports, others = ports_by_outcome.setdefault(key, ([], set()))
                ports.extend(entrance.ports)
                others.update(entrance.ranges if entrance.other_ports else ())
    bundles: list[Bundle] = []
    for (outcome, service, tls), (ports, others) in ports_by_outcome.items():
        numbers, is_other = tuple(sorted(ports)), bool(others)
        is_part = others != ranges[service]
        every = is_other and set(numbers) == declared[service] and not is_part
        stretches = tuple(sorted((each.first, each.last) for each in others)) if is_part else ()
        for sources, targets in _pairs(surveyed, surveyed.sources(outcome.callers), reached.members):
            alike = Bundle(sources, targets, numbers, is_other, outcome.verdict, outcome.ways, outcome.denied_by)
            bundles.append(replace(alike, service=service, tls=tls, any_port=every, port_ranges=stretches))
    return [replace(each, closed_ports=_closed_ports(each, bundles, declared[each.service])) for each in bundles]


def _closed_ports(bundle: Bundle, bundles: Iterable[Bundle], declared: Iterable[int]) -> tuple[int, ...]:
    """Return the declared ports that no edge names because no selected caller may use them.

    They do not count as other ports.
    """
    if not bundle.other_ports:
        return ()
    to_same = (each for each in bundles if (each.targets, each.service) == (bundle.targets, bundle.service))
    return tuple(sorted({*declared}.difference(*(each.ports for each in to_same if each.sources))))


def without_rules(outcome: ReachOutcome) -> ReachOutcome:
    """Return an outcome without its callers and without the rules that decide."""
    return ReachOutcome(0, outcome.verdict, tuple(dict.fromkeys(replace(way, by=()) for way in outcome.ways)))


def _without_reasons(outcomes: Iterable[ReachOutcome]) -> list[ReachOutcome]:
    """Return outcomes without the rules that decide. Equal ones are merged."""
    merged: dict[ReachOutcome, CallerSet] = {}
    for outcome in outcomes:
        alike = without_rules(outcome)
        merged[alike] = merged.get(alike, 0) | outcome.callers
    return [replace(alike, callers=callers) for alike, callers in merged.items()]


def _pairs(
    surveyed: Survey, sources: list[GraphNode], targets: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the selected pairs as two sets; each member of one pairs with each member of the other."""
    namespace = surveyed.selection.namespace
    if namespace is None:
        yield tuple(node.id for node in sources), targets
        return
    inside = tuple(name for name in targets if surveyed.targets[name].namespace == namespace)
    outside = tuple(name for name in targets if surveyed.targets[name].namespace != namespace)
    if inside:
        yield tuple(node.id for node in sources), inside
    local = tuple(node.id for node in sources if node.namespace == namespace)
    if local and outside:
        yield local, outside


def nodes_of(surveyed: Survey, bundles: Iterable[Bundle]) -> dict[str, GraphNode]:
    every = {node.id: node for node in surveyed.callers.values()} | surveyed.targets
    if not surveyed.selection.is_everything:
        used = {name for bundle in bundles for name in (*bundle.sources, *bundle.targets)}
        every = {name: node for name, node in every.items() if name in used}
    leads_to = {name for bundle in bundles for name in bundle.leads_to if name not in every}
    behind = {name: surveyed.targets.get(name) or node_behind(name) for name in sorted(leads_to)}
    return every | behind


def node_behind(name: str) -> GraphNode:
    """Return the node of an object behind a gateway that decides nothing itself."""
    kind, _, key = name.partition(":")
    known = {str(each): each for each in NodeKind}
    return GraphNode(name, known.get(kind, NodeKind.SERVICE), key.partition("/")[0])
