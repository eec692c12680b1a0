"""The rules of routes, from Kubernetes data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, mapping, mappings, text
from eastgate.cluster.patterns import pattern_problem
from eastgate.cluster.read_filters import FILTERS, GRPC_FILTERS, filter_problems, replaces_prefix, supported
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
from eastgate.cluster.shapes import HOME, PORT, TEXT, Fields, Of, each, first_of_each, given, record
from eastgate.ir.paths import comparable_path, control_character, path_problem
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
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
    """Return the problem of a path, and the text to write instead, by the rules of the API server."""
    if not value.startswith("/"):
        return "it does not begin with /", f"write /{value}"
    if "?" in value or "#" in value:
        return "it has a query or a fragment", f"write {comparable_path(value)}"
    if not _PATH.fullmatch(value):
        return "it has a character that must be encoded", "encode the character as %XX"
    if "%2f" in value.lower():
        return "it has an encoded slash", "a request with one is refused: remove the match"
    # The API server accepts encoded letters, and compares them as written: they are no mistake.
    return path_problem(value, letters=True)


def _is_regex(match: Data) -> bool:
    return match.get("type") == PathType.REGEX


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


def _milliseconds(duration: str) -> int:
    return sum(int(amount) * _MILLISECONDS[unit] for amount, unit in _DURATION_PARTS.findall(duration))


def _timeout_problems(written: Data) -> Iterator[Problem]:
    whole, one = (_milliseconds(text(written, key) or "") for key in ("request", "backendRequest"))
    if 0 < whole < one:
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


def _value(*, name: str, value: str, type: str = "") -> ValueMatch:  # noqa: A002 - the names in a manifest
    return ValueMatch(name, value, type == PathType.REGEX)


def _values(name: Text[None], together: Callable[[tuple[Any, ...]], object] | None) -> ListOf[None]:
    required: Of = Field(name, required=True)
    fields: Fields = {"name": required, "value": _REQUIRED, "type": _COMPARED}
    return each(fields, Demand(_value_problems), make=_value, together=together)


def matches(distinct: Callable[[tuple[Any, ...]], object] | None = None) -> Fields:
    """Return the fields of a match of requests.

    `distinct` selects the headers or query parameters of one name that count; by default all count.
    """
    path = record(
        {"type": Choice(tuple(PathType)), "value": TEXT},
        Demand(_path_problems),
        make=PathMatch,
        shorthand="write `path: {{value: {}}}`",
    )
    query = Field(_values(TEXT, distinct), into="query")
    return {"path": path, "method": Choice(METHODS), "headers": _values(_HEADER, distinct), "queryParams": query}


def _call(*, type: str = "", **fields: Any) -> GrpcMatch:  # noqa: A002
    return GrpcMatch(regex=type == PathType.REGEX, **fields)


_REQUIRED: Of = Field(TEXT, required=True)
_COMPARED = Choice((PathType.EXACT, PathType.REGEX))
_HEADER: Text[None] = Text(make=str.lower)
_first_by_name = first_of_each(lambda match: str(match.name))
_MATCHES = each(matches(_first_by_name), make=RouteMatch, together=lambda some: some or (RouteMatch(),))
_METHOD = record(
    {"type": _COMPARED, "service": TEXT, "method": TEXT},
    Demand(_method_problems),
    shorthand="write `method: {{method: {}}}`",
)
_CALLS = each({"method": _METHOD, "headers": _values(_HEADER, _first_by_name)}, make=_call)
_TIME = Text("a duration", Demand(_duration_problems), make=_milliseconds)
_STATUSES: ListOf[None] = ListOf(Whole(400, 599, codes.BAD_VALUE, "a status"))
_TIMEOUTS = record({"request": _TIME, "backendRequest": _TIME}, Demand(_timeout_problems), make=Timeouts)
_RETRY = record({"codes": _STATUSES, "attempts": Whole(1, 2**31 - 1, codes.BAD_VALUE), "backoff": _TIME}, make=Retry)
_SESSION = record({}, make=lambda: True)


def _backends(filters: dict[str, ListOf[None]], *rules: Demand[Mapping[str, object]]) -> Of:
    backend: Fields = {
        "group": TEXT,
        "kind": given(TEXT),
        "port": Field(PORT, needed=_is_service),
        "weight": WEIGHT,
        "namespace": HOME,
        "name": _REQUIRED,
    }
    return Field(each({**backend, **filters}, *rules, make=partial(supported, RouteBackend)), into="backends")


RULES = each(
    {
        "name": TEXT,
        "matches": _MATCHES,
        "backendRefs": _backends({"filters": FILTERS}, Demand(filter_problems)),
        "filters": FILTERS,
        "timeouts": _TIMEOUTS,
        "retry": _RETRY,
        "sessionPersistence": _SESSION,
    },
    Demand(_rule_problems),
    make=partial(supported, RouteRule),
)
STREAM_RULES = each({"name": TEXT, "backendRefs": _backends({})}, make=StreamRule)
GRPC_RULES = each(
    {
        "name": TEXT,
        "backendRefs": _backends({"filters": GRPC_FILTERS}, Demand(filter_problems)),
        "matches": _CALLS,
        "filters": GRPC_FILTERS,
        "sessionPersistence": _SESSION,
    },
    Demand(filter_problems),
    make=partial(supported, GrpcRule),
)
