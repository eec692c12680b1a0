"""An invariant: a statement about all requests between workloads that exist, or also those that do not exist yet."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.question import Question
from eastgate.ir.labels import Selector

ALL_ACCOUNTS = "*"
"""In the place of the name of a service account: all of its namespace."""


class Quantifier(enum.StrEnum):
    """The three statements, by their fields."""

    NEVER = "never"  # no request that fits is allowed
    ALWAYS = "always"  # every request that fits is allowed
    ONLY = "only"  # every request that fits and is allowed is of these callers


@dataclass(frozen=True, slots=True)
class CallerGroup:
    """ANY of these callers. `accounts` are namespace and name; `domains` are trust domains with all that is in them.

    `pods` are those with these labels, in the namespaces that `namespaces` selects. Without `pods`, `namespaces` means
    all accounts of these namespaces.
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
    """The callers of one group who are not in another."""

    of: CallerGroup
    without: CallerGroup = field(default_factory=CallerGroup)


@dataclass(frozen=True, slots=True)
class Named:
    """An object that a statement names, `namespace/name`, and where."""

    key: str
    span: Span


@dataclass(frozen=True, slots=True)
class DestinationSelector:
    """ANY of these: the pods with these labels, in namespaces with those; the Services, gateways and backends.

    `pods` None: none are meant. `span` is where pods are selected.
    """

    pods: Selector | None
    namespaces: Selector
    services: tuple[Named, ...]
    gateways: tuple[Named, ...]
    backends: tuple[Named, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RequestSelector:
    """The requests that are meant: ALL that is given must fit. What is empty is not asked for.

    `is_http`: it must be HTTP, whatever else. A path, host or tool may end (a host: begin) with a `*`.
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

    `include_self`: so do the requests of a pod to itself, and those of its node.

    `external_auth` are answers of external authorizers; of others, any answer is possible. `words` are the names in it,
    each as a question with nothing else in it, to be compared with those that there are.
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
        """Return the verdict that breaks it: whether that is allow."""
        return self.mode is not Quantifier.ALWAYS

    @property
    def is_about_named(self) -> bool:
        """Return whether requests of the callers that it names break it; otherwise those of all others do."""
        return self.mode is not Quantifier.ONLY
