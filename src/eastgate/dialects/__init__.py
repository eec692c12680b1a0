"""Policy APIs, each mapped into the IR. `DIALECTS` is the only place where they are registered."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Diagnostic, Reporter, did_you_mean
from eastgate.cluster import (
    CONTROLLER_KINDS,
    GATEWAY_GROUP,
    Backend,
    Manifest,
    Workload,
    World,
    WorldObject,
    may_install,
    uses,
    uses_kind,
)
from eastgate.cluster.points import Direction
from eastgate.cluster.unread import UnreadEffect, UnreadKind, is_unread_name, resembling, unread_kind
from eastgate.dialects import accesspolicy, codes, gep3779, istio, linkerd, network, rejected
from eastgate.dialects.base import Condition, Dialect, NameUse, Policy, Scene
from eastgate.dialects.kuadrant import authconfigs, policies, proposal
from eastgate.dialects.logs import LoggedDecision
from eastgate.dialects.registry import Registry
from eastgate.ir import Attachment, Layer, Stances
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import origin_of
from eastgate.reading.manifests.rendered import OversizedObject
from eastgate.settings import Settings, bring_sections

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource

__all__ = [
    "DIALECTS",
    "HOSTS",
    "Policy",
    "Settings",
    "assemble",
    "assemble_end",
    "conditions",
    "deploys",
    "dialect_of",
    "inspect",
    "is_examined",
    "is_on_network",
    "is_policy",
    "matters",
    "read_log_line",
    "read_object",
    "read_policy",
    "reads",
    "registered",
    "reject",
    "stances",
    "surroundings",
    "unread",
]

# One line for each dialect. All code that reads, decides, reports or enforces finds the dialects here.
DIALECTS: tuple[Dialect[Any], ...] = (
    gep3779.DIALECT,
    accesspolicy.DIALECT,
    linkerd.DIALECT,
    policies.DIALECT,
    authconfigs.DIALECT,
    proposal.DIALECT,
    istio.DIALECT,
    network.DIALECT,
)

HOSTS = next(dialect.hosts for dialect in DIALECTS if dialect.hosts is not None)
"""The kind of policies that are found by the host of a request."""

bring_sections(lambda: [dialect.settings for dialect in DIALECTS if dialect.settings is not None])


def registered() -> Registry:
    """Return the registered dialects, with the known properties of their kinds."""
    return _registry(DIALECTS)


@lru_cache(maxsize=2)
def _registry(dialects: tuple[Dialect[Any], ...]) -> Registry:
    return Registry((rejected.DIALECT, *dialects))  # policies that cannot be read come first


def dialect_of(policy: Policy) -> Dialect[Any]:
    """Return the dialect of a policy."""
    return registered().of_model(type(policy))


def reads(api_version: str, kind: str) -> bool:
    """Return whether a dialect reads documents of this kind, so that their positions must be kept."""
    group, _, version = api_version.rpartition("/")
    return (group, version, kind) in registered().read


def matters(api_version: str, kind: str) -> bool:
    """Return whether a document of this type can change a decision.

    It can if it is a policy (of any kind, read or not), claims to be one, or decides which objects exist. Errors in
    other documents stop no decision. Either argument may be empty if it is unknown.
    """
    return _matters(registered(), api_version, kind)


@lru_cache(maxsize=4096)
def _matters(registry: Registry, api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    if not api_version:
        return uses_kind(kind) or any(kind == name for _, _, name in registry.read) or is_unread_name(kind)
    if not kind:
        return group in registry.groups
    decides = _is_policy(registry, group, version, kind) or _unread(registry, group, version, kind) is not None
    return decides or reads(api_version, kind) or uses(api_version, kind)


def takes(api_version: str, kind: str) -> bool:
    """Return whether a document of this type is read: it can change a decision, or may install a mesh."""
    return matters(api_version, kind) or may_install(api_version, kind)


def deploys(api_version: str, kind: str) -> bool:
    """Return whether a document of this type is a policy (of any kind, read or not), or a workload."""
    group, _, version = api_version.rpartition("/")
    unread_here = _unread(registered(), group, version, kind)
    is_workload = (group, kind) == ("", "Pod") or CONTROLLER_KINDS.get(kind) == group
    acts = unread_here is not None and unread_here.effect is not UnreadEffect.NONE
    return acts or is_workload or _is_policy(registered(), group, version, kind)


def is_policy(document: Document) -> bool:
    """Return whether a document is a policy, claims to be one, or has an unknown kind in a group of policies."""
    return _is_policy(registered(), document.group, document.version, document.kind)


def is_route(document: Document) -> bool:
    """Return whether a document is a route. A route with errors closes its parents, as policies close their targets."""
    return document.group == GATEWAY_GROUP and document.kind.endswith("Route")


def unread(document: Document) -> UnreadKind | None:
    """Return the kind of a document that affects authorization and that no dialect reads, or None.

    A kind in an unknown group is also returned if its name looks like one of these.
    """
    return _unread(registered(), document.group, document.version, document.kind)


@lru_cache(maxsize=1024)
def _is_policy(registry: Registry, group: str, version: str, kind: str) -> bool:
    if (
        (group, kind) in registry.bystanders
        or (group, version, kind) in registry.objects
        or registry.is_unread(group, kind)
    ):
        return False
    use = registry.name_uses.get(kind, NameUse.COMMON)
    ours = use is NameUse.OURS_ALONE or "." not in group or group == GATEWAY_GROUP
    return (
        group in registry.groups
        or (use is not NameUse.COMMON and ours)
        or _probable_group(registry, group, kind) is not None
    )


@lru_cache(maxsize=1024)
def _unread(registry: Registry, group: str, version: str, kind: str) -> UnreadKind | None:
    if registry.is_unread(group, kind):
        return unread_kind(group, kind)
    if group in registry.groups or _is_policy(registry, group, version, kind) or group == GATEWAY_GROUP:
        return None
    return resembling(group, kind)


@lru_cache(maxsize=256)
def _probable_group(registry: Registry, group: str, kind: str) -> str | None:
    """Return the group that the author probably meant, for a known kind in a group that does not exist; or None."""
    if group == GATEWAY_GROUP:
        return None
    return did_you_mean(group, {home for home, _, name in registry.policies if name == kind})


def read_policy(document: Document, settings: Settings, reporter: Reporter) -> Policy | None:
    """Return the policy of a document. If it has none, report the reason and return None."""
    if isinstance(origin := origin_of(document), OversizedObject):
        origin.report(reporter)
        return None
    kind = registered().policies.get((document.group, document.version, document.kind))
    node = document.node if kind is not None else None
    if kind is not None and node is not None:
        policy: Policy | None = kind.read(document, node, settings, reporter)
        return policy
    _refuse(registered(), document, reporter)
    return None


def reject(document: Document, errors: Sequence[Diagnostic], settings: Settings) -> rejected.RejectedPolicy:
    """Return the policy that closes the targets of a document with errors, or everything that it may apply to."""
    registry = registered()
    policy = rejected.reject(
        document,
        errors,
        registry.policies.get((document.group, document.version, document.kind)),
        cluster_scoped=document.kind in registry.cluster_scoped,
        is_policy=is_policy(document),
    )
    widen = registry.widening(document) if policy.is_policy else None
    return policy if widen is None else replace(policy, targets=widen(policy.targets, document, settings))


def read_object(document: Document, settings: Settings, reporter: Reporter) -> Backend | None:
    """Return the object that a document of a dialect declares, or None if it declares none or has errors."""
    kind = registered().objects.get((document.group, document.version, document.kind))
    node = document.node if kind is not None else None
    if kind is None or node is None:
        return None
    return kind.read(document, node, settings, reporter)


def inspect(manifest: Manifest, declared: WorldObject, reporter: Reporter) -> None:
    """Report wrong references from an object of no dialect to resources of a dialect."""
    for dialect in DIALECTS:
        if dialect.inspect is not None:
            dialect.inspect(manifest, declared, reporter)


def _refuse(registry: Registry, document: Document, reporter: Reporter) -> None:
    group, kind = document.group, document.kind
    versions = sorted(v for g, v, k in registry.read if (g, k) == (group, kind))
    homes = sorted({f"{g}/{v}" for g, v, k in registry.read if k == kind})
    if versions:
        reporter.report(
            codes.UNKNOWN_VERSION,
            f"{kind} has no version `{document.version}`",
            document.locate("apiVersion"),
            help="write " + " or ".join(f"{group}/{version}" for version in versions),
        )
    elif homes:
        reporter.report(
            codes.UNKNOWN_KIND,
            f"there is no {kind} in {f'the group {group}' if group else 'the core group'}",
            document.locate("apiVersion"),
            help="write apiVersion: " + " or ".join(homes),
        )
    else:
        kinds = {k for g, _, k in registry.policies if g == group}
        near = did_you_mean(kind, kinds)
        reporter.report(
            codes.UNKNOWN_KIND,
            f"there is no kind {kind} in the group {group}",
            document.locate("kind"),
            help=f"did you mean {near}?" if near else f"the policies of this group are {', '.join(sorted(kinds))}",
        )


def is_examined(policy: Policy) -> bool:
    """Return whether the checks of a policy need the other objects that were read."""
    return any(dialect.examine is not None and isinstance(policy, dialect.model) for dialect in DIALECTS)


def notices(
    policies: Sequence[Policy], settings: Settings, world: World, workloads: Collection[str] | None = None
) -> list[Diagnostic]:
    """Return the warnings about policies that are not in force on these workloads, or on any if `workloads` is None."""
    return [notice for dialect in DIALECTS for notice in dialect.warnings(policies, settings, world, workloads)]


def conditions(policy: Policy, policies: Sequence[Policy], settings: Settings, world: World) -> list[Condition]:
    """Return the conditions that a policy would show in its status."""
    return [
        condition
        for dialect in registered().dialects
        for condition in dialect.conditions(policy, policies, settings, world)
    ]


def stances(workload: Workload, attached: Sequence[Attachment[Policy]], settings: Settings, world: World) -> Stances:
    """Return the inputs of a workload's layers other than its policies, dialect by dialect."""
    scene = Scene(settings, world)
    of_dialects = ((dialect.name, dialect.stance_of(workload, attached, scene)) for dialect in registered().dialects)
    return tuple((name, stance) for name, stance in of_dialects if stance is not None)


