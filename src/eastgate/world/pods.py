"""Pods: as declared, as their controllers would make them, and as policies see them.

A `Pod` and a `Controller` are what manifests say. A `Workload` is what policies apply to: a running
pod, or, where no pod of a Deployment was given (a folder of manifests rarely holds pods), the pod that
its template would make. The world computes workloads, nobody declares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from eastgate.places import Span
from eastgate.world.objects import ObjectId

__all__ = ["CONTROLLER_KINDS", "ContainerPort", "Controller", "Owner", "Pod", "Workload"]

CONTROLLER_KINDS = {
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "ReplicaSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
}
"""The kinds that make pods, with their groups, in the order in which they are given the plain key of a name."""


class Owner(NamedTuple):
    """What controls a pod, or what controls that. A kind of a foreign group is written `Kind.group`."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """A port that a container declares."""

    number: int
    name: str | None = None
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as declared, or as a template would make it.

    `ports` are those of the containers, then those of the sidecars (init containers that are always
    restarted): the order in which Kubernetes looks up a port name. `ips` are addresses that are the
    pod's alone: a pod on the host's network has none. A `finished` pod neither sends nor receives.
    """

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    service_account: str = "default"
    ports: tuple[ContainerPort, ...] = ()
    ips: tuple[str, ...] = ()
    owner: Owner | None = None
    finished: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """What it is called in a manifest."""
        return "Pod"

    @property
    def id(self) -> ObjectId:
        """Which object of the API this is."""
        return ObjectId("", "Pod", self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Controller:
    """Something that makes pods: one of `CONTROLLER_KINDS`.

    `template` is the pod it would make, under the controller's own name.
    """

    kind: str
    template: Pod
    owner: Owner | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def namespace(self) -> str:
        """The namespace of the controller and of its pods."""
        return self.template.namespace

    @property
    def name(self) -> str:
        """The name of the controller."""
        return self.template.name

    @property
    def id(self) -> ObjectId:
        """Which object of the API this is."""
        return ObjectId(CONTROLLER_KINDS[self.kind], self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod, real or derived, with everything about it that a policy can depend on.

    `key` is unique: `namespace/name` for a pod. A derived workload has that too where no pod and no
    controller of an earlier kind bears the name, and else `namespace/name (Kind)`. `owners` goes from
    the nearest controller upwards, say ReplicaSet then Deployment.
    """

    key: str
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    service_account: str = "default"
    ports: tuple[ContainerPort, ...] = ()
    ips: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    derived: bool = False
    span: Span | None = field(default=None, compare=False)

    def port_named(self, name: str, protocol: str = "TCP") -> int | None:
        """The number of the first declared port of that name and protocol, as Kubernetes resolves it."""
        return next((p.number for p in self.ports if p.name == name and p.protocol == protocol), None)
