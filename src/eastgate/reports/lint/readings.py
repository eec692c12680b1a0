"""Requests that another reading of a specification would decide differently, and the effects of audited policies.

Both compare two programs of the same policies, assembled in different ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any

from eastgate.authority.auditing import Audited, Would, audited_by
from eastgate.authority.authority import programs_of
from eastgate.authority.point_programs import derivations_of, looked_at_by
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.questions.derived import derive_values, derived_among
from eastgate.basics.records import dataclass
from eastgate.cluster.resources import MODE
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute
from eastgate.dialects import dialect_of, registered
from eastgate.dialects.linting import Finding, ReadingChoice, codes, enumerated, locating
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.engine.compiled import Program, compile_layers
from eastgate.ir import Known, Layer, PolicyRef, Request, ask_authorizers, authorizers_in, in_force
from eastgate.ir.attributes import ADDRESS, PORT, Attribute
from eastgate.reports.lint.inventory import Group, Policy, PolicyInventory, readings_at
from eastgate.reports.lint.samples import sample_questions


def find_reading_differences(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report each point at which another reading would decide a request differently."""
    for group in inventory.groups:
        for reading, concerned in readings_at(group):
            yield from _reading(group, inventory, reading, concerned)


def _reading(
    group: Group, inventory: PolicyInventory, reading: ReadingChoice[Any], concerned: Sequence[Policy]
) -> Iterator[Finding]:
    other = reading.other(inventory.settings)
    difference = _difference(group, inventory.assembled(group, group.attached, other), inventory)
    if difference is None:
        return
    question, allowed = difference
    setting = reading.setting
    now, then = inventory.settings.to_json()[setting], other.to_json()[setting]
    message = (
        f"{group.text}: {question} is {_verdict(allowed)} with {setting}: {now}, "
        f"and {_verdict(not allowed)} with {setting}: {then}"
    )
    policies = concerned or [attachment.policy for attachment in group.attached if not attachment.policy.audit]
    subjects = (*dict.fromkeys(str(policy.ref) for policy in policies), *group.subjects)
    span = locating.name_of(policies[0].span) if policies else None
    help_ = f"select the reading of your mesh: --set {setting}={now}, or {setting} in eastgate.yaml"
    yield Finding(reading.code, message, span, help_, subjects, inventory.command(question))


def _verdict(allowed: bool) -> str:
    return "allowed" if allowed else "denied"


def _difference(group: Group, other: Program, inventory: PolicyInventory) -> tuple[Question, bool] | None:
    """Return a question that the two programs decide differently, with its present verdict."""
    layers = (*group.layers, *other.layers)
    program = inventory.program(group)
    for question, arrival in sample_questions(group, inventory):
        request = _as_seen(question, arrival.request, layers)
        allowed = bool(program.decide(request) & 1)
        if bool(other.decide(request) & 1) is not allowed:
            return question, allowed
    return None


def _as_seen(question: Question, request: Request, layers: Sequence[Layer]) -> Request:
    """Return a request as layers see it.

    Attributes that the question leaves out are absent, because an example is one request.
    """
    looked_at = looked_at_by(layers)
    values = {**request.values, **derive_values(question, derived_among(looked_at))}
    for derivation in derivations_of(layers):
        values |= derivation.derive(values, question.raw)
    absent: dict[Attribute, Known] = dict.fromkeys(looked_at - values.keys() - {PORT, ADDRESS})
    seen = Request({**values, **absent}, request.answers)
    authorizers = authorizers_in(layers)
    return ask_authorizers(seen, replace(question.raw, headers=_NO_HEADERS), authorizers) if authorizers else seen


# Audited policies

_MAX_PODS = 12  # pods of each end of connections, if the policy is a network policy
_NO_HEADERS = {"accept": "*/*"}  # the headers of a request without credentials
_UNDECLARED = {"sa:default/stranger": "accounts that no manifest names", "anonymous": "callers without an identity"}


