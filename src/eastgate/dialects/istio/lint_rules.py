"""Lint: rules of AuthorizationPolicies that mean something else to Istio than to most people."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.lint_values import values_of
from eastgate.dialects.istio.mesh_config import mesh_settings, mesh_sources
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.values import is_template, network_of
from eastgate.dialects.istio.written import IstioRule, WrittenValue
from eastgate.dialects.linting import Context, Finding, enumerated, locating

_WITH_WILDCARDS = frozenset({"principals", "requestPrincipals", "hosts", "methods", "paths"})
_KEYS_WITH_WILDCARDS = ("source.principal", "request.auth.", "request.headers", "connection.sni")
_NETWORKS = frozenset({"ipBlocks", "remoteIpBlocks", "source.ip", "remote.ip", "destination.ip"})


def _policies(context: Context) -> Iterator[IstioAuthorizationPolicy]:
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy) and not policy.audit:
            yield policy


def _selected(policy: IstioAuthorizationPolicy, context: Context, serving: ServingPlane) -> list[str]:
    """Return the workloads that a policy selects and such a proxy serves, or may serve."""
    data_plane = context.settings.section(IstioSettings).istio_data_plane
    keys = sorted({key for target in policy.targets for key in context.world.select(target)} if not policy.refs else ())
    planes = ((key, plane_of(context.workload(key), context.world, data_plane)) for key in keys)
    is_sidecar = serving is ServingPlane.SIDECAR
    return [key for key, plane in planes if plane is serving or (is_sidecar and plane.may_be_sidecar)]


# Values


def check_values(context: Context) -> Iterator[Finding]:
    """Report wildcards that are characters, networks with host bits or IPv4 as IPv6, and empty lists."""
    for policy in _policies(context):
        for rule in policy.rules:
            yield from _empty_entries(policy, rule)
        for name, value in values_of(policy):
            yield from _value(policy, name, value)
            if name in ("namespaces", "source.namespace"):
                yield from _crossing_pattern(policy, value, context)
        yield from _empty_selector(policy, context)


def _crossing_pattern(policy: IstioAuthorizationPolicy, value: WrittenValue, context: Context) -> Iterator[Finding]:
    """Report a pattern of namespaces that matches all of them at a sidecar: its star reaches into `/sa/`."""
    ends_so = value.text.startswith("*") and len(value.text) > 1 and "/sa".endswith(value.text[1:])
    if ends_so and _selected(policy, context, ServingPlane.SIDECAR):
        message = f"`{value.text}` matches every namespace: it is looked for in the whole identity, which has `/sa/`"
        help_ = "write the names of the namespaces, or another pattern"
        yield Finding(codes.CROSSING_PATTERN, message, value.span, help_, (str(policy.ref),))


def _empty_selector(policy: IstioAuthorizationPolicy, context: Context) -> Iterator[Finding]:
    """Report `selector: {}` where ztunnel decides: it selects no workload there."""
    if not policy.has_selector or policy.selector.match_labels:
        return
    behind = _selected(policy, context, ServingPlane.ZTUNNEL)
    if behind:
        message = f"{policy.ref} is not enforced on {enumerated(behind)}: to ztunnel an empty selector selects nothing"
        span = locating.at(policy.span, "spec", "selector")
        yield Finding(codes.EMPTY_SELECTOR, message, span, "leave `selector` out", (str(policy.ref), *behind[:3]))


def _empty_entries(policy: IstioAuthorizationPolicy, rule: IstioRule) -> Iterator[Finding]:
    for name, entries, what in (("from", rule.sources, "source"), ("to", rule.operations, "operation")):
        if entries == ():
            message = f"rule {rule.index} of {policy.ref} matches any {what}: `{name}: []` is the same as no `{name}`"
            span = locating.at(policy.span, "spec", "rules", rule.index, name)
            help_ = f"write who is meant, or leave `{name}` out" if name == "from" else f"leave `{name}` out"
            yield Finding(codes.EMPTY_ENTRIES, message, span, help_, (str(policy.ref),))


def _value(policy: IstioAuthorizationPolicy, name: str, value: WrittenValue) -> Iterator[Finding]:
    if name in _WITH_WILDCARDS or name.startswith(_KEYS_WITH_WILDCARDS):
        if _has_literal_wildcard(value.text) and not (name == "paths" and is_template(value.text)):
            message = f"a `*` of `{value.text}` is a character and no wildcard: it matches nothing that exists"
            help_ = "write one `*`, at the beginning or at the end"
            if name == "paths":
                help_ += "; or a template, in which {*} is one segment"
            yield Finding(codes.LITERAL_WILDCARD, message, value.span, help_, (str(policy.ref),))
    elif name in _NETWORKS:
        network = network_of(value.text)
        if network.version == 4 and ":" in value.text:
            message = f"`{value.text}` is the IPv4 network {network}, which Istio's proxies compare with no IPv4 caller"
            yield Finding(codes.MAPPED_NETWORK, message, value.span, f"write {network}", (str(policy.ref),))
        elif "/" in value.text and not value.text.startswith(f"{network.network_address}/"):
            message = f"`{value.text}` is the network {network}"
            help_ = f"write {network}, or the address {value.text.partition('/')[0]}"
            yield Finding(codes.HOST_BITS, message, value.span, help_, (str(policy.ref),))


def _has_literal_wildcard(text: str) -> bool:
    rest = text[1:] if text.startswith("*") else text[:-1] if text.endswith("*") else text
    return "*" in rest


# Actions


def check_default(context: Context) -> Iterator[Finding]:
    """Report an ALLOW policy for all workloads that is the only one which closes some of them."""
    allowing = [policy for policy in _policies(context) if policy.action is Action.ALLOW and not policy.refs]
    workloads = {policy.ref: set(context.workloads_of.get(policy.ref, ())) for policy in allowing}
    for policy in allowing:
        if policy.selector.match_labels:
            continue
        others = (workloads[other.ref] for other in allowing if other is not policy)
        alone = sorted(workloads[policy.ref] - set[str]().union(*others))
        if alone and policy.rules and not any(map(_matches_everything, policy.rules)):
            message = f"{policy.ref} alone makes {enumerated(alone)} deny what it does not allow"
            help_ = "select the workloads that are meant, or suppress this"
            span = locating.name_of(policy.span)
            yield Finding(codes.DENY_BY_DEFAULT, message, span, help_, (str(policy.ref), *alone[:3]))


def _matches_everything(rule: IstioRule) -> bool:
    return not rule.sources and not rule.operations and not rule.conditions


def check_providers(context: Context) -> Iterator[Finding]:
    """Report providers of CUSTOM policies that cannot be asked, or that fail open."""
    mesh = mesh_settings(context.settings, context.world)
    is_known = bool(mesh_sources(context.settings, context.world))
    for policy in _policies(context):
        if policy.action is not Action.CUSTOM or policy.provider is None:
            continue
        provider, span, subjects = mesh.provider(policy.provider.text), policy.provider.span, (str(policy.ref),)
        if provider is None and is_known:
            message = f"the mesh has no valid provider `{policy.provider.text}`: what {policy.ref} matches is denied"
            known = ", ".join(each.name for each in mesh.providers)
            help_ = f"write one of {known}" if known else "declare it in extensionProviders of the MeshConfig"
            yield Finding(codes.NO_PROVIDER, message, span, help_, subjects)
        elif provider is not None and provider.fail_open:
            message = f"requests pass {policy.ref} where {provider.authorizer} cannot be asked"
            help_ = f"remove failOpen of the provider {provider.name}"
            yield Finding(codes.FAILS_OPEN, message, span, help_, subjects)
