"""A mesh on this machine, from Python: what `eastgate up` runs."""

from eastgate.basics.public import publish
from eastgate.control.events import MeshEvent
from eastgate.control.gateways import GatewaySite
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.mesh import LocalMesh, MeshOptions

__all__ = ["GatewaySite", "LocalMesh", "MeshEvent", "MeshOptions", "SocketAddress"]

publish(globals())
