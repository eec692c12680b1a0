"""Where two readings of a specification would decide differently; and what an audited policy would change.

Both are one question: the same policies, put together in another way, decide some request otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from eastgate.api.questions import Question
from eastgate.dialects.linting import Finding, ReadingChoice, codes, enumerated, locating
from eastgate.engine.compiled import Program
from eastgate.ir import Known, Request
from eastgate.ir.attributes import ADDRESS, PORT, Attribute
from eastgate.reports.lint.hooks import readings_at
from eastgate.reports.lint.inventory import Group, Policy, PolicyInventory
from eastgate.reports.lint.samples import sample_questions

__all__ = ["find_audit_changes", "find_reading_differences"]


def find_reading_differences(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report each point at which another reading would decide a request otherwise."""
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
    help_ = f"say which one your mesh follows: --set {setting}={now}, or {setting} in eastgate.yaml"
    yield Finding(reading.code, message, span, help_, subjects, inventory.command(question))


def _verdict(allowed: bool) -> str:
    return "allowed" if allowed else "denied"


def _difference(group: Group, other: Program, inventory: PolicyInventory) -> tuple[Question, bool] | None:
    """Find a question that the two programs decide differently, and return it with the present verdict."""
    looked_at = frozenset[Attribute]().union(
        *(layer.looks_at for layers in (group.layers, other.layers) for layer in layers)
    )
    program = inventory.program(group)
    for question, arrival in sample_questions(group, inventory):
        request = _without_unknowns(arrival.request, looked_at)
        allowed = bool(program.decide(request) & 1)
        if bool(other.decide(request) & 1) is not allowed:
            return question, allowed
    return None


def _without_unknowns(request: Request, looked_at: frozenset[Attribute]) -> Request:
    """Take what the question leaves out as absent: an example is about one request."""
    absent: dict[Attribute, Known] = dict.fromkeys(looked_at - request.values.keys() - {PORT, ADDRESS})
    return Request({**request.values, **absent}, request.answers) if absent else request


# Audited policies


def find_audit_changes(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report what each audited policy would change, by one example."""
    for policy in inventory.policies:
        if not policy.audit:
            continue
        groups = [
            group for group in inventory.groups if any(attachment.policy is policy for attachment in group.attached)
        ]
        enforced = replace(policy, audit=False)
        compared = [(group, _change(group, policy, enforced, inventory)) for group in groups[:50]]
        changes = [(group, change) for group, change in compared if change is not None]
        if changes:
            question, allowed = changes[0][1]
            points = enumerated([group.first for group, _ in changes])
            verdicts = f"{question} is {_verdict(allowed)} now, and would be {_verdict(not allowed)}"
            message = f"if it were enforced, {policy.ref} would change {points}: {verdicts}"
            help_ = "remove the annotation eastgate.dev/mode: audit to enforce it"
            span = locating.annotation(policy.span, "eastgate.dev/mode")
            subjects = (str(policy.ref), *(subject for group, _ in changes for subject in group.subjects))
            yield Finding(codes.AUDIT_WOULD_CHANGE, message, span, help_, subjects, inventory.command(question))


def _change(group: Group, policy: Policy, enforced: Policy, inventory: PolicyInventory) -> tuple[Question, bool] | None:
    attached = [
        replace(attachment, policy=enforced) if attachment.policy is policy else attachment
        for attachment in group.attached
    ]
    return _difference(group, inventory.assembled(group, attached, inventory.settings), inventory)
