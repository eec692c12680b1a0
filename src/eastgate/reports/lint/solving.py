"""Whether a rule can match at all."""

from __future__ import annotations

from eastgate.ir import Predicate, mentions
from eastgate.ir.attributes import MCP_METHOD, METHOD
from eastgate.reach.searching import BODILESS
from eastgate.symbolic.witnesses import GaveUp, witness


def is_possible(wanted: Predicate) -> bool:
    """Return whether any request meets a predicate. Where the search gives up, it counts as possible."""
    try:
        return witness(wanted, (BODILESS,) if mentions(wanted) >= {METHOD, MCP_METHOD} else ()) is not None
    except GaveUp:
        return True
