"""Virtual machines of KubeVirt, from Kubernetes data: each runs in a pod that KubeVirt makes.

The labels, the service account and the ports of that pod are those of KubeVirt's source (`pkg/virt-controller`). A pod
without declared ports has all ports of its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.pods import ContainerPort, Controller, Owner, Pod
from eastgate.cluster.read_containers import ports
from eastgate.cluster.read_pods import ACCOUNT, LABELS, OWNERS
from eastgate.cluster.shapes import TEXT, Fields, each, given, record
from eastgate.reading.manifests.shapes.shape import Field, Record

_INJECT = "sidecar.istio.io/inject"  # copied from an annotation of the machine to a label of its pod
_MAX_NAME_CHARS = 63


# Shapes


def _ports_of_all(interfaces: tuple[tuple[ContainerPort, ...], ...]) -> tuple[ContainerPort, ...]:
    return tuple(port for declared in interfaces for port in declared)


def _first_account(volumes: tuple[str, ...]) -> str:
    return next(filter(None, volumes), "")


_INTERFACES = each({"ports": ports("port")}, make=lambda ports=(): ports, together=_ports_of_all)
_DEVICES = record({"devices": record({"interfaces": Field(_INTERFACES, into="ports")})})
_VOLUMES = each(
    {"serviceAccount": record({"serviceAccountName": given(ACCOUNT, "name")}, make=lambda name="": name)},
    make=lambda service_account="": service_account,
    together=_first_account,
)
_MACHINE: Fields = {
    "hostname": TEXT,
    "serviceAccountName": given(ACCOUNT, "account"),
    "volumes": Field(_VOLUMES, into="mounted_account"),
    "domain": _DEVICES,
}
_OWNED = record({"ownerReferences": OWNERS})
_TEMPLATE = Field(record({"metadata": record(LABELS), "spec": record(_MACHINE)}), required=True)
_TEMPLATED = record({"template": _TEMPLATE})
_SHAPES: Mapping[str, Record[None]] = {
    "VirtualMachine": record({"metadata": _OWNED, "spec": Field(_TEMPLATED, implied=True)}),
    "VirtualMachineInstance": record(
        {"metadata": record({**LABELS, "ownerReferences": OWNERS}), "spec": Field(record(_MACHINE), implied=True)}
    ),
    "VirtualMachineInstanceReplicaSet": record({"metadata": _OWNED, "spec": Field(_TEMPLATED, implied=True)}),
    "VirtualMachinePool": record(
        {
            "metadata": _OWNED,
            "spec": Field(
                record(
                    {"virtualMachineTemplate": Field(record({"spec": Field(_TEMPLATED, implied=True)}), required=True)}
                ),
                implied=True,
            ),
        }
    ),
}


# Meaning


def _maker(kind: str) -> Callable[..., Controller]:
    """Return the function that makes a controller of the fields of a machine."""

    def make(
        *,
        name: str,
        namespace: str,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        hostname: str = "",
        account: str = "",
        mounted_account: str = "",
        ports: tuple[ContainerPort, ...] = (),
        owner: Owner | None = None,
        span: Span | None = None,
        **_: Any,
    ) -> Controller:
        machine = f"{name}-0" if kind == "VirtualMachinePool" else name
        pod_labels = {
            **(labels or {}),
            "kubevirt.io": "virt-launcher",
            "vm.kubevirt.io/name": hostname or machine.partition(".")[0][:_MAX_NAME_CHARS],
            **({"vmi.kubevirt.io/id": machine} if len(machine) <= _MAX_NAME_CHARS else {}),
        }
        written = annotations or {}
        if _INJECT in written:
            pod_labels[_INJECT] = written[_INJECT]
        pod = Pod(
            namespace,
            name,
            pod_labels,
            written,
            service_account=account or mounted_account or "default",
            ports=ports,
            span=span,
        )
        return Controller(kind, pod, owner, span)

    return make


MACHINES: Mapping[str, tuple[Record[None], Callable[..., Controller]]] = {
    kind: (shape, _maker(kind)) for kind, shape in _SHAPES.items()
}
"""The shapes of the kinds that make virtual machines, and the functions that make their objects."""
