"""Drawn statements, and a second implementation of their meaning for single questions."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from eastgate import Question
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import Selector, World
from eastgate.reports.invariants.model import (
    CallerGroup,
    CallerSelector,
    DestinationSelector,
    Named,
    Quantifier,
    RequestSelector,
    Statement,
)

SPAN = Span(SourceText("drawn.yaml", ""), 1, 1, 1, 1)
ANYWHERE = Selector.of()


def named(*keys: str) -> tuple[Named, ...]:
    return tuple(Named(key, SPAN) for key in keys)


def groups(
    accounts: list[tuple[str, str]], identities: list[str], selectors: st.SearchStrategy[Selector | None]
) -> st.SearchStrategy[CallerGroup]:
    return st.builds(
        CallerGroup,
        st.frozensets(st.sampled_from(accounts), max_size=2),
        selectors,
        st.frozensets(st.sampled_from(identities), max_size=1),
        st.frozensets(st.sampled_from(["td", "evil", "cluster.local"]), max_size=1),
        st.booleans(),
        st.booleans(),
    )


def callers(of: st.SearchStrategy[CallerGroup]) -> st.SearchStrategy[CallerSelector]:
    return st.builds(CallerSelector, of, st.just(CallerGroup()) | of)


def to(
    pods: Selector | None = None,
    namespaces: Selector = ANYWHERE,
    *,
    services: tuple[str, ...] = (),
    gateways: tuple[str, ...] = (),
    backends: tuple[str, ...] = (),
) -> DestinationSelector:
    return DestinationSelector(pods, namespaces, named(*services), named(*gateways), named(*backends), SPAN)


def statement(
    mode: Quantifier,
    meant: CallerSelector,
    destinations: DestinationSelector,
    requests: RequestSelector,
    *,
    include_future: bool = True,
    external_auth: Mapping[str, str] | None = None,
) -> Statement:
    return Statement(mode, meant, destinations, requests, SPAN, include_future, external_auth or {}, include_self=True)


def is_meant(meant: CallerSelector, question: Question, world: World, domain: str, labels: Mapping[str, str]) -> bool:
    """`labels` are those of namespaces that do not exist."""
    return _is_in(meant.of, question, world, domain, labels) and not _is_in(
        meant.without, question, world, domain, labels
    )


def _is_in(group: CallerGroup, question: Question, world: World, domain: str, more: Mapping[str, str]) -> bool:
    source = str(question.source)
    kind, _, rest = source.partition(":")
    if group.anybody or (kind == "anonymous" and group.anonymous):
        return True
    if kind == "sa":
        namespace, _, name = rest.partition("/")
        identity = f"spiffe://{domain}/ns/{namespace}/sa/{name}"
    elif kind == "spiffe":
        identity = source
    else:
        return False
    if identity in group.identities or identity.removeprefix("spiffe://").partition("/")[0] in group.domains:
        return True
    parts = identity.removeprefix(f"spiffe://{domain}/").split("/")
    if not identity.startswith(f"spiffe://{domain}/") or len(parts) != 4 or (parts[0], parts[2]) != ("ns", "sa"):
        return False
    _, namespace, _, name = parts
    if (namespace, name) in group.accounts or (namespace, "*") in group.accounts:
        return True
    labels = dict(world.namespace(namespace).labels)
    if namespace not in world.namespaces_in_use():
        labels |= more
    return group.namespaces is not None and group.namespaces.matches(labels)


def fits(requests: RequestSelector, question: Question) -> bool:
    """Return whether a question about a whole request matches, wherever the request goes."""
    if requests.ports and question.port not in requests.ports:
        return False
    if requests.methods and question.method not in requests.methods:
        return False
    if requests.tools and (question.mcp_method != "tools/call" or question.tool not in requests.tools):
        return False
    if requests.mcp_methods and question.mcp_method not in requests.mcp_methods:
        return False
    if requests.hosts and question.host not in requests.hosts:
        return False
    path = (question.path or "").partition("?")[0]
    return not requests.paths or any(_has_path(path, wanted) for wanted in requests.paths)


def _has_path(path: str, wanted: str) -> bool:
    return path.startswith(wanted[:-1]) if wanted.endswith("*") else path == wanted
