"""A mesh on this machine, from Python: what `eastgate up` runs."""

from eastgate.basics.public import publish

try:
    from eastgate.control.events import MeshEvent
    from eastgate.control.gateways import GatewaySite
    from eastgate.envoy.config.clusters import SocketAddress
    from eastgate.local.mesh import LocalMesh, MeshOptions
except ModuleNotFoundError as error:
    raise ImportError(f"{error}: eastgate.mesh needs `pip install 'eastgate[mesh]'`") from error

__all__ = ["GatewaySite", "LocalMesh", "MeshEvent", "MeshOptions", "SocketAddress"]

publish(globals())
