"""The context of a check: policies, world, and decisions. Lint provides it; dialects only use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Everything, PodsAcross, PodsMatching, Target, Workload, World
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.question import Question
from eastgate.dialects.base import Policy
from eastgate.dialects.linting import codes
from eastgate.dialects.linting.findings import Finding
from eastgate.dialects.linting.locating import list_some, nearest_name
from eastgate.ir import Attachment, Chain, Layer, PolicyRef, Predicate, Request, Rule
from eastgate.ir.labels import Selector
from eastgate.reading.manifests.custom import CustomResources
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Group:
    """Points that decide alike: workloads of one class, or one Gateway, route or Backend.

    `members` are the keys of workloads, or the text of the `point`. `destination` is the first member, as questions
    name it.
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
        """Return the first member, which represents all of them."""
        return self.members[0]

    @property
    def text(self) -> str:
        """Return a short list of all members."""
        return enumerated(self.members)


@dataclass(frozen=True, slots=True)
class GroupDecider:
    """The layers of a group under other settings. It decides whether they allow a request."""

    layers: tuple[Layer, ...]
    allows: Callable[[Request], bool]


class Workloads(Protocol):
    """The world, and the workloads that policies are attached to."""

    @property
    def world(self) -> World:
        """Return the world that was read."""
        ...

    @property
    def custom(self) -> CustomResources:
        """Return the custom resources of kinds that are not read."""
        ...

    @property
    def workloads_of(self) -> Mapping[PolicyRef, list[str]]:
        """Return the keys of the workloads that each policy is attached to."""
        ...

    def workload(self, key: str) -> Workload:
        """Return a workload by its key."""
        ...


class Context(Workloads, Protocol):
    """The interface of lint to its checks: the objects that were read, and questions about them."""

    @property
    def settings(self) -> Settings:
        """Return the settings with which policies are read."""
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
        """Return the classes of workloads that a layer guards."""
        ...

    def policy_of(self, rule: Rule) -> Policy | None:
        """Return the policy of a rule."""
        ...

    def is_possible(self, predicate: Predicate) -> bool:
        """Return whether some request meets a predicate; True if the search is too hard."""
        ...

    def witness(self, wanted: Predicate, avoided: Sequence[Predicate]) -> Request | None:
        """Return a request that meets a predicate and none of the others, or None if there is none or none is found."""
        ...

    def chains_for(self, layer: Layer, request: Request) -> list[Chain]:
        """Return the chains that a layer may choose for a partial request."""
        ...

    def can_allow(self, layer: Layer, request: Request) -> bool:
        """Return whether a layer may allow a partial request."""
        ...

    def under(self, group: Group, settings: Settings) -> GroupDecider:
        """Return the layers of a group under other settings."""
        ...

    def sources(self, group: Group) -> list[str]:
        """Return callers that are likely to be treated differently, as sources of questions."""
        ...

    def requests(self, question: Question) -> list[Request]:
        """Return every request that a question covers."""
        ...

    def command(self, question: Question) -> str:
        """Return the command line of a question, without the manifests."""
        ...


Check: TypeAlias = Callable[[Context], Iterable[Finding]]


def subject_of(point: NamedPoint) -> str:
    """Return the name of a Gateway, route or Backend as the subject of a finding: `Kind/namespace/name`."""
    return f"{point.kind}/{point.namespace}/{point.name}"


def enumerated(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and the number of the others."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# Ports of policies that none of their workloads exposes


def unexposed_ports(
    policy: Policy,
    ports: Sequence[tuple[int | str, Callable[[], Span | None]]],
    workloads: Workloads,
    also: Callable[[Workload], Collection[int | str]] = lambda _workload: (),
) -> Iterator[Finding]:
    """Report each port, by number or name, that no workload of a policy declares.

    Each port has a function that returns its span. `also` returns ports that a workload exposes in addition to its
    declared ports.
    """
    keys = workloads.workloads_of.get(policy.ref, []) if ports else []
    selected = [workloads.workload(key) for key in keys]
    if not selected or any(not workload.ports for workload in selected):
        return  # a workload that declares no ports may listen on any
    declared = [port for workload in selected for port in (*workload.ports, *workload.init_ports)]
    numbers = {port.number for port in declared}
    names = {port.name for port in declared if port.name}
    exposed = {*numbers, *names, *(port for workload in selected for port in also(workload))}
    may_be_made = any(_has_made_pods(target, workloads) for target in policy.targets)
    for port, find_span in ports:
        if port not in exposed and not may_be_made:
            message = f"{policy.ref} names port {port}, which {_name_with_verb(selected)} not expose"
            suggestions = {str(number) for number in numbers}
            help_ = f"write one of {list_some(suggestions | (names if isinstance(port, str) else set()))}"
            mapped = _service_port(port, selected, workloads)
            if mapped is not None:
                help_ = f"{port} is the port of Service {mapped[0]}; write that of its pods, {mapped[1]}"
            yield Finding(codes.PORT_NOT_EXPOSED, message, find_span(), help_, (str(policy.ref), *keys[:3]))


def _has_made_pods(target: Target, workloads: Workloads) -> bool:
    """Return whether a target selects all pods of a namespace in which an operator may create pods."""
    making = workloads.custom.making
    match target:
        case Everything(namespace):
            return namespace in making if namespace is not None else bool(making)
        case PodsMatching(namespace, selector):
            return selector == Selector.of() and namespace in making
        case PodsAcross(namespaces, selector):
            homes = (workloads.world.namespace(name).labels for name in making)
            return selector == Selector.of() and any(map(namespaces.matches, homes))
    return False


def may_come(pods: Selector, homes: Collection[str], workloads: Workloads) -> bool:
    """Return whether pods with these labels may exist, although no manifest has them.

    A selector of pods without some label covers future pods: if it selects nothing, it has no typing error.

    If custom resources of an operator are in the manifests, the operator may create pods. It owns the labels of its
    domain, unless a workload in the manifests has one. Any pod of a namespace may be one of the operator's if a custom
    resource there configures pods, and the label does not look misspelt.
    """
    if pods.only_excludes:
        return True
    custom, every = workloads.custom, workloads.world.workloads.values()
    owned = {key for key in pods.keys if custom.labels(key)}
    if any(not any(key in workload.labels for workload in every) for key in owned):
        return True
    if custom.making.isdisjoint(homes):
        return False
    here = [workload.labels for workload in every if workload.namespace in homes]
    values = ((value, {labels[key] for labels in here if key in labels}) for key, value in pods.equalities)
    return all(nearest_name(value, known - {value}) is None for value, known in values)


def _name_with_verb(selected: list[Workload]) -> str:
    return f"{enumerated([workload.key for workload in selected])} {'does' if len(selected) == 1 else 'do'}"


def _service_port(port: int | str, selected: list[Workload], workloads: Workloads) -> tuple[str, int] | None:
    """Return the Service that has this port, if its pods have another one."""
    for workload in selected[:20]:
        for key in workloads.world.services_of(workload.key):
            service = workloads.world.services[key]
            targets = workloads.world.target_ports(service, port, workload) if isinstance(port, int) else ()
            if targets:
                return key, targets[0]
    return None
