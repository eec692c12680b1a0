"""Two levels in one list: GEP-3779 wants both levels to allow, and Istio has one list of ALLOW policies.

Where the policies of both levels are on exactly the same pods, each pair of their rules becomes one rule that asks for
both. Where they only may meet, the APPLICATION policy is not converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eastgate.convert import codes
from eastgate.convert.gep_reading import (
    Account,
    Caller,
    Gep,
    GepRule,
    Identity,
    PodsTarget,
    ServiceTarget,
    WholeNamespace,
)
from eastgate.convert.model import Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.policy import AccountsOf
from eastgate.sources import Document
from eastgate.world import Selector, service_account_id

__all__ = ["Aimed", "closes", "one_level_each"]

_MOST_RULES = 512  # that Istio takes


@dataclass(frozen=True, slots=True, eq=False)
class Aimed:
    """A policy with targets that Istio has: pods of any of these labels, or Services at their waypoint.

    `others` are further documents that went into it.
    """

    gep: Gep
    pods: tuple[PodsTarget, ...] = ()
    services: tuple[ServiceTarget, ...] = ()
    others: tuple[Document, ...] = ()

    @property
    def selectors(self) -> frozenset[Selector]:
        """Which pods."""
        return frozenset(target.selector for target in self.pods)

    def meets(self, other: Aimed) -> bool:
        """Whether both may apply to one request."""
        by_pod = any(may_meet(one.selector, two.selector) for one in self.pods for two in other.pods)
        return by_pod or bool({one.name for one in self.services} & {two.name for two in other.services})


def closes(gep: Gep, job: Job) -> bool:
    """Whether what no ALLOW of its level matches is denied because of it."""
    return not gep.policy.audit and (not gep.denies or job.settings.section(GepSettings).deny_only is DenyOnly.DENY)


def one_level_each(aimed: Sequence[Aimed], job: Job) -> list[Aimed]:
    """The policies to write, such that no workload gets ALLOW policies of two levels."""
    written: list[Aimed] = []
    for namespace in dict.fromkeys(one.gep.namespace for one in aimed):
        here = [one for one in aimed if one.gep.namespace == namespace]
        written += _settled(here, job)
    return written


def _settled(here: Sequence[Aimed], job: Job) -> Iterator[Aimed]:
    closing = [one for one in here if closes(one.gep, job)]
    joined = [pods for pods in dict.fromkeys(one.selectors for one in closing) if pods and _can_join(pods, closing)]
    for pods in joined:
        yield _joined([one for one in closing if one.selectors == pods and not one.gep.denies], job)
    network = [one for one in closing if not one.gep.is_application]
    for one in here:
        if one in closing and one.selectors in joined:
            if one.gep.denies:
                yield one
            continue
        rival = next((n for n in network if n.meets(one)), None) if one.gep.is_application and one in closing else None
        if rival is None:
            yield one
            continue
        gep = one.gep
        message = f"{gep.policy.ref} may meet {rival.gep.policy.ref}, which is of the other level: it is not converted"
        way_out = "write the same selector in both, or target different pods"
        job.keep(gep.document, codes.LEVELS, message, gep.span("enforcementLevel"), help=way_out)


def _can_join(pods: frozenset[Selector], closing: Sequence[Aimed]) -> bool:
    """Both levels allow something on these pods, and no ALLOW is on some of them only."""
    allowing = [one for one in closing if not one.gep.denies]
    same = [one for one in allowing if one.selectors == pods and not one.services]
    sample = same[0] if same else None
    if sample is None or {one.gep.is_application for one in same} != {True, False}:
        return False
    counts = [sum(len(one.gep.rules) for one in same if one.gep.is_application is level) for level in (True, False)]
    others = [one for one in allowing if one not in same]
    return counts[0] * counts[1] <= _MOST_RULES and not any(one.meets(sample) for one in others)


def _joined(same: Sequence[Aimed], job: Job) -> Aimed:
    network = [rule for one in same if not one.gep.is_application for rule in one.gep.rules]
    application = [rule for one in same if one.gep.is_application for rule in one.gep.rules]
    first = next(one for one in same if one.gep.is_application)
    rules = tuple(_both(one, other, job) for one in network for other in application)
    others = tuple(one.gep.document for one in same if one is not first)
    return replace(first, gep=replace(first.gep, rules=rules), others=others)


# Rules


def _both(network: GepRule, application: GepRule, job: Job) -> GepRule:
    """What matches both; lists that share nothing become empty, which matches nothing."""
    ports = application.ports
    if network.ports is not None:
        ports = network.ports if ports is None else tuple(port for port in ports if port in network.ports)
    return replace(application, callers=_callers(network.callers, application.callers, job), ports=ports)


def _callers(ours: tuple[Caller, ...] | None, theirs: tuple[Caller, ...] | None, job: Job) -> tuple[Caller, ...] | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    found = (_caller(one, other, job) for one in ours for other in theirs)
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _caller(one: Caller, other: Caller, job: Job) -> Caller | None:
    if isinstance(other, WholeNamespace):
        one, other = other, one
    if isinstance(one, WholeNamespace):
        if isinstance(other, WholeNamespace):
            return one if one.namespace == other.namespace else None
        return other if AccountsOf(job.settings.trust_domain, one.namespace).contains(_id(other, job)) else None
    return one if _id(one, job) == _id(other, job) else None


def _id(caller: Caller, job: Job) -> str:
    match caller:
        case Identity(spiffe):
            return spiffe
        case Account(namespace, name):
            return service_account_id(job.settings.trust_domain, namespace, name)
        case WholeNamespace(namespace):
            return AccountsOf(job.settings.trust_domain, namespace).path
