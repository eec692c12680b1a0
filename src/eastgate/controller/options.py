"""The options of the controller, and the names that it has in its cluster."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.controller.certificates.ca_secret import SYSTEM_NAMESPACE
from eastgate.controller.decision_log import DecisionSampling
from eastgate.controller.election import ElectionTimes
from eastgate.controller.injection import InjectionOptions
from eastgate.convert.model import Assumption
from eastgate.convert.native import NativeMesh, Unwritable

SERVICE: Final = "eastgate"
XDS_PORT: Final = 15010
AUTHORIZER_PORT: Final = 15011
TOOLS_PORT: Final = 15012
PEERS_PORT: Final = 15013


@dataclass(frozen=True, slots=True)
class ListeningPorts:
    """The ports of a replica; 0 means any that is free."""

    xds: int = XDS_PORT
    authorizer: int = AUTHORIZER_PORT
    tools: int = TOOLS_PORT
    peers: int = PEERS_PORT
    webhooks: int = 9443
    http: int = 8080
    svid: int | None = None
    """For proxies that prove their account by an SVID instead of a token; closed by default."""


@dataclass(frozen=True, slots=True)
class ObservationOptions:
    """What is shown of a replica beside its metrics: a port for snapshots on its loopback, and a log of decisions.

    `decision_log` is a file, or `-` for standard output; without one, none is written. With `access_logs`, proxies send
    what they log of decisions.
    """

    debug_port: int | None = None
    decision_log: str | None = None
    sampling: DecisionSampling = field(default_factory=DecisionSampling)
    access_logs: bool = False


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """How one replica runs.

    `replica` is its name among all of them: that of its pod. `native` is the mesh whose own policies are written for
    those of GEP-3779, with what it is `assumed` to do. Without `webhooks`, nothing is asked of it before it is stored.
    `webhook_client_ca` is a file with the CA of API servers, `webhook_client_names` are their names in certificates.
    With `shared_status`, the status of kinds of other APIs is ours to write, unless their own controllers run.
    Without `gateways`, Gateways of its class are left alone; with `gateway_class` the class is made where none exists.
    """

    replica: str
    namespace: str = SYSTEM_NAMESPACE
    host: str = "0.0.0.0"  # noqa: S104 - a pod is reached by its address
    ports: ListeningPorts = field(default_factory=ListeningPorts)
    native: NativeMesh | None = None
    unwritable: Unwritable = Unwritable.LEAVE
    assumed: frozenset[Assumption] = frozenset()
    webhooks: bool = True
    webhook_client_ca: str | None = None
    webhook_client_names: frozenset[str] = frozenset()
    gateways: bool = True
    gateway_class: bool = True
    injection: InjectionOptions = field(default_factory=InjectionOptions)
    election: ElectionTimes = field(default_factory=ElectionTimes)
    shared_status: bool = False
    observation: ObservationOptions = field(default_factory=ObservationOptions)
