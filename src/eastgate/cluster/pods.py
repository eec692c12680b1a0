"""Pods: as declared, as their controllers would make them, and as policies see them.

A `Pod` and a `Controller` are declared in manifests. A `Workload` is the thing that policies apply to. It is a running
pod. If no pod of a Deployment was given (a folder of manifests rarely holds pods), it is the pod that its template
would make. Or it is outside of the cluster and takes part in its mesh (`externals`). The world computes workloads; no
manifest declares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.objects import ObjectId
from eastgate.ir.spiffe import SCHEME, service_account_id

CONTROLLER_KINDS = {
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "ReplicaSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
    "ReplicationController": "",
    "Rollout": "argoproj.io",
    "KnativeService": "serving.knative.dev",
    "Prometheus": "monitoring.coreos.com",
    "Alertmanager": "monitoring.coreos.com",
    "DeploymentConfig": "apps.openshift.io",
    "VirtualMachine": "kubevirt.io",
    "VirtualMachineInstance": "kubevirt.io",
    "VirtualMachineInstanceReplicaSet": "kubevirt.io",
    "VirtualMachinePool": "pool.kubevirt.io",
}
"""The kinds that make pods, with their groups, in the order in which they get the plain key of a name."""

API_KINDS = {"KnativeService": "Service"}
"""API names of kinds that have another name here, since another group has a kind of the same name."""

PROXY_CONTAINER = "eastgate-proxy"
"""The name of the container that injection adds. No other container of a pod with a sidecar may have it."""

MESH_PROXIES = frozenset({PROXY_CONTAINER, "istio-proxy", "linkerd-proxy"})
"""The names of containers that are the proxy of a mesh."""

_INJECT = "sidecar.istio.io/inject"
_TRUE_TEXTS = frozenset({"on", "true", "y", "yes"})  # in any letter case
_INJECTED = "sidecar.istio.io/status"  # the annotation of a pod that has a sidecar
_REVISION = "istio.io/rev"
_MODE = "istio.io/dataplane-mode"
_MESH_MARKS = frozenset({_INJECT, _INJECTED, _REVISION, _MODE})
_TEMPLATES = "inject.istio.io/templates"
INJECTION_ANNOTATIONS = frozenset({_INJECT, _INJECTED, _TEMPLATES})
_INSTALLED = "istio"  # the label that Istio's installers put on the proxies of gateways


class Owner(NamedTuple):
    """A controller of a pod, or of its controller. A kind of another group is written `Kind.group`."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """A port that a container declares."""

    number: int
    name: str | None = None
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """A GET by which the kubelet checks a container; the path is kept as it is sent.

    A mesh must allow it, although the kubelet has no identity in the mesh: otherwise the pod is never ready. `rooted`:
    the written path begins with a slash. The kubelet adds a missing slash, other programs may not.
    """

    port: int
    path: str
    rooted: bool = True


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as declared, or as a template would make it.

    - `ports` are those of the containers, then those of the sidecars (init containers that are always restarted): the
      order in which Kubernetes looks up a port name.
    - `init_ports` are those of the other init containers, which no Service leads to.
    - `ips` are the pod's own addresses: a pod on the `host_network` has only that of its node, `host_ip`.
    - A `finished` pod neither sends nor receives. Proxies send nothing to a pod that is not `ready`.
    - `uid` distinguishes it from other pods that had its name.
    - `mesh_proxies` are those of `MESH_PROXIES` among its containers and sidecars.
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
    init_ports: tuple[ContainerPort, ...] = ()
    probes: tuple[HttpProbe, ...] = ()
    host_network: bool = False
    host_ip: str | None = None
    uid: str = ""
    ready: bool = True
    mesh_proxies: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Return the kind in its manifest."""
        return "Pod"

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId("", "Pod", self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Controller:
    """An object that makes pods: one of `CONTROLLER_KINDS`.

    `template` is the pod it would make, under the controller's own name.
    """

    kind: str
    template: Pod
    owner: Owner | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def namespace(self) -> str:
        """Return the namespace of the controller and of its pods."""
        return self.template.namespace

    @property
    def name(self) -> str:
        """Return the name of the controller."""
        return self.template.name

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        kind = API_KINDS.get(self.kind, self.kind)
        return ObjectId(CONTROLLER_KINDS[self.kind], kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod, real or derived, or a workload outside of the cluster, with all that a policy can depend on.

    `key` is unique: `namespace/name` for a pod. A derived workload has such a key too, if no pod and no controller of
    an earlier kind has the name; otherwise it is `namespace/name (Kind)`. `owners` goes from the nearest controller
    upwards, say ReplicaSet then Deployment.

    `kind` is `Pod`, also for a derived workload, or `ExternalWorkload`. The latter has no service account (the empty
    text): its identity is the name in its certificate, `mesh_name`, which no pod declares.
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
    init_ports: tuple[ContainerPort, ...] = ()
    probes: tuple[HttpProbe, ...] = ()
    kind: str = "Pod"
    mesh_name: str | None = None
    host_network: bool = False
    host_ip: str | None = None
    uid: str = ""
    ready: bool = True
    mesh_proxies: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def is_pod(self) -> bool:
        """Return whether it is a pod, real or derived. Selectors of pods select only these."""
        return self.kind == "Pod"

    @property
    def is_installed_gateway(self) -> bool:
        """Return whether it is a proxy of a gateway, with the labels of Istio's installers."""
        is_labelled = self.labels.get(_INSTALLED, "").endswith("gateway")
        return is_labelled or "gateway" in self.annotations.get(_TEMPLATES, "").split(",")

    @property
    def asks_for_sidecar(self) -> bool | None:
        """Return whether it asks Istio for a sidecar: True, False if it refuses one, or None.

        Istio's injector reads the label, or else the annotation, as YAML's booleans: any other text refuses. A label
        reaches its webhook only with the value `true`.
        """
        label = self.labels.get(_INJECT)
        asked = self.annotations.get(_INJECT) if label is None else label
        if not asked:
            return None
        if asked.lower() not in _TRUE_TEXTS:
            return False
        return True if label in (None, "true") else None

    @property
    def asks_for_mesh(self) -> bool:
        """Return whether it asks Istio for a proxy by itself, or has one. A proxy of a gateway does not count."""
        labels, annotations = self.labels, self.annotations
        is_marked = not (_MESH_MARKS.isdisjoint(labels) and _MESH_MARKS.isdisjoint(annotations))
        if not (is_marked or self.mesh_proxies) or not self.is_pod or self.is_installed_gateway:
            return False
        if _INJECTED in annotations or "istio-proxy" in self.mesh_proxies or labels.get(_MODE) == "ambient":
            return True
        asked = self.asks_for_sidecar
        return asked is True or (_REVISION in labels and asked is None)

    def identity_in(self, trust_domain: str) -> str | None:
        """Return its SPIFFE ID; None for a workload outside of the cluster whose certificate has none."""
        if self.is_pod:
            return service_account_id(trust_domain, self.namespace, self.service_account)
        return self.mesh_name if self.mesh_name is not None and self.mesh_name.startswith(SCHEME) else None

    def port_named(self, name: str, protocol: str = "TCP") -> int | None:
        """Return the number of the first declared port of that name and protocol, as Kubernetes resolves it."""
        return next((p.number for p in self.ports if p.name == name and p.protocol == protocol), None)

    def ports_named(self, name: str) -> frozenset[int]:
        """Return the numbers of all TCP ports of that name, as Linkerd resolves it.

        Several containers may use one name. An external workload has one list of ports, and the last port of a name
        counts.
        """
        numbers = [p.number for p in (*self.ports, *self.init_ports) if p.name == name and p.protocol == "TCP"]
        return frozenset(numbers if self.is_pod else numbers[-1:])
