"""Whether a rule can match at all."""

from __future__ import annotations

from eastgate.ir import And, Is, OneOf, Predicate, Present, mentions
from eastgate.ir.attributes import MCP_METHOD, METHOD
from eastgate.symbolic.witnesses import GaveUp, witness

__all__ = ["is_possible"]

# A request without a body carries no JSON-RPC message.
_BODILESS = And((Is(METHOD, OneOf(frozenset({"GET", "HEAD", "DELETE", "OPTIONS"}))), Is(MCP_METHOD, Present())))


def is_possible(wanted: Predicate) -> bool:
    """Return whether any request meets a predicate. Where the search gives up, it counts as possible."""
    try:
        return witness(wanted, (_BODILESS,) if mentions(wanted) >= {METHOD, MCP_METHOD} else ()) is not None
    except GaveUp:
        return True
