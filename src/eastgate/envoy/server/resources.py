"""The resources that the control plane serves: named pieces of Envoy's configuration, with the policies behind them.

The bytes are opaque here. Whoever builds them knows what they mean; this package only knows whether they changed, by
their version.
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

# What others refer to comes first: a listener never names a cluster that the proxy has not been sent.
ORDER: Final = (CLUSTER, ENDPOINTS, SECRET, LISTENER, ROUTE, EXTENSION)

# What Envoy was once sent of these it does not look at again, so that it accepts what it has rejected a moment before.
VALIDATED_ONCE: Final = frozenset({SECRET, EXTENSION})

ResourceKey: TypeAlias = tuple[str, str]  # the type's URL and the name

_VERSION_BYTES: Final = 16  # long enough that nobody finds two policies that hash to the same version


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
        """Return this resource in other bytes with the same meaning, and so under the same version."""
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
