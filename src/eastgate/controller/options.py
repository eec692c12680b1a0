"""The options of the controller, and its names in a cluster."""

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
    """The ports of a replica; 0 means any free port."""

    xds: int = XDS_PORT
    authorizer: int = AUTHORIZER_PORT
    tools: int = TOOLS_PORT
    peers: int = PEERS_PORT
    webhooks: int = 9443
    http: int = 8080
    svid: int | None = None
    """The port for proxies that prove their account by an SVID instead of a token; closed by default."""


@dataclass(frozen=True, slots=True)
class ObservationOptions:
    """Observation of a replica beside its metrics: a port for snapshots on its loopback address, and a decision log.

    `decision_log` is a file, or `-` for standard output; None: no log. With `access_logs`, proxies send their logs of
    decisions.
    """

    debug_port: int | None = None
    decision_log: str | None = None
    sampling: DecisionSampling = field(default_factory=DecisionSampling)
    access_logs: bool = False


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The options of one replica.

    `replica` is its unique name: that of its pod. `native` is the mesh for which GEP-3779 policies are written as its
    own policies, with the `assumed` properties. Without `webhooks`, changes are not judged before they are stored.
    `webhook_client_ca` is a file with the CA of API servers, and `webhook_client_names` are their names in
    certificates. With `shared_status`, Eastgate writes the status of kinds of other APIs, unless their own controllers
    run. Without `gateways`, Gateways of its class are ignored. With `gateway_class`, the class is created if it does
    not exist.
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
