"""The rules of routes out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, entries, mapping, mappings, number, text
from eastgate.cluster.filters import Unsupported
from eastgate.cluster.patterns import pattern_problem
from eastgate.cluster.read_filters import (
    FILTERS,
    GRPC_FILTERS,
    filter_problems,
    read_filters,
    replaces_prefix,
    unsupported_filters,
)
from eastgate.cluster.routes import (
    GrpcMatch,
    GrpcRule,
    PathMatch,
    PathType,
    Retry,
    RouteBackend,
    RouteMatch,
    RouteRule,
    StreamRule,
    Timeouts,
    ValueMatch,
)
from eastgate.cluster.shapes import PORT, TEXT, AnyShape, Of, each, record
from eastgate.ir.paths import comparable_path, control_character, path_problem
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Choice, Field, ListOf, Text, Whole

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
WEIGHT = Whole(0, 1_000_000, codes.BAD_VALUE)
_PATH = regex(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*")
_DURATION = regex(r"([0-9]{1,5}(h|m|s|ms)){1,4}")
_DURATION_PARTS = regex(r"([0-9]+)(h|ms|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
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


def _duration_problems(duration: str) -> Iterator[Problem]:
    if not _DURATION.fullmatch(duration):
        message = f"`{duration}` is not a duration"
        yield Problem(codes.BAD_VALUE, message, "write whole numbers with h, m, s or ms, as in 1m30s")


def _timeout_problems(written: Data) -> Iterator[Problem]:
    timeouts = _timeouts(written)
    if timeouts.request and (timeouts.backend_request or 0) > timeouts.request:
        message = "a request to a backend may take longer than the whole request"
        yield Problem(codes.BAD_VALUE, message, "write a shorter time", ("backendRequest",))


def _rule_problems(rule: Data) -> Iterator[Problem]:
    yield from filter_problems(rule)
    backends = mappings(rule, "backendRefs")
    if backends and any(of.get("type") == "RequestRedirect" for of in mappings(rule, "filters")):
        message = "a rule that redirects has no backends"
        yield Problem(codes.BAD_VALUE, message, "remove the filter, or the backendRefs", ("backendRefs",))
    if any(map(replaces_prefix, (rule, *backends))):
        matches = mappings(rule, "matches")
        types = [text(mapping(match, "path"), "type") or PathType.PREFIX for match in matches]
        if len(types) > 1 or types[:1] not in ([], [PathType.PREFIX]):
            message = "ReplacePrefixMatch needs exactly one match, of a PathPrefix"
            yield Problem(codes.BAD_VALUE, message, "write a rule for each prefix", ("matches",))


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
_BACKEND: dict[str, Of | AnyShape] = {
    "group": TEXT,
    "kind": TEXT,
    "port": Field(PORT, needed=_is_service),
    "weight": WEIGHT,
    "namespace": TEXT,
    "name": _REQUIRED,
}
_TIME = Text("a duration", Demand(_duration_problems))
_STATUSES: ListOf[None] = ListOf(Whole(400, 599, codes.BAD_VALUE, "a status"))
RULES = each(
    {
        "name": TEXT,
        "matches": _MATCHES,
        "backendRefs": each({**_BACKEND, "filters": FILTERS}, Demand(filter_problems)),
        "filters": FILTERS,
        "timeouts": record({"request": _TIME, "backendRequest": _TIME}, Demand(_timeout_problems)),
        "retry": record({"codes": _STATUSES, "attempts": Whole(1, 2**31 - 1, codes.BAD_VALUE), "backoff": _TIME}),
        "sessionPersistence": record({}),
    },
    Demand(_rule_problems),
)
STREAM_RULES = each({"name": TEXT, "backendRefs": each(_BACKEND)})
_METHOD = record(
    {"type": _COMPARED, "service": TEXT, "method": TEXT},
    Demand(_method_problems),
    shorthand="write `method: {{method: {}}}`",
)
GRPC_RULES = each(
    {
        "name": TEXT,
        "backendRefs": each({**_BACKEND, "filters": GRPC_FILTERS}, Demand(filter_problems)),
        "matches": each({"method": _METHOD, "headers": _VALUES}),
        "filters": GRPC_FILTERS,
        "sessionPersistence": record({}),
    },
    Demand(filter_problems),
)


# Meaning


def read_rules(spec: Data, namespace: str) -> tuple[RouteRule, ...]:
    """Return the rules. One without any has one for everything, which leads nowhere: so the API server fills it in."""
    if spec.get("rules") is None:
        return (RouteRule(),)
    return tuple(_rule(rule, namespace, number_) for number_, rule in enumerate(entries(spec, "rules")))


def _rule(rule: Data, namespace: str, number_: int) -> RouteRule:
    at = ("spec", "rules", number_)
    filters = read_filters(rule)
    return RouteRule(
        matches=tuple(read_match(match, _first_of_each) for match in entries(rule, "matches")) or (RouteMatch(),),
        backends=_backends(rule, namespace, at),
        filters=filters,
        name=text(rule, "name"),
        timeouts=_timeouts(mapping(rule, "timeouts")),
        retry=_retry(rule),
        unsupported=(*unsupported_filters(filters, at), *_unsupported_fields(rule, at)),
    )


def _unsupported_fields(rule: Data, at: tuple[str | int, ...]) -> Iterator[Unsupported]:
    if rule.get("sessionPersistence") is not None:
        yield Unsupported("sessionPersistence", (*at, "sessionPersistence"))


def _timeouts(timeouts: Data) -> Timeouts:
    return Timeouts(_duration(timeouts, "request"), _duration(timeouts, "backendRequest"))


def _retry(rule: Data) -> Retry | None:
    if rule.get("retry") is None:
        return None
    retry = mapping(rule, "retry")
    statuses = retry.get("codes")
    return Retry(
        tuple(statuses) if isinstance(statuses, list) else (), number(retry, "attempts"), _duration(retry, "backoff")
    )


def _duration(data: Data, key: str) -> int | None:
    """Return a duration in milliseconds."""
    written = text(data, key)
    if written is None:
        return None
    return sum(int(amount) * _MILLISECONDS[unit] for amount, unit in _DURATION_PARTS.findall(written))


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


def _backends(rule: Data, namespace: str, at: tuple[str | int, ...], *, grpc: bool = False) -> tuple[RouteBackend, ...]:
    return tuple(
        _backend(backend, namespace, (*at, "backendRefs", number_), grpc=grpc)
        for number_, backend in enumerate(entries(rule, "backendRefs"))
    )


def _backend(backend: Data, own_namespace: str, at: tuple[str | int, ...], *, grpc: bool) -> RouteBackend:
    weight = number(backend, "weight")
    filters = read_filters(backend, grpc=grpc)
    return RouteBackend(
        namespace=text(backend, "namespace") or own_namespace,
        name=text(backend, "name") or "",
        group=text(backend, "group") or "",
        kind=text(backend, "kind") or "Service",
        port=number(backend, "port"),
        weight=1 if weight is None else weight,
        filters=filters,
        unsupported=tuple(unsupported_filters(filters, at)),
    )


def read_grpc_rules(spec: Data, namespace: str) -> tuple[GrpcRule, ...]:
    """Return the rules of a GRPCRoute. One without any has none: here the API server fills nothing in."""
    return tuple(_grpc_rule(rule, namespace, number_) for number_, rule in enumerate(entries(spec, "rules")))


def _grpc_rule(rule: Data, namespace: str, number_: int) -> GrpcRule:
    at = ("spec", "rules", number_)
    filters = read_filters(rule, grpc=True)
    return GrpcRule(
        matches=tuple(_grpc_match(match) for match in entries(rule, "matches")),
        filters=filters,
        backends=_backends(rule, namespace, at, grpc=True),
        name=text(rule, "name"),
        unsupported=(*unsupported_filters(filters, at), *_unsupported_fields(rule, at)),
    )


def read_stream_rules(spec: Data, namespace: str) -> tuple[StreamRule, ...]:
    """Return the rules of a TLSRoute or a TCPRoute."""
    return tuple(
        StreamRule(_backends(rule, namespace, ("spec", "rules", number_)), text(rule, "name"))
        for number_, rule in enumerate(entries(spec, "rules"))
    )


def _grpc_match(match: Data) -> GrpcMatch:
    method, headers = mapping(match, "method"), _first_of_each(_values(match, "headers", str.lower))
    return GrpcMatch(text(method, "service"), text(method, "method"), headers, _is_regex(method))
