"""Invented workloads for policies without any: one pod for each way in which policies select pods.

A folder of policies alone can be compared and drawn with invented pods. In each namespace with policies, Eastgate
invents the pods that targets distinguish, and those that network policies name as peers. Each pod has an account of its
own, which no policy names. Output describes the pods, `pods with app=web`, instead of naming them. Ports that policies
name get numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import ContainerPort, Namespace, Pod, Target, World
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction
from eastgate.dialects import registered
from eastgate.ir import And, Is, Labelled, Or, Predicate
from eastgate.ir.attributes import (
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    Attribute,
)
from eastgate.ir.labels import Requirement, Selector
from eastgate.reports.invariants.future import Cover, ImaginedPod, imagine_targets
from eastgate.reports.invariants.labels import OTHER, Labelling, TooManyLabellings, labellings, terms_of

_MAX_PODS = 250  # with more, each selector gets only one pod
_MAX_PODS_FOR_SELECTORS = 2_000
_MAX_LABELLINGS = 256
_FIRST_PORT = 64_001
_NEW_NAMESPACES = ("new-home-", "new-namespace-")  # names of namespaces that no selector names
_PEERS: tuple[tuple[Attribute, Attribute], ...] = (
    (SOURCE_NAMESPACE, SOURCE_LABELS),
    (DESTINATION_NAMESPACE, DESTINATION_LABELS),
)


@dataclass(frozen=True, slots=True)
class Invention:
    """Pods that can exist together, and their namespaces.

    `texts` describe each pod, by the key of its workload. `targeted` are those that policies select, each kind once.
    `ports` are the numbers of ports that policies name. `is_all`: every possible pod is decided like one of these, or
    like one of another invention for the same policies.
    """

    pods: Mapping[str, Pod]
    namespaces: Mapping[str, Namespace]
    texts: Mapping[str, str]
    targeted: frozenset[str]
    ports: Mapping[int, str]
    is_all: bool

    @property
    def accounts(self) -> Mapping[str, str]:
        """Return the invented accounts, by their ids in graphs, each with the key of its pod."""
        return {
            f"sa:{pod.namespace}/{pod.service_account}": key
            for key, pod in self.pods.items()
            if pod.service_account == pod.name
        }

    def words(self, key: str) -> str:
        """Return the description of a pod for a sentence."""
        return f"{self.kind(key)} (invented)"

    def kind(self, key: str) -> str:
        """Return the description of the pods that a pod represents, with their namespace."""
        return f"{self.texts[key]} in {self.home(self.pods[key].namespace)}"

    def home(self, namespace: str) -> str:
        """Return the description of a namespace: its name if policies name it, and its labels if no
        manifest declares it.
        """
        home = self.namespaces.get(namespace)
        labels = sorted(home.labels.items()) if home is not None else ()
        texts = [_label_text(name, value) for name, value in labels if name != NAME_LABEL]
        is_new = namespace.startswith(_NEW_NAMESPACES)
        if not texts:
            return "any other namespace" if is_new else namespace
        return f"{'a namespace' if is_new else namespace} with {', '.join(texts)}"

    def in_words(self, text: str) -> str:
        """Replace the names of invented pods in a sentence by their description."""
        for key in sorted(self.pods, key=len, reverse=True):
            for name in (f"pod:{key}", f"pod {key}", key):
                text = text.replace(name, self.words(key))
        return text

    @contextmanager
    def imagined(self, *authorities: Authority, targeted: bool = False) -> Iterator[None]:
        """Add the pods to authorities for a while; `targeted`: only those that policies target."""
        pods = [pod for key, pod in self.pods.items() if key in self.targeted or not targeted]
        homes = {pod.namespace for pod in pods}
        with ExitStack() as stack:
            for authority in authorities:
                declared = authority.world.namespaces
                new = [each for name, each in self.namespaces.items() if name in homes and name not in declared]
                stack.enter_context(authority.imagining([*new, *pods]))
            yield

    def to_json(self) -> list[dict[str, object]]:
        """Return the pods as objects of the Kubernetes API."""
        return [
            manifest
            for pod in self.pods.values()
            for manifest in ImaginedPod(pod, self.namespaces.get(pod.namespace)).to_manifests()
        ]


def has_no_workloads(*authorities: Authority) -> bool:
    """Return whether there are policies, but no workload."""
    return not any(each.world.workloads for each in authorities) and any(map(_targets_of, authorities))


def invent(*authorities: Authority) -> list[Invention]:
    """Return workloads for the policies of authorities without any."""
    world = authorities[-1].world
    targets = list(dict.fromkeys(target for each in authorities for target in _targets_of(each)))
    everything = (Cover(Selector.of(), Selector.of()),)
    is_all = True
    try:
        together = imagine_targets(targets, everything, world, _label_all, _MAX_PODS)
    except TooManyLabellings:
        is_all = False
        together = imagine_targets(targets, everything, world, _label_each, _MAX_PODS_FOR_SELECTORS)
    peers = list(dict.fromkeys(peer for each in authorities for peer in _peers_of(each)))
    ports = dict(enumerate(sorted({name for each in authorities for name in _port_names(each)}), _FIRST_PORT))
    in_existing = [each for pods in together for each in pods if each.namespace is None]
    new = [pods for pods in together if any(each.namespace is not None for each in pods)]
    inventions = [_invention([*pods, *in_existing], peers, ports, world, is_all=is_all) for pods in new or [[]]]
    return [replace(each, targeted=_targeted(each, targets, authorities[-1])) for each in inventions]


def _targeted(invention: Invention, targets: Sequence[Target], authority: Authority) -> frozenset[str]:
    """Return the pods that policies target. Services select existing pods only."""
    with invention.imagined(authority):
        world = authority.world
        alike: dict[str, str] = {}  # a pod for a target and the equal pod for a peer are one
        for key in invention.pods:
            alike.setdefault(invention.words(key), key)
        pods = [world.workloads[key] for key in alike.values()]
        return frozenset(pod.key for pod in pods if any(world.target_matches(target, pod) for target in targets))


def _targets_of(authority: Authority) -> list[Target]:
    policies = (*authority.policies, *authority.rejected)
    return [target for policy in policies for target in policy.targets]


def _label_all(terms: Sequence[tuple[Requirement, ...]], demanded: Sequence[Requirement]) -> list[Labelling]:
    return labellings(terms, demanded, _MAX_PODS)


def _label_each(terms: Sequence[tuple[Requirement, ...]], demanded: Sequence[Requirement]) -> list[Labelling]:
    """Return one labelling for each selector, and one that no selector matches."""
    chosen = [labellings((), (*demanded, *each), _MAX_LABELLINGS)[:1] for each in dict.fromkeys(terms)]
    return [{}, *(labels for found in chosen for labels in found if labels)]


def _port_names(authority: Authority) -> Iterator[str]:
    for policy in authority.policies:
        yield from (name for dialect in registered().dialects for name in dialect.named_ports(policy))
    for service in authority.world.services.values():
        yield from (port.target for port in service.ports if isinstance(port.target, str))


# Peers of network policies


def _peers_of(authority: Authority) -> Iterator[tuple[Selector, Selector]]:
    """Yield the selectors of namespaces and of pods of each peer."""
    engine = programs_of(authority)
    for policy in engine.network_policies:
        for direction in Direction:
            for layer in engine.layers_of(policy, direction):
                for chain in layer.chains:
                    for rule in chain.rules(observed=False):
                        for ends in _PEERS:
                            yield from _selectors_in(rule.when, *ends)


def _selectors_in(
    predicate: Predicate,
    home: Attribute,
    labels: Attribute,
    around: tuple[Selector | None, Selector | None] = (None, None),
) -> Iterator[tuple[Selector, Selector]]:
    match predicate:
        case Or(parts):
            for part in parts:
                yield from _selectors_in(part, home, labels, around)
        case And(parts):
            own = {
                part.attribute: part.matcher.selector
                for part in parts
                if isinstance(part, Is) and isinstance(part.matcher, Labelled)
            }
            inner = own.get(home, around[0]), own.get(labels, around[1])
            nested = [part for part in parts if isinstance(part, Or | And)]
            yield from _pair(inner)
            for part in nested:
                yield from _selectors_in(part, home, labels, inner)
        case Is(attribute, Labelled(selector)) if attribute in (home, labels):
            yield from _pair((selector, around[1]) if attribute == home else (around[0], selector))
        case _:
            pass


def _pair(found: tuple[Selector | None, Selector | None]) -> Iterator[tuple[Selector, Selector]]:
    namespaces, pods = found
    if namespaces is not None or pods is not None:
        yield namespaces or Selector.of(), pods or Selector.of()


# Pods


def _invention(
    imagined: Sequence[ImaginedPod],
    peers: Iterable[tuple[Selector, Selector]],
    ports: Mapping[int, str],
    world: World,
    *,
    is_all: bool,
) -> Invention:
    namespaces = {each.namespace.name: each.namespace for each in imagined if each.namespace is not None}
    kinds = [each.pod for each in imagined]
    selected = len(kinds)
    numbers = count(1)
    for homes, pods in peers:
        home = _home_of(homes, namespaces, world, numbers)
        labels = next(iter(labellings((), terms_of(pods), _MAX_LABELLINGS)), None)
        if home is None or labels is None:
            continue  # no pod can be such a peer
        namespaces.setdefault(home.name, home)
        kinds.append(Pod(home.name, "", labels))
    named: dict[str, Pod] = {}
    texts: dict[str, str] = {}
    declared = tuple(ContainerPort(number, name) for number, name in ports.items())
    sizes = Counter(pod.namespace for pod in kinds[:selected])
    met: set[tuple[str, str]] = set()
    for number, pod in enumerate(kinds):
        text = _text(pod, is_only=sizes[pod.namespace] < 2)
        if number >= selected:  # a peer; it may equal a target, because a pod may call itself when others may not
            if (pod.namespace, text) in met:
                continue
            met.add((pod.namespace, text))
        name = pod.name if _is_named(pod) else f"invented-{len(named) + 1}"
        key = f"{pod.namespace}/{name}"
        account = pod.service_account if _has_account(pod) else name
        named[key] = replace(pod, name=name, ports=declared, service_account=account)
        texts[key] = text
    new = {name: home for name, home in namespaces.items() if name not in world.namespaces}
    return Invention(named, new, texts, frozenset(), ports, is_all)


def _has_account(pod: Pod) -> bool:
    """Return whether a policy targets the account of the pod."""
    return pod.service_account not in ("default", "new-account")


def _home_of(
    selector: Selector, namespaces: Mapping[str, Namespace], world: World, numbers: Iterator[int]
) -> Namespace | None:
    """Return a selected namespace: an existing one, or else a new one; None if no namespace can be selected."""
    existing = [*namespaces.values(), *map(world.namespace, world.namespaces_in_use())]
    known = next((home for home in existing if selector.matches(home.labels)), None)
    if known is not None:
        return known
    labels = next(iter(labellings((), terms_of(selector), _MAX_LABELLINGS)), None)
    if labels is None:
        return None
    name = labels.get(NAME_LABEL, OTHER)
    taken = {home.name for home in existing}
    if name == OTHER:
        name = next(name for name in (f"new-home-{number}" for number in numbers) if name not in taken)
    home = Namespace(name, labels)
    return None if name in taken or not selector.matches(home.labels) else home


def _label_text(key: str, value: str) -> str:
    return f"{key}={value}" if value != OTHER else f"another {key}"


def _is_named(pod: Pod) -> bool:
    """Return whether a policy targets the pod by its name."""
    return bool(pod.name) and not pod.name.startswith("new-pod-")


def _text(pod: Pod, *, is_only: bool) -> str:
    """Describe a kind of pods by the attributes that policies read."""
    labels = [_label_text(key, value) for key, value in sorted(pod.labels.items())]
    parts = [f"with {', '.join(labels)}"] if labels else []
    if pod.owner is not None:
        parts.append(f"of {pod.owner.kind} {pod.owner.name}")
    if _has_account(pod):
        parts.append(f"of account {pod.service_account}")
    if _is_named(pod):
        parts.append(f"called {pod.name}")
    return f"pods {' '.join(parts)}" if parts else "all pods" if is_only else "other pods"
