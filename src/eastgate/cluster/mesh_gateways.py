"""Gateways of Istio's own API: they run in pods that they select, wherever these are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.objects import Namespaced, ObjectId
from eastgate.cluster.shapes import STRINGS, record

MESH_GATEWAY_GROUP = "networking.istio.io"
MESH_GATEWAY = record({"spec": record({"selector": STRINGS})})


@dataclass(frozen=True, slots=True)
class MeshGateway(Namespaced):
    """A Gateway whose proxies are the pods with these labels, of any namespace."""

    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(MESH_GATEWAY_GROUP, "Gateway", self.namespace, self.name)
