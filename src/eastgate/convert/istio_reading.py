"""Converts Istio's AuthorizationPolicy to GEP-3779: callers, pods, ports and paths.

In both APIs a DENY that matches denies, and then an ALLOW must match. There are three differences:

- In GEP-3779 a workload with only DENY policies may be closed, so the conversion adds an ALLOW of everything to each
  DENY.
- In Istio a policy of the root namespace applies to all namespaces.
- In GEP-3779 both levels must allow, so policies that may select the same pods get the same level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector
from eastgate.convert import codes
from eastgate.convert.gep_reading import Gep, GepRule, PodsTarget
from eastgate.convert.istio_callers import NotExpressibleError
from eastgate.convert.istio_operations import check_attachment, is_at_ztunnel, namespaces_of
from eastgate.convert.istio_rule_reading import RuleReader
from eastgate.convert.model import Item, Job
from eastgate.convert.selectors import may_meet, select_without
from eastgate.dialects import gep3779
from eastgate.dialects.gep3779.model import Action, Level
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.dialects.istio.model import Action as IstioAction
from eastgate.dialects.istio.model import IstioAuthorizationPolicy, IstioPolicy
from eastgate.ir import PolicyRef

_MAX_TARGETS = 16  # limit for the ALLOW of everything

Write = Callable[[Gep, Job], None]


@dataclass(slots=True, eq=False)
class _Candidate:
    """A policy in one of the namespaces that it applies to, and the rules that the target API can express."""

    item: Item
    policy: IstioAuthorizationPolicy
    namespace: str
    rules: list[GepRule] = field(default_factory=list)

    @property
    def allows(self) -> bool:
        """Return whether the policy allows requests, and so denies those that no ALLOW matches."""
        return self.policy.action is IstioAction.ALLOW and not self.policy.audit

    @property
    def span(self) -> Span:
        return self.item.document.locate("spec", "action")

    def meets(self, other: _Candidate) -> bool:
        return may_meet(self.policy.selector, other.policy.selector)


def from_istio(items: Sequence[Item], job: Job, write: Write, *, can_deny: bool = True) -> None:
    """Convert namespace by namespace, because policies on the same pods affect each other.

    `can_deny`: the target API has DENY, and so an ALLOW of everything for pods without other policies.
    """
    by_namespace: dict[str, list[_Candidate]] = {}
    for item in items:
        policy = item.policy
        assert isinstance(policy, IstioPolicy)  # noqa: S101 - the registry has chosen it
        if isinstance(policy, IstioAuthorizationPolicy):
            for namespace in namespaces_of(policy, item.document, job):
                by_namespace.setdefault(namespace, []).append(_Candidate(item, policy, namespace))
        else:
            message = f"only Istio checks tokens and mTLS: {policy.ref} is not converted"
            job.keep(item.document, codes.AUTHENTICATION, message, item.document.locate("kind"))
    for candidates in by_namespace.values():
        _Namespace(candidates, job, can_deny=can_deny).convert(write)


class _Namespace:
    """Converts the policies of one namespace, and the policies of the root namespace for it."""

    def __init__(self, candidates: Sequence[_Candidate], job: Job, *, can_deny: bool) -> None:
        self._candidates, self._job, self._can_deny = candidates, job, can_deny
        self._adds_allow = can_deny and job.settings.section(GepSettings).deny_only is DenyOnly.DENY

    def convert(self, write: Write) -> None:
        """Write the policies that can be converted."""
        chosen = self._without_rivals([candidate for candidate in self._candidates if not self._must_stay(candidate)])
        for candidate in chosen:
            if not candidate.rules and candidate.policy.action is IstioAction.DENY and self._can_deny:
                continue  # it denies nothing
            level = self._level(candidate, chosen)
            rest = self._pods_with_deny_only(candidate, chosen)
            if len(rest) > _MAX_TARGETS:
                self._keep(candidate, "too many ALLOW policies are on some of its pods")
                continue
            before = len(self._job.written)
            write(self._gep(candidate, level), self._job)
            if rest and len(self._job.written) > before:
                write(self._allow_everything(candidate, level, rest), self._job)

    # Policies that are not converted

    def _must_stay(self, candidate: _Candidate) -> bool:
        policy, document, job = candidate.policy, candidate.item.document, self._job
        try:
            check_attachment(policy, document, candidate.namespace, job)
            at_ztunnel = is_at_ztunnel(policy.selector, candidate.namespace, job)
            candidate.rules = RuleReader(policy, job, at_ztunnel=at_ztunnel).rules()
            if policy.rules and not candidate.rules and candidate.allows:
                raise NotExpressibleError(
                    codes.FIELD, "the target can express none of its rules", document.locate("spec", "rules")
                )
        except NotExpressibleError as why:
            message = f"{why.message}: {policy.ref} is not converted"
            job.keep(document, why.code, message, why.span, help=why.way_out)
            return True
        return False

    def _without_rivals(self, chosen: list[_Candidate]) -> list[_Candidate]:
        """Remove each ALLOW that may select the same pods as an unconverted ALLOW.

        In one API any ALLOW is enough; in two APIs each must allow.
        """
        staying = [candidate for candidate in self._candidates if candidate.allows and candidate not in chosen]
        while staying:
            rival = staying.pop()
            for candidate in [each for each in chosen if each.allows and each.meets(rival)]:
                self._keep(candidate, f"it may share pods with {rival.policy.ref}, which is not converted")
                chosen.remove(candidate)
                staying.append(candidate)
        return chosen

    def _keep(self, candidate: _Candidate, why: str) -> None:
        message = f"{why}: {candidate.policy.ref} is not converted"
        self._job.keep(candidate.item.document, codes.POLICIES_MEET, message, candidate.span)

    # Policies that are converted

    def _level(self, candidate: _Candidate, chosen: Sequence[_Candidate]) -> Level:
        """Return the level of a policy: APPLICATION if the policy, or a policy that shares pods with it, reads HTTP."""
        if candidate.policy.audit:
            return _level_of([candidate])
        together, added = [candidate], [candidate]
        enforced = [each for each in chosen if not each.policy.audit]
        while added:
            added = [e for e in enforced if e not in together and any(e.meets(known) for known in added)]
            together += added
        return _level_of(together)

    def _pods_with_deny_only(self, candidate: _Candidate, chosen: Sequence[_Candidate]) -> list[Selector]:
        """Return the pods that a DENY selects and no ALLOW does. The DENY must not close them."""
        if candidate.allows or candidate.policy.audit or not self._adds_allow:
            return []
        allowing = [each.policy.selector for each in chosen if each.allows]
        return select_without(candidate.policy.selector, allowing)

    def _gep(self, candidate: _Candidate, level: Level) -> Gep:
        target = PodsTarget(candidate.policy.selector, candidate.item.document.locate("spec", "selector"))
        return _gep(candidate, candidate.policy.ref.name, Action(candidate.policy.action), level, (target,))

    def _allow_everything(self, candidate: _Candidate, level: Level, rest: Sequence[Selector]) -> Gep:
        """Return an ALLOW of everything, because in Istio pods with only DENY policies are open."""
        targets = tuple(PodsTarget(selector, candidate.span) for selector in rest)
        name = f"{candidate.policy.ref.name}-allow-everything"
        return _gep(candidate, name, Action.ALLOW, level, targets, (GepRule(None, None),))


def _level_of(candidates: Sequence[_Candidate]) -> Level:
    is_http = any(rule.is_http for candidate in candidates for rule in candidate.rules)
    return Level.APPLICATION if is_http else Level.NETWORK


def _gep(
    candidate: _Candidate,
    name: str,
    action: Action,
    level: Level,
    targets: tuple[PodsTarget, ...],
    rules: tuple[GepRule, ...] | None = None,
) -> Gep:
    ref = PolicyRef("AuthorizationPolicy", candidate.namespace, name, gep3779.GROUP)
    policy = gep3779.Policy(ref, candidate.policy.span, (), action, level, (), audit=candidate.policy.audit)
    chosen = tuple(candidate.rules) if rules is None else rules
    return Gep(policy, candidate.item.document, targets, chosen, level_written=level is Level.APPLICATION)
