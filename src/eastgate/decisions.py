"""The parts of a decision: its trace, what audited policies would do, who enforces, and what it leaves out."""

from eastgate.authority.auditing import Audited, Would
from eastgate.authority.deciding import Prepared
from eastgate.authority.enforcement import PolicyEnforcement
from eastgate.authority.questions import Arrival
from eastgate.basics.public import publish
from eastgate.cluster.unread import Callers, Met, Unconsidered, Unread, UnreadObjects
from eastgate.cluster.unread.model import By, Influence, Plane, Reach, Side, UnreadKind
from eastgate.dialects.base import Condition
from eastgate.engine.trace import LayerTrace, Missed, NearMiss, StageTrace, Trace

__all__ = [
    "Arrival",
    "Audited",
    "By",
    "Callers",
    "Condition",
    "Influence",
    "LayerTrace",
    "Met",
    "Missed",
    "NearMiss",
    "Plane",
    "PolicyEnforcement",
    "Prepared",
    "Reach",
    "Side",
    "StageTrace",
    "Trace",
    "Unconsidered",
    "Unread",
    "UnreadKind",
    "UnreadObjects",
    "Would",
]

publish(globals())
