"""Which policies target which workloads, kept up to date as either changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

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


class Attachments(Generic[P]):
    """The policies, filed so that those of one workload are found without looking at all of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.policies: dict[PolicyRef, P] = {}
        self._by_label: dict[tuple[str | None, tuple[str, str] | None], dict[PolicyRef, None]] = defaultdict(dict)
        self._by_service: dict[str, dict[PolicyRef, None]] = defaultdict(dict)

    def put(self, policy: P) -> set[str]:
        """Add or replace a policy; tells which workloads it touches."""
        touched = self.remove(policy.ref)
        self.policies[policy.ref] = policy
        for target in policy.targets:
            self._shelf(target)[policy.ref] = None
            touched |= self._world.select(target)
        return touched

    def remove(self, ref: PolicyRef) -> set[str]:
        """Remove a policy, if it is there; tells which workloads it touched."""
        policy = self.policies.pop(ref, None)
        touched: set[str] = set()
        for target in policy.targets if policy is not None else ():
            self._shelf(target).pop(ref, None)
            touched |= self._world.select(target)
        return touched

    def of(self, workload: Workload) -> tuple[Attachment[P], ...]:
        """What targets a workload, in the order of the policies' names."""
        found: set[tuple[PolicyRef, str | None]] = set()
        for ref in self._candidates(workload):
            found |= {(ref, None) for target in self.policies[ref].targets if self._selects(target, workload)}
        for service in self._world.services_of(workload.key):
            found |= {(ref, service) for ref in self._by_service.get(service, ())}
        ordered = sorted(found, key=lambda one: (one[0].kind, one[0].namespace or "", one[0].name, one[1] or ""))
        return tuple(Attachment(self.policies[ref], service) for ref, service in ordered)

    def _shelf(self, target: Target) -> dict[PolicyRef, None]:
        match target:
            case PodsOfService(namespace, service):
                return self._by_service[f"{namespace}/{service}"]
            case PodsMatching(namespace, selector):
                return self._by_label[namespace, selector.anchor]
            case PodsAcross(pods=pods):
                return self._by_label[None, pods.anchor]

    def _candidates(self, workload: Workload) -> Iterator[PolicyRef]:
        """Policies whose anchor label the workload has, and those without an anchor."""
        for namespace in (workload.namespace, None):
            for anchor in (None, *workload.labels.items()):
                yield from self._by_label.get((namespace, anchor), ())

    def _selects(self, target: Target, workload: Workload) -> bool:
        return not isinstance(target, PodsOfService) and self._world.target_matches(target, workload)
