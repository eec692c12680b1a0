"""The hooks of lint for Istio's policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from eastgate.dialects.base import Policy
from eastgate.dialects.istio import lint_codes
from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.lint_planes import (
    check_modes,
    check_ports_without_proxy,
    check_proxies,
    check_rules_at_ztunnel,
    check_targets,
    check_unknown_proxies,
)
from eastgate.dialects.istio.lint_ports import check_allowed_tcp, check_denied_tcp
from eastgate.dialects.istio.lint_rules import (
    check_default,
    check_providers,
    check_spellings,
    check_two_rules,
    check_values,
    is_misspelt,
    values_of,
)
from eastgate.dialects.istio.model import (
    Action,
    IstioAuthorizationPolicy,
    IstioPolicy,
    MtlsMode,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.peer_modes import PeerModes, overridden, peer_modes
from eastgate.dialects.istio.planes import ServingPlane, is_gateway_pod, plane_of
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, AT_ZTUNNEL
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.words import rules_as_written
from eastgate.dialects.istio.written import IstioRule, Values, WrittenValue
from eastgate.dialects.linting import Context, Finding, Linting, NamedAccount, Naming, Statements, enumerated, naming_of
from eastgate.ir import Computed, Is, Layer, OneOf, Predicate, rewrite
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import SCHEME

# Rules on tokens and identities that no workload receives


_KEYS: Final = "request.auth."
_IDENTITIES: Final = frozenset(
    {
        "principals",
        "namespaces",
        "serviceAccounts",
        "trustDomains",
        "source.principal",
        "source.namespace",
        "source.serviceAccount",
        "source.trustDomain",
    }
)

P = TypeVar("P", bound=IstioPolicy)


def _enforced(context: Context, kind: type[P]) -> list[P]:
    return [policy for policy in context.policies if isinstance(policy, kind) and not policy.audit]


def _workloads(policy: IstioPolicy, context: Context) -> set[str]:
    """Return the workloads that a policy selects by labels."""
    targets = policy.targets if not policy.refs else ()
    return {key for target in targets for key in context.world.select(target)}


def _lists(rule: IstioRule, is_meant: Callable[[str], bool]) -> Iterator[tuple[str, Values]]:
    for entry in rule.sources or ():
        yield from ((name, values) for name, values in entry.items() if is_meant(name))
    yield from ((when.key, when.values) for when in rule.conditions if is_meant(when.key))


def _first(values: Values) -> WrittenValue:
    return next(iter(values))


# Tokens


def check_tokens(context: Context) -> Iterator[Finding]:
    """Report rules on tokens at workloads without a RequestAuthentication."""
    authentications = [policy for policy in _enforced(context, RequestAuthentication) if policy.rules]
    validating = {key for policy in authentications for key in _workloads(policy, context)}
    data_plane = context.settings.section(IstioSettings).istio_data_plane
    for policy in _enforced(context, IstioAuthorizationPolicy):
        looking = [(rule, next(_lists(rule, _is_about_token), None)) for rule in policy.rules]
        if policy.refs or not any(found for _, found in looking):
            continue
        keys = sorted(
            key
            for key in _workloads(policy, context) - validating
            if plane_of(context.workload(key), context.world, data_plane) is not ServingPlane.ZTUNNEL
        )
        for rule, found in looking if keys else ():
            if found is not None:
                yield _no_tokens(policy, rule, *found, keys)


def _is_about_token(name: str) -> bool:
    return name == "requestPrincipals" or name.startswith(_KEYS)


def _no_tokens(
    policy: IstioAuthorizationPolicy, rule: IstioRule, name: str, values: Values, keys: list[str]
) -> Finding:
    effect = {Action.ALLOW: "allow", Action.DENY: "deny"}.get(policy.action, "match")
    how = f"can {effect} nothing" if values.values else "matches every request, as if it had no token"
    message = f"rule {rule.index} of {policy.ref} {how}: no RequestAuthentication applies to {enumerated(keys)}"
    help_ = f"add a RequestAuthentication for {'it' if len(keys) == 1 else 'them'}, so that `{name}` is known"
    return Finding(codes.NO_TOKENS, message, _first(values).span, help_, (str(policy.ref), *keys[:3]))


# mTLS


def check_mtls(context: Context) -> Iterator[Finding]:
    """Report rules on identities at workloads with mTLS off, and PeerAuthentications without effect."""
    peers = _enforced(context, PeerAuthentication)
    selecting: dict[str, list[PeerAuthentication]] = {}
    for peer in peers:
        for key in _workloads(peer, context):
            selecting.setdefault(key, []).append(peer)
    yield from _overridden(selecting, context)
    if not any(peer.mode is MtlsMode.DISABLE for peer in peers):
        return
    root = context.settings.section(IstioSettings).root_namespace
    modes = {key: peer_modes(attached, root) for key, attached in selecting.items()}
    for policy in _enforced(context, IstioAuthorizationPolicy):
        keys = sorted(key for key in _workloads(policy, context) if _is_off(key, modes.get(key), context))
        for rule in policy.rules if keys else ():
            name, values = next(_lists(rule, _IDENTITIES.__contains__), (None, None))
            if name is not None and values is not None:
                message = f"`{name}` of {policy.ref} matches no caller of {enumerated(keys)}: mTLS is off there"
                mode = modes[keys[0]].others
                by = mode.policy.ref if mode.policy is not None else ""
                help_ = f"write mode: STRICT or PERMISSIVE in {by}"
                yield Finding(codes.NO_MTLS, message, _first(values).span, help_, (str(policy.ref), *keys[:3]))


def _overridden(selecting: Mapping[str, Sequence[PeerAuthentication]], context: Context) -> Iterator[Finding]:
    section = context.settings.section(IstioSettings)
    keys: dict[tuple[PeerAuthentication, PeerAuthentication], list[str]] = {}
    for key, attached in sorted(selecting.items()):
        by_ztunnel = plane_of(context.workload(key), context.world, section.istio_data_plane) is ServingPlane.ZTUNNEL
        for first, *others in overridden(attached, section.root_namespace) if len(attached) > 1 else ():
            for other in others:
                is_tie = by_ztunnel and first.created == other.created  # ztunnel may use either: EG6139
                if _modes(first) != _modes(other) and not is_tie:
                    keys.setdefault((first, other), []).append(key)
    for (first, other), on in keys.items():
        order = "comes first by name" if first.created == other.created else "is older"
        message = f"{other.ref} has no effect on {enumerated(on)}: {first.ref} {order}"
        help_ = "keep one of them, or select different workloads with each"
        yield Finding(codes.OVERRIDDEN, message, other.mode_span, help_, (str(other.ref), str(first.ref), *on[:3]))


def _modes(peer: PeerAuthentication) -> tuple[object, ...]:
    return peer.mode, frozenset((each.port, each.mode) for each in peer.ports)


def _is_off(key: str, modes: PeerModes | None, context: Context) -> bool:
    """Return whether no port of a workload has mTLS at its sidecar. ztunnel never turns it off."""
    if modes is None or modes.others.mode is not MtlsMode.DISABLE:
        return False
    workload, data_plane = context.workload(key), context.settings.section(IstioSettings).istio_data_plane
    if any(mode.mode is not MtlsMode.DISABLE for _, mode in modes.ports) or is_gateway_pod(workload, context.world):
        return False
    return plane_of(workload, context.world, data_plane) is ServingPlane.SIDECAR


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
    """Remove identities that are not principals: they have their own finding."""

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
    codes=(lint_codes, lint_codes),
)
