"""What lint needs to know of Istio's policies."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.base import Policy
from eastgate.dialects.istio import lint_codes, plane_lint_codes
from eastgate.dialects.istio.lint_planes import check_modes, check_proxies, check_rules_at_ztunnel, check_targets
from eastgate.dialects.istio.lint_rules import check_default, check_providers, check_tcp, check_values, values_of
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, AT_ZTUNNEL
from eastgate.dialects.istio.words import rules_as_written
from eastgate.dialects.linting import Linting, NamedAccount, Statements, naming_of
from eastgate.ir import Layer

__all__ = ["LINTING"]

_ENFORCING = (AT_SIDECAR, AT_GATEWAY, AT_WAYPOINT, AT_ZTUNNEL)


def _statements(policy: IstioPolicy) -> Statements:
    rules = rules_as_written(policy)
    return Statements(
        rules=rules,
        naming=naming_of(rules),
        targets=policy.targets[:1] if not policy.refs else policy.targets,
        target_field="targetRefs" if policy.refs else "selector",
        allows=isinstance(policy, IstioAuthorizationPolicy) and policy.action is Action.ALLOW,
        empty_list=None,
        accounts=tuple(_accounts(policy)) if isinstance(policy, IstioAuthorizationPolicy) else (),
    )


def _accounts(policy: IstioAuthorizationPolicy) -> Iterator[NamedAccount]:
    """Yield the accounts and namespaces that a policy names without wildcards."""
    for name, value in values_of(policy):
        if "*" in value.text:
            continue
        if name in ("namespaces", "source.namespace"):
            yield NamedAccount(value.text, "*", value.span)
        elif name in ("serviceAccounts", "source.serviceAccount"):
            namespace, slash, account = value.text.partition("/")
            yield (
                NamedAccount(namespace, account, value.span)
                if slash
                else NamedAccount(policy.namespace, value.text, value.span)
            )


def _blames(policy: Policy, layer: Layer) -> bool:
    return isinstance(policy, IstioAuthorizationPolicy) and layer.at in _ENFORCING


LINTING: Linting[IstioPolicy] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=None,
    checks=(
        check_tcp,
        check_values,
        check_default,
        check_providers,
        check_rules_at_ztunnel,
        check_proxies,
        check_targets,
        check_modes,
    ),
    codes=(lint_codes, plane_lint_codes),
)
