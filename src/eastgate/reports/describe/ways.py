"""Who may take which way through a gateway: a table by host, route and backend.

Policies at gateways look at hosts, in the header and in the TLS handshake. A client that means no harm sends the same
in both, and the table is about such requests: one row for each host that a rule names, and one for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from eastgate.cluster.points import DeadEnd, Point, RuleNamed
from eastgate.cluster.routing.journey import Way
from eastgate.cluster.targets import RouteNamed
from eastgate.ir import Is, Matcher, OneOf, Request, Suffix
from eastgate.ir.attributes import BACKEND, HOST, SNI
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.table import EffectiveDestination, effective_table
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.model import DescribedField, list_field
from eastgate.reports.describe.tables import effective_field

_FRESH = "other--host"  # a label that nobody has
_HOSTS = frozenset({HOST, SNI})


def ways_field(cluster: Cluster, ways: list[Way], ways_of: Callable[[Request], list[Way]]) -> DescribedField:
    """Make the effective table of some ways; `ways_of` returns those that a request may take."""
    layers = [layer for way in ways for point in way.points for layer in cluster.layers(point)]
    asked = (atom for layer in layers for atom in layer.atoms(observed=False))
    matchers = [atom.matcher for atom in asked if isinstance(atom, Is) and atom.attribute in _HOSTS]
    destinations: list[EffectiveDestination] = []
    for name, facts in _hosts(matchers):
        led = _without_dead_end(ways_of(Request(facts.values)) if facts.values else ways)
        led = [way for way in led if _is_decided_by_what_it_shows(cluster, way)]
        if not facts.values or any(_route(way.points) for way in led):
            destinations += [_destination(cluster, name, facts, way, alone=len(led) == 1) for way in led]
    if not destinations:
        return list_field("effective", "Effective", [], [], none="no request takes it")
    title = "HOST" if matchers else "WAY"
    return effective_field(
        cluster, [("", effective_table(destinations, cluster.authority.settings, cluster.given))], title=title
    )


def _is_decided_by_what_it_shows(cluster: Cluster, way: Way) -> bool:
    """Tell whether the table can hold a way: rows tell requests apart by their HTTP, which some ways do not show."""
    layers = (layer for point in way.points for layer in cluster.layers(point))
    return not way.hides_http or not any(attribute.needs_http for layer in layers for attribute in layer.looks_at)


def _destination(cluster: Cluster, host: str, facts: Facts, way: Way, *, alone: bool) -> EffectiveDestination:
    layers = tuple(layer for point in way.points for layer in cluster.layers(point))
    name = " ".join(part for part in (host, "" if alone else _way_text(way)) if part)
    return EffectiveDestination(
        name, (EnforcementPoint((way.where,), layers, facts.and_(Facts({BACKEND: way.backend}))),)
    )


def _hosts(matchers: Iterable[Matcher]) -> Iterator[tuple[str, Facts]]:
    """Yield each host that some rule names, each group of hosts, and all others; one entry if no rule names any."""
    given = list(matchers)
    exact = sorted({str(value) for matcher in given if isinstance(matcher, OneOf) for value in matcher.values})
    suffixes = sorted(
        {matcher.text for matcher in given if isinstance(matcher, Suffix)}, key=lambda text: (-len(text), text)
    )
    if not given:
        yield "", Facts()
        return
    for host in exact:
        yield host, Facts({HOST: host, SNI: host})
    for suffix in suffixes:
        host = _FRESH + suffix
        others = " (others)" if any(other.endswith(suffix) for other in (*exact, *suffixes) if other != suffix) else ""
        yield f"*{suffix}{others}", Facts({HOST: host, SNI: host}, _HOSTS)
    yield "any other host", Facts({HOST: _FRESH, SNI: _FRESH}, _HOSTS)


def _without_dead_end(ways: list[Way]) -> list[Way]:
    """Leave out the way of requests that match no route, if there is any other: it leads nowhere."""
    return [way for way in ways if _route(way.points)] or ways


def _route(points: Iterable[Point]) -> str | None:
    return next((f"{point.namespace}/{point.name}" for point in points if isinstance(point, RouteNamed)), None)


def _way_text(way: Way) -> str:
    """Render the route of a way and where it leads."""
    route = _route(way.points)
    if route is None:
        return "no route" if isinstance(way.points[-1], DeadEnd) else way.where
    rule = next((f" rule {point.label}" for point in way.points if isinstance(point, RuleNamed)), "")
    return f"{route}{rule}" if way.leads_to is None else f"{route}{rule} -> {way.leads_to}"
