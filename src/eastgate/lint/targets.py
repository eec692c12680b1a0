"""Targets that are not there, or have nothing behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.dialects.linkerd.model import AuthorizationPolicy, Server, ServerAuthorization
from eastgate.lint import codes, locating
from eastgate.lint.ground import AccessPolicy, GepPolicy, Ground, Policy
from eastgate.lint.labels import misspelt, nearest_labels
from eastgate.lint.model import Finding
from eastgate.lint.nearest import near
from eastgate.places import Span
from eastgate.world import (
    BackendNamed,
    ExternalsMatching,
    GatewayNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    Target,
)

__all__ = ["empty_targets"]


def empty_targets(ground: Ground) -> Iterator[Finding]:
    """Every target without anything behind it. AuthPolicies tell that themselves when they are read."""
    for policy in ground.policies:
        if isinstance(policy, AuthorizationPolicy) and not policy.target.is_workload:
            yield from _linkerd_target(policy, ground)
        elif isinstance(policy, GepPolicy | AccessPolicy | Server | AuthorizationPolicy):
            for number, target in enumerate(policy.targets):
                yield from _target(policy, number, target, ground)


def _target(policy: Policy, number: int, target: Target, ground: Ground) -> Iterator[Finding]:
    world = ground.world
    match target:
        case PodsOfService(namespace, name) if f"{namespace}/{name}" not in world.services:
            yield _missing(policy, number, "Service", namespace, name, world.services)
        case GatewayNamed(namespace, name) if f"{namespace}/{name}" not in world.gateways:
            yield _missing(policy, number, "Gateway", namespace, name, world.gateways)
        case BackendNamed(namespace, name) if f"{namespace}/{name}" not in world.backends:
            yield _missing(policy, number, "Backend", namespace, name, world.backends)
        case PodsOwnedBy() | PodsOfAccount() | PodNamed() if not world.select(target):
            yield _no_workload(policy, number, target, ground)
        case PodsMatching() | PodsAcross() | PodsOfService() | ExternalsMatching():
            if not world.select(target):
                yield from _nothing(policy, number, target, ground)
            else:
                yield from misspelt(policy, target, ground)
        case _:
            pass


def _missing(policy: Policy, number: int, kind: str, namespace: str, name: str, declared: Iterable[str]) -> Finding:
    message = f"{policy.ref} targets {kind} {namespace}/{name}, which no manifest declares"
    help_ = _suggestion(namespace, name, declared) or f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, _span(policy, number, name), help_, (str(policy.ref),))


def _no_workload(
    policy: Policy, number: int, target: PodsOwnedBy | PodsOfAccount | PodNamed, ground: Ground
) -> Finding:
    world = ground.world
    match target:
        case PodsOwnedBy(namespace, kind, name):
            here = [w for w in world.workloads.values() if w.namespace == namespace]
            names = {owner.name for w in here for owner in w.owners if owner.kind == kind}
        case PodsOfAccount(namespace, name):
            kind, names = "ServiceAccount", ground.accounts.get(namespace, set())
        case PodNamed(namespace, name):
            kind = "Pod"
            names = {w.name for w in world.workloads.values() if w.namespace == namespace and not w.derived}
    message = f"{policy.ref} targets {kind} {namespace}/{name}, and no workload is of it"
    close = near(name, names - {name})
    help_ = f"did you mean {close}?" if close else f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, _span(policy, number, name), help_, (str(policy.ref),))


def _nothing(policy: Policy, number: int, target: Target, ground: Ground) -> Iterator[Finding]:
    if not ground.world.workloads:
        return  # then nothing is selected by anything
    help_ = nearest_labels(target, ground) or "change the target, or remove the policy"
    message = f"{policy.ref} selects nothing: there are no {target}"
    name = target.service if isinstance(target, PodsOfService) else ""
    yield Finding(codes.SELECTS_NOTHING, message, _span(policy, number, name), help_, (str(policy.ref),))


def _span(policy: Policy, number: int, name: str) -> Span | None:
    """The name of a target, or what selects it."""
    spec = locating.root_of(policy.span).nearest("spec")
    for field in ("targetRefs", "targetRef", "podSelector", "externalWorkloadSelector", "subject"):
        node = spec.get(field)
        if node is not None:
            one = node.nearest(number) if isinstance(node.value, list) else node
            return locating.scalar(policy.span, one.span, [name]) if name else one.span
    return locating.name_of(policy.span)


def _suggestion(namespace: str, name: str, declared: Iterable[str]) -> str | None:
    keys = list(declared)
    here = [key.partition("/")[2] for key in keys if key.startswith(f"{namespace}/")]
    close = near(name, here)
    if close:
        return f"did you mean {close}?"
    elsewhere = next((key for key in keys if key.endswith(f"/{name}")), None)
    return f"there is one in another namespace, {elsewhere}: a policy is beside its target" if elsewhere else None


# Linkerd: Servers, routes and the namespace


def _linkerd_target(policy: AuthorizationPolicy, ground: Ground) -> Iterator[Finding]:
    target, namespace = policy.target, policy.ref.namespace or ""
    if target.kind == "Namespace":
        return
    names = ground.names.get((target.group, target.kind, namespace), set())
    if target.name not in names:
        yield _missing(policy, 0, target.kind, namespace, target.name, [f"{namespace}/{name}" for name in names])


def unused_server_authorizations(ground: Ground) -> Iterator[Finding]:
    """ServerAuthorizations that choose no Server."""
    servers = [one for one in ground.policies if isinstance(one, Server)]
    for policy in ground.policies:
        if not isinstance(policy, ServerAuthorization):
            continue
        here = [one for one in servers if one.ref.namespace == policy.ref.namespace]
        if isinstance(policy.server, str):
            names = {one.ref.name for one in here}
            if policy.server not in names:
                close = near(policy.server, names)
                message = f"{policy.ref} is for Server {policy.server}, which no manifest declares"
                help_ = f"did you mean {close}?" if close else "declare the Server, or name another"
                span = locating.at(policy.span, "spec", "server", "name")
                yield Finding(codes.NO_SUCH_TARGET, message, span, help_, (str(policy.ref),))
        elif not any(policy.server.matches(one.labels) for one in here):
            message = f"{policy.ref} selects no Server: none in {policy.ref.namespace} has the labels {policy.server}"
            span = locating.at(policy.span, "spec", "server", "selector")
            yield Finding(codes.NO_SERVER, message, span, "label the Server so, or name it", (str(policy.ref),))
