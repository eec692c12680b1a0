"""Which backend does a request to a Gateway reach?

Attachment, hostnames and precedence are those of Gateway API v1. What a request leaves open is answered with every rule
that the gateway could choose. Start reading at `table.py`.
"""

from eastgate.gateway.candidates import Candidate
from eastgate.gateway.model import BackendRef, Routed
from eastgate.gateway.table import ListenerGroup, RoutingTable, VirtualHost, possible_routes

__all__ = ["BackendRef", "Candidate", "ListenerGroup", "Routed", "RoutingTable", "VirtualHost", "possible_routes"]
