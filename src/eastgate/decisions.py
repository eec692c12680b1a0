"""The parts of a decision: its trace, the effects of audited policies, enforcement, and unread objects."""

from eastgate.authority.auditing import Audited, Would
from eastgate.authority.deciding import Prepared
from eastgate.authority.enforcement import PolicyEnforcement
from eastgate.authority.questions import Arrival
from eastgate.basics.public import publish
from eastgate.cluster.unread import Callers, Unconsidered, Unread, UnreadMatch, UnreadObjects
from eastgate.cluster.unread.model import (
    EnforcementPlane,
    QuestionEnd,
    TargetField,
    UnreadEffect,
    UnreadKind,
    UnreadTargets,
)
from eastgate.dialects.base import Condition
from eastgate.engine.trace import LayerTrace, Missed, NearMiss, StageTrace, Trace

__all__ = [
    "Arrival",
    "Audited",
    "Callers",
    "Condition",
    "EnforcementPlane",
    "LayerTrace",
    "Missed",
    "NearMiss",
    "PolicyEnforcement",
    "Prepared",
    "QuestionEnd",
    "StageTrace",
    "TargetField",
    "Trace",
    "Unconsidered",
    "Unread",
    "UnreadEffect",
    "UnreadKind",
    "UnreadMatch",
    "UnreadObjects",
    "UnreadTargets",
    "Would",
]

publish(globals())
