"""The model of an invariant: a statement about all requests between existing, and perhaps future, workloads."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import ends
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.question import Question
from eastgate.cluster.resources import selector_of
from eastgate.ir.labels import Selector
from eastgate.ir.spiffe import SCHEME
from eastgate.reading.manifests import Node

ALL_ACCOUNTS = "*"
"""The name that selects all service accounts of a namespace."""


class Quantifier(enum.StrEnum):
    """The three kinds of statement, by their fields."""

    NEVER = "never"  # no request that fits is allowed
    ALWAYS = "always"  # every request that fits is allowed
    ONLY = "only"  # only these callers are allowed to send requests that fit


@dataclass(frozen=True, slots=True)
class CallerGroup:
    """ANY of these callers. `accounts` are pairs of namespace and name; `domains` are whole trust domains.

    `pods` are those with these labels, in the namespaces that `namespaces` selects. Without `pods`, `namespaces`
    selects all accounts of these namespaces.
    """

    accounts: frozenset[tuple[str, str]] = frozenset()
    namespaces: Selector | None = None
    identities: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    anonymous: bool = False
    anybody: bool = False
    pods: Selector | None = None


@dataclass(frozen=True, slots=True)
class CallerSelector:
    """The callers of one group that are not in another."""

    of: CallerGroup
    without: CallerGroup = field(default_factory=CallerGroup)


@dataclass(frozen=True, slots=True)
class Named:
    """An object that a statement names, `namespace/name`, and the place of the name."""

    key: str
    span: Span


@dataclass(frozen=True, slots=True)
class DestinationSelector:
    """ANY of these: the pods with these labels in these namespaces; the Services, gateways and backends.

    `pods` None: no pods are selected. `span` is the place of the selector of pods.
    """

    pods: Selector | None
    namespaces: Selector
    services: tuple[Named, ...]
    gateways: tuple[Named, ...]
    backends: tuple[Named, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RequestSelector:
    """The requests of a statement: ALL given fields must match. An empty field matches everything.

    `is_http`: the request must be HTTP. A path or tool may end with a `*`, and a host may begin with one.
    """

    ports: Mapping[int, Span] = field(default_factory=dict)
    is_http: bool = False
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    mcp_methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """One of the three statements. `include_future`: pods and namespaces that do not exist yet count too.

    `include_self`: requests of a pod to itself, and from its node, count too.

    `external_auth` are answers of external authorizers; of all others, any answer is possible. `words` are the names in
    the statement, each as a question of its own, so that misspelt names are found.
    """

    mode: Quantifier
    callers: CallerSelector
    destinations: DestinationSelector
    requests: RequestSelector
    span: Span
    include_future: bool = False
    external_auth: Mapping[str, str] = field(default_factory=dict)
    cites: str | None = None
    include_self: bool = False
    words: tuple[tuple[Question, Span], ...] = field(default=(), compare=False, repr=False)

    @property
    def breaks(self) -> bool:
        """Return the verdict that breaks the statement; True means allow."""
        return self.mode is not Quantifier.ALWAYS

    @property
    def is_about_named(self) -> bool:
        """Return whether requests of the named callers break the statement; if not, requests of all others do."""
        return self.mode is not Quantifier.ONLY


# From a document with a valid shape to its statement.


_NO_DESTINATION = ends.EntryPoint("", (), {})  # an end without a destination, to ask about a name alone


def statement_of(spec: Node, external_auth: Mapping[str, str], namespace: str | None = None) -> Statement:
    """Return the statement of a checked spec. A statement with a namespace covers only that namespace."""
    mode = next(mode for mode in Quantifier if mode in spec)
    node = spec[mode]
    cites = spec.get("cites")
    return Statement(
        mode,
        _callers(node["from"]),
        _destinations(node["to"], namespace),
        _requests(node),
        spec.key_span(mode),
        _flag(spec, "includeFuture"),
        external_auth,
        cites.text if cites is not None else None,
        _flag(node, "includeSelf"),
        tuple(_words(node, spec)),
    )


def _words(node: Node, spec: Node) -> Iterator[tuple[Question, Span]]:
    """Yield each name that may be misspelt, with its span."""
    for group in (node["from"], node.nearest("from", "except")):
        for account in group.get("serviceAccounts") or ():
            named = ends.ServiceAccount.of_key(account.text.replace(ALL_ACCOUNTS, "default"))
            yield Question(named, _NO_DESTINATION), account.span
        for identity in group.get("identities") or ():
            if identity.text.startswith(SCHEME) and not identity.text.endswith("/*"):
                yield Question(ends.SpiffeId(identity.text), _NO_DESTINATION), identity.span
    asked = Question(ends.ANONYMOUS, _NO_DESTINATION)
    for method in node.nearest("http", "methods"):
        yield replace(asked, method=method.text), method.span
    for message in node.get("mcpMethods") or ():
        yield replace(asked, mcp_method=message.text), message.span
    for tool in node.get("tools") or ():
        if not tool.text.endswith("*"):
            yield replace(asked, tool=tool.text), tool.span
    answers = spec.get("externalAuth")
    if answers is not None:
        yield from ((replace(asked, external_auth={name: "allow"}), answers.key_span(name)) for name in answers.keys)


def _callers(node: Node) -> CallerSelector:
    without = node.get("except")
    of = _group(node)
    if without is None:
        return CallerSelector(of)
    anybody = CallerGroup(anybody=True)  # without other entries, `except` excludes from all callers
    return CallerSelector(of if of != CallerGroup() else anybody, _group(without))


def _group(node: Node) -> CallerGroup:
    pods, namespaces = node.get("pods"), node.get("namespaces")
    identities = _texts(node, "identities")
    return CallerGroup(
        frozenset(
            (namespace, name) for namespace, _, name in (a.partition("/") for a in _texts(node, "serviceAccounts"))
        ),
        selector_of(namespaces) if namespaces is not None else None,
        frozenset(identity for identity in identities if not identity.endswith("/*")),
        frozenset(i.removeprefix(SCHEME).removesuffix("/*") for i in identities if i.endswith("/*")),
        _flag(node, "anonymous"),
        _flag(node, "any"),
        selector_of(pods) if pods is not None else None,
    )


def _destinations(node: Node, namespace: str | None) -> DestinationSelector:
    pods, namespaces = node.get("pods"), node.get("namespaces")
    at = pods or namespaces or node
    return DestinationSelector(
        selector_of(pods) if pods is not None or namespaces is not None else None,
        selector_of(namespaces) if namespace is None else Selector.of({NAME_LABEL: namespace}),
        _named(node, "services"),
        _named(node, "gateways"),
        _named(node, "backends"),
        at.span,
    )


def _requests(node: Node) -> RequestSelector:
    http = node.get("http")
    return RequestSelector(
        {port.number: port.span for port in node.get("ports") or ()},
        http is not None,
        _texts(http, "methods"),
        _texts(http, "paths"),
        _texts(http, "hosts"),
        _texts(node, "tools"),
        _texts(node, "mcpMethods"),
    )


def _texts(node: Node | None, key: str) -> tuple[str, ...]:
    entries = node.get(key) if node is not None else None
    return tuple(entry.text for entry in entries or ())


def _named(node: Node, key: str) -> tuple[Named, ...]:
    return tuple(Named(entry.text, entry.span) for entry in node.get(key) or ())


def _flag(node: Node, key: str) -> bool:
    flag = node.get(key)
    return flag is not None and flag.value is True
