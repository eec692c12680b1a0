"""Ownership: the controllers of pods, and controllers in place of undeclared pods.

A pod names its nearest controller only. The chain upwards (ReplicaSet to Deployment, Job to CronJob) goes through
objects that may be missing, arrive later or go away. Pods with the same nearest controller form a `_Family`, which has
one chain. A family is filed under every name that its chain looked up. When an object of such a name comes or goes,
only these families are traced again.

A controller derives a workload from its template unless

- a pod below it is declared, or
- it is a ReplicaSet (Job) of a declared Deployment (CronJob), which derives the workload instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from eastgate.basics.regexes import regex
from eastgate.cluster.pods import CONTROLLER_KINDS, Controller, Owner, Pod, Workload

Slot: TypeAlias = tuple[str, str]  # namespace, name: all objects of that name compete for its keys

_SPOKEN_FOR = {
    "ReplicaSet": ("Deployment", "Rollout"),
    "Job": ("CronJob",),
    "StatefulSet": ("Prometheus", "Alertmanager"),
    "Deployment": ("KnativeService",),
    "ReplicationController": ("DeploymentConfig",),
    "VirtualMachine": ("VirtualMachinePool",),
    "VirtualMachineInstance": ("VirtualMachine", "VirtualMachineInstanceReplicaSet"),
}
# A Deployment and a Rollout name their ReplicaSets `<name>-<hash>`, and put the hash on the pods.
_HASH_LABELS = ("pod-template-hash", "rollouts-pod-template-hash")
# The names that other controllers give their objects: `<cronjob>-<minute>`, and so on.
_MAKERS = (
    ("Job", "CronJob", regex(r"(.+)-[0-9]+")),
    ("StatefulSet", "Prometheus", regex(r"prometheus-(.+)")),
    ("StatefulSet", "Alertmanager", regex(r"alertmanager-(.+)")),
    ("Deployment", "KnativeService", regex(r"(.+)-[0-9]{5,}-deployment")),
    ("Revision.serving.knative.dev", "KnativeService", regex(r"(.+)-[0-9]{5,}")),
    ("ReplicationController", "DeploymentConfig", regex(r"(.+)-[0-9]+")),
    ("VirtualMachineInstance", "VirtualMachine", regex(r"(.+)")),
    ("VirtualMachine", "VirtualMachinePool", regex(r"(.+)-[0-9]+")),
)


class _Trace(NamedTuple):
    """The owners of a family from the nearest upwards, and every owner that was looked up to find them."""

    chain: tuple[Owner, ...] = ()
    asked: tuple[Owner, ...] = ()


class _Birth(NamedTuple):
    """The facts that determine a pod's chain: pods with equal facts are a family."""

    namespace: str
    owner: Owner
    template_hash: str  # empty if it cannot matter


class _Family:
    """The declared pods of one birth. A declared controller has a family even without pods: its template's."""

    __slots__ = ("birth", "pods", "trace")

    def __init__(self, birth: _Birth) -> None:
        self.birth = birth
        self.pods: set[Slot] = set()
        self.trace = _Trace()

    @property
    def owner_slots(self) -> set[Slot]:
        return {(self.birth.namespace, owner.name) for owner in self.trace.chain}


