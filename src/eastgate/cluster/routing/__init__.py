"""Which backend does a request to a Gateway reach?

Attachment, hostnames and precedence are those of Gateway API v1. What a request leaves open is answered with every rule
that the gateway could choose. Start reading at `table.py`.
"""

from eastgate.cluster.routing.candidates import Candidate
from eastgate.cluster.routing.model import BackendRef, Routed
from eastgate.cluster.routing.table import ListenerGroup, RoutingTable, VirtualHost

__all__ = ["BackendRef", "Candidate", "ListenerGroup", "Routed", "RoutingTable", "VirtualHost"]