@dataclass(slots=True)
class _Changes:
    """The effects of an audited policy: the callers that it would deny or allow, and where."""

    callers: dict[Would, dict[str, None]] = field(default_factory=dict)
    points: dict[str, None] = field(default_factory=dict)
    example: Question | None = None

    def add(
        self, question: Question, entries: Iterable[Audited], policy: Policy, point: str, caller: str | None = None
    ) -> None:
        """Add the new verdict of a question, if the policy causes it; `caller` is the text for its caller."""
        caller = caller or _UNDECLARED.get(str(question.source), str(question.source))
        for each in entries:
            if each.changes and each.policy == policy.ref:
                self.callers.setdefault(each.verdict, {})[caller] = None
                self.points[point] = None
                self.example = self.example or question

    @property
    def text(self) -> str:
        """Return the effects as text, with the first callers and points."""
        parts = (f"{verdict} {enumerated(list(callers))}" for verdict, callers in sorted(self.callers.items()))
        return f"{' and '.join(parts)} at {enumerated(list(self.points))}"


def find_audit_changes(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report the callers that each audited policy would deny or allow, together with the other audited policies."""
    changes: dict[PolicyRef, _Changes] = {}
    read = (policy for policy in inventory.policies if not isinstance(policy, RejectedPolicy))
    audited = {policy.ref: policy for policy in read if dialect_of(policy).enforce(policy) is not policy}
    for group in inventory.groups if audited else ():
        here = [audited[ref] for ref in dict.fromkeys(each.policy.ref for each in group.attached) if ref in audited]
        if here:
            for question, entries in _would_change(group, inventory):
                for policy in here:
                    changes.setdefault(policy.ref, _Changes()).add(question, entries, policy, group.first)
    for policy in audited.values():
        if policy.ref in programs_of(inventory.authority).network_refs:
            changes[policy.ref] = _network_changes(policy, inventory)
        elif any(isinstance(target, RulesOfGateway | RulesOfRoute) for target in policy.targets):
            changes[policy.ref] = _route_changes(policy, inventory)
        found = changes.get(policy.ref)
        if found is not None and found.example is not None:
            message = f"if it were enforced, {policy.ref} would {found.text}"
            help_ = "enforce it when these are the callers that it should refuse"
            span = locating.annotation(policy.span, MODE, *registered().deciding_annotations)
            subjects = (str(policy.ref), *found.points)
            yield Finding(codes.AUDIT_WOULD_CHANGE, message, span, help_, subjects, inventory.command(found.example))


def _would_change(group: Group, inventory: PolicyInventory) -> Iterator[tuple[Question, list[Audited]]]:
    """Yield the questions about a group that audited policies would decide differently."""
    layers = in_force(group.layers)
    if layers == tuple(group.layers):
        return
    now, then = inventory.program(group), compile_layers(layers)
    for question, arrival in sample_questions(group, inventory):
        request = _as_seen(question, arrival.request, (*group.layers, *layers))
        verdict, would = now.decide(request), then.decide(request)
        if (verdict ^ would) & 1:
            yield question, list(audited_by(group.layers, now.outcome(verdict), then.outcome(would)))


def _network_changes(policy: Policy, inventory: PolicyInventory) -> _Changes:
    """Return the effects of an audited network policy between existing pods."""
    changes, authority = _Changes(), inventory.authority
    pods = [workload for workload in inventory.world.workloads.values() if workload.is_pod]
    selected = {str(point) for point in programs_of(authority).points_of(policy.ref) if isinstance(point, str)}
    chosen = [pod for pod in pods if pod.key in selected][:_MAX_PODS]
    for pod, other in product(chosen, pods[:_MAX_PODS]):
        for source, to in ((other, pod), (pod, other)) if pod is not other else ():
            port = next((port.number for port in to.ports), 8080)
            asked = Question.of(f"pod:{source.namespace}/{source.name}", f"pod:{to.namespace}/{to.name}", port=port)
            try:
                changes.add(asked, authority.decide(asked).audit, policy, to.key)
            except QuestionError:
                continue
    return changes


def _route_changes(policy: Policy, inventory: PolicyInventory) -> _Changes:
    """Return the effects of an audited policy on rules of routes, for a request without credentials."""
    changes = _Changes()
    for target in policy.targets:
        if isinstance(target, RulesOfGateway | RulesOfRoute):
            kind = "gateway" if isinstance(target, RulesOfGateway) else "route"
            to = f"{kind}:{target.namespace}/{target.name}"
            asked = Question.of("anonymous", to, method="GET", path="/", headers=_NO_HEADERS)
            try:
                audit = inventory.authority.decide(asked).audit
                changes.add(asked, audit, policy, str(target), "requests without credentials")
            except QuestionError:
                continue
    return changes
