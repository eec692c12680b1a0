"""Checks of routes of Gateway API that have a parent of Linkerd's group: they are not resources of its own.

They look at the route alone, so that nothing depends on whether its Server was read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Manifest, ParentRef, Route, WorldObject
from eastgate.cluster.examination import Examination
from eastgate.cluster.fields import Data, mapping, text
from eastgate.cluster.shapes import TEXT, each, record
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import GROUP, INBOUND_KINDS, is_server
from eastgate.dialects.linkerd.route_validation import is_header_name
from eastgate.dialects.linkerd.routes import SUPPORTED_FILTERS
from eastgate.reading.manifests.shapes import Field, enumerated, quoted
from eastgate.reading.manifests.shapes.demands import Demand, Problem


def inspect(manifest: Manifest, declared: WorldObject, reporter: Reporter) -> None:
    """Report what Linkerd's webhook rejects in a route, and what it accepts and then ignores."""
    if not isinstance(declared, Route) or declared.kind not in INBOUND_KINDS:
        return
    if not any(parent.group.lower() == GROUP for parent in declared.parents):
        return
    Examination(manifest, reporter).examine(_ROUTE, manifest.data)
    if any(is_server(parent) for parent in declared.parents):
        _report_dropped(declared, reporter)


# Checks of the webhook


def _parent_problems(parent: Data) -> Iterator[Problem]:
    group, kind = text(parent, "group") or "", text(parent, "kind") or ""
    if (group.lower(), kind.lower()) == (GROUP, "egressnetwork") and parent.get("port") is None:
        message = "cannot target an EgressNetwork without specifying a port"
        yield Problem(codes.ROUTE_PARENT, message, "write port: <number>", ("kind",))


def _match_problems(match: Data) -> Iterator[Problem]:
    if mapping(match, "method").get("type") == "RegularExpression":
        message = "unsupported GRPCRoute method match type: RegularExpression"
        yield Problem(codes.MATCH_TYPE, message, "write type: Exact, which is also the default", ("method", "type"))


def _backend_problems(backend: Data) -> Iterator[Problem]:
    # Gateway API itself says so where no group is written.
    if backend.get("group") == "core" and text(backend, "kind") in (None, "Service") and backend.get("port") is None:
        message = "invalid backendRef: cannot reference a Service without a port"
        yield Problem(codes.ROUTE_BACKEND, message, "write port: <number>")


def _header_problems(header: Data) -> Iterator[Problem]:
    name = text(header, "name") or ""
    if not is_header_name(name):
        message = f"{quoted(name)} is not the name of a header"
        yield Problem(codes.ROUTE_HEADER, message, "write a name such as x-team", ("name",))


def _redirect_problems(redirect: Data) -> Iterator[Problem]:
    path = mapping(redirect, "path")
    for field in ("replaceFullPath", "replacePrefixMatch"):  # Gateway API itself demands one of them
        value = text(path, field)
        if value is not None and not value.startswith("/"):
            requirement = "RequestRedirect filters may only contain absolute paths (starting with '/')"
            message = f"{requirement}; {quoted(value)} is not an absolute path"
            yield Problem(codes.ROUTE_REDIRECT, message, f"write /{value}", ("path", field))


_HEADERS = each({"name": Field(TEXT, required=True)}, Demand(_header_problems))
_RULE = each(
    {
        "matches": each({"headers": _HEADERS}, Demand(_match_problems)),
        "filters": each({"requestRedirect": record({"path": record({})}, Demand(_redirect_problems))}),
        "backendRefs": each({}, Demand(_backend_problems)),
    }
)
_ROUTE = record({"spec": record({"parentRefs": each({}, Demand(_parent_problems)), "rules": _RULE})})


# Routes that are accepted and then ignored


def _report_dropped(route: Route, reporter: Reporter) -> None:
    for reason, way_out in _reasons(route):
        message = f"Linkerd ignores {route.kind} {route.namespace}/{route.name}: {reason}"
        reporter.report(codes.DROPPED_ROUTE, message, route.span, help=way_out)


def _reasons(route: Route) -> Iterator[tuple[str, str]]:
    filters = {filter_.type for rule in route.rules for filter_ in rule.filters}
    filters |= {filter_.type for rule in route.grpc_rules for filter_ in rule.filters}
    if unsupported := sorted(filters - SUPPORTED_FILTERS):
        yield f"it has {enumerated(unsupported, 'and')}", "remove the filter from a route of a Server"
    for parent in route.parents:
        problem = _why_unusable(route, parent) if is_server(parent) else None
        if problem is not None:
            yield f"its Server parent {problem}", "write its name, and nothing else"


def _why_unusable(route: Route, parent: ParentRef) -> str | None:
    if parent.namespace != route.namespace:
        return "is in another namespace"
    if parent.port is not None:
        return "has `port`"
    return "has `sectionName`" if parent.section_name is not None else None
