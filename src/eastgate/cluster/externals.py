"""Workloads outside of the cluster that take part in its mesh: Linkerd's ExternalWorkload, say a virtual machine.

It is a workload, since policies apply to it and it calls others, but never a pod: selectors of pods, by label or by
Service, do not select it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.objects import ObjectId
from eastgate.cluster.pods import ContainerPort, Workload

EXTERNAL_GROUP = "workload.linkerd.io"


@dataclass(frozen=True, slots=True)
class ExternalWorkload:
    """An ExternalWorkload; `mesh_name` is the name in its certificate, by which it is known."""

    namespace: str
    name: str
    mesh_name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    ports: tuple[ContainerPort, ...] = ()
    ips: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Return the kind in its manifest."""
        return "ExternalWorkload"

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId(EXTERNAL_GROUP, self.kind, self.namespace, self.name)

    def as_workload(self, key: str) -> Workload:
        """Return the workload that policies see. It has no account, not even the namespace's default one."""
        return Workload(
            key=key,
            namespace=self.namespace,
            name=self.name,
            labels=self.labels,
            annotations=self.annotations,
            service_account="",
            ports=self.ports,
            ips=self.ips,
            kind=self.kind,
            mesh_name=self.mesh_name,
            span=self.span,
        )
