"""Linkerd: routes that a request bypasses with another spelling of its path.

Linkerd's proxy compares a path as the client sent it, and many applications normalize it. `//admin` and
`/public/../admin` take another route than `/admin`, or no route, and reach the same page. Eastgate's proxies normalize
before they compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from urllib.parse import urlencode

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.question import Question
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.lint_servers import inbound_layer
from eastgate.dialects.linting import Context, Finding, Group, GroupDecider, locating
from eastgate.ir import (
    Chain,
    Computed,
    Is,
    Known,
    Layer,
    OneOf,
    PolicyRef,
    Prefix,
    Request,
    Rule,
    SelectorCase,
    any_of,
    atoms,
)
from eastgate.ir.attributes import ADDRESS, HOST, METHOD, PATH, PORT, SENT_PATH, Attribute, AttributeKind, header
from eastgate.ir.paths import comparable_path
from eastgate.ir.symbolic.stages import allow_lists
from eastgate.settings import DataPlane

_GUESSES = ("", "x", "1", "/x", "/1")  # the end of an expression after its letters
_SOME_HOST = "host.example"
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~/")


@dataclass(frozen=True, slots=True)
class _Bypass:
    """A request that bypasses a route with another spelling of its path.

    `taken` is the chain that Linkerd's proxy chooses for the request. `caller` is a caller that only this chain allows.
    """

    port: int
    method: str
    host: str | None
    headers: Mapping[str, str]
    query: str
    spelt: str
    path: str
    taken: Chain
    caller: Request


@dataclass(frozen=True, slots=True)
class _Planes:
    """The policies of a group as Linkerd's own proxies decide them, and as Eastgate's proxies do."""

    native: GroupDecider
    ours: GroupDecider


def check_spellings(context: Context) -> Iterator[Finding]:
    """Report each route that denies a request which another spelling of the path would allow."""
    reported: set[PolicyRef] = set()
    for group in context.workload_groups:
        inbound = inbound_layer(group.layers)
        if inbound is None or not any(_route_of(case.chain) for case in inbound.cases):
            continue
        planes = _planes(group, context)
        native, ours = inbound_layer(planes.native.layers), inbound_layer(planes.ours.layers)
        if native is None or ours is None:
            continue
        for case in ours.cases:
            route = _route_of(case.chain)
            bypass = _find_bypass(case, native, ours, context) if route is not None and route not in reported else None
            if route is not None and bypass is not None:
                reported.add(route)
                yield _finding(route, bypass, group, context, planes)


def _planes(group: Group, context: Context) -> _Planes:
    native = replace(context.settings, data_plane=DataPlane.NATIVE)
    return _Planes(context.under(group, native), context.under(group, context.settings.enforced()))


def _route_of(chain: Chain) -> PolicyRef | None:
    return next((ref for ref in chain.chosen_by if ref.kind == "HTTPRoute"), None)


# Requests that take another route


def _find_bypass(case: SelectorCase, native: Layer, ours: Layer, context: Context) -> _Bypass | None:
    find_caller = cache(partial(_find_caller, context, case.chain))
    ports = sorted(_values(case, PORT))
    for port, other in ((port, other) for port in ports[:1] for other in native.cases):
        if _route_of(other.chain) == _route_of(case.chain) or port not in _values(other, PORT):
            continue
        caller = find_caller(other.chain)
        for path, spelt in _spellings(case, other) if caller is not None else ():
            request = _request(case, other, {PORT: port, PATH: path, SENT_PATH: spelt}, native.selects_by)
            if (
                context.chains_for(ours, request)[0] is case.chain
                and context.chains_for(native, request)[0] is other.chain
            ):
                host = request.get(HOST)
                headers = _values_by_name(request, AttributeKind.HEADER)
                assert caller is not None  # noqa: S101 - without a caller there are no spellings
                return _Bypass(
                    port=port,
                    method=str(request.values[METHOD]),
                    host=host if isinstance(host, str) else None,
                    headers=headers,
                    query=urlencode(_values_by_name(request, AttributeKind.QUERY)),
                    spelt=spelt,
                    path=path,
                    taken=other.chain,
                    caller=caller,
                )
    return None


def _values_by_name(request: Request, kind: AttributeKind) -> dict[str, str]:
    """Return the headers or the query parameters of a request."""
    return {
        attribute.key: value
        for attribute, value in request.values.items()
        if attribute.kind is kind and isinstance(value, str)
    }


def _find_caller(context: Context, denying: Chain, allowing: Chain) -> Request | None:
    """Find a caller that one chain allows and the other denies."""
    allowed = any_of([rule.when for rule in _rules(allowing)])
    return context.witness(allowed, [rule.when for rule in _rules(denying)])


def _rules(chain: Chain) -> Iterable[Rule]:
    return (arm.rule for stage in allow_lists(chain) for arm in stage.accepting)


def _request(
    case: SelectorCase, other: SelectorCase, fixed: Mapping[Attribute, Known], looked_at: Iterable[Attribute]
) -> Request:
    """Build a request with the values that the two cases require, without values that only other cases require."""
    values: dict[Attribute, Known] = {**dict.fromkeys(looked_at), METHOD: "GET"}
    if HOST in values:
        values[HOST] = _SOME_HOST
    for wanted in (*atoms(other.when), *atoms(case.when)):
        if isinstance(wanted, Is) and isinstance(wanted.matcher, OneOf):
            values[wanted.attribute] = min(wanted.matcher.values, key=str)
    headers = [attribute for attribute in values if attribute.is_header]
    if headers and not any(values[name] for name in headers):
        values[header("accept")] = "*/*"  # in a question with a header, all other headers are absent
    return Request({**values, **fixed})


def _values(case: SelectorCase, attribute: Attribute) -> set[int]:
    matchers = [atom.matcher for atom in atoms(case.when) if isinstance(atom, Is) and atom.attribute == attribute]
    values = [value for matcher in matchers if isinstance(matcher, OneOf) for value in matcher.values]
    return {value for value in values if isinstance(value, int)}


# Spellings


def _spellings(case: SelectorCase, other: SelectorCase) -> Iterator[tuple[str, str]]:
    """Yield paths of one case, each with another spelling that may match the other case."""
    for path in _paths(case):
        ways = [f"/{path}", f"/.{path}", f"/%{ord(path[1]):02X}{path[2:]}" if len(path) > 1 else "//"]
        for prefix in _prefixes(other):
            up = "/.." * (prefix.strip("/").count("/") + 1)
            ways.append(f"{prefix.rstrip('/')}{up}{path}")
        yield from ((path, bypass) for bypass in ways if comparable_path(bypass) == path)


def _paths(case: SelectorCase) -> Iterator[str]:
    """Yield paths of one of Eastgate's cases, in their canonical form."""
    for atom in atoms(case.when):
        if isinstance(atom, Is) and atom.attribute == PATH:
            if isinstance(atom.matcher, OneOf):
                yield from sorted(map(str, atom.matcher.values))
            elif isinstance(atom.matcher, Prefix):
                yield f"{atom.matcher.text}x"
        elif isinstance(atom, Computed) and atom.pattern is not None and atom.pattern[0] == PATH:
            yield from _guess_paths(atom, atom.pattern[1])


