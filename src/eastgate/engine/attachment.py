"""Which policies target which workloads, kept up to date as either changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

from eastgate.policy import Attachment, PolicyRef
from eastgate.world import PodsAcross, PodsMatching, PodsOfService, Target, Workload, World

__all__ = ["Attachments", "Targeting"]


class Targeting(Protocol):
    """All that the engine needs to know of a policy: its name and what it targets. Dialects know the rest."""

    @property
    def ref(self) -> PolicyRef:
        """The name of the policy."""
        ...

    @property
    def targets(self) -> tuple[Target, ...]:
        """What it applies to: ANY of these."""
        ...


P = TypeVar("P", bound=Targeting)

_Order: TypeAlias = tuple[str, str, str, str, str]  # policy and Service, as they are sorted


class Attachments(Generic[P]):
    """The policies, filed so that those of one workload are found without looking at all of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.policies: dict[PolicyRef, P] = {}
        # Each target, with what it attaches, under the label that all its pods have, or under its Service.
        self._by_label: dict[tuple[str | None, tuple[str, str] | None], _Shelf[P]] = defaultdict(dict)
        self._by_service: dict[str, _Shelf[P]] = defaultdict(dict)

    def put(self, policy: P) -> set[str]:
        """Add or replace a policy; tells which workloads it touches."""
        touched = self.remove(policy.ref)
        self.policies[policy.ref] = policy
        for place, target in enumerate(policy.targets):
            service = f"{target.namespace}/{target.service}" if isinstance(target, PodsOfService) else None
            filed = (target, _order(policy.ref, service), Attachment(policy, service))
            self._shelf(target)[policy.ref, place] = filed
            touched |= self._world.select(target)
        return touched

    def remove(self, ref: PolicyRef) -> set[str]:
        """Remove a policy, if it is there; tells which workloads it touched."""
        policy = self.policies.pop(ref, None)
        touched: set[str] = set()
        for place, target in enumerate(policy.targets if policy is not None else ()):
            self._shelf(target).pop((ref, place), None)
            touched |= self._world.select(target)
        return touched

    def of(self, workload: Workload) -> tuple[Attachment[P], ...]:
        """What targets a workload, in the order of the policies' names."""
        matches = self._world.target_matches
        found: dict[_Order, Attachment[P]] = {}
        for shelf in self._shelves(workload):
            for target, order, attachment in shelf.values():
                if attachment.service is not None or matches(target, workload):
                    found[order] = attachment
        return tuple(found[order] for order in sorted(found))

    def _shelf(self, target: Target) -> _Shelf[P]:
        match target:
            case PodsOfService(namespace, service):
                return self._by_service[f"{namespace}/{service}"]
            case PodsMatching(namespace, selector):
                return self._by_label[namespace, selector.anchor]
            case PodsAcross(pods=pods):
                return self._by_label[None, pods.anchor]

    def _shelves(self, workload: Workload) -> Iterator[_Shelf[P]]:
        """Where everything is that may target a workload."""
        for namespace in (workload.namespace, None):
            for anchor in (None, *workload.labels.items()):
                if (shelf := self._by_label.get((namespace, anchor))) is not None:
                    yield shelf
        for service in self._world.services_of(workload.key):
            if (shelf := self._by_service.get(service)) is not None:
                yield shelf


_Shelf: TypeAlias = dict[tuple[PolicyRef, int], tuple[Target, _Order, Attachment[P]]]


def _order(ref: PolicyRef, service: str | None) -> _Order:
    return ref.kind, ref.namespace or "", ref.name, ref.group, service or ""