def assemble(
    attached: Sequence[Attachment[Policy]],
    settings: Settings,
    world: World,
    stances: Stances = (),
    keys: KeySource | None = None,
    *,
    live: bool = False,
) -> list[Layer]:
    """Return the layers of an enforcement point that these policies target, dialect by dialect."""
    by_dialect = dict(stances)
    return [
        layer
        for dialect in registered().dialects
        for layer in dialect.assemble(attached, Scene(settings, world, by_dialect.get(dialect.name), keys, live))
    ]


def read_log_line(line: str) -> LoggedDecision | None:
    """Return the decision in a log line of an API's proxies, or None if the format of the line is unknown.

    Raises LogLineError if the format is known but the line contains no decision.
    """
    readers = (dialect.read_log for dialect in DIALECTS if dialect.read_log is not None)
    return next((decision for read in readers if (decision := read(line)) is not None), None)


def surroundings(world: World) -> Hashable:
    """Return the parts of a world that layers at any point may depend on, other than objects of `surrounding_kinds`."""
    found = (dialect.surroundings.of for dialect in DIALECTS)
    return tuple(of(world) for of in found if of is not None)


def is_on_network(policy: Policy) -> bool:
    """Return whether the network enforces a policy, at the ends of connections, or would if it had no errors."""
    registry = registered()
    if isinstance(policy, rejected.RejectedPolicy):
        return (policy.ref.group, policy.ref.kind) in registry.network_kinds
    return registry.of_model(type(policy)).ends is not None


def assemble_end(
    attached: Sequence[Attachment[Policy]], direction: Direction, settings: Settings, world: World
) -> list[Layer]:
    """Return the layers at one end of connections that these policies target, dialect by dialect."""
    scene = Scene(settings, world)
    return [layer for dialect in registered().dialects for layer in dialect.assemble_end(attached, direction, scene)]
