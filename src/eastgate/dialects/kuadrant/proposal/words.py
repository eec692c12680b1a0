"""Descriptions of AuthPolicies."""

from __future__ import annotations

from eastgate.cluster import GatewayNamed
from eastgate.dialects.kuadrant.proposal.model import HttpRule, Policy
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words


def _rules(policy: Policy) -> list[DescribedRule]:
    from eastgate.dialects.kuadrant.authorino.model import METHOD_NAMES  # only where there is an AuthPolicy

    described = [DescribedRule("SELECT", (_selected(rule),), None, rule.span) for rule in policy.rules]
    described = described or [DescribedRule("SELECT", ("all traffic of the target",), None, policy.span)]
    for origin, scheme in zip(policy.origins, policy.schemes, strict=True):
        names = ", ".join(f"{identity.name} ({METHOD_NAMES[type(identity.method)]})" for identity in scheme.identities)
        agreed = "".join(f"; then {authorization.name}" for authorization in scheme.authorizations)
        asks = f"hosts {', '.join(scheme.hosts)}: identity {names or 'none'}{agreed}"
        described.append(DescribedRule("AUTH", (asks,), origin, origin.span))
    return described


def _selected(rule: HttpRule) -> str:
    parts = {"hosts": rule.hosts, "methods": rule.methods, "paths": rule.paths}
    return "; ".join(f"{name} {', '.join(texts)}" for name, texts in parts.items() if texts is not None) or "anything"


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return problem or ("no scheme" if selects else NOTHING_SELECTED)


WORDS: Words[Policy] = Words(
    action=lambda _policy: "ASK",
    level=lambda policy: "gateway" if isinstance(policy.target, GatewayNamed) else "route",
    rules=_rules,
    why_idle=_why_idle,
    count_rules=lambda policy: len(policy.rules),
)
