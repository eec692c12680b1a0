"""What Linkerd says of routes of Gateway API that have a parent of its group: they are no resources of its own.

All of it is about the route alone, so that nothing depends on whether its Server was read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.diagnostics import Reporter
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import GROUP
from eastgate.dialects.linkerd.route_validation import is_header_name
from eastgate.dialects.linkerd.routes import SUPPORTED_FILTERS
from eastgate.schema import enumerated, quoted
from eastgate.world import Manifest, ParentRef, Route, WorldObject
from eastgate.world.fields import Section

__all__ = ["inspect"]

_KINDS = ("HTTPRoute", "GRPCRoute")
_MODIFIERS = ("requestHeaderModifier", "responseHeaderModifier")


def inspect(manifest: Manifest, declared: WorldObject, reporter: Reporter) -> None:
    """Report what its webhook refuses, and what it takes and then ignores."""
    if not isinstance(declared, Route) or declared.kind not in _KINDS:
        return
    if not any(parent.group.lower() == GROUP for parent in declared.parents):
        return
    spec = Section(manifest, reporter).section("spec")
    for parent, section in zip(declared.parents, spec.sections("parentRefs"), strict=True):
        _parent(parent, section)
    for rule in spec.sections("rules"):
        _rule(rule)
    if any(_is_server(parent) for parent in declared.parents):
        _dropped(declared, reporter)


# What the webhook refuses


def _parent(parent: ParentRef, section: Section) -> None:
    if (parent.group.lower(), parent.kind.lower()) == (GROUP, "egressnetwork") and parent.port is None:
        message = "cannot target an EgressNetwork without specifying a port"
        section.complain(codes.ROUTE_PARENT, message, "kind", help="write port: <number>")


def _rule(rule: Section) -> None:
    for match in rule.sections("matches"):
        _header_names(match, "headers")
        method = match.data.get("method")
        if isinstance(method, dict) and method.get("type") == "RegularExpression":
            message = "unsupported GRPCRoute method match type: RegularExpression"
            way_out = "write type: Exact, which is also the default"
            match.complain(codes.MATCH_TYPE, message, "method", "type", help=way_out)
    for one in rule.sections("filters"):
        for modifier in (one.section(field) for field in _MODIFIERS):
            _header_names(modifier, "set")
            _header_names(modifier, "add")
            for position, name in enumerate(modifier.texts("remove")):
                _header_name(modifier, name, "remove", position)
        redirect = one.section("requestRedirect")
        if redirect.has("path"):
            _redirect_path(redirect.section("path"))
    for backend in rule.sections("backendRefs"):
        # Gateway API itself says so where no group is written.
        if backend.text("group") == "core" and backend.text("kind") in (None, "Service") and not backend.has("port"):
            message = "invalid backendRef: cannot reference a Service without a port"
            backend.complain(codes.ROUTE_BACKEND, message, help="write port: <number>")


def _header_names(section: Section, key: str) -> None:
    for one in section.sections(key):
        _header_name(one, one.required_text("name"), "name")


def _header_name(section: Section, name: str, *below: str | int) -> None:
    if not is_header_name(name):
        message = f"{quoted(name)} is not the name of a header"
        section.complain(codes.ROUTE_HEADER, message, *below, help="write a name such as x-team")


def _redirect_path(path: Section) -> None:
    field = next((name for name in ("replaceFullPath", "replacePrefixMatch") if path.has(name)), None)
    if field is None:
        message = "a RequestRedirect filter must contain either replaceFullPath or replacePrefixMatch"
        path.complain(codes.ROUTE_REDIRECT, message, help="write one of the two")
        return
    value = path.text(field)
    if value is not None and not value.startswith("/"):
        said = "RequestRedirect filters may only contain absolute paths (starting with '/')"
        message = f"{said}; {quoted(value)} is not an absolute path"
        path.complain(codes.ROUTE_REDIRECT, message, field, help=f"write /{value}")


# What it takes and then ignores


def _is_server(parent: ParentRef) -> bool:
    return (parent.group.lower(), parent.kind.lower()) == (GROUP, "server")


def _dropped(route: Route, reporter: Reporter) -> None:
    for reason, way_out in _reasons(route):
        message = f"Linkerd ignores {route.kind} {route.namespace}/{route.name}: {reason}"
        reporter.report(codes.DROPPED_ROUTE, message, route.span, help=way_out)


def _reasons(route: Route) -> Iterator[tuple[str, str]]:
    written = {one for rule in route.rules for one in rule.filters}
    written |= {one for rule in route.grpc_rules for one in rule.filters}
    if unsupported := sorted(written - SUPPORTED_FILTERS):
        yield f"it has {enumerated(unsupported, 'and')}", "remove the filter from a route of a Server"
    for parent in route.parents:
        said = _unusable(route, parent) if _is_server(parent) else None
        if said is not None:
            yield f"its Server parent {said}", "write its name, and nothing else"


def _unusable(route: Route, parent: ParentRef) -> str | None:
    if parent.namespace != route.namespace:
        return "is in another namespace"
    if parent.port is not None:
        return "has `port`"
    return "has `sectionName`" if parent.section_name is not None else None
