"""What Linkerd says of routes of Gateway API with a Server as parent. They are no resources of its own, so that nothing
can be said of one before it is known what it is attached to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.diagnostics import Diagnostic
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import GROUP, Resource
from eastgate.dialects.linkerd.routes import SUPPORTED_FILTERS
from eastgate.schema import enumerated
from eastgate.settings import Settings
from eastgate.world import ParentRef, Route, World

__all__ = ["examine"]


def examine(
    _resources: Sequence[Resource], _settings: Settings, world: World
) -> Iterator[tuple[Resource | None, Diagnostic]]:
    """What its webhook refuses, and what it takes and then ignores."""
    for route in world.routes.values():
        servers = [parent for parent in route.parents if _is_server(parent)]
        if servers:
            yield from ((None, finding) for finding in _findings(route, servers))


def _is_server(parent: ParentRef) -> bool:
    return (parent.group.lower(), parent.kind.lower()) == (GROUP, "server")


def _findings(route: Route, servers: Sequence[ParentRef]) -> Iterator[Diagnostic]:
    if any(match.regex for rule in route.grpc_rules for match in rule.matches):
        message = f"unsupported GRPCRoute method match type in {route.kind} {route.namespace}/{route.name}"
        yield Diagnostic(codes.MATCH_TYPE, message, route.span, "write type: Exact, which is also the default")
    written = [one for rule in route.rules for one in rule.filters]
    written += [one for rule in route.grpc_rules for one in rule.filters]
    if unsupported := sorted(set(written) - SUPPORTED_FILTERS):
        message = (
            f"Linkerd ignores {route.kind} {route.namespace}/{route.name}: it has {enumerated(unsupported, 'and')}"
        )
        yield Diagnostic(codes.DROPPED_ROUTE, message, route.span, "remove the filter from a route of a Server")
    for parent in servers:
        said = _unusable(route, parent)
        if said is not None:
            message = f"Linkerd ignores {route.kind} {route.namespace}/{route.name}: its Server parent {said}"
            yield Diagnostic(codes.DROPPED_ROUTE, message, route.span, "write its name, and nothing else")


def _unusable(route: Route, parent: ParentRef) -> str | None:
    if parent.namespace != route.namespace:
        return "is in another namespace"
    if parent.port is not None:
        return "has `port`"
    return "has `sectionName`" if parent.section_name is not None else None
