"""Future workloads of a statement: one for each set of policies that a new pod may get.

A new pod may have any labels that the statement covers, any account and any controller, in an existing namespace or in
a new one with any labels. It declares no ports and has no annotations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    ContainerPort,
    Namespace,
    Owner,
    Pod,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    Service,
    Target,
    World,
)
from eastgate.cluster.ends import ServiceAccount
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction
from eastgate.cluster.targets import HostNamed
from eastgate.ir import Is, Labelled
from eastgate.ir.attributes import SOURCE_LABELS, SOURCE_NAMESPACE, Attribute
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.ir.symbolic.cells import OTHER as UNNAMED
from eastgate.reports.invariants.labels import OTHER, Labelling, TooManyLabellings, labellings, terms_of
from eastgate.reports.invariants.model import CallerSelector

_MAX_LABELLINGS = 4_096
_MAX_IMAGINED_PODS = 20_000

# Keys for terms of targets that are not labels. No label has such a key.
_NEW_ACCOUNT = "new-account"
_ACCOUNT, _OWNER, _NAME = " account", " owner", " name"


@dataclass(frozen=True, slots=True)
class Cover:
    """The pods of a statement: with these labels, in these namespaces, and with these ports."""

    pods: Selector
    namespaces: Selector
    ports: tuple[ContainerPort, ...] = ()

    @classmethod
    def of_service(cls, service: Service, world: World) -> Cover:
        """Return the pods that a Service selects. They declare the named ports of the existing pods."""
        members = [world.workloads[key] for key in world.pods_of(service.key)]
        ports = tuple(
            next((port for pod in members for port in pod.ports if port.name == named.target), None)
            or ContainerPort(named.port, named.target, named.protocol)
            for named in service.ports
            if isinstance(named.target, str)
        )
        return cls(Selector.of(service.selector), Selector.of({NAME_LABEL: service.namespace}), ports)


@dataclass(frozen=True, slots=True)
class ImaginedPod:
    """A pod that does not exist, and its namespace if that does not exist either."""

    pod: Pod
    namespace: Namespace | None

    @property
    def key(self) -> str:
        """Return the key of the workload."""
        return f"{self.pod.namespace}/{self.pod.name}"

    @property
    def objects(self) -> list[Namespace | Pod]:
        """Return the objects to declare."""
        return [self.pod] if self.namespace is None else [self.namespace, self.pod]

    @classmethod
    def of_caller(cls, source: ServiceAccount, labels: Labelling, home: Labelling | None, world: World) -> ImaginedPod:
        """Return a pod as which an account may call.

        `home` are the labels of its namespace, if the namespace does not exist.
        """
        namespace, account = source.namespace, source.name
        named = {key: value.replace(UNNAMED, OTHER) for key, value in labels.items()}
        pod = Pod(namespace, _new_pod(namespace, 1, world), named, service_account=account)
        is_new = namespace not in world.namespaces_in_use()
        return cls(pod, Namespace(namespace, {**(home or {}), NAME_LABEL: namespace}) if is_new else None)

    def to_manifests(self) -> list[dict[str, object]]:
        """Return the objects of the Kubernetes API."""
        pod = self.pod
        manifests: list[dict[str, object]] = []
        if self.namespace is not None:
            labels = {key: value for key, value in self.namespace.labels.items() if key != NAME_LABEL}
            manifests.append(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace.name, **_labels(labels)}}
            )
        metadata: dict[str, object] = {"name": pod.name, "namespace": pod.namespace, **_labels(pod.labels)}
        if pod.owner is not None:
            metadata["ownerReferences"] = [{"kind": pod.owner.kind, "name": pod.owner.name, "controller": True}]
        spec: dict[str, object] = {"serviceAccountName": pod.service_account}
        if pod.ports:
            ports = [{"containerPort": port.number, "name": port.name, "protocol": port.protocol} for port in pod.ports]
            spec["containers"] = [{"name": "new", "ports": ports}]
        manifests.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return manifests


def _labels(labels: Mapping[str, str]) -> dict[str, object]:
    return {"labels": dict(labels)} if labels else {}


def imagine(authority: Authority, covers: Sequence[Cover]) -> list[list[ImaginedPod]]:
    """Return imagined pods, so that each new pod is decided like one of them, or like an existing pod.

    Pods of one list can exist together. Pods in new namespaces come first, because they are few. Raises
    TooManyLabellings.
    """
    targets = (target for policy in authority.policies for target in policy.targets)
    return imagine_targets(targets, covers, authority.world)


Labeller = Callable[[Sequence[tuple[Requirement, ...]], Sequence[Requirement]], list[Labelling]]
"""Chooses labellings of pods that meet the demands, one for each set of selectors that can match."""


def _every_labelling(terms: Sequence[tuple[Requirement, ...]], demanded: Sequence[Requirement]) -> list[Labelling]:
    return labellings(terms, demanded, _MAX_LABELLINGS)


def imagine_targets(
    aimed: Iterable[Target],
    covers: Sequence[Cover],
    world: World,
    label: Labeller = _every_labelling,
    most: int = _MAX_IMAGINED_PODS,
) -> list[list[ImaginedPod]]:
    """Return imagined pods for these targets of policies, as `imagine` does. Raises TooManyLabellings."""
    targets: dict[str | None, dict[Target, None]] = {}  # by namespace; None: of any namespace
    for target in aimed:
        if isinstance(target, HostNamed):
            continue  # the target selects no pods
        home = None if isinstance(target, PodsAcross) else target.namespace
        targets.setdefault(home, {})[target] = None
    unmade = sorted(home for home in targets if home is not None and home not in world.namespaces_in_use())
    together: list[list[ImaginedPod]] = []
    in_existing: list[ImaginedPod] = []
    numbers = count(1)
    for cover in covers:
        versions: Counter[str] = Counter()  # labellings of a namespace that does not exist
        for namespace, is_new in _namespaces(cover, unmade, targets.get(None, ()), world):
            near = (*targets.get(namespace.name, ()), *targets.get(None, ()))
            terms = [term for target in near for term in _terms(target, namespace, world)]
            version = versions[namespace.name]
            versions[namespace.name] += 1
            together += [[] for _ in range(version + 1 - len(together))]
            pods = together[version] if is_new else in_existing
            for labels in label(terms, terms_of(cover.pods)):
                number = next(numbers)
                pods.append(_imagined(labels, namespace, cover.ports, number, world, is_new=is_new))
                if number > most:
                    raise TooManyLabellings
    return [pods for pods in (*together, in_existing) if pods]


def imagine_callers(authority: Authority, callers: CallerSelector) -> tuple[list[list[ImaginedPod]], list[ImaginedPod]]:
    """Return imagined pods as which each account may call, if policies read the labels of callers.

    Pods of one list can exist together. Those of the second list can exist beside all others. Raises TooManyLabellings.
    """
    world, engine = authority.world, programs_of(authority)
    groups = callers.of, callers.without
    selected = [group.pods for group in groups if group.pods is not None]
    if not engine.has_network_policies and not selected:
        return [], []
    layers = (
        layer
        for policy in engine.network_policies
        for direction in Direction
        for layer in engine.layers_of(policy, direction)
    )
    asked = {atom for layer in layers for atom in layer.atoms(observed=False) if isinstance(atom, Is)}
    peers: dict[Attribute, list[Selector]] = {SOURCE_LABELS: [], SOURCE_NAMESPACE: []}
    for atom in sorted(asked, key=str):
        if atom.attribute in peers and isinstance(atom.matcher, Labelled):
            peers[atom.attribute].append(atom.matcher.selector)
    targets = [target for policy in engine.network_policies for target in policy.targets]
    selecting = [terms_of(selector) for selector in (*peers[SOURCE_LABELS], *selected)]
    homes = [terms_of(selector) for selector in peers[SOURCE_NAMESPACE]]
    homes += [terms_of(target.namespaces) for target in targets if isinstance(target, PodsAcross)]
    homes += [terms_of(group.namespaces) for group in groups if group.namespaces is not None]
    worlds: list[list[ImaginedPod]] = []
    beside: list[ImaginedPod] = []
    numbers = count(1)
    for namespace, is_new, version in _homes(homes, world):
        own = [term for target in targets for term in _terms(target, namespace, world)]
        for labels in labellings((*selecting, *own), (), _MAX_LABELLINGS):
            for account in (*_accounts(namespace.name, world), _NEW_ACCOUNT):
                number = next(numbers)
                if number > _MAX_IMAGINED_PODS:
                    raise TooManyLabellings
                chosen = {**labels, _ACCOUNT: account}
                pod = _imagined(chosen, namespace, (), number, world, is_new=is_new)
                if version is None:
                    beside.append(pod)
                else:
                    worlds += [[] for _ in range(version + 1 - len(worlds))]
                    worlds[version].append(pod)
    return [beside, *worlds], beside


def _homes(selecting: Sequence[tuple[Requirement, ...]], world: World) -> Iterator[tuple[Namespace, bool, int | None]]:
    """Yield the namespaces of callers, whether each is new, and the number of its labelling.

    The number is None for existing namespaces, and for those that no selector names.
    """
    existing = world.namespaces_in_use()
    yield from ((world.namespace(name), False, None) for name in existing)
    named = {value for terms in selecting for term in terms if term.key == NAME_LABEL for value in term.values}
    numbers = count(1)
    for name in (OTHER, *sorted(named.difference(existing))):
        for version, labels in enumerate(labellings(selecting, (), _MAX_LABELLINGS, {NAME_LABEL: [name]})):
            if name == OTHER:
                yield Namespace(_new_name(numbers, existing, "new-home-{}"), labels), True, None
            else:
                yield Namespace(name, labels), True, version


def _accounts(namespace: str, world: World) -> list[str]:
    declared = {account.name for account in world.service_accounts.values() if account.namespace == namespace}
    used = {pod.service_account for pod in world.workloads.values() if pod.is_pod and pod.namespace == namespace}
    return sorted(declared | used)


def _namespaces(
    cover: Cover, unmade: Sequence[str], targets: Iterable[Target], world: World
) -> Iterator[tuple[Namespace, bool]]:
    """Yield the namespaces of a cover: existing ones, and new ones with any labels.

    New namespaces are those without a manifest that policies or the cover name, and one with another name.
    """
    existing = world.namespaces_in_use()
    for declared in map(world.namespace, existing):
        if cover.namespaces.matches(declared.labels):
            yield declared, False
    demanded = terms_of(cover.namespaces)
    selecting = [terms_of(target.namespaces) for target in targets if isinstance(target, PodsAcross)]
    asked = (*demanded, *(term for terms in selecting for term in terms))
    named = {value for term in asked if term.key == NAME_LABEL for value in term.values}
    numbers = count(1)
    for name in (*sorted({*unmade, *named}.difference(existing)), OTHER):
        for labels in labellings(selecting, demanded, _MAX_LABELLINGS, {NAME_LABEL: [name]}):
            yield Namespace(_new_name(numbers, existing) if name == OTHER else name, labels), True


def _new_name(numbers: Iterator[int], existing: Sequence[str], name: str = "new-namespace-{}") -> str:
    return next(name for name in map(name.format, numbers) if name not in existing)


def _terms(target: Target, namespace: Namespace, world: World) -> Iterator[tuple[Requirement, ...]]:
    """Yield the requirements of a target on pods of a namespace, unless it selects none of them or all."""
    match target:
        case PodsMatching(home, selector) if home == namespace.name:
            yield terms_of(selector)
        case PodsAcross(namespaces, pods) if namespaces.matches(namespace.labels):
            yield terms_of(pods)
        case PodsOfService(home, name) if home == namespace.name:
            service = world.services.get(f"{home}/{name}")
            if service is not None and service.selects_pods:
                yield terms_of(Selector.of(service.selector))
        case PodsOfAccount(home, account) if home == namespace.name:
            yield (_is(_ACCOUNT, account),)
        case PodsOwnedBy(home, kind, name) if home == namespace.name:
            yield (_is(_OWNER, f"{kind}/{name}"),)
        case PodNamed(home, name) if home == namespace.name and f"{home}/{name}" not in world.workloads:
            yield (_is(_NAME, name),)


def _new_pod(namespace: str, number: int, world: World) -> str:
    fresh = (f"new-pod-{numbered}" for numbered in count(number))
    return next(name for name in fresh if f"{namespace}/{name}" not in world.workloads)


def _is(key: str, value: str) -> Requirement:
    return Requirement(key, Operator.IN, frozenset({value}))


def _imagined(
    labels: Mapping[str, str],
    namespace: Namespace,
    ports: tuple[ContainerPort, ...],
    number: int,
    world: World,
    *,
    is_new: bool,
) -> ImaginedPod:
    chosen = dict(labels)
    owner = chosen.pop(_OWNER, OTHER)
    account, name = chosen.pop(_ACCOUNT, OTHER), chosen.pop(_NAME, OTHER)
    pod = Pod(
        namespace.name,
        _new_pod(namespace.name, number, world) if name == OTHER else name,
        chosen,
        service_account=account if account != OTHER else _NEW_ACCOUNT,
        ports=ports,
        owner=Owner(*owner.split("/", 1)) if owner != OTHER else None,
    )
    return ImaginedPod(pod, namespace if is_new else None)
