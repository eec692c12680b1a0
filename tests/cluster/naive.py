"""The world by brute force: every answer computed from the declared objects alone, with no index and no memory.

It is the definition for the real one, so readability comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eastgate.cluster import (
    CONTROLLER_KINDS,
    BackendNamed,
    Controller,
    Everything,
    ExternalsMatching,
    ExternalWorkload,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    Namespace,
    Owner,
    Pod,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Service,
    Target,
    WorldObject,
)
from eastgate.cluster.slices import EndpointSlice


@dataclass(frozen=True)
class Facts:
    """All properties of one workload that a policy can see."""

    pod: Pod | ExternalWorkload
    owners: tuple[Owner, ...]
    derived: bool
    services: tuple[str, ...]
    namespace: Namespace


SPEAKERS = (
    ("ReplicaSet", "Deployment"),
    ("ReplicaSet", "Rollout"),
    ("Job", "CronJob"),
    ("StatefulSet", "Prometheus"),
    ("StatefulSet", "Alertmanager"),
    ("Deployment", "KnativeService"),
    ("ReplicationController", "DeploymentConfig"),
    ("VirtualMachine", "VirtualMachinePool"),
    ("VirtualMachineInstance", "VirtualMachine"),
    ("VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"),
)
MAKERS = (
    ("Job", "(.+)-[0-9]+", "CronJob"),
    ("StatefulSet", "prometheus-(.+)", "Prometheus"),
    ("StatefulSet", "alertmanager-(.+)", "Alertmanager"),
    ("Deployment", "(.+)-[0-9]{5,}-deployment", "KnativeService"),
    ("Revision.serving.knative.dev", "(.+)-[0-9]{5,}", "KnativeService"),
    ("ReplicationController", "(.+)-[0-9]+", "DeploymentConfig"),
    ("VirtualMachineInstance", "(.+)", "VirtualMachine"),
    ("VirtualMachine", "(.+)-[0-9]+", "VirtualMachinePool"),
)


class NaiveWorld:
    def __init__(self, objects: Iterable[WorldObject]) -> None:
        declared = list({o.id: o for o in objects}.values())
        self.pods = [o for o in declared if isinstance(o, Pod) and not o.finished]
        self.controllers = {(o.namespace, o.kind, o.name): o for o in declared if isinstance(o, Controller)}
        self.externals = [o for o in declared if isinstance(o, ExternalWorkload)]
        self.slices = [o for o in declared if isinstance(o, EndpointSlice)]
        self.services = [o for o in declared if isinstance(o, Service)]
        self.namespaces = {o.name: o for o in declared if isinstance(o, Namespace)}
        self.workloads = self._workloads()

    def chain(self, namespace: str, owner: Owner | None, labels: dict[str, str]) -> tuple[Owner, ...]:
        chain: list[Owner] = []
        while owner and owner not in chain:
            chain.append(owner)
            controller = self.controllers.get((namespace, *owner))
            above = None
            if controller:
                above = controller.owner
            elif owner.kind == "ReplicaSet":
                template_hash = labels.get("pod-template-hash") or labels.get("rollouts-pod-template-hash")
                if template_hash and owner.name.endswith(f"-{template_hash}"):
                    name = owner.name[: -len(template_hash) - 1]
                    kinds = [kind for kind in ("Deployment", "Rollout") if (namespace, kind, name) in self.controllers]
                    above = Owner(kinds[0] if kinds else "Deployment", name)
            else:
                for kind, pattern, maker in MAKERS:
                    match = re.fullmatch(pattern, owner.name) if kind == owner.kind else None
                    if match and (namespace, maker, match[1]) in self.controllers:
                        above = above or Owner(maker, match[1])
            owner = above
        return tuple(chain)

    def _workloads(self) -> dict[str, Facts]:
        found: dict[str, Facts] = {}
        owned = set()
        for pod in self.pods:
            owners = self.chain(pod.namespace, pod.owner, dict(pod.labels))
            owned |= {(pod.namespace, *owner) for owner in owners}
            found[f"{pod.namespace}/{pod.name}"] = self._facts(pod, owners, derived=False)
        for kind in CONTROLLER_KINDS:
            for (namespace, its_kind, name), controller in self.controllers.items():
                above = controller.owner
                spoken_for = above and (kind, above.kind) in SPEAKERS
                if its_kind != kind or (namespace, kind, name) in owned:
                    continue
                if above and spoken_for and (namespace, *above) in self.controllers:
                    continue
                key = f"{namespace}/{name}"
                key = f"{key} ({kind})" if key in found else key
                owners = self.chain(namespace, Owner(kind, name), {})
                found[key] = self._facts(controller.template, owners, derived=True)
        for external in self.externals:
            key = f"{external.namespace}/{external.name}"
            key = f"{key} (ExternalWorkload)" if key in found else key
            found[key] = self._facts(external, (), derived=False)
        return found

    def _facts(self, pod: Pod | ExternalWorkload, owners: tuple[Owner, ...], *, derived: bool) -> Facts:
        services = sorted(
            s.key
            for s in self.services
            if isinstance(pod, Pod)
            if s.type != "ExternalName"
            if (
                s.namespace == pod.namespace and all(pod.labels.get(key) == value for key, value in s.selector.items())
                if s.selector
                else not derived and self._leads_to(s, pod)
            )
        )
        return Facts(pod, owners, derived, tuple(services), self.namespace(pod.namespace))

    def _leads_to(self, service: Service, pod: Pod) -> bool:
        """Whether an EndpointSlice of a Service names a pod, or has an address that is only this pod's."""
        slices = [one for one in self.slices if (one.namespace, one.service) == (service.namespace, service.name)]
        shared = [ip for one in self.pods for ip in set(one.ips)] + [
            ip for one in self.externals for ip in set(one.ips)
        ]
        return any(
            end.pod == f"{pod.namespace}/{pod.name}"
            if end.pod is not None
            else bool(end.addresses) and end.addresses[0] in pod.ips and shared.count(end.addresses[0]) == 1
            for one in slices
            for end in one.endpoints
        )

    def namespace(self, name: str) -> Namespace:
        return self.namespaces.get(name) or Namespace(name)

    def select(self, target: Target) -> set[str]:
        return {key for key, facts in self.workloads.items() if self._means(target, facts)}

    def _means(self, target: Target, facts: Facts) -> bool:
        pod = facts.pod
        if isinstance(target, Everything):
            return target.namespace is None or pod.namespace == target.namespace
        if isinstance(pod, ExternalWorkload):
            match target:
                case ExternalsMatching(namespace, selector):
                    return pod.namespace == namespace and selector.matches(pod.labels)
            return False
        match target:
            case PodsMatching(namespace, selector):
                return pod.namespace == namespace and selector.matches(pod.labels)
            case PodsOfService(namespace, service):
                return f"{namespace}/{service}" in facts.services
            case PodsAcross(namespaces, pods):
                return namespaces.matches(facts.namespace.labels) and pods.matches(pod.labels)
            case PodsOwnedBy(namespace, kind, name):
                return pod.namespace == namespace and any(owner == (kind, name) for owner in facts.owners)
            case PodsOfAccount(namespace, account):
                return (pod.namespace, pod.service_account) == (namespace, account)
            case PodNamed(namespace, name):
                return not facts.derived and (pod.namespace, pod.name) == (namespace, name)
            case ExternalsMatching() | GatewaysMatching() | GatewayNamed() | RouteNamed() | BackendNamed():
                return False
            case RulesOfGateway() | RulesOfRoute() | HostNamed():
                return False

    def find(self, namespace: str, name: str) -> list[str]:
        here = {key: facts for key, facts in self.workloads.items() if facts.pod.namespace == namespace}
        named = {key: facts for key, facts in here.items() if facts.pod.name == name and not facts.derived}
        pods = [key for key, facts in named.items() if isinstance(facts.pod, Pod)]
        owned = sorted(key for key, facts in here.items() if any(owner.name == name for owner in facts.owners))
        return pods or owned or list(named)

    def by_ip(self, address: str) -> str | None:
        found = [key for key, facts in self.workloads.items() if not facts.derived and address in facts.pod.ips]
        return found[0] if len(found) == 1 else None
