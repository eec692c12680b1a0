"""The plain nouns of the world: the objects that manifests declare, except pods and gateways.

The place of an object in a file (`span`) does not count for equality, here and in `pods` and `gateways`: moving an
object by a line changes nothing for policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass

# The interface of a manifest for the world: plain data, names, and spans.


class Manifest(Protocol):
    """One Kubernetes object of a file, or of the API server (which has no places)."""

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
        """Return its `metadata.namespace`, or None."""
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
"""The label that Kubernetes sets on every namespace, and which cannot be changed."""


def moment(value: object) -> str | None:
    """Return a time of RFC 3339 as a text that sorts by age, in any time zone; None for any other text."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is None or time.tzinfo is None:
            return None
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):  # a time zone may lead out of the range of years
        return None


class ObjectId(NamedTuple):
    """The identity of an object of the API; `namespace` is empty for a cluster-scoped kind."""

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
        """Return the key of the object among its kind: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace. It always has Kubernetes' own label with its name. `is_ending`: its objects will be deleted."""

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
        """Return the id of the object."""
        return ObjectId("", "Namespace", "", self.name)


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service, and the port of pods that it leads to: a number, or the name of a declared port."""

    port: int
    target: int | str
    name: str | None = None
    protocol: str = "TCP"
    app_protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Service(Namespaced):
    """A Service. A headless one has no address: its callers call the addresses of its pods.

    `address` is None if there is none, or several, or if it is unknown. `addresses` are all known addresses.
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
        """Return the id of the object."""
        return ObjectId("", "Service", self.namespace, self.name)

    @property
    def selects_pods(self) -> bool:
        """Return whether Kubernetes selects its pods: unlike elsewhere, an empty selector selects nothing here."""
        return bool(self.selector) and self.type != "ExternalName"

    @property
    def takes_endpoints(self) -> bool:
        """Return whether EndpointSlices, and not a selector, determine its pods."""
        return not self.selector and self.type != "ExternalName"


@dataclass(frozen=True, slots=True)
class ServiceAccount(Namespaced):
    """A service account that a manifest declares. Undeclared ones exist too."""

    namespace: str
    name: str
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
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
        """Return the id of the object."""
        return ObjectId("", "Node", "", self.name)


@dataclass(frozen=True, slots=True)
class ConfigMap(Namespaced):
    """A ConfigMap with settings of some system."""

    namespace: str
    name: str
    data: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId("", "ConfigMap", self.namespace, self.name)
