"""EndpointSlices: the endpoints of a Service that selects no pods itself."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field, replace
from typing import Any, NamedTuple

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.fields import Data, text
from eastgate.cluster.objects import ObjectId, Service
from eastgate.cluster.pods import Workload
from eastgate.cluster.read_containers import PROTOCOL
from eastgate.cluster.shapes import HOME, PORT, STRINGS, TEXT, TEXTS, Of, each, record
from eastgate.cluster.workload_index import WorkloadIndex
from eastgate.reading.manifests.shapes.shape import Field

SLICE_GROUP = "discovery.k8s.io"
_SERVICE = "kubernetes.io/service-name"


class Endpoint(NamedTuple):
    """A destination of traffic: the addresses of one endpoint, and its pod, as `namespace/name`, if it names one."""

    addresses: tuple[str, ...]
    pod: str | None = None


class SlicePort(NamedTuple):
    """A port of all endpoints; its name is that of a port of the Service."""

    name: str = ""
    number: int | None = None
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """An EndpointSlice; `service` is the name of its Service, if it has one."""

    namespace: str
    name: str
    service: str | None = None
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[SlicePort, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId(SLICE_GROUP, "EndpointSlice", self.namespace, self.name)


def _is_pod(reference: Data) -> bool:
    return reference.get("kind") == "Pod"


def _is_named_pod(reference: Data) -> bool:
    return _is_pod(reference) and bool(text(reference, "name"))


def _endpoint(*, addresses: tuple[str, ...] = (), namespace: str = "", name: str = "", **_: str) -> Endpoint:
    return Endpoint(addresses, f"{namespace}/{name}" if name else None)


_TARGET = record({"kind": TEXT, "name": Field(TEXT, when=_is_pod), "namespace": replace(HOME, when=_is_named_pod)})
_PORT: Of = Field(PORT, into="number")
SLICE = record(
    {
        "metadata": record({"labels": STRINGS}),
        "endpoints": each({"targetRef": _TARGET, "addresses": TEXTS}, make=_endpoint),
        "ports": each({"name": TEXT, "port": _PORT, "protocol": PROTOCOL}, make=SlicePort),
    }
)


def make_slice(*, labels: Mapping[str, str] | None = None, **fields: Any) -> EndpointSlice:
    """Return an EndpointSlice."""
    return EndpointSlice(service=(labels or {}).get(_SERVICE), **fields)


class Slices:
    """The EndpointSlices of Services, and the pods that they lead to."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[str, dict[str, EndpointSlice]] = {}  # by the key of the Service, then by name

    def keep(self, declared: EndpointSlice, *, present: bool) -> None:
        """Add or remove a slice."""
        if declared.service is None:
            return
        key = f"{declared.namespace}/{declared.service}"
        if present:
            self._of.setdefault(key, {})[declared.name] = declared
            return
        del self._of[key][declared.name]
        if not self._of[key]:
            del self._of[key]

    @property
    def services(self) -> Set[str]:
        """Return the keys of the Services that have slices, declared or not."""
        return self._of.keys()

    def pods(self, service: str, index: WorkloadIndex) -> frozenset[str]:
        """Return the keys of the pods that the slices of a Service lead to."""
        return frozenset(pod.key for endpoint in self._endpoints(service) if (pod := _pod(endpoint, index)) is not None)

    def unknown(self, service: str, index: WorkloadIndex) -> tuple[str, ...]:
        """Return the endpoints of a Service that are no declared pod, as text."""
        lost = (endpoint for endpoint in self._endpoints(service) if _pod(endpoint, index) is None)
        return tuple(endpoint.pod or ", ".join(endpoint.addresses) for endpoint in lost)

    def ports(self, service: Service, port: int | None) -> set[int]:
        """Return the ports behind a port of a Service, or behind all its ports."""
        asked = (service_port for service_port in service.ports if port in (None, service_port.port))
        wanted = {(service_port.name or "", service_port.protocol) for service_port in asked}
        targets = (target for slice_ in self._of.get(service.key, {}).values() for target in slice_.ports)
        return {
            target.number
            for target in targets
            if target.number is not None and (target.name, target.protocol) in wanted
        }

    def _endpoints(self, service: str) -> tuple[Endpoint, ...]:
        return tuple(endpoint for slice_ in self._of.get(service, {}).values() for endpoint in slice_.endpoints)


def _pod(endpoint: Endpoint, index: WorkloadIndex) -> Workload | None:
    """Return the pod that an endpoint names, or the pod with its address."""
    if endpoint.pod is not None:
        pod = index.workloads.get(endpoint.pod)
        return pod if pod is not None and pod.is_pod and not pod.derived else None
    workloads = [index.at(address) for address in endpoint.addresses]
    return workloads[0] if workloads and workloads[0] is not None and workloads[0].is_pod else None
