"""Vantages: the attributes that a proxy knows at its place, and its access to an authorizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.ir import Known
from eastgate.ir.attributes import (
    ADDRESS,
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    MESH_NAME,
    METHOD,
    PATH,
    PORT,
    SNI,
    Attribute,
)

_EVERYWHERE = frozenset({ADDRESS, HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT})


@dataclass(frozen=True, slots=True)
class Vantage:
    """The known attributes of a request at a proxy. `facts` are the same for all requests at its place.

    `asks`: the proxy can leave decisions to the authorizer, if it cannot decide them exactly. Otherwise it closes.
    """

    name: str
    seen: frozenset[Attribute]
    asks: bool = False
    facts: Mapping[Attribute, Known] = field(default_factory=dict)

    def sees(self, attribute: Attribute) -> bool:
        """Return whether a proxy here knows an attribute."""
        return attribute in self.seen or attribute in self.facts or attribute.is_field

    def knowing(self, facts: Mapping[Attribute, Known]) -> Vantage:
        """Return the vantage of a proxy that knows more about all requests."""
        return Vantage(self.name, self.seen, self.asks, {**self.facts, **facts})


AT_SIDECAR = Vantage("sidecar", _EVERYWHERE)
AT_GATEWAY = Vantage("gateway", _EVERYWHERE | {MCP_METHOD, MCP_TOOL, SNI}, asks=True)
