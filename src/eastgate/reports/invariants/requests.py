"""The requests of a statement, as a predicate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.basics.regexes import regex
from eastgate.ir import (
    InNetwork,
    Is,
    Known,
    Matcher,
    Not,
    OneOf,
    Predicate,
    Prefix,
    Present,
    Request,
    Suffix,
    all_of,
    any_of,
)
from eastgate.ir.addresses import parse_network
from eastgate.ir.attributes import (
    ADDRESS,
    AUTHORITY,
    HOST,
    MCP_METHOD,
    MCP_TOOL,
    METHOD,
    PATH,
    SENT_PATH,
    SNI,
    SOURCE_WORKLOAD,
    TARGET,
    URL_PATH,
    VICINITY,
    Attribute,
)
from eastgate.ir.paths import any_path, comparable_path, comparable_prefix
from eastgate.ir.symbolic.cells import OTHER
from eastgate.ir.symbolic.stages import answer_attribute
from eastgate.ir.symbolic.trees import truth
from eastgate.reach.destinations import Entrance
from eastgate.reach.possible import possible_at
from eastgate.reports.invariants.covering import OwnAccess
from eastgate.reports.invariants.model import Quantifier, RequestSelector, Statement

_CALL = "tools/call"
_UNAMBIGUOUS_PATH = regex(r"[-A-Za-z0-9._~/]*")  # characters of a path that have only one spelling


def requests_at(statement: Statement, entrance: Entrance, own: OwnAccess | None = None) -> Predicate:
    """Return the predicate of the requests of a statement at an entrance; `own` are requests of a pod to itself.

    The forms of a path or host that expressions read are derived. Only forms that some rule reads are included.
    """
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in entrance.layers))
    requests = statement.requests
    same_name = statement.mode is Quantifier.ALWAYS and entrance.tls is True
    return all_of(
        (
            possible_at(entrance),
            *_http(requests),
            *_paths(requests.paths, looked_at),
            *_sent_paths(requests.paths, entrance),
            *_hosts(requests.hosts, looked_at, same_name=same_name),
            *_messages(requests),
            *_answers(statement.external_auth),
            *(_without_own(own, looked_at) if own is not None and not statement.include_self else ()),
        )
    )


def _without_own(own: OwnAccess, looked_at: frozenset[Attribute]) -> Iterator[Predicate]:
    """Yield the condition that a request is not from the pod itself, nor from its node."""
    if VICINITY in looked_at:
        yield Not(Is(VICINITY, OneOf(frozenset({"itself", "node"}))))
    if SOURCE_WORKLOAD in looked_at and own.pods:
        yield Not(Is(SOURCE_WORKLOAD, OneOf(own.pods)))
    if ADDRESS in looked_at and own.node is not None:
        yield Not(Is(ADDRESS, InNetwork((parse_network(own.node),))))


def _http(requests: RequestSelector) -> Iterator[Predicate]:
    has_message = bool(requests.tools or requests.mcp_methods)
    if has_message:
        yield Is(METHOD, OneOf(frozenset({"POST"})))  # MCP uses POST
    elif requests.methods:
        yield Is(METHOD, OneOf(frozenset(requests.methods)))
    elif requests.is_http:
        yield Is(METHOD, Present())


def _paths(paths: tuple[str, ...], looked_at: frozenset[Attribute]) -> Iterator[Predicate]:
    if not paths:
        return
    yield any_path(paths)
    exact = [comparable_path(path) for path in paths if not path.endswith("*")]
    starts = [comparable_prefix(path[:-1]) for path in paths if path.endswith("*")]
    if not all(map(_UNAMBIGUOUS_PATH.fullmatch, (*exact, *starts))):
        return
    prefixes = [Prefix(start) for start in starts]
    if URL_PATH in looked_at:
        yield _any(URL_PATH, [OneOf(frozenset(exact)), *prefixes])
    if TARGET in looked_at:
        yield _any(TARGET, [OneOf(frozenset(exact)), *(Prefix(f"{path}?") for path in exact), *prefixes])


def _sent_paths(paths: tuple[str, ...], entrance: Entrance) -> Iterator[Predicate]:
    """Yield the condition that a path as sent is not one that rules name and normalization changes."""
    if not paths:
        return
    named = {
        str(value)
        for layer in entrance.layers
        for atom in layer.atoms(observed=False)
        if isinstance(atom, Is) and atom.attribute is SENT_PATH and isinstance(atom.matcher, OneOf)
        for value in atom.matcher.values
    }
    wanted = any_path(paths)
    others = frozenset(value for value in named if not truth(wanted, Request({PATH: comparable_path(value)})))
    if others:
        yield Not(Is(SENT_PATH, OneOf(others)))


def spelled_path(sent: Known, path: Known) -> str | None:
    """Return the normalized form of a path as sent, for a value that normalization changes; None if it does not.

    A text that begins so, and then goes up again, may lead to any path.
    """
    if not isinstance(sent, str) or not isinstance(path, str) or OTHER not in sent:
        return None
    start, path = sent.partition(OTHER)[0], path.replace(OTHER, "any-other")
    if not start.startswith("/"):
        return f"/.{path}"
    return f"{start}any-other{'/..' * start.count('/')}{path}"


def _hosts(hosts: tuple[str, ...], looked_at: frozenset[Attribute], *, same_name: bool) -> Iterator[Predicate]:
    """Yield the condition that the host is one of these; `same_name`: the TLS handshake has the same name."""
    if not hosts:
        return
    attributes = (HOST, SNI) if same_name else (HOST,)
    yield any_of(all_of(Is(attribute, _host(host)) for attribute in attributes) for host in hosts)
    if AUTHORITY in looked_at and not any(host.startswith("*") for host in hosts):
        yield _any(AUTHORITY, [OneOf(frozenset(hosts)), *(Prefix(f"{host}:") for host in hosts)])


def _host(host: str) -> Matcher:
    return Suffix(host[1:]) if host.startswith("*.") else OneOf(frozenset({host}))


def _messages(requests: RequestSelector) -> Iterator[Predicate]:
    methods = requests.mcp_methods or ((_CALL,) if requests.tools else ())
    if methods:
        yield Is(MCP_METHOD, OneOf(frozenset(methods)))
    if requests.tools:
        exact = frozenset(tool for tool in requests.tools if not tool.endswith("*"))
        yield _any(MCP_TOOL, [OneOf(exact), *(Prefix(tool[:-1]) for tool in requests.tools if tool.endswith("*"))])


def _answers(answers: Mapping[str, str]) -> Iterator[Predicate]:
    for authorizer, answer in answers.items():
        allows = Is(answer_attribute(authorizer), OneOf(frozenset({"allow"})))
        yield allows if answer == "allow" else Not(allows)


def _any(attribute: Attribute, matchers: Iterable[Matcher]) -> Predicate:
    return any_of(Is(attribute, matcher) for matcher in matchers)
