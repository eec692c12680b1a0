"""Joins two levels in one list: GEP-3779 wants both levels to allow, and Istio has one list of ALLOW policies.

Where the policies of both levels are on exactly the same pods, each pair of their rules becomes one rule that asks for
both. Where they only may meet, the APPLICATION policy is not converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.cluster import Selector, service_account_id
from eastgate.convert import codes
from eastgate.convert.gep_reading import (
    Account,
    Gep,
    GepRule,
    NamedCaller,
    PodsTarget,
    SpiffeIdentity,
    TargetedService,
    WholeNamespace,
)
from eastgate.convert.model import Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.ir import AccountsOf
from eastgate.reading.manifests import Document

_MOST_RULES = 512  # that Istio takes


@dataclass(frozen=True, slots=True, eq=False)
class Aimed:
    """A policy with targets that Istio has: pods of any of these labels, or Services at their waypoint.

    `others` are further documents that went into it.
    """

    gep: Gep
    pods: tuple[PodsTarget, ...] = ()
    services: tuple[TargetedService, ...] = ()
    others: tuple[Document, ...] = ()

    @property
    def selectors(self) -> frozenset[Selector]:
        return frozenset(target.selector for target in self.pods)

    def meets(self, other: Aimed) -> bool:
        """Return whether both may apply to one request."""
        by_pod = any(may_meet(mine.selector, theirs.selector) for mine in self.pods for theirs in other.pods)
        return by_pod or bool({mine.name for mine in self.services} & {theirs.name for theirs in other.services})


def closes(gep: Gep, job: Job) -> bool:
    """Return whether what no ALLOW of its level matches is denied because of it."""
    return not gep.policy.audit and (not gep.denies or job.settings.section(GepSettings).deny_only is DenyOnly.DENY)


def one_level_each(aimed: Sequence[Aimed], job: Job) -> list[Aimed]:
    """Return the policies to write, such that no workload gets ALLOW policies of two levels."""
    chosen: list[Aimed] = []
    for namespace in dict.fromkeys(policy.gep.namespace for policy in aimed):
        of_namespace = [policy for policy in aimed if policy.gep.namespace == namespace]
        chosen += _settled(of_namespace, job)
    return chosen


def _settled(of_namespace: Sequence[Aimed], job: Job) -> Iterator[Aimed]:
    closing = [policy for policy in of_namespace if closes(policy.gep, job)]
    joined = [
        pods for pods in dict.fromkeys(policy.selectors for policy in closing) if pods and _can_join(pods, closing)
    ]
    for pods in joined:
        yield _joined([policy for policy in closing if policy.selectors == pods and not policy.gep.denies], job)
    network = [policy for policy in closing if not policy.gep.is_application]
    for policy in of_namespace:
        if policy in closing and policy.selectors in joined:
            if policy.gep.denies:
                yield policy
            continue
        rival = (
            next((n for n in network if n.meets(policy)), None)
            if policy.gep.is_application and policy in closing
            else None
        )
        if rival is None:
            yield policy
            continue
        gep = policy.gep
        message = f"{gep.policy.ref} may meet {rival.gep.policy.ref}, which is of the other level: it is not converted"
        way_out = "write the same selector in both, or target different pods"
        job.keep(gep.document, codes.LEVELS, message, gep.span("enforcementLevel"), help=way_out)


def _can_join(pods: frozenset[Selector], closing: Sequence[Aimed]) -> bool:
    """Return whether both levels allow something on these pods, and no ALLOW is on some of them only."""
    allowing = [policy for policy in closing if not policy.gep.denies]
    same = [policy for policy in allowing if policy.selectors == pods and not policy.services]
    sample = same[0] if same else None
    if sample is None or {policy.gep.is_application for policy in same} != {True, False}:
        return False
    counts = [
        sum(len(policy.gep.rules) for policy in same if policy.gep.is_application is level) for level in (True, False)
    ]
    others = [policy for policy in allowing if policy not in same]
    return counts[0] * counts[1] <= _MOST_RULES and not any(policy.meets(sample) for policy in others)


def _joined(same: Sequence[Aimed], job: Job) -> Aimed:
    network = [rule for policy in same if not policy.gep.is_application for rule in policy.gep.rules]
    application = [rule for policy in same if policy.gep.is_application for rule in policy.gep.rules]
    first = next(policy for policy in same if policy.gep.is_application)
    rules = tuple(_both(mine, other, job) for mine in network for other in application)
    others = tuple(policy.gep.document for policy in same if policy is not first)
    return replace(first, gep=replace(first.gep, rules=rules), others=others)


# Rules


def _both(network: GepRule, application: GepRule, job: Job) -> GepRule:
    """Return what matches both; lists that share nothing become empty, which matches nothing."""
    ports = application.ports
    if network.ports is not None:
        ports = network.ports if ports is None else tuple(port for port in ports if port in network.ports)
    return replace(application, callers=_callers(network.callers, application.callers, job), ports=ports)


def _callers(
    ours: tuple[NamedCaller, ...] | None, theirs: tuple[NamedCaller, ...] | None, job: Job
) -> tuple[NamedCaller, ...] | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    common = (_caller(mine, other, job) for mine in ours for other in theirs)
    return tuple(dict.fromkeys(mine for mine in common if mine is not None))


def _caller(mine: NamedCaller, other: NamedCaller, job: Job) -> NamedCaller | None:
    if isinstance(other, WholeNamespace):
        mine, other = other, mine
    if isinstance(mine, WholeNamespace):
        if isinstance(other, WholeNamespace):
            return mine if mine.namespace == other.namespace else None
        return other if AccountsOf(job.settings.trust_domain, mine.namespace).contains(_id(other, job)) else None
    return mine if _id(mine, job) == _id(other, job) else None


def _id(caller: NamedCaller, job: Job) -> str:
    match caller:
        case SpiffeIdentity(spiffe):
            return spiffe
        case Account(namespace, name):
            return service_account_id(job.settings.trust_domain, namespace, name)
        case WholeNamespace(namespace):
            return AccountsOf(job.settings.trust_domain, namespace).path
