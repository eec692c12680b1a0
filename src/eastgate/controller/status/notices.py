"""What a person must see about a policy or an Invariant, beside its status: as data, from which events are made."""

from __future__ import annotations

import enum

from eastgate.basics.records import dataclass


class NoticeReason(enum.StrEnum):
    """The reason of an event, as it is written, and how serious it is."""

    INVALID = "Invalid"  # the policy cannot be read, and closes what it targets
    REJECTED_BY_PROXY = "RejectedByProxy"
    PORT_CLOSED = "PortClosed"
    NOT_ENFORCED = "NotEnforced"  # some of its workloads have no proxy, or none has
    NOT_CONVERTED = "NotConverted"  # the policies of an installed mesh say less than it does
    ANCESTORS_FULL = "AncestorsFull"  # there is no room for an entry of ours in its status
    INVARIANT_BROKEN = "InvariantBroken"  # some request breaks an Invariant
    PROGRAMMED = "Programmed"  # after one of the above: all is well again
    INVARIANT_HOLDS = "InvariantHolds"

    @property
    def is_warning(self) -> bool:
        """Return whether something is wrong."""
        return self not in (NoticeReason.PROGRAMMED, NoticeReason.INVARIANT_HOLDS)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person must see. Two notices of one reason and `subject` are the same one, seen again."""

    reason: NoticeReason
    note: str
    subject: str = ""