def _guess_paths(atom: Computed, pattern: str) -> Iterator[str]:
    end = next((index for index, letter in enumerate(pattern) if letter not in _LETTERS), len(pattern))
    for stem in dict.fromkeys((pattern[:end], pattern[: max(end - 1, 0)])):
        yield from (f"{stem}{more}" for more in _GUESSES if atom.holds({PATH: f"{stem}{more}"}))


def _prefixes(case: SelectorCase) -> Iterator[str]:
    for atom in atoms(case.when):
        if isinstance(atom, Is) and atom.attribute == SENT_PATH and isinstance(atom.matcher, Prefix):
            yield atom.matcher.text


# Findings as text


def _finding(route: PolicyRef, bypass: _Bypass, group: Group, context: Context, planes: _Planes) -> Finding:
    taken = _route_of(bypass.taken)
    where = f"takes {taken}" if taken is not None else "takes none of the routes"
    message = (
        f"{route} can be bypassed at Linkerd's own proxies: {bypass.method} {bypass.spelt} {where} there, "
        f"and is allowed for callers that this route denies {bypass.path}"
    )
    wider = taken if taken is not None else "the other routes"
    help_ = f"name the paths of {wider} one by one (type: Exact), or serve the paths of {route} on a separate port"
    example = _example(bypass, group, context, planes)
    shown = context.command(example) if example is not None else None
    subjects = (str(route), *((str(taken),) if taken is not None else ()), *group.subjects)
    return Finding(codes.ROUTE_RESPELT, message, _span(route, context), help_, subjects, shown)


def _span(route: PolicyRef, context: Context) -> Span | None:
    policy = context.by_ref.get(route)
    declared = context.world.routes.get(f"{route.kind}/{route.namespace}/{route.name}")
    return locating.name_of(policy.span if policy is not None else declared.span if declared is not None else None)


def _example(bypass: _Bypass, group: Group, context: Context, planes: _Planes) -> Question | None:
    """Return a question that shows the bypass; None if the command line cannot ask one."""
    address = bypass.caller.get(ADDRESS)
    path = f"{bypass.spelt}?{bypass.query}" if bypass.query else bypass.spelt
    for source in context.sources(group):
        plain = Question.of(
            source,
            group.destination,
            port=bypass.port,
            method=bypass.method,
            path=path,
            host=bypass.host,
            headers=bypass.headers or None,
        )
        for question in (plain, replace(plain, source_ip=address)) if isinstance(address, str) else (plain,):
            requests = context.requests(question)
            if all(map(planes.native.allows, requests)) and not all(map(planes.ours.allows, requests)):
                return question
    return None
