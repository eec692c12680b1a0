"""Checks of rules of AuthorizationPolicies that Istio reads differently from most authors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from eastgate.basics.diagnostics import mistyped
from eastgate.basics.regexes import regex
from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.mesh_config import mesh_settings, mesh_sources
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.values import is_template, network_of
from eastgate.dialects.istio.written import Fields, IstioRule, WrittenValue, negated
from eastgate.dialects.linting import Context, Finding, enumerated, locating
from eastgate.ir.spiffe import SCHEME

# Rules and values of AuthorizationPolicies that are easy to get wrong


_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
_ACCOUNT = regex(r"[^/]+/ns/[^/]+/sa/[^/]+")
_KUBERNETES_USER: Final = "system:serviceaccount:"
_OPEN_TO_ALL = regex(
    r"/?\*?(.*/)?(\.well-known|actuator|api-docs|assets|callback|docs|favicon\.ico|health\w*|livez?|liveness|login"
    r"|metrics|oauth2?|openapi(\.\w+)?|ping|public|ready|readyz|readiness|robots\.txt|startup|static|status|swagger.*"
    r"|version)(/.*)?\*?"
)


def values_of(policy: IstioAuthorizationPolicy) -> Iterator[tuple[str, WrittenValue]]:
    """Yield every value of the rules of a policy, with its field or key."""
    for rule in policy.rules:
        for entry in (*(rule.sources or ()), *(rule.operations or ())):
            for name, values in entry.items():
                yield from ((name, value) for value in values)
        for when in rule.conditions:
            yield from ((when.key, value) for value in when.values)


# Two rules


def check_two_rules(context: Context) -> Iterator[Finding]:
    """Report a rule with only `from` beside a rule with only `to`, in a policy that allows."""
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy) and policy.action is Action.ALLOW:
            reported = -1
            for pair in pairwise(policy.rules):
                by_caller = next((rule for rule in pair if rule.sources and not rule.operations), None)
                by_request = next((rule for rule in pair if rule.operations and not rule.sources), None)
                if by_caller is None or by_request is None or any(rule.conditions for rule in pair):
                    continue
                if pair[0].index > reported and not _is_open_to_all(by_request):
                    reported = pair[1].index
                    yield _two_rules(policy, by_caller, by_request, pair[1])


def _is_open_to_all(rule: IstioRule) -> bool:
    """Return whether a rule opens a port, or paths that are usually open: probes, metrics and public files."""
    return all(
        entry.keys() == {"ports"} or ("paths" in entry and _are_open_to_all(entry["paths"].values))
        for entry in rule.operations or ()
    )


def _are_open_to_all(paths: Sequence[WrittenValue]) -> bool:
    return 2 * sum(_OPEN_TO_ALL.fullmatch(path.text) is not None for path in paths) >= len(paths)


def _two_rules(
    policy: IstioAuthorizationPolicy, by_caller: IstioRule, by_request: IstioRule, second: IstioRule
) -> Finding:
    message = (
        f"rule {by_request.index} of {policy.ref} allows {_words(by_request.operations or ())} to every caller, and "
        f"rule {by_caller.index} allows {_words(by_caller.sources or ())} everything"
    )
    field = "to" if second is by_request else "from"
    help_ = f"to allow only these requests of these callers, write one rule: remove the dash before `{field}`"
    return Finding(codes.TWO_RULES, message, second.span, help_, (str(policy.ref),))


def _words(entries: Sequence[Fields]) -> str:
    """Return the text of sources or operations, with the names of the policy's fields."""
    lists = [
        (name if values is written.values else negated(name), values)
        for entry in entries[:2]
        for name, written in entry.items()
        for values in (written.values, written.not_values)
        if values
    ]
    said = [f"{name} {', '.join(value.text for value in values[:3])}" for name, values in lists[:3]]
    return ", ".join(said) + (" .." if len(entries) > 2 or len(lists) > 3 else "")


# Values


def check_spellings(context: Context) -> Iterator[Finding]:
    """Report values that no request and no caller has, with the correct spelling."""
    trust_domain = mesh_settings(context.settings, context.world).trust_domain
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy):
            for name, value in values_of(policy):
                if name in ("principals", "source.principal"):
                    if is_misspelt(value.text):
                        yield _principal(policy, value, trust_domain)
                else:
                    yield from _other(policy, name, value)


def is_misspelt(principal: str) -> bool:
    """Return whether a text looks like a service account, but is not the principal of one."""
    if principal.startswith((SCHEME, _KUBERNETES_USER)):
        return True
    if "*" in principal or _ACCOUNT.fullmatch(principal):
        return False
    parts = principal.split("/")
    if "ns" in parts[:2] or "sa" in parts[-2:-1]:
        return True
    return len(parts) <= 2 and "." not in parts[0]  # other trust domains contain a dot


