"""Notices about a policy or an Invariant, beside its status: the data from which events are made."""

from __future__ import annotations

import enum

from eastgate.basics.records import dataclass


class NoticeReason(enum.StrEnum):
    """The reason of an event, and whether it is a warning."""

    INVALID = "Invalid"  # the policy cannot be read, and closes what it targets
    REJECTED_BY_PROXY = "RejectedByProxy"
    PORT_CLOSED = "PortClosed"
    NOT_ENFORCED = "NotEnforced"  # some or all of its workloads have no proxy
    NOT_CONVERTED = "NotConverted"  # the written policies of an installed mesh do not express all of it
    ANCESTORS_FULL = "AncestorsFull"  # its status has no space for an entry of Eastgate
    INVARIANT_BROKEN = "InvariantBroken"  # a request breaks an Invariant
    PROGRAMMED = "Programmed"  # after one of the above: the problem is solved
    INVARIANT_HOLDS = "InvariantHolds"

    @property
    def is_warning(self) -> bool:
        """Return whether the event reports a problem."""
        return self not in (NoticeReason.PROGRAMMED, NoticeReason.INVARIANT_HOLDS)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for users. Two notices of one reason and `subject` are the same notice."""

    reason: NoticeReason
    note: str
    subject: str = ""
