"""Membership: the pods behind each Service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from eastgate.cluster.objects import Service
from eastgate.cluster.pods import Workload
from eastgate.cluster.workload_index import WorkloadIndex
from eastgate.ir.labels import Selector

_Term: TypeAlias = tuple[str, str]
_Touch: TypeAlias = Callable[[str], None]  # gets the key of a workload before its Services change


class Membership:
    """Services and their pods, in both directions.

    Each Service is filed under one term of its selector. A new pod compares only the Services that are filed under a
    label that it has.
    """

    __slots__ = ("_anchor", "_filed", "_members", "_of", "services")

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self._members: dict[str, set[str]] = {}
        self._of: dict[str, tuple[str, ...]] = {}
        self._filed: dict[str, dict[_Term, set[str]]] = {}
        self._anchor: dict[str, _Term] = {}

    def members(self, service_key: str) -> set[str] | frozenset[str]:
        """Return the keys of the pods behind a Service; none for an unknown Service."""
        return self._members.get(service_key, frozenset())

    def services_of(self, workload_key: str) -> tuple[str, ...]:
        """Return the keys of the Services of a workload, sorted."""
        return self._of.get(workload_key, ())

    def put(self, service: Service, index: WorkloadIndex, touch: _Touch) -> None:
        """Add a Service, or replace the one with the same name."""
        key = service.key
        before = self.services.get(key)
        self.services[key] = service
        if before is not None and _terms(before) == _terms(service):
            return
        if before is not None:
            self._unfile(before)
        members: frozenset[str] = frozenset()
        if service.selects_pods:
            self._file(service)
            members = index.select(service.namespace, Selector.of(service.selector))
        self._set_members(key, members, touch)

    def remove(self, key: str, touch: _Touch) -> None:
        """Remove a Service."""
        self._set_members(key, frozenset(), touch)
        self._unfile(self.services.pop(key))

    def lead(self, key: str, members: frozenset[str], touch: _Touch) -> None:
        """Set the workloads behind a Service without a selector."""
        self._set_members(key, members, touch)

    def enrol(self, workload: Workload) -> None:
        """Add a new workload to the Services that select it, if it is a pod."""
        filed = self._filed.get(workload.namespace)
        if not filed or not workload.is_pod:
            return
        labels = workload.labels.items()
        services = [
            key for term in labels for key in filed.get(term, ()) if self.services[key].selector.items() <= labels
        ]
        if services:
            services.sort()
            self._of[workload.key] = tuple(services)
            for key in services:
                self._members.setdefault(key, set()).add(workload.key)

    def dismiss(self, workload_key: str) -> None:
        """Remove a workload from all Services."""
        for service_key in self._of.pop(workload_key, ()):
            self._drop_member(service_key, workload_key)

    def _set_members(self, service_key: str, after: frozenset[str], touch: _Touch) -> None:
        before = frozenset(self._members.get(service_key, ()))
        for workload_key in before - after:
            touch(workload_key)
            self._drop_member(service_key, workload_key)
            left = tuple(key for key in self._of[workload_key] if key != service_key)
            if left:
                self._of[workload_key] = left
            else:
                del self._of[workload_key]
        joining = after - before
        for workload_key in joining:
            touch(workload_key)
            self._of[workload_key] = tuple(sorted((*self._of.get(workload_key, ()), service_key)))
        if joining:
            self._members.setdefault(service_key, set()).update(joining)

    def _drop_member(self, service_key: str, workload_key: str) -> None:
        members = self._members[service_key]
        members.discard(workload_key)
        if not members:
            del self._members[service_key]

    def _file(self, service: Service) -> None:
        filed = self._filed.setdefault(service.namespace, {})
        # File the Service under its rarest term. If all Services of a namespace ask for one label (`env: prod`), a new
        # pod would otherwise compare all of them.
        anchor = min(service.selector.items(), key=lambda term: (len(filed.get(term, ())), term))
        filed.setdefault(anchor, set()).add(service.key)
        self._anchor[service.key] = anchor

    def _unfile(self, service: Service) -> None:
        anchor = self._anchor.pop(service.key, None)
        if anchor is None:
            return
        filed = self._filed[service.namespace]
        filed[anchor].discard(service.key)
        if not filed[anchor]:
            del filed[anchor]
        if not filed:
            del self._filed[service.namespace]


def _terms(service: Service) -> Mapping[str, str]:
    return service.selector if service.selects_pods else {}
