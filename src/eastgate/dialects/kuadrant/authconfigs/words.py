"""Descriptions of AuthConfigs."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words


def _rules(policy: Policy) -> list[DescribedRule]:
    from eastgate.dialects.kuadrant.authorino.model import METHOD_NAMES  # only where there is an AuthConfig

    scheme = policy.scheme
    names = ", ".join(f"{identity.name} ({METHOD_NAMES[type(identity.method)]})" for identity in scheme.identities)
    agreed = "".join(f"; then {authorization.name}" for authorization in scheme.authorizations)
    asks = f"identity {names or 'none'}{agreed}"
    return [DescribedRule("AUTH", (asks,), policy.origin, policy.span)]


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return problem or ("other AuthConfigs have its hosts" if selects else NOTHING_SELECTED)


WORDS: Words[Policy] = Words(
    action=lambda _policy: "ASK",
    level=lambda _policy: "host",
    rules=_rules,
    why_idle=_why_idle,
)
