"""What lint needs to know of Istio's policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eastgate.dialects.base import Policy
from eastgate.dialects.istio import lint_codes, plane_lint_codes
from eastgate.dialects.istio.lint_authentication import check_mtls, check_tokens
from eastgate.dialects.istio.lint_planes import (
    check_modes,
    check_ports_without_proxy,
    check_proxies,
    check_rules_at_ztunnel,
    check_targets,
    check_unknown_proxies,
)
from eastgate.dialects.istio.lint_ports import check_allowed_tcp, check_denied_tcp
from eastgate.dialects.istio.lint_rules import check_default, check_providers, check_values
from eastgate.dialects.istio.lint_values import check_spellings, check_two_rules, is_misspelt, values_of
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, AT_ZTUNNEL
from eastgate.dialects.istio.words import rules_as_written
from eastgate.dialects.linting import Linting, NamedAccount, Naming, Statements, naming_of
from eastgate.ir import Computed, Is, Layer, OneOf, Predicate, rewrite
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import SCHEME

_ENFORCING = (AT_SIDECAR, AT_GATEWAY, AT_WAYPOINT, AT_ZTUNNEL)


def _statements(policy: IstioPolicy) -> Statements:
    rules = rules_as_written(policy)
    return Statements(
        rules=rules,
        naming=tuple(map(_without_misspelt, naming_of(rules))),
        targets=policy.targets[:1] if not policy.refs else policy.targets,
        target_field="targetRefs" if policy.refs else "selector",
        allows=isinstance(policy, IstioAuthorizationPolicy) and policy.action is Action.ALLOW,
        empty_list=None,
        accounts=tuple(_accounts(policy)) if isinstance(policy, IstioAuthorizationPolicy) else (),
    )


def _without_misspelt(naming: Naming) -> Naming:
    """Leave out identities that are no principals: they have a finding of their own."""

    def known(atom: Is | Computed) -> Predicate:
        match atom:
            case Is(attribute, OneOf(values)) if attribute is IDENTITY:
                spelt = frozenset(value for value in values if not is_misspelt(str(value).removeprefix(SCHEME)))
                return Is(attribute, OneOf(spelt))
            case _:
                return atom

    return replace(naming, when=rewrite(naming.when, known))


def _accounts(policy: IstioAuthorizationPolicy) -> Iterator[NamedAccount]:
    """Yield the accounts and namespaces that a policy names without wildcards."""
    for name, value in values_of(policy):
        if "*" in value.text:
            continue
        if name in ("namespaces", "source.namespace") and "/" not in value.text:
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
        check_denied_tcp,
        check_allowed_tcp,
        check_two_rules,
        check_spellings,
        check_tokens,
        check_mtls,
        check_values,
        check_default,
        check_providers,
        check_rules_at_ztunnel,
        check_proxies,
        check_unknown_proxies,
        check_ports_without_proxy,
        check_targets,
        check_modes,
    ),
    codes=(lint_codes, plane_lint_codes),
)
