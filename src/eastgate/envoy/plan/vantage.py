"""Vantages: what a proxy sees of a request where it stands, and whether it may ask an authorizer about the rest."""

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
    """What a proxy sees of a request. `facts` are the same for all that arrive where it decides.

    `asks`: it can ask the authorizer, to which it leaves what it cannot decide exactly. Where it cannot, that closes.
    """

    name: str
    seen: frozenset[Attribute]
    asks: bool = False
    facts: Mapping[Attribute, Known] = field(default_factory=dict)

    def sees(self, attribute: Attribute) -> bool:
        """Tell whether a proxy here knows an attribute."""
        return attribute in self.seen or attribute in self.facts or attribute.is_field

    def knowing(self, facts: Mapping[Attribute, Known]) -> Vantage:
        """Return the vantage of a proxy that knows more of all requests."""
        return Vantage(self.name, self.seen, self.asks, {**self.facts, **facts})


AT_SIDECAR = Vantage("sidecar", _EVERYWHERE)
AT_GATEWAY = Vantage("gateway", _EVERYWHERE | {MCP_METHOD, MCP_TOOL, SNI}, asks=True)