class Ownership:
    """The declared pods and controllers, and the chains between them.

    `declare` and `withdraw` return the slots whose workloads may have changed.
    """

    __slots__ = ("_asked_by", "_controllers", "_families", "_pods")

    def __init__(self) -> None:
        self._pods: dict[Slot, Pod] = {}
        self._controllers: dict[Slot, dict[str, Controller]] = {}  # then by kind
        self._families: dict[_Birth, _Family] = {}
        self._asked_by: dict[Slot, set[_Family]] = {}

    def declare_pod(self, pod: Pod) -> set[Slot]:
        """Add a pod, or replace the one with the same name."""
        slot = (pod.namespace, pod.name)
        before = self._pods.get(slot)
        self._pods[slot] = pod
        return {slot} | self._move(slot, _birth(before), _birth(pod))

    def withdraw_pod(self, slot: Slot) -> set[Slot]:
        """Remove a pod, if it is declared."""
        before = self._pods.pop(slot, None)
        return {slot} | self._move(slot, _birth(before), None) if before is not None else set()

    def declare_controller(self, controller: Controller) -> set[Slot]:
        """Add a controller, or replace the one with the same kind and name."""
        slot = (controller.namespace, controller.name)
        controllers = self._controllers.setdefault(slot, {})
        before = controllers.get(controller.kind)
        controllers[controller.kind] = controller
        if before is not None and before.owner == controller.owner:
            return {slot}
        if before is None:
            self._family(_template_birth(slot, controller.kind))
        return {slot} | self._retrace_below(slot)

    def withdraw_controller(self, slot: Slot, kind: str) -> set[Slot]:
        """Remove a controller, if it is declared."""
        controllers = self._controllers.get(slot, {})
        if controllers.pop(kind, None) is None:
            return set()
        if not controllers:
            del self._controllers[slot]
        slots = {slot} | self._retrace_below(slot)
        self._drop_if_empty(self._families[_template_birth(slot, kind)])
        return slots

    def workloads_named(self, slot: Slot) -> tuple[Workload, ...]:
        """Return the workloads of one name. A pod, or else the first kind of controller, gets the plain key."""
        key = f"{slot[0]}/{slot[1]}"
        workloads: list[Workload] = []
        pod = self._pods.get(slot)
        if pod is not None:
            birth = _birth(pod)
            workloads.append(_workload(key, pod, self._families[birth].trace.chain if birth is not None else ()))
        controllers = self._controllers.get(slot)
        if controllers is not None:
            for kind in CONTROLLER_KINDS:
                controller = controllers.get(kind)
                if controller is not None and self._derives(slot, controller):
                    chain = self._families[_template_birth(slot, kind)].trace.chain
                    workloads.append(_derived(f"{key} ({kind})" if workloads else key, controller, chain))
        return tuple(workloads)

    def slots_below(self, slot: Slot) -> set[Slot]:
        """Return the slots of all objects that may have an owner of this name."""
        slots: set[Slot] = set()
        for family in self._asked_by.get(slot, ()):
            slots |= family.pods
            slots.add((slot[0], family.birth.owner.name))
        return slots

    def _derives(self, slot: Slot, controller: Controller) -> bool:
        match controller.owner:
            case Owner(kind, name) if kind in _SPOKEN_FOR.get(controller.kind, ()):
                if self._controller(slot[0], kind, name) is not None:
                    return False
        itself = Owner(controller.kind, controller.name)
        return not any(family.pods and itself in family.trace.chain for family in self._asked_by[slot])

    def _controller(self, namespace: str, kind: str, name: str) -> Controller | None:
        controllers = self._controllers.get((namespace, name))
        return controllers.get(kind) if controllers is not None else None

    def _move(self, slot: Slot, before: _Birth | None, after: _Birth | None) -> set[Slot]:
        """Move a pod from one family to another. An emptied or new family changes the derived workloads."""
        slots: set[Slot] = set()
        if before == after:
            return slots
        if before is not None:
            family = self._families[before]
            family.pods.discard(slot)
            if not family.pods:
                slots |= family.owner_slots
                self._drop_if_empty(family)
        if after is not None:
            family = self._family(after)
            if not family.pods:
                slots |= family.owner_slots
            family.pods.add(slot)
        return slots

    def _family(self, birth: _Birth) -> _Family:
        family = self._families.get(birth)
        if family is None:
            family = self._families[birth] = _Family(birth)
            self._file(family, self._trace(birth))
        return family

    def _drop_if_empty(self, family: _Family) -> None:
        namespace, owner, template_hash = family.birth
        is_template = not template_hash and self._controller(namespace, owner.kind, owner.name) is not None
        if not family.pods and not is_template:
            self._file(family, _Trace())
            del self._families[family.birth]

    def _retrace_below(self, slot: Slot) -> set[Slot]:
        """Trace the chains again that looked up this name, after an object of it came, went or changed its owner."""
        slots: set[Slot] = set()
        for family in tuple(self._asked_by.get(slot, ())):
            # The owner of a controller decides whether the controller derives, even if the chain is the same.
            slots.add((slot[0], family.birth.owner.name))
            trace = self._trace(family.birth)
            if trace != family.trace:
                slots |= family.owner_slots
                self._file(family, trace)
                slots |= family.owner_slots | family.pods
        return slots

    def _file(self, family: _Family, trace: _Trace) -> None:
        """Give a family its chain, and file it under the names that the chain looked up."""
        namespace = family.birth.namespace
        before, after = {o.name for o in family.trace.asked}, {o.name for o in trace.asked}
        for name in before - after:
            asking = self._asked_by[namespace, name]
            asking.discard(family)
            if not asking:
                del self._asked_by[namespace, name]
        for name in after - before:
            self._asked_by.setdefault((namespace, name), set()).add(family)
        family.trace = trace

    def _trace(self, birth: _Birth) -> _Trace:
        chain: list[Owner] = []
        guesses: list[Owner] = []
        owner: Owner | None = birth.owner
        while owner is not None and owner not in chain:
            chain.append(owner)
            controller = self._controller(birth.namespace, owner.kind, owner.name)
            if controller is not None:
                owner = controller.owner
            elif owner.kind == "ReplicaSet":
                owner = self._deployment_of(birth, owner.name)
            else:
                made_by = _makers_of(owner)
                guesses += made_by
                owner = next(
                    (maker for maker in made_by if self._controller(birth.namespace, *maker) is not None), None
                )
        return _Trace(tuple(chain), (*chain, *guesses))

    def _deployment_of(self, birth: _Birth, replica_set: str) -> Owner | None:
        """Return the Deployment of an undeclared ReplicaSet, by the hash that it put on the pod."""
        name = replica_set.removesuffix(f"-{birth.template_hash}")
        if not birth.template_hash or not name or name == replica_set:
            return None
        is_rollout = self._controller(birth.namespace, "Rollout", name) is not None
        is_deployment = self._controller(birth.namespace, "Deployment", name) is not None
        return Owner("Rollout" if is_rollout and not is_deployment else "Deployment", name)


