"""Objects that an answer could not consider: objects of unread kinds, and policies with errors.

The unread kinds are in a catalogue (`kinds.py`), with the effect of each and the field that names its target
(`locating.py`). An answer names the objects that could change it (`answers.py`). Policies with errors close their
targets (`eastgate.dialects.rejected`).
"""

from eastgate.cluster.unread.answers import (
    Callers,
    Handling,
    UnreadObjects,
    could_change,
    describe_unconsidered,
    describe_unread,
    diagnose_unread,
    is_policy_like,
    list_unconsidered,
    standing,
)
from eastgate.cluster.unread.kinds import KINDS, is_unread_name, resembling, unread_kind
from eastgate.cluster.unread.left_out import (
    describe_group,
    diagnose_left_out,
    group_left_out,
    left_out_more,
    list_left_out,
    lost_object,
    lost_part,
    object_with_open_hosts,
    parts_of,
)
from eastgate.cluster.unread.locating import locate_targets, unlisted_objects, unread_object
from eastgate.cluster.unread.model import (
    EnforcementPlane,
    QuestionEnd,
    Standing,
    TargetField,
    Unconsidered,
    Unread,
    UnreadEffect,
    UnreadKind,
    UnreadMatch,
    UnreadTargets,
)

__all__ = [
    "KINDS",
    "Callers",
    "EnforcementPlane",
    "Handling",
    "QuestionEnd",
    "Standing",
    "TargetField",
    "Unconsidered",
    "Unread",
    "UnreadEffect",
    "UnreadKind",
    "UnreadMatch",
    "UnreadObjects",
    "UnreadTargets",
    "could_change",
    "describe_group",
    "describe_unconsidered",
    "describe_unread",
    "diagnose_left_out",
    "diagnose_unread",
    "group_left_out",
    "is_policy_like",
    "is_unread_name",
    "left_out_more",
    "list_left_out",
    "list_unconsidered",
    "locate_targets",
    "lost_object",
    "lost_part",
    "object_with_open_hosts",
    "parts_of",
    "resembling",
    "standing",
    "unlisted_objects",
    "unread_kind",
    "unread_object",
]
