"""What an answer could not consider: objects of kinds that are not read, and policies that cannot be read.

The first are in a catalogue (`kinds.py`) that says what each can do and how its target is found (`locating.py`); an
answer says which of them could change it (`answers.py`). The second close what they target
(`eastgate.dialects.rejected`).
"""

from eastgate.unread.answers import (
    Callers,
    Handling,
    UnreadObjects,
    could_change,
    counted,
    diagnosed,
    is_policy_like,
    standing,
    told,
)
from eastgate.unread.kinds import KINDS, is_unread_name, resembling, unread_kind
from eastgate.unread.locating import located, unread
from eastgate.unread.model import (
    By,
    Influence,
    Met,
    Plane,
    Reach,
    Side,
    Standing,
    Unconsidered,
    Unread,
    UnreadKind,
)

__all__ = [
    "KINDS",
    "By",
    "Callers",
    "Handling",
    "Influence",
    "Met",
    "Plane",
    "Reach",
    "Side",
    "Standing",
    "Unconsidered",
    "Unread",
    "UnreadKind",
    "UnreadObjects",
    "could_change",
    "counted",
    "diagnosed",
    "is_policy_like",
    "is_unread_name",
    "located",
    "resembling",
    "standing",
    "told",
    "unread",
    "unread_kind",
]
