"""The routing of a request through a Gateway to a backend.

Attachment, hostnames and precedence are those of Gateway API v1. For a partial request, the result has every rule that
the gateway could choose. Start reading at `table.py`.
"""

from eastgate.cluster.routing.candidates import Candidate
from eastgate.cluster.routing.model import BackendRef, Routed
from eastgate.cluster.routing.table import ListenerGroup, RoutingTable, VirtualHost

__all__ = ["BackendRef", "Candidate", "ListenerGroup", "Routed", "RoutingTable", "VirtualHost"]
