"""The plain nouns of the world: what manifests declare besides pods and gateways.

Where an object was written (`span`) is no part of its equality, here and in `pods` and `gateways`: a
file in which something only moved by a line changes nothing that a policy can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass

# The protocol of a manifest, as the world needs it: plain data, names, and spans.


class Manifest(Protocol):
    """One Kubernetes object of a file, or of the API server (then without places)."""

    @property
    def api_version(self) -> str:
        """Return its `apiVersion`."""
        ...

    @property
    def kind(self) -> str:
        """Return its `kind`."""
        ...

    @property
    def name(self) -> str:
        """Return its `metadata.name`."""
        ...

    @property
    def namespace(self) -> str | None:
        """Return its `metadata.namespace`, None where it has none."""
        ...

    @property
    def data(self) -> Mapping[str, object]:
        """Return the whole object as JSON data: dicts, lists, strings, numbers, booleans, None."""
        ...

    @property
    def span(self) -> Span | None:
        """Return the span of the whole object."""
        ...

    def locate(self, *path: str | int) -> Span | None:
        """Return the span of the value under a path of keys and list positions."""
        ...


NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that Kubernetes puts on every namespace, and does not let anyone change."""


def moment(value: object) -> str | None:
    """Return a time of RFC 3339 as a text that sorts by age, whatever its zone; None for anything else."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is None or time.tzinfo is None:
            return None
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):  # a zone may lead out of all years
        return None


class ObjectId(NamedTuple):
    """The identity of an object of the API; `namespace` is empty for a kind that has none."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Namespaced:
    """An object that a world files by its namespace and name."""

    __slots__ = ()

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """Return its name among the objects of its kind: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace. It always has Kubernetes' own label that holds its name. One that `is_ending` loses all it has."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)
    is_ending: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", {**self.labels, NAME_LABEL: self.name})

    @property
    def asks_for_mesh(self) -> bool:
        """Return whether its labels ask Istio for the proxies of its pods."""
        labels = self.labels
        is_injected = (
            labels["istio-injection"] == "enabled" if "istio-injection" in labels else "istio.io/rev" in labels
        )
        return is_injected or labels.get("istio.io/dataplane-mode") == "ambient"

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId("", "Namespace", "", self.name)


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service, and the pod's port that it leads to: a number, or a declared port's name."""

    port: int
    target: int | str
    name: str | None = None
    protocol: str = "TCP"
    app_protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Service(Namespaced):
    """A Service. A headless one has no address: who calls it calls the addresses of its pods.

    `address` is None where it has none, or several, or where it is not known. `addresses` are all that are known.
    """

    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    ports: tuple[ServicePort, ...] = ()
    type: str = "ClusterIP"
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_headless: bool = False
    address: str | None = None
    addresses: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId("", "Service", self.namespace, self.name)

    @property
    def selects_pods(self) -> bool:
        """Return whether Kubernetes fills it with pods: unlike elsewhere, an empty selector selects nothing here."""
        return bool(self.selector) and self.type != "ExternalName"

    @property
    def takes_endpoints(self) -> bool:
        """Return whether EndpointSlices, and not a selector, say which pods are behind it."""
        return not self.selector and self.type != "ExternalName"


@dataclass(frozen=True, slots=True)
class ServiceAccount(Namespaced):
    """A service account that a manifest declares. Undeclared ones exist all the same."""

    namespace: str
    name: str
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId("", "ServiceAccount", self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of the cluster, with all of its addresses."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    addresses: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId("", "Node", "", self.name)


@dataclass(frozen=True, slots=True)
class ConfigMap(Namespaced):
    """A ConfigMap that some system reads its settings from."""

    namespace: str
    name: str
    data: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId("", "ConfigMap", self.namespace, self.name)
