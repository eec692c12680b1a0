"""The rules of HTTPRoutes and GRPCRoutes out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eastgate.cluster import codes
from eastgate.cluster.fields import Data, entries, mapping, number, text
from eastgate.cluster.patterns import pattern_problem
from eastgate.cluster.routes import (
    GrpcMatch,
    GrpcRule,
    PathMatch,
    PathType,
    RouteBackend,
    RouteMatch,
    RouteRule,
    ValueMatch,
)
from eastgate.cluster.shapes import PORT, TEXT, Of, each, record
from eastgate.ir.paths import comparable_path, control_character, path_problem
from eastgate.manifests.shapes.demands import Demand, Problem
from eastgate.manifests.shapes.shape import Choice, Field, Whole
from eastgate.regexes import regex

__all__ = ["GRPC_RULES", "METHODS", "RULES", "WEIGHT", "read_grpc_rules", "read_match", "read_rules"]

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
WEIGHT = Whole(0, 1_000_000, codes.BAD_VALUE)
_PATH = regex(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*")
_GRPC_NAMES = {
    "service": (
        regex(r"\.?[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*"),
        "write letters, digits, _ and dots, as in helloworld.Greeter",
    ),
    "method": (regex(r"[A-Za-z_][A-Za-z_0-9]*"), "write letters, digits and _, as in SayHello"),
}


# Shapes


def _pattern_problems(key: str, pattern: str) -> Iterator[Problem]:
    problem = pattern_problem(pattern)
    if problem is not None:
        yield Problem(
            codes.BAD_PATTERN,
            f"`{pattern}` is not a regular expression: {problem}",
            "write it in the syntax of RE2, which has no look-around and no back-references",
            (key,),
        )


def _path_problems(path: Data) -> Iterator[Problem]:
    value = text(path, "value")
    if value is None:
        return
    if path.get("type") == PathType.REGEX:
        yield from _pattern_problems("value", value)
        if (control := control_character(value)) is not None:
            message = f"the path has a control character ({control})"
            yield Problem(codes.BAD_PATH, message, "remove it", ("value",))
    elif (problem := _path_problem(value)) is not None:
        yield Problem(codes.BAD_PATH, f"`{value}` is not a path: {problem[0]}", problem[1], ("value",))


def _path_problem(value: str) -> tuple[str, str] | None:
    """Return what is wrong with a path, and what to write, by the rules of the API server."""
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


def _value_problems(match: Data) -> Iterator[Problem]:
    if _is_regex(match):
        yield from _pattern_problems("value", text(match, "value") or "")


def _method_problems(method: Data) -> Iterator[Problem]:
    if method.get("service") is None and method.get("method") is None:
        yield Problem(
            codes.MISSING,
            "a match of methods names neither a service nor a method",
            "write a service, a method or both; or remove `method`, to match every call",
        )
    for key, (allowed, way_out) in _GRPC_NAMES.items():
        name = text(method, key)
        if name is None:
            continue
        if not name:
            yield Problem(codes.BAD_CALL, f"the {key} is empty", "leave it out: none means any", (key,))
        elif _is_regex(method):
            yield from _pattern_problems(key, name)
        elif not allowed.fullmatch(name):
            yield Problem(codes.BAD_CALL, f"`{name}` is not the name of a gRPC {key}", way_out, (key,))


def _is_service(backend: Data) -> bool:
    return not text(backend, "group") and (text(backend, "kind") or "Service") == "Service"


_REQUIRED: Of = Field(TEXT, required=True)
_COMPARED = Choice((PathType.EXACT, PathType.REGEX))
_VALUES = each({"name": _REQUIRED, "value": _REQUIRED, "type": _COMPARED}, Demand(_value_problems))
_MATCHES = each(
    {
        "path": record(
            {"type": Choice(tuple(PathType)), "value": TEXT},
            Demand(_path_problems),
            shorthand="write `path: {{value: {}}}`",
        ),
        "method": Choice(METHODS),
        "headers": _VALUES,
        "queryParams": _VALUES,
    }
)
_BACKENDS = each(
    {
        "group": TEXT,
        "kind": TEXT,
        "port": Field(PORT, needed=_is_service),
        "weight": WEIGHT,
        "namespace": TEXT,
        "name": _REQUIRED,
    }
)
_FILTERS = each({"type": _REQUIRED})
RULES = each({"matches": _MATCHES, "backendRefs": _BACKENDS, "filters": _FILTERS})
_METHOD = record(
    {"type": _COMPARED, "service": TEXT, "method": TEXT},
    Demand(_method_problems),
    shorthand="write `method: {{method: {}}}`",
)
GRPC_RULES = each(
    {"backendRefs": _BACKENDS, "matches": each({"method": _METHOD, "headers": _VALUES}), "filters": _FILTERS}
)


# Meaning


def read_rules(spec: Data, namespace: str) -> tuple[RouteRule, ...]:
    """Return the rules. One without any has one for everything, which leads nowhere: so the API server fills it in."""
    if spec.get("rules") is None:
        return (RouteRule(),)
    return tuple(_rule(rule, namespace) for rule in entries(spec, "rules"))


def _rule(rule: Data, namespace: str) -> RouteRule:
    return RouteRule(
        matches=tuple(read_match(match, _first_of_each) for match in entries(rule, "matches")) or (RouteMatch(),),
        backends=tuple(_backend(backend, namespace) for backend in entries(rule, "backendRefs")),
        filters=_filters(rule),
    )


def _filters(rule: Data) -> tuple[str, ...]:
    return tuple(text(filter_, "type") or "" for filter_ in entries(rule, "filters"))


def read_match(match: Data, distinct: Callable[[Sequence[ValueMatch]], tuple[ValueMatch, ...]]) -> RouteMatch:
    """Return a match. `distinct` says which count of several headers or query parameters of one name."""
    return RouteMatch(
        path=_path(mapping(match, "path")),
        method=text(match, "method"),
        headers=distinct(_values(match, "headers", str.lower)),
        query=distinct(_values(match, "queryParams", str)),
    )


def _path(path: Data) -> PathMatch:
    kind, value = PathType(text(path, "type") or PathType.PREFIX), text(path, "value")
    return PathMatch(kind) if value is None else PathMatch(kind, value)


def _values(match: Data, key: str, same: Callable[[str], str]) -> list[ValueMatch]:
    return [
        ValueMatch(same(text(entry, "name") or ""), text(entry, "value") or "", _is_regex(entry))
        for entry in entries(match, key)
    ]


def _first_of_each(values: Sequence[ValueMatch]) -> tuple[ValueMatch, ...]:
    """Return the first of each name: to Gateway API no other counts."""
    first: dict[str, ValueMatch] = {}
    for value in values:
        first.setdefault(value.name, value)
    return tuple(first.values())


def _is_regex(match: Data) -> bool:
    return match.get("type") == PathType.REGEX


def _backend(backend: Data, own_namespace: str) -> RouteBackend:
    weight = number(backend, "weight")
    return RouteBackend(
        namespace=text(backend, "namespace") or own_namespace,
        name=text(backend, "name") or "",
        group=text(backend, "group") or "",
        kind=text(backend, "kind") or "Service",
        port=number(backend, "port"),
        weight=1 if weight is None else weight,
    )


def read_grpc_rules(spec: Data) -> tuple[GrpcRule, ...]:
    """Return the rules of a GRPCRoute. One without any has none: here the API server fills nothing in."""
    return tuple(
        GrpcRule(tuple(_grpc_match(match) for match in entries(rule, "matches")), _filters(rule))
        for rule in entries(spec, "rules")
    )


def _grpc_match(match: Data) -> GrpcMatch:
    method, headers = mapping(match, "method"), _first_of_each(_values(match, "headers", str.lower))
    return GrpcMatch(text(method, "service"), text(method, "method"), headers, _is_regex(method))
