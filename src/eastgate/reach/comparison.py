"""The result of a comparison of two authorities: differences, doubts, and conclusions."""

from __future__ import annotations

import enum

from eastgate.authority.authority import Authority
from eastgate.basics.records import dataclass
from eastgate.ir import Predicate, Request
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reach.confirming import Confirmation
from eastgate.reach.destinations import Entrance
from eastgate.reach.endings import Ending, Spelling
from eastgate.reach.pairing import Pair, Pairing


@dataclass(frozen=True, slots=True, eq=False)
class VerdictDifference:
    """Requests of some callers at some entrance whose verdict changes. `when` holds for all of them.

    `old` and `new` are the endings that decide. `confirmation` is an example that both engines have decided. Without
    it, the verdict of these requests may change.
    """

    pair: Pair
    entrance: Entrance
    callers: CallerSet
    when: Predicate
    spelling: Spelling
    old: Ending
    new: Ending
    request: Request
    confirmation: Confirmation | None


class DoubtReason(enum.StrEnum):
    """The reasons why a comparison proves nothing about all requests."""

    TOO_MANY = "tooMany"  # more cases than the comparison looks at
    SHARED_SERVER = "sharedServer"  # several passages lead to one server, which may confuse their paths
    NOT_CONFIRMED = "notConfirmed"  # no concrete request was found in which the sides differ
    SCHEME = "schemeChanged"  # an authorizer may answer differently
    REJECTED = "rejectedPolicy"  # a policy that cannot be read
    UNREAD = "notRead"  # an object of a kind that is not read
    LEFT_OUT = "leftOut"  # a part of the manifests that cannot be read
    NETWORK = "networkChanged"  # connections other than TCP to pods
    DERIVED = "derivedOtherwise"  # proxies accept other tokens, or have other addresses
    LABELS = "labelsUnknown"  # a policy selects by labels that only a cluster adds
    HOST = "hostChanged"  # a policy for a host may decide differently
    NO_TARGET = "targetMissing"  # a changed policy targets nothing that is compared
    TIME = "outOfTime"  # the time limit was reached before the comparison


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDoubt:
    """A part without a proof: its subject, and the requests that may change, if any are known."""

    reason: DoubtReason
    subject: str
    difference: VerdictDifference | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AuthorityComparison:
    """The comparison of two authorities."""

    old: Authority
    new: Authority
    pairing: Pairing
    callers: CallerSets
    differences: tuple[VerdictDifference, ...]
    doubts: tuple[ComparisonDoubt, ...]

    @property
    def proven(self) -> bool:
        """Return whether the result is complete: every request whose verdict changes is in a difference."""
        return not self.doubts

    @property
    def equal(self) -> bool:
        """Return whether it is proved that no request to a destination on both sides changes its verdict."""
        return self.proven and not self.differences
