"""The context of a check: policies, world, and decisions. Lint provides it; dialects only use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.question import Question
from eastgate.dialects.base import Policy
from eastgate.dialects.linting.findings import Finding
from eastgate.ir import Attachment, Chain, Layer, PolicyRef, Predicate, Request, Rule
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Group:
    """Points that decide alike: workloads of one class, or one Gateway, route or Backend.

    `members` are the keys of workloads, or otherwise the `point` in words. `destination` is the first of them as
    questions name it.
    """

    layers: tuple[Layer, ...]
    attached: tuple[Attachment[Policy], ...]
    members: tuple[str, ...]
    destination: str
    point: NamedPoint | None = None

    @property
    def is_workload(self) -> bool:
        return self.point is None

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return all members, as findings name them."""
        return self.members if self.point is None else (subject_of(self.point),)

    @property
    def first(self) -> str:
        """Return the member that stands for all of them."""
        return self.members[0]

    @property
    def text(self) -> str:
        """Return all members, in a few words."""
        return enumerated(self.members)


@dataclass(frozen=True, slots=True)
class GroupDecider:
    """The layers of a group under other settings, and whether they allow a request."""

    layers: tuple[Layer, ...]
    allows: Callable[[Request], bool]


class Workloads(Protocol):
    """The world, and the workloads that policies are attached to."""

    @property
    def world(self) -> World:
        """Return the world that was read."""
        ...

    @property
    def workloads_of(self) -> Mapping[PolicyRef, list[str]]:
        """Return the keys of the workloads that each policy is attached to."""
        ...

    def workload(self, key: str) -> Workload:
        """Return a workload by its key."""
        ...


class Context(Workloads, Protocol):
    """The interface of lint to its checks: what was read, and questions about it."""

    @property
    def settings(self) -> Settings:
        """Return the settings that policies are read with."""
        ...

    @property
    def policies(self) -> Sequence[Policy]:
        """Return every policy of every dialect, in the order of their names."""
        ...

    @property
    def by_ref(self) -> Mapping[PolicyRef, Policy]:
        """Return every policy by its reference."""
        ...

    @property
    def names(self) -> Mapping[tuple[str, str, str], set[str]]:
        """Return the names of policies and routes by group, kind and namespace."""
        ...

    @property
    def workload_groups(self) -> Iterable[Group]:
        """Return the classes of workloads that some layer guards."""
        ...

    def policy_of(self, rule: Rule) -> Policy | None:
        """Return the policy that a rule was written in."""
        ...

    def is_possible(self, predicate: Predicate) -> bool:
        """Return whether any request meets a predicate; True where that is too hard to find out."""
        ...

    def witness(self, wanted: Predicate, avoided: Sequence[Predicate]) -> Request | None:
        """Find a request that meets a predicate and none of the others; None where there is none, or none is found."""
        ...

    def chains_for(self, layer: Layer, request: Request) -> list[Chain]:
        """Return the chains that a layer may choose for a partial request."""
        ...

    def can_allow(self, layer: Layer, request: Request) -> bool:
        """Return whether a layer may allow a partial request."""
        ...

    def under(self, group: Group, settings: Settings) -> GroupDecider:
        """Assemble a group under other settings."""
        ...

    def sources(self, group: Group) -> list[str]:
        """Return callers that are likely to be treated differently, as sources of questions."""
        ...

    def requests(self, question: Question) -> list[Request]:
        """Return every request that a question stands for."""
        ...

    def command(self, question: Question) -> str:
        """Return the command line that asks a question, but for the manifests."""
        ...


Check: TypeAlias = Callable[[Context], Iterable[Finding]]


def subject_of(point: NamedPoint) -> str:
    """Name a Gateway, a route or a Backend as the subject of a finding: `Kind/namespace/name`."""
    return f"{point.kind}/{point.namespace}/{point.name}"


def enumerated(names: Sequence[str], most: int = 3) -> str:
    """List the first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
