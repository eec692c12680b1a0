"""Linkerd: routes that another spelling of their path goes round.

Linkerd's proxy compares a path as it is sent, and many applications normalise it: `//admin` and `/public/../admin` take
another route than `/admin`, or none, and end at the same page. Ours normalise before they compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from urllib.parse import urlencode

from eastgate.dialects.linkerd.provenance import INBOUND
from eastgate.engine.compiled import Program
from eastgate.lint import codes, locating
from eastgate.lint.ground import Ground, Group
from eastgate.lint.model import Finding, command
from eastgate.lint.possible import chains_for
from eastgate.lint.readings import assembled
from eastgate.lint.samples import sources
from eastgate.lint.solving import GaveUp, witness
from eastgate.places import Span
from eastgate.policy import (
    AllowAny,
    Case,
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
    any_of,
    atoms,
)
from eastgate.policy.attributes import ADDRESS, HOST, METHOD, PATH, PORT, SENT_PATH, Attribute, header
from eastgate.policy.paths import comparable_path
from eastgate.questions import Question, arrivals
from eastgate.settings import DataPlane, Settings

__all__ = ["respelt_routes"]

_GUESSES = ("", "x", "1", "/x", "/1")  # with what an expression may go on behind its letters
_SOME_HOST = "host.example"
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~/")


@dataclass(frozen=True, slots=True)
class _Round:
    """A way round a route: a request, where Linkerd's proxy takes it, and who is let in there only."""

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
    """The same policies as Linkerd's proxies decide them, and as ours do."""

    native: Program
    ours: Program


def respelt_routes(ground: Ground) -> Iterator[Finding]:
    """Each route with a request that it denies, and that is allowed where its path is spelt otherwise."""
    told: set[PolicyRef] = set()
    for group in ground.workload_groups:
        inbound = _inbound(group.program)
        if inbound is None or not any(_route(case.chain) for case in inbound.cases):
            continue
        planes = _Planes(*(assembled(group, group.attached, one, ground) for one in _settings(ground.settings)))
        native, ours = _inbound(planes.native), _inbound(planes.ours)
        if native is None or ours is None:
            continue
        for case in ours.cases:
            route = _route(case.chain)
            found = _way_round(case, native, ours) if route is not None and route not in told else None
            if route is not None and found is not None:
                told.add(route)
                yield _told(route, found, group, ground, planes)


def _settings(settings: Settings) -> tuple[Settings, Settings]:
    return replace(settings, data_plane=DataPlane.NATIVE), settings.enforced()


def _inbound(program: Program) -> Layer | None:
    return next((one for one in program.layers if one.at == INBOUND), None)


def _route(chain: Chain) -> PolicyRef | None:
    return next((ref for ref in chain.chosen_by if ref.kind == "HTTPRoute"), None)


# A request that is taken elsewhere


def _way_round(case: Case, native: Layer, ours: Layer) -> _Round | None:
    gains = cache(partial(_gain, case.chain))
    ports = sorted(_values(case, PORT))
    for port, other in ((port, other) for port in ports[:1] for other in native.cases):
        if _route(other.chain) == _route(case.chain) or port not in _values(other, PORT):
            continue
        caller = gains(other.chain)
        for path, spelt in _spellings(case, other) if caller is not None else ():
            request = _request(case, other, {PORT: port, PATH: path, SENT_PATH: spelt}, native.selects_by)
            if chains_for(ours, request)[0] is case.chain and chains_for(native, request)[0] is other.chain:
                host = request.get(HOST)
                headers, query = (_named(request, kind) for kind in ("header", "query parameter"))
                assert caller is not None  # noqa: S101 - otherwise nothing is spelt
                return _Round(
                    port=port,
                    method=str(request.values[METHOD]),
                    host=host if isinstance(host, str) else None,
                    headers=headers,
                    query=urlencode(query),
                    spelt=spelt,
                    path=path,
                    taken=other.chain,
                    caller=caller,
                )
    return None


def _named(request: Request, kind: str) -> dict[str, str]:
    """The headers or the query parameters of a request."""
    return {one.key: value for one, value in request.values.items() if one.name == kind and isinstance(value, str)}


def _gain(denying: Chain, allowing: Chain) -> Request | None:
    """A caller whom the one chain lets in and the other does not."""
    try:
        return witness(any_of([rule.when for rule in _rules(allowing)]), [rule.when for rule in _rules(denying)])
    except GaveUp:
        return None


def _rules(chain: Chain) -> Iterable[Rule]:
    return (rule for stage in chain.stages if isinstance(stage, AllowAny) for rule in stage.rules)