def _birth(pod: Pod | None) -> _Birth | None:
    if pod is None or pod.owner is None:
        return None
    hashes = (pod.labels.get(label, "") for label in _HASH_LABELS) if pod.owner.kind == "ReplicaSet" else ()
    template_hash = next(filter(None, hashes), "")
    return _Birth(pod.namespace, pod.owner, template_hash)


def _template_birth(slot: Slot, kind: str) -> _Birth:
    return _Birth(slot[0], Owner(kind, slot[1]), "")


def _makers_of(owner: Owner) -> list[Owner]:
    """Return the owners that may have made an object of this name, if they exist."""
    tried = ((maker, pattern.fullmatch(owner.name)) for kind, maker, pattern in _MAKERS if kind == owner.kind)
    return [Owner(maker, match[1]) for maker, match in tried if match]


def _workload(key: str, pod: Pod, owners: tuple[Owner, ...]) -> Workload:
    return Workload(
        key=key,
        namespace=pod.namespace,
        name=pod.name,
        labels=pod.labels,
        annotations=pod.annotations,
        service_account=pod.service_account,
        ports=pod.ports,
        ips=pod.ips,
        owners=owners,
        init_ports=pod.init_ports,
        probes=pod.probes,
        host_network=pod.host_network,
        host_ip=pod.host_ip,
        uid=pod.uid,
        ready=pod.ready,
        mesh_proxies=pod.mesh_proxies,
        span=pod.span,
    )


def _derived(key: str, controller: Controller, owners: tuple[Owner, ...]) -> Workload:
    return replace(_workload(key, controller.template, owners), ips=(), derived=True, span=controller.span)