def _principal(policy: IstioAuthorizationPolicy, value: WrittenValue, trust_domain: str) -> Finding:
    message = f"no caller has the principal `{value.text}`"
    help_ = _principal_help(value.text, policy, trust_domain)
    return Finding(codes.NO_SUCH_PRINCIPAL, message, value.span, help_, (str(policy.ref),))


def _principal_help(text: str, policy: IstioAuthorizationPolicy, trust_domain: str) -> str:
    if text.startswith(SCHEME):
        return f"write {text.removeprefix(SCHEME)}, without {SCHEME}"
    if text.startswith(_KUBERNETES_USER):
        namespace, _, name = text.removeprefix(_KUBERNETES_USER).partition(":")
    else:
        parts = [part for part in text.split("/") if part not in ("", "ns", "sa", trust_domain)]
        namespace, name = parts[-2:] if len(parts) > 1 else (policy.namespace, "".join(parts))
    return f"write {trust_domain}/ns/{namespace or '<namespace>'}/sa/{name or '<name>'}"


def _other(policy: IstioAuthorizationPolicy, name: str, value: WrittenValue) -> Iterator[Finding]:
    problem = _PROBLEMS[name](value.text) if name in _PROBLEMS else None
    if problem is not None:
        why, help_ = problem
        message = f"`{value.text}` of `{name}` matches no request: {why}"
        yield Finding(codes.NO_SUCH_REQUEST, message, value.span, help_, (str(policy.ref),))


def _method_problem(text: str) -> tuple[str, str] | None:
    plain = text.strip("*")
    if not plain or plain in _METHODS:
        return None
    if "/" in plain:
        return "a method of gRPC is a path, and its HTTP method is POST", f"write paths: [{text}]"
    known = _METHODS if "*" not in text else tuple(method[:size] for method in _METHODS for size in range(1, 8))
    if plain != plain.upper() and plain.upper() in known:
        return "HTTP methods are in capitals", f"write {text.upper()}"
    near = mistyped(plain.upper(), _METHODS) if "*" not in text else None
    return ("HTTP has no such method", f"did you mean {near}?") if near else None


def _path_problem(text: str) -> tuple[str, str] | None:
    if "://" in text:
        _, _, rest = text.partition("://")
        return "a path has no scheme and no host", f"write /{rest.partition('/')[2]}, and the host in `hosts`"
    for mark, part in (("?", "query"), ("#", "fragment")):
        if mark in text:
            return f"Istio compares paths without their {part}", f"write {text.partition(mark)[0] or '/'}"
    if not text.startswith(("/", "*")):
        return "a path begins with /", f"write /{text}"
    return None


def _request_principal_problem(text: str) -> tuple[str, str] | None:
    issuer, _, subject = text.rpartition("/")  # as Istio does, even if that splits `https://`
    if not issuer.endswith(":/") and ("*" in text or (issuer and subject)):
        return None
    plain = text.rstrip("*")
    help_ = "write the whole issuer and /*" if plain.endswith("://") else f"write {plain}/*"
    return "a request principal is an issuer, a slash and a subject", help_


def _host_problem(text: str) -> tuple[str, str] | None:
    host = text.partition("://")[2] or text
    if "/" not in text:
        return None
    return "a host has no scheme and no path", f"write {host.partition('/')[0] or '<host>'}"


def _namespace_problem(text: str) -> tuple[str, str] | None:
    if "/" not in text or "*" in text:
        return None
    return "the name of a namespace contains no /", f"write serviceAccounts: [{text}], or only the namespace"


_PROBLEMS: Final = {
    "methods": _method_problem,
    "paths": _path_problem,
    "hosts": _host_problem,
    "namespaces": _namespace_problem,
    "source.namespace": _namespace_problem,
    "request.headers[:method]": _method_problem,
    "requestPrincipals": _request_principal_problem,
    "request.auth.principal": _request_principal_problem,
}


_WITH_WILDCARDS = frozenset({"principals", "requestPrincipals", "hosts", "methods", "paths"})
_KEYS_WITH_WILDCARDS = ("source.principal", "request.auth.", "request.headers", "connection.sni")
_NETWORKS = frozenset({"ipBlocks", "remoteIpBlocks", "source.ip", "remote.ip", "destination.ip"})


def _policies(context: Context) -> Iterator[IstioAuthorizationPolicy]:
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy) and not policy.audit:
            yield policy


def _selected(policy: IstioAuthorizationPolicy, context: Context, serving: ServingPlane) -> list[str]:
    """Return the workloads that a policy selects and that such a proxy serves, or may serve."""
    data_plane = context.settings.section(IstioSettings).istio_data_plane
    keys = sorted({key for target in policy.targets for key in context.world.select(target)} if not policy.refs else ())
    planes = ((key, plane_of(context.workload(key), context.world, data_plane)) for key in keys)
    is_sidecar = serving is ServingPlane.SIDECAR
    return [key for key, plane in planes if plane is serving or (is_sidecar and plane.may_be_sidecar)]


# Values