def _request(case: Case, other: Case, known: Mapping[Attribute, Known], looked_at: Iterable[Attribute]) -> Request:
    """A request with all that the two cases ask for, and nothing else that some case asks for."""
    values: dict[Attribute, Known] = {**dict.fromkeys(looked_at), METHOD: "GET"}
    if HOST in values:
        values[HOST] = _SOME_HOST
    for wanted in (*atoms(other.when), *atoms(case.when)):
        if isinstance(wanted, Is) and isinstance(wanted.matcher, OneOf):
            values[wanted.attribute] = min(wanted.matcher.values, key=str)
    headers = [attribute for attribute in values if attribute.is_header]
    if headers and not any(values[one] for one in headers):
        values[header("accept")] = "*/*"  # a question with a header has no others
    return Request({**values, **known})


def _values(case: Case, attribute: Attribute) -> set[int]:
    found = [one.matcher for one in atoms(case.when) if isinstance(one, Is) and one.attribute == attribute]
    return {value for one in found if isinstance(one, OneOf) for value in one.values if isinstance(value, int)}


# Spellings


def _spellings(case: Case, other: Case) -> Iterator[tuple[str, str]]:
    """Paths of the one case, each with another spelling that may be one of the other."""
    for path in _paths(case):
        ways = [f"/{path}", f"/.{path}", f"/%{ord(path[1]):02X}{path[2:]}" if len(path) > 1 else "//"]
        for written in _written(other):
            up = "/.." * (written.strip("/").count("/") + 1)
            ways.append(f"{written.rstrip('/')}{up}{path}")
        yield from ((path, way) for way in ways if comparable_path(way) == path)


def _paths(case: Case) -> Iterator[str]:
    """Paths that a case of ours is for, as they are compared."""
    for atom in atoms(case.when):
        if isinstance(atom, Is) and atom.attribute == PATH:
            if isinstance(atom.matcher, OneOf):
                yield from sorted(map(str, atom.matcher.values))
            elif isinstance(atom.matcher, Prefix):
                yield f"{atom.matcher.text}x"
        elif isinstance(atom, Computed) and atom.pattern is not None and atom.pattern[0] == PATH:
            yield from _guessed(atom, atom.pattern[1])


def _guessed(atom: Computed, pattern: str) -> Iterator[str]:
    end = next((place for place, letter in enumerate(pattern) if letter not in _LETTERS), len(pattern))
    for stem in dict.fromkeys((pattern[:end], pattern[: max(end - 1, 0)])):
        yield from (f"{stem}{more}" for more in _GUESSES if atom.holds({PATH: f"{stem}{more}"}))


def _written(case: Case) -> Iterator[str]:
    for atom in atoms(case.when):
        if isinstance(atom, Is) and atom.attribute == SENT_PATH and isinstance(atom.matcher, Prefix):
            yield atom.matcher.text


# In words


def _told(route: PolicyRef, found: _Round, group: Group, ground: Ground, planes: _Planes) -> Finding:
    taken = _route(found.taken)
    where = f"takes {taken}" if taken is not None else "takes none of the routes"
    message = (
        f"{route} can be gone round where Linkerd's own proxies decide: {found.method} {found.spelt} {where} there, "
        f"and is allowed to callers whom this one denies {found.path}"
    )
    wider = taken if taken is not None else "the other routes"
    help_ = f"name the paths of {wider} one by one (type: Exact), or give what is behind {route} a port of its own"
    question = _question(found, group, ground, planes)
    example = command(question) if question is not None else None
    subjects = (str(route), *((str(taken),) if taken is not None else ()), *group.subjects)
    return Finding(codes.ROUTE_RESPELT, message, _span(route, ground), help_, subjects, example)


def _span(route: PolicyRef, ground: Ground) -> Span | None:
    policy = ground.by_ref.get(route)
    declared = ground.world.routes.get(f"{route.kind}/{route.namespace}/{route.name}")
    return locating.name_of(policy.span if policy is not None else declared.span if declared is not None else None)


def _question(found: _Round, group: Group, ground: Ground, planes: _Planes) -> Question | None:
    """The question that shows it; None where it is about more than a question of the command line can say."""
    address = found.caller.get(ADDRESS)
    path = f"{found.spelt}?{found.query}" if found.query else found.spelt
    for source in sources(group, ground):
        question = Question(
            source, group.destination, found.port, found.method, path, found.host, headers=found.headers or None
        )
        for asked in (question, replace(question, source_ip=address)) if isinstance(address, str) else (question,):
            if _is_allowed(asked, planes.native, ground) and not _is_allowed(asked, planes.ours, ground):
                return asked
    return None


def _is_allowed(question: Question, program: Program, ground: Ground) -> bool:
    return all(program.decide(one.request) & 1 for one in arrivals(question, ground.world, ground.settings))
