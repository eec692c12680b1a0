"""Converts AccessPolicy between the proposal's form and today's.

In the proposal's form (v0alpha0) a rule names a caller and its tools, and what calling a tool needs beside passes by
itself. In today's (v1alpha1) that is an option, and it lets more through. So neither can quite say what the other does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.convert import codes
from eastgate.convert.access_rules import Rules, Unsayable, new_rules, old_rules
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.dialects.accesspolicy import Policy
from eastgate.dialects.accesspolicy.model import Action
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP
from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.node import Node

_MOST_RULES = 10
_ACTIONS = {Action.ALLOW: "Allow", Action.DENY: "Deny", Action.ASK: "ExternalAuth"}


def to_v1alpha1(items: Sequence[Item], job: Job) -> None:
    """Convert from the proposal's form."""
    for item in items:
        policy, spec = _parts(item)
        converted = new_rules(spec, policy.action, job)
        if isinstance(converted, Unsayable):
            _keep(item, converted, job)
            continue
        _lose_grant(item, spec, NETWORKING_GROUP, job)
        asks = next((_ask(rule) for rule in spec["rules"] if _ask(rule) is not None), None)
        for rules, name in _chunks(converted, item.document.name):
            new: Manifest = {"targetRefs": spec["targetRefs"].plain(), "action": _ACTIONS[policy.action]}
            if asks is not None:
                new["externalAuth"] = asks.plain()
            new["rules"] = rules
            _write(item, f"{NETWORKING_GROUP}/v1alpha1", name, new, job)


def to_v0alpha0(items: Sequence[Item], job: Job) -> None:
    """Convert from today's form."""
    for item in items:
        policy, spec = _parts(item)
        unlisted = job.settings.section(AccessSettings).unlisted_caller
        listed = unlisted is UnlistedCaller.PROCEED  # whom no rule names then passes
        converted = old_rules(spec, policy.action, job, may_leave_out=not listed)
        if isinstance(converted, Unsayable):
            _keep(item, converted, job)
            continue
        group = NETWORKING_GROUP if converted.needs_cel else PROTOTYPE_GROUP
        _lose_grant(item, spec, group, job)
        asking = policy.action is Action.ASK
        # a policy has one rule that asks
        chunks = [[rule] for rule in converted.rules] if asking else [converted.rules]
        for number, rules in enumerate(chunks, 1):
            old: Manifest = {"targetRefs": spec["targetRefs"].plain()}
            if policy.action is Action.DENY:
                old["action"] = "Deny"
            old["rules"] = list[Plain](rules)
            name = item.document.name if len(chunks) == 1 else f"{item.document.name}-{number}"
            _write(item, f"{group}/v0alpha0", name, old, job)


def _parts(item: Item) -> tuple[Policy, Node]:
    policy = item.policy
    assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
    assert item.document.node is not None  # noqa: S101 - policies are read with positions
    return policy, item.document.node["spec"]


def _ask(rule: Node) -> Node | None:
    authorization = rule.get("authorization")
    return authorization.get("externalAuth") if authorization is not None else None


def _keep(item: Item, why: Unsayable, job: Job) -> None:
    message = f"{why.message}: {item.policy.ref} is not converted"
    job.keep(item.document, codes.POLICY_LEFT_OUT, message, why.span, help=why.way_out)


def _chunks(converted: Rules, name: str) -> Iterator[tuple[list[Plain], str]]:
    """Split rules into policies: one has ten rules at most; the rest goes into another one, for the same target."""
    rules = converted.rules
    for number, start in enumerate(range(0, len(rules), _MOST_RULES), 1):
        yield list[Plain](rules[start : start + _MOST_RULES]), name if number == 1 else f"{name}-{number}"


def _lose_grant(item: Item, spec: Node, group: str, job: Job) -> None:
    """Report a ReferenceGrant that names the group of the policy, which may become another."""
    filters = [spec.get("externalAuth"), *(_ask(rule) for rule in spec.get("rules") or ())]
    for filter_ in filters:
        where = filter_["backendRef"].get("namespace") if filter_ is not None else None
        if (
            where is not None
            and where.text != (item.policy.ref.namespace or "default")
            and group != item.document.group
        ):
            message = f"the ReferenceGrant in {where.text} has to name the group {group} for this authorizer"
            job.lose(codes.GRANT, message, where.span, help=f"write from: [{{group: {group}, ..}}] in it")


def _write(item: Item, api_version: str, name: str, spec: Manifest, job: Job) -> None:
    document = item.document
    chosen = job.name(document.kind, item.policy.ref.namespace or "default", name)
    job.write(
        document,
        {
            "apiVersion": api_version,
            "kind": document.kind,
            "metadata": metadata_of(document, chosen),
            "spec": spec,
        },
    )
