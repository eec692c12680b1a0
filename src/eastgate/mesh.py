"""A mesh on this machine, from Python: the library behind `eastgate up`."""

from eastgate.basics.public import publish

try:
    from eastgate.control.access_log import Observation
    from eastgate.control.capturing import PortMode
    from eastgate.control.events import (
        BrokenChange,
        Decided,
        Enforced,
        MeshEvent,
        Noted,
        NotEnforced,
        PartlyEnforced,
        Ready,
    )
    from eastgate.control.gateways import GatewaySite
    from eastgate.control.identity import (
        BundlesChanged,
        IdentityChange,
        Lifetimes,
        Svid,
        SvidSource,
        SvidsRenewed,
        TrustBundles,
        WorkloadApi,
    )
    from eastgate.control.sites import ProxySite, WaypointEntrance, WaypointSite
    from eastgate.envoy.config.clusters import SocketAddress
    from eastgate.envoy.config.tokens import TokenIdentity
    from eastgate.local.mesh import LocalMesh, MeshOptions
except ModuleNotFoundError as error:
    raise ImportError(f"{error}: eastgate.mesh needs `pip install 'eastgate[mesh]'`") from error

__all__ = [
    "BrokenChange",
    "BundlesChanged",
    "Decided",
    "Enforced",
    "GatewaySite",
    "IdentityChange",
    "Lifetimes",
    "LocalMesh",
    "MeshEvent",
    "MeshOptions",
    "NotEnforced",
    "Noted",
    "Observation",
    "PartlyEnforced",
    "PortMode",
    "ProxySite",
    "Ready",
    "SocketAddress",
    "Svid",
    "SvidSource",
    "SvidsRenewed",
    "TokenIdentity",
    "TrustBundles",
    "WaypointEntrance",
    "WaypointSite",
    "WorkloadApi",
]

publish(globals())
