"""The rules of HTTPRoutes and GRPCRoutes out of Kubernetes data."""

from __future__ import annotations

import re
from collections.abc import Callable

from eastgate.policy.paths import comparable_path, control_character, path_problem
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.patterns import pattern_problem
from eastgate.world.routes import (
    GrpcMatch,
    GrpcRule,
    PathMatch,
    PathType,
    RouteBackend,
    RouteMatch,
    RouteRule,
    ValueMatch,
)

__all__ = ["read_grpc_rules", "read_rules"]

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_PATH = re.compile(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*")
_HIGHEST_WEIGHT = 1_000_000
_GRPC_NAMES = {
    "service": (
        re.compile(r"\.?[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*"),
        "write letters, digits, _ and dots, as in helloworld.Greeter",
    ),
    "method": (re.compile(r"[A-Za-z_][A-Za-z_0-9]*"), "write letters, digits and _, as in SayHello"),
}


def read_rules(spec: Section, namespace: str) -> tuple[RouteRule, ...]:
    """The rules. A route without any has one for everything, which leads nowhere: so the API server fills it in."""
    if not spec.has("rules"):
        return (RouteRule(),)
    return tuple(_rule(rule, namespace) for rule in spec.sections("rules"))


def _rule(rule: Section, namespace: str) -> RouteRule:
    return RouteRule(
        matches=tuple(_match(match) for match in rule.sections("matches")) or (RouteMatch(),),
        backends=tuple(_backend(backend, namespace) for backend in rule.sections("backendRefs")),
        filters=_filters(rule),
    )


def _filters(rule: Section) -> tuple[str, ...]:
    return tuple(one.required_text("type") for one in rule.sections("filters"))


def _match(match: Section) -> RouteMatch:
    return RouteMatch(
        path=_path(match),
        method=match.choice("method", _METHODS),
        headers=_values(match, "headers", str.lower),
        query=_values(match, "queryParams", str),
    )


def _path(match: Section) -> PathMatch:
    written = match.data.get("path")
    path = match.section("path", help=f"write `path: {{value: {written}}}`" if isinstance(written, str) else None)
    kind = PathType(path.choice("type", list(PathType)) or PathType.PREFIX)
    value = path.text("value")
    if value is None:
        return PathMatch(kind)
    if kind is PathType.REGEX:
        _check_pattern(path, "value", value)
        if (control := control_character(value)) is not None:
            path.complain(codes.BAD_PATH, f"the path has a control character ({control})", "value", help="remove it")
        return PathMatch(kind, value)
    problem = _path_problem(value)
    if problem is not None:
        said, way_out = problem
        path.complain(codes.BAD_PATH, f"`{value}` is not a path: {said}", "value", help=way_out)
    return PathMatch(kind, value)


def _path_problem(value: str) -> tuple[str, str] | None:
    """What is wrong with a path, and what to write, by the rules of the API server."""
    if not value.startswith("/"):
        return "it does not begin with /", f"write /{value}"
    if "?" in value or "#" in value:
        return "it has a query or a fragment", f"write {comparable_path(value)}"
    if not _PATH.fullmatch(value):
        return "it has a character that must be encoded", "encode the character as %XX"
    if "%2f" in value.lower():
        return "it has an encoded slash", "a request with one is refused: remove the match"
    # The API server lets encoded letters pass, and compares them as they are: those are no mistake.
    return path_problem(value, letters=True)


def _values(match: Section, key: str, same: Callable[[str], str]) -> tuple[ValueMatch, ...]:
    """The headers or query parameters; of two with the same name only the first counts."""
    found: dict[str, ValueMatch] = {}
    for one in match.sections(key):
        name, value = one.required_text("name"), one.required_text("value")
        regex = _is_regex(one)
        if regex:
            _check_pattern(one, "value", value)
        found.setdefault(same(name), ValueMatch(same(name), value, regex))
    return tuple(found.values())


def _is_regex(match: Section) -> bool:
    return match.choice("type", (PathType.EXACT, PathType.REGEX)) == PathType.REGEX


def _check_pattern(section: Section, key: str, pattern: str) -> None:
    problem = pattern_problem(pattern)
    if problem is not None:
        section.complain(
            codes.BAD_PATTERN,
            f"`{pattern}` is not a regular expression: {problem}",
            key,
            help="write it in the syntax of RE2, which has no look-around and no back-references",
        )


def _backend(backend: Section, own_namespace: str) -> RouteBackend:
    group, kind = backend.text("group") or "", backend.text("kind") or "Service"
    port, weight = backend.port("port"), backend.number("weight", 0, _HIGHEST_WEIGHT)
    if (group, kind) == ("", "Service") and not backend.has("port"):
        backend.missing("port")
    return RouteBackend(
        namespace=backend.text("namespace") or own_namespace,
        name=backend.required_text("name"),
        group=group,
        kind=kind,
        port=port,
        weight=1 if weight is None else weight,
    )


def read_grpc_rules(spec: Section) -> tuple[GrpcRule, ...]:
    """The rules of a GRPCRoute. One without any has none: here the API server fills nothing in."""
    return tuple(_grpc_rule(rule) for rule in spec.sections("rules"))


def _grpc_rule(rule: Section) -> GrpcRule:
    for backend in rule.sections("backendRefs"):
        _backend(backend, "")  # only for what is wrong with it: nobody asks yet where calls go
    return GrpcRule(tuple(_grpc_match(match) for match in rule.sections("matches")), _filters(rule))


def _grpc_match(match: Section) -> GrpcMatch:
    written = match.data.get("method")
    way_out = f"write `method: {{method: {written}}}`" if isinstance(written, str) else None
    method, headers = match.section("method", help=way_out), _values(match, "headers", str.lower)
    if not isinstance(written, dict):
        return GrpcMatch(headers=headers)
    if not method.has("service") and not method.has("method"):
        method.complain(
            codes.MISSING,
            "a match of methods names neither a service nor a method",
            help="write a service, a method or both; or remove `method`, to match every call",
        )
    regex = _is_regex(method)
    return GrpcMatch(_grpc_name(method, "service", regex), _grpc_name(method, "method", regex), headers, regex)


def _grpc_name(method: Section, key: str, regex: bool) -> str | None:
    name = method.text(key)
    if name is None:
        return None
    allowed, way_out = _GRPC_NAMES[key]
    if not name:
        method.complain(codes.BAD_CALL, f"the {key} is empty", key, help="leave it out: none means any")
    elif regex:
        _check_pattern(method, key, name)
    elif not allowed.fullmatch(name):
        method.complain(codes.BAD_CALL, f"`{name}` is not the name of a gRPC {key}", key, help=way_out)
    return name