def check_values(context: Context) -> Iterator[Finding]:
    """Report literal wildcards, networks with host bits, IPv4 networks written as IPv6, and empty lists."""
    for policy in _policies(context):
        for rule in policy.rules:
            yield from _empty_entries(policy, rule)
        for name, value in values_of(policy):
            yield from _value(policy, name, value)
            if name in ("namespaces", "source.namespace"):
                yield from _crossing_pattern(policy, value, context)
        yield from _empty_selector(policy, context)


def _crossing_pattern(policy: IstioAuthorizationPolicy, value: WrittenValue, context: Context) -> Iterator[Finding]:
    """Report a pattern of namespaces that matches all of them at a sidecar, because its `*` matches up to `/sa/`."""
    ends_so = value.text.startswith("*") and len(value.text) > 1 and "/sa".endswith(value.text[1:])
    if ends_so and _selected(policy, context, ServingPlane.SIDECAR):
        message = (
            f"`{value.text}` matches every namespace: Istio searches it in the whole identity, which contains `/sa/`"
        )
        help_ = "write the names of the namespaces, or another pattern"
        yield Finding(codes.CROSSING_PATTERN, message, value.span, help_, (str(policy.ref),))


def _empty_selector(policy: IstioAuthorizationPolicy, context: Context) -> Iterator[Finding]:
    """Report `selector: {}` at ztunnel, where it selects no workload."""
    if not policy.has_selector or policy.selector.match_labels:
        return
    behind = _selected(policy, context, ServingPlane.ZTUNNEL)
    if behind:
        message = (
            f"{policy.ref} is not enforced on {enumerated(behind)}: for ztunnel, an empty selector selects nothing"
        )
        span = locating.at(policy.span, "spec", "selector")
        yield Finding(codes.EMPTY_SELECTOR, message, span, "leave `selector` out", (str(policy.ref), *behind[:3]))


def _empty_entries(policy: IstioAuthorizationPolicy, rule: IstioRule) -> Iterator[Finding]:
    for name, entries, what in (("from", rule.sources, "source"), ("to", rule.operations, "operation")):
        if entries == ():
            message = f"rule {rule.index} of {policy.ref} matches any {what}: `{name}: []` is the same as no `{name}`"
            span = locating.at(policy.span, "spec", "rules", rule.index, name)
            help_ = f"write sources, or leave `{name}` out" if name == "from" else f"leave `{name}` out"
            yield Finding(codes.EMPTY_ENTRIES, message, span, help_, (str(policy.ref),))


def _value(policy: IstioAuthorizationPolicy, name: str, value: WrittenValue) -> Iterator[Finding]:
    if name in _WITH_WILDCARDS or name.startswith(_KEYS_WITH_WILDCARDS):
        if _has_literal_wildcard(value.text) and not (name == "paths" and is_template(value.text)):
            message = f"a `*` of `{value.text}` is a character and not a wildcard: it matches nothing that exists"
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
    """Report an ALLOW policy for all workloads that is the only one to close some of them."""
    allowing = [policy for policy in _policies(context) if policy.action is Action.ALLOW and not policy.refs]
    workloads = {policy.ref: set(context.workloads_of.get(policy.ref, ())) for policy in allowing}
    for policy in allowing:
        if policy.selector.match_labels:
            continue
        others = (workloads[other.ref] for other in allowing if other is not policy)
        alone = sorted(workloads[policy.ref] - set[str]().union(*others))
        if alone and policy.rules and not any(map(_matches_everything, policy.rules)):
            message = f"{policy.ref} alone makes {enumerated(alone)} deny all requests that it does not allow"
            help_ = "select the intended workloads, or suppress this"
            span = locating.name_of(policy.span)
            yield Finding(codes.DENY_BY_DEFAULT, message, span, help_, (str(policy.ref), *alone[:3]))


def _matches_everything(rule: IstioRule) -> bool:
    return not rule.sources and not rule.operations and not rule.conditions


def check_providers(context: Context) -> Iterator[Finding]:
    """Report providers of CUSTOM policies that are not valid, or that fail open."""
    mesh = mesh_settings(context.settings, context.world)
    is_known = bool(mesh_sources(context.settings, context.world))
    for policy in _policies(context):
        if policy.action is not Action.CUSTOM or policy.provider is None:
            continue
        provider, span, subjects = mesh.provider(policy.provider.text), policy.provider.span, (str(policy.ref),)
        if provider is None and is_known:
            message = f"no valid provider `{policy.provider.text}`: requests that {policy.ref} matches are denied"
            known = ", ".join(each.name for each in mesh.providers)
            help_ = f"write one of {known}" if known else "declare it in extensionProviders of the MeshConfig"
            yield Finding(codes.NO_PROVIDER, message, span, help_, subjects)
        elif provider is not None and provider.fail_open:
            message = f"requests pass {policy.ref} if {provider.authorizer} cannot be reached"
            help_ = f"remove failOpen of the provider {provider.name}"
            yield Finding(codes.FAILS_OPEN, message, span, help_, subjects)
