"""The resources of the control plane: named pieces of Envoy's configuration, with the policies behind them.

Their bytes are opaque here. This package only compares their versions.
"""

from __future__ import annotations

from dataclasses import field
from hashlib import blake2b
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass

_PREFIX: Final = "type.googleapis.com/"

CLUSTER: Final = _PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINTS: Final = _PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
SECRET: Final = _PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
LISTENER: Final = _PREFIX + "envoy.config.listener.v3.Listener"
ROUTE: Final = _PREFIX + "envoy.config.route.v3.RouteConfiguration"
EXTENSION: Final = _PREFIX + "envoy.config.core.v3.TypedExtensionConfig"

# Referenced resources come first: a listener never names a cluster that the proxy does not have yet.
ORDER: Final = (CLUSTER, ENDPOINTS, SECRET, LISTENER, ROUTE, EXTENSION)

# Envoy does not validate these types again after it has seen them, so that it accepts even a version that it rejected
# before.
VALIDATED_ONCE: Final = frozenset({SECRET, EXTENSION})

ResourceKey: TypeAlias = tuple[str, str]  # the type's URL and the name

_VERSION_BYTES: Final = 16  # long enough against hash collisions of policies


@dataclass(frozen=True, slots=True, weakref_slot=True)
class XdsResource:
    """A resource. `policies` names the policies that it was built from."""

    type_url: str
    name: str
    body: bytes = field(repr=False)
    policies: frozenset[str] = frozenset()
    version: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", blake2b(self.body, digest_size=_VERSION_BYTES).hexdigest())

    def spelled(self, body: bytes) -> XdsResource:
        """Return this resource in other bytes with the same meaning and the same version."""
        spelled = XdsResource(self.type_url, self.name, body, self.policies)
        object.__setattr__(spelled, "version", self.version)
        return spelled

    @property
    def key(self) -> ResourceKey:
        """Return its type and name, which together are unique for a proxy."""
        return self.type_url, self.name

    @property
    def size(self) -> int:
        """Return the number of bytes of its body."""
        return len(self.body)


def short_type(type_url: str) -> str:
    """Return the last word of a type's URL, for people and for metrics."""
    return type_url.rpartition(".")[2]
