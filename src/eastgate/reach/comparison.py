"""The result of a comparison of two authorities: differences, doubts, and what they prove."""

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
    """Requests of some callers by some entrance that change their verdict: `when` holds for all of them.

    `old` and `new` decide. `confirmation` is an example that both engines were asked about; without one these requests
    only may change.
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
    """The reasons for which nothing is proven of all requests."""

    TOO_MANY = "tooMany"  # more cases than are looked at
    SHARED_SERVER = "sharedServer"  # several ways lead to one server, which may take a path for that of another
    NOT_CONFIRMED = "notConfirmed"  # no concrete request was found in which the sides differ
    SCHEME = "schemeChanged"  # an authorizer may answer otherwise
    REJECTED = "rejectedPolicy"  # a policy that cannot be read
    UNREAD = "notRead"  # an object of a kind that is not read
    LEFT_OUT = "leftOut"  # a part of the manifests that cannot be read
    NETWORK = "networkChanged"  # connections other than TCP to pods
    DERIVED = "derivedOtherwise"  # proxies accept other tokens, or have other addresses
    LABELS = "labelsUnknown"  # a policy selects by labels that only a cluster adds
    HOST = "hostChanged"  # a policy for a host may decide otherwise
    NO_TARGET = "targetMissing"  # a policy that has changed is about nothing that is compared
    TIME = "outOfTime"  # there was no time to compare the rest


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDoubt:
    """Something that could not be found out: what it is about, and the requests that may change, where it has some."""

    reason: DoubtReason
    subject: str
    difference: VerdictDifference | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AuthorityComparison:
    """Two authorities compared."""

    old: Authority
    new: Authority
    pairing: Pairing
    callers: CallerSets
    differences: tuple[VerdictDifference, ...]
    doubts: tuple[ComparisonDoubt, ...]

    @property
    def proven(self) -> bool:
        """Return whether all is said that there is to say: every request that changes is in a difference."""
        return not self.doubts

    @property
    def equal(self) -> bool:
        """Return whether it is proven that no request to what is on both sides changes its verdict."""
        return self.proven and not self.differences
