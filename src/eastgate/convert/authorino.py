"""Converts Kuadrant's AuthPolicy of 2022 as its proposal describes: to a CUSTOM policy of Istio, and AuthConfigs of
Authorino.

All rules become operations of one policy in the Gateway's namespace, with authorino as the provider. Each auth scheme
becomes an AuthConfig `<namespace>-<name>-<number>` there. Authorino finds an AuthConfig by the host of a request, no
matter which policy sent the request. So a request that a policy selects and that has no scheme could be answered by an
AuthConfig of another policy. A separate policy denies these requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Gateway, Route, World
from eastgate.cluster.targets import GatewayNamed
from eastgate.convert import codes, kuadrant_codes
from eastgate.convert.authconfigs import API_VERSION, auth_config
from eastgate.convert.authorino_checks import lose_what_differs, reasons_to_keep, with_token_checks
from eastgate.convert.gateway_conditions import are_mixed_up
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Assumption, Item, Job, Manifest, metadata_of
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    ApiKeys,
    Introspection,
    Scheme,
    SecretRef,
    SigningKey,
    UmaResources,
)
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.dialects.kuadrant.proposal.assemble import in_force
from eastgate.dialects.kuadrant.proposal.model import HttpRule
from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.node import Node

# Finds auth schemes that select Secrets in the namespace of their policy.


def needs_secrets(part: object) -> bool:
    """Return whether a part of a scheme selects Secrets in its own namespace."""
    if isinstance(part, ApiKeys | X509) and not part.all_namespaces:
        return True
    if isinstance(part, SecretRef | SigningKey | Introspection | UmaResources):
        return True
    if isinstance(part, tuple | list):
        return any(map(needs_secrets, part))
    return is_dataclass(part) and any(needs_secrets(getattr(part, field.name)) for field in fields(part))


_PROVIDER = "authorino"
_TLS = ("HTTPS", "TLS")
_SECRET_KEYS = frozenset({"apiKey", "mtls", "x509", "labelSelectors", "sharedSecretRef", "credentialsRef"})


def to_authorino(items: Sequence[Item], job: Job) -> None:
    """Convert all AuthPolicies together, because the AuthConfig of one can serve requests of another."""
    policies = [item.policy for item in items if isinstance(item.policy, Policy)]
    taken: dict[Policy, list[str]] = {}
    chosen: list[tuple[Item, Policy, list[Gateway]]] = []
    for item in items:
        policy = item.policy
        assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
        gateways = _gateways(policy, job.world)
        if _convertible(item, policy, policies, gateways, job) and _has_hosts_alone(item, policy, taken, job):
            taken[policy] = [host for hosts, _ in _schemes(policy, job.world) for host, _ in hosts]
            chosen.append((item, policy, gateways))
            for scheme in policy.schemes:
                lose_what_differs(scheme, job)
    for item, policy, gateways in chosen:
        foreign = [host for other, hosts in taken.items() if other is not policy for host in hosts]
        for gateway in gateways:
            _write(item, policy, gateway, gateways, foreign, job)


def _schemes(policy: Policy, world: World) -> list[tuple[list[tuple[str, Span]], Scheme]]:
    """Return each scheme with its hosts and their spans.

    A scheme without hosts gets the hosts that the policy selects.
    """
    schemes = []
    for scheme, (span, spans) in zip(policy.schemes, policy.scheme_spans, strict=True):
        hosts = list(zip(scheme.hosts, spans, strict=True)) if spans else []
        schemes.append((hosts or [(host, span) for host in _selected_hosts(policy, world)], scheme))
    return schemes


def _selected_hosts(policy: Policy, world: World) -> list[str]:
    hostnames = _target_hosts(policy, world)
    hosts = [host for rule in policy.rules for host in rule.hosts or hostnames] or hostnames
    return [ANY] if ANY in hosts else list(dict.fromkeys(hosts))


def _gateways(policy: Policy, world: World) -> list[Gateway]:
    """Return the targeted Gateway, or the Gateways that the targeted route is attached to."""
    target = policy.target
    if isinstance(target, GatewayNamed):
        keys = [f"{target.namespace}/{target.name}"]
    else:
        route = world.routes.get(f"HTTPRoute/{target.namespace}/{target.name}")
        parents = route.parents if route is not None else ()
        keys = [f"{parent.namespace}/{parent.name}" for parent in parents if parent.kind == "Gateway"]
    return [world.gateways[key] for key in dict.fromkeys(keys) if key in world.gateways]


def _convertible(
    item: Item,
    policy: Policy,
    policies: Sequence[Policy],
    gateways: Sequence[Gateway],
    job: Job,
) -> bool:
    ref, document = policy.ref, item.document
    if policy.audit:
        message = f"a CUSTOM policy has no dry run: {ref} is not converted"
        job.keep(document, codes.AUDIT, message, document.locate("metadata", "annotations"))
        return False
    winner = in_force(other for other in policies if other.target == policy.target)
    if winner is not policy:
        name = winner.ref if winner is not None else "another policy"
        job.keep(
            document,
            kuadrant_codes.NOT_IN_FORCE,
            f"{name} has the same target: {ref} is not converted",
            policy.name_span,
        )
        return False
    if not gateways:
        message = f"no manifest declares the Gateway of {ref}: it is not converted"
        way_out = "give the manifests of the route and of its Gateway with -f"
        job.keep(document, kuadrant_codes.NO_GATEWAY, message, policy.target_span, help=way_out)
        return False
    reasons = [reason for scheme in policy.schemes for reason in reasons_to_keep(scheme, job)]
    for code, message, span, way_out in reasons:
        job.keep(document, code, f"{message}: {ref} is not converted", span or policy.name_span, help=way_out)
    return not reasons


def _has_hosts_alone(item: Item, policy: Policy, taken: Mapping[Policy, Sequence[str]], job: Job) -> bool:
    """Return whether Authorino confuses no hosts of two schemes, in this policy or between policies."""
    names = {host: str(other.ref) for other, hosts in taken.items() for host in hosts}
    for number, (hosts, _) in enumerate(_schemes(policy, job.world), 1):
        for host, span in hosts:
            rival = next((who for other, who in names.items() if are_mixed_up(host, other)), None)
            if rival is not None:
                message = f"{rival} has an AuthConfig for {host} too: {policy.ref} is not converted"
                job.keep(item.document, kuadrant_codes.SHARED_HOST, message, span, help="write one scheme for the host")
                return False
        names |= {host: f"auth scheme {number}" for host, _ in hosts}
    return True


def _write(
    item: Item, policy: Policy, gateway: Gateway, gateways: Sequence[Gateway], foreign: Sequence[str], job: Job
) -> None:
    stem = f"{policy.ref.namespace}-{policy.ref.name}"
    kind = "AuthorizationPolicy.security.istio.io"
    several = [listed for listed in gateways if listed.namespace == gateway.namespace]
    name = stem if len(several) == 1 else f"{stem}-{gateway.name}"
    target: Manifest = {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway.name}]}
    asking: Manifest = {"action": "CUSTOM", "provider": {"name": _PROVIDER}}
    asked: list[Plain] = list(_rules(policy, gateway, job))
    denied: list[Plain] = list(_denied(policy, gateway, foreign, job))
    for suffix, action, rules in (("", asking, asked), ("-without-scheme", {"action": "DENY"}, denied)):
        if not rules:
            continue
        metadata = metadata_of(item.document, job.name(kind, gateway.namespace, f"{name}{suffix}"), gateway.namespace)
        job.write(
            item.document,
            {
                "apiVersion": "security.istio.io/v1",
                "kind": "AuthorizationPolicy",
                "metadata": metadata,
                "spec": {**target, **action, "rules": rules},
            },
        )
    if gateway is several[0]:
        _auth_configs(item, policy, gateway, stem, job)


# Requests that are sent to authorization


def _rules(policy: Policy, gateway: Gateway, job: Job) -> Iterator[Plain]:
    """Build one rule with all operations.

    With TLS, add a rule for each operation that selects by the server name in the handshake.
    """
    hostnames = _target_hosts(policy, job.world)
    rules = policy.rules or (HttpRule(None, None, None, policy.span),)
    _lose_other_routes(policy, gateway, hostnames, job)
    operations = [_operation(rule, rule.hosts or hostnames, gateway, job) for rule in rules]
    if {} in operations:  # a rule without conditions selects everything, and Istio rejects an empty operation
        yield {}
        return
    yield {"to": [{"operation": operation} for operation in operations]}
    if not any(listener.protocol in _TLS for listener in gateway.listeners):
        return
    for rule, operation in zip(rules, operations, strict=True):
        names = rule.hosts or hostnames
        if "hosts" in operation:
            rest = {key: value for key, value in operation.items() if key != "hosts"}
            by_name: Manifest = {"to": [{"operation": rest}]} if rest else {}
            yield {**by_name, "when": [{"key": "connection.sni", "values": list[Plain](names)}]}


def _denied(policy: Policy, gateway: Gateway, foreign: Sequence[str], job: Job) -> Iterator[Plain]:
    """Build rules that deny selected requests without a scheme, where Authorino could answer them with a wrong
    AuthConfig.

    The wrong AuthConfig is of another policy, or it is for `*.example.com` and the request is for example.com. The
    server name in a TLS handshake selects a request to any host.
    """
    own = [host for hosts, _ in _schemes(policy, job.world) for host, _ in hosts]
    if ANY in own:
        return
    others = [*foreign, *(host[2:] for host in own if host.startswith("*."))]
    answered = [host for host in others if not any(is_inside(host, mine) for mine in own)]
    hostnames = _target_hosts(policy, job.world)
    covered = _with_ports(own, gateway, job.world)
    tls = any(listener.protocol in _TLS for listener in gateway.listeners)
    for rule in policy.rules or (HttpRule(None, None, None, policy.span),):
        names = list(rule.hosts or hostnames)
        operation = _operation(rule, names, gateway, job)
        rest = {key: value for key, value in operation.items() if key != "hosts"}
        if any(are_mixed_up(host, name) for host in answered for name in names):
            yield {"to": [{"operation": {**operation, "notHosts": list[Plain](covered)}}]}
        if tls and foreign and ANY not in names:
            by_name: Plain = {"key": "connection.sni", "values": list[Plain](names)}
            yield {"to": [{"operation": {**rest, "notHosts": list[Plain](covered)}}], "when": [by_name]}


def _target_hosts(policy: Policy, world: World) -> tuple[str, ...]:
    """Return the hosts of a rule that names none: the hosts of the route.

    For a Gateway, or a route without hosts, that is any host.
    """
    target = policy.target
    if isinstance(target, GatewayNamed):
        return (ANY,)
    route = world.routes.get(f"HTTPRoute/{target.namespace}/{target.name}")
    return (route.hostnames if route is not None else ()) or (ANY,)


def _operation(rule: HttpRule, hosts: Sequence[str], gateway: Gateway, job: Job) -> Manifest:
    operation: Manifest = {}
    if ANY not in hosts and (chosen := _hosts(rule, hosts, gateway, job)):
        operation["hosts"] = list[Plain](chosen)
    if rule.methods is not None and "*" not in rule.methods:
        operation["methods"] = list[Plain](rule.methods)
    if rule.paths is not None and "*" not in rule.paths:
        operation["paths"] = list[Plain](rule.paths)
        lose_paths(job, rule.span)
    return operation


def _hosts(rule: HttpRule, hosts: Sequence[str], gateway: Gateway, job: Job) -> list[str]:
    """Return the hosts, also with a port: a Host header may contain a port, and Istio compares the whole header.

    A pattern cannot have a wildcard at both ends. Behind `*.example.com` a Gateway of Istio routes only its own ports,
    and behind a whole name any port, so these ports are listed. If a route takes every host, the only safe conversion
    is to ask Authorino about all requests.
    """
    _, catches_all = _served(gateway, job.world)
    dotted = [f"{host}." for host in hosts] if catches_all else []  # another route takes hosts in this form
    if job.assumes(Assumption.ISTIO_HOSTS):
        return [*hosts, *dotted]
    patterns = [host for host in hosts if host.startswith("*")]
    if patterns and catches_all:
        span = dict(zip(rule.hosts or (), rule.host_spans, strict=False)).get(patterns[0], rule.span)
        unsafe = f"`{patterns[0]}` does not match a Host header with a port, and a route takes every host"
        message = f"{unsafe}: all hosts are sent to authorization"
        way_out = "let the Gateway strip ports and add --assume istio-hosts, or write the hosts one by one"
        job.lose(kuadrant_codes.HOST_PORTS, message, span, help=way_out)
        return []
    return _with_ports([*hosts, *dotted], gateway, job.world)


def _with_ports(hosts: Sequence[str], gateway: Gateway, world: World) -> list[str]:
    names, _ = _served(gateway, world)
    patterns = [host for host in hosts if host.startswith("*")]
    whole = [host for host in hosts if not host.startswith("*")]
    whole += [name for name in sorted(names) if any(is_inside(name, pattern) for pattern in patterns)]
    ports = sorted({listener.port for listener in gateway.listeners})
    with_ports = [f"{host}:{port}" for host in patterns for port in ports]
    return [*hosts, *with_ports, *dict.fromkeys(f"{host}:*" for host in whole)]


def _served(gateway: Gateway, world: World) -> tuple[set[str], bool]:
    """Return the whole names that a Gateway serves, and whether it serves every host."""
    routes = [route for route in world.routes.values() if _is_attached(route, gateway)]
    routed = {host for route in routes for host in route.hostnames or (ANY,)}
    heard = {listener.hostname or ANY for listener in gateway.listeners}
    return {host for host in routed | heard if "*" not in host}, ANY in routed and ANY in heard


def _lose_other_routes(policy: Policy, gateway: Gateway, hostnames: Sequence[str], job: Job) -> None:
    target = policy.target
    if isinstance(target, GatewayNamed):
        return
    own = f"HTTPRoute/{target.namespace}/{target.name}"
    chosen = {host for rule in policy.rules for host in rule.hosts or hostnames} or set(hostnames)
    for key, route in sorted(job.world.routes.items()):
        if key != own and _shares(route, gateway, chosen):
            message = f"requests to {route.kind} {route.namespace}/{route.name} are authorized too, by their hosts"
            job.lose(kuadrant_codes.OTHER_ROUTES, message, policy.target_span)


def _is_attached(route: Route, gateway: Gateway) -> bool:
    return any((parent.namespace, parent.name) == (gateway.namespace, gateway.name) for parent in route.parents)


def _shares(route: Route, gateway: Gateway, hosts: set[str]) -> bool:
    theirs = route.hostnames or (ANY,)
    return _is_attached(route, gateway) and any(
        is_inside(host, other) or is_inside(other, host) for host in theirs for other in hosts
    )


# AuthConfigs


def _auth_configs(item: Item, policy: Policy, gateway: Gateway, stem: str, job: Job) -> None:
    assert item.document.node is not None  # noqa: S101 - policies are read with positions
    spec_node = without_nulls(item.document.node["spec"])
    nodes = [*(spec_node.get("authSchemes") or ()), *([spec_node["authScheme"]] if "authScheme" in spec_node else ())]
    for number, (node, (hosts, scheme)) in enumerate(zip(nodes, _schemes(policy, job.world), strict=True), 1):
        name = job.name("AuthConfig", gateway.namespace, f"{stem}-{number}")
        secret = _secret(node)
        if secret is not None and gateway.namespace != policy.ref.namespace:
            message = f"Authorino looks for Secrets in {gateway.namespace}, the namespace of the AuthConfig {name}"
            way_out = f"copy the Secrets of the scheme from {policy.ref.namespace} to {gateway.namespace}"
            job.lose(kuadrant_codes.SECRETS, message, secret, help=way_out)
        plain = node.plain()
        assert isinstance(plain, dict)  # noqa: S101 - a scheme is a mapping
        spec: Manifest = {"hosts": [host for host, _ in hosts], **with_token_checks(auth_config(plain), scheme)}
        manifest: Manifest = {
            "apiVersion": API_VERSION,
            "kind": "AuthConfig",
            "metadata": metadata_of(item.document, name, gateway.namespace),
            "spec": spec,
        }
        job.write(item.document, manifest)


def _secret(node: Node) -> Span | None:
    """Return the first place in a scheme that selects a Secret."""
    for key, value in node.items():
        if key in _SECRET_KEYS:
            return node.key_span(key)
        if (span := _secret(value)) is not None:
            return span
    return next((span for value in node if (span := _secret(value)) is not None), None)
