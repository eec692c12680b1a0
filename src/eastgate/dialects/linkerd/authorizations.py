"""Authorizations of clients on a Server, a route or a workload. Each authorization is one rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Selector
from eastgate.dialects.linkerd.model import (
    GROUP,
    AuthorizationPolicy,
    ClientRequirement,
    InboundRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Server,
    ServerAuthorization,
)
from eastgate.dialects.linkerd.provenance import UnresolvedReference
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    InNetwork,
    Is,
    Not,
    OneOf,
    PolicyRef,
    Predicate,
    Prefix,
    Present,
    Rule,
    Suffix,
    all_of,
    any_of,
)
from eastgate.ir.addresses import Network
from eastgate.ir.attributes import ADDRESS, MESH_NAME, Attribute
from eastgate.settings import Networks, Settings

# Predicates about the identity and the address of a client.


# The proxy compares suffixes, and so the lone `*`, with DNS names only. It compares a SPIFFE ID as a whole.
_DNS = Not(Is(MESH_NAME, Prefix("spiffe://")))
ANY_NAME: Predicate = And((Is(MESH_NAME, Present()), _DNS))


def with_identities(identities: Iterable[str]) -> Predicate:
    """Match clients with ANY of these identities: a whole name, `*` for any name, or `*.` and a suffix."""
    distinct = list(dict.fromkeys(identities))
    exact = frozenset(identity for identity in distinct if identity != "*" and not identity.startswith("*."))
    parts: list[Predicate] = [Is(MESH_NAME, OneOf(exact))] if exact else []
    for identity in distinct:
        if identity == "*":
            parts.append(ANY_NAME)
        elif identity.startswith("*."):
            parts.append(And((Is(MESH_NAME, Suffix(identity[1:])), _DNS)))
    return any_of(parts)


def cluster_networks(settings: Settings) -> Networks:
    """Return the networks of the cluster, and those of a local machine that acts as one."""
    return (*settings.section(LinkerdSettings).linkerd_cluster_networks, *settings.local_networks)


def in_networks(networks: Networks) -> Predicate:
    """Match clients in ANY of these networks, or every client if the networks cover all addresses."""
    everywhere = {4, 6} <= {network.version for network in networks if network.prefixlen == 0}
    return ALWAYS if everywhere else Is(ADDRESS, InNetwork(networks))


def in_network_except(network: Network, exceptions: Networks) -> Predicate:
    """Match clients in one network but in none of its exceptions. Another network may still allow the exceptions."""
    inside = Is(ADDRESS, InNetwork((network,)))
    return And((inside, Not(Is(ADDRESS, InNetwork(exceptions))))) if exceptions else inside


def default_client(policy: InboundPolicy, networks_of_cluster: Networks) -> Predicate | None:
    """Match the clients that a default policy allows; None if it allows no client."""
    cluster = in_networks(networks_of_cluster)
    match policy:
        case InboundPolicy.ALL_UNAUTHENTICATED | InboundPolicy.AUDIT:
            return ALWAYS
        case InboundPolicy.ALL_AUTHENTICATED:
            return ANY_NAME
        case InboundPolicy.CLUSTER_UNAUTHENTICATED:
            return cluster
        case InboundPolicy.CLUSTER_AUTHENTICATED:
            return And((ANY_NAME, cluster))
        case InboundPolicy.DENY:
            return None


_Part = tuple[Attribute, Span]


class Authorizations:
    """The authorizations of a namespace, in the order of their names, and their authentications."""

    def __init__(self, resources: Iterable[LinkerdResource], cluster_networks: Networks) -> None:
        self._cluster = in_networks(cluster_networks)
        ordered = sorted(resources, key=lambda resource: resource.ref)
        self._authentications = {resource.ref: resource for resource in ordered}
        self._of_servers = [resource for resource in ordered if isinstance(resource, ServerAuthorization)]
        self._policies = [resource for resource in ordered if isinstance(resource, AuthorizationPolicy)]

    def on_server(self, server: Server, *, audit: bool) -> Iterator[Rule]:
        """Yield the rules for a Server: they select it by name or labels, or target it or its namespace."""
        for authorization in self._of_servers:
            if authorization.audit is audit and _selects(authorization, server):
                yield self._server_rule(authorization)
        for policy in self._policies:
            target = policy.target
            names_it = (target.group, target.kind, target.name) == (GROUP, "Server", server.ref.name)
            if (names_it or (target.group, target.kind) == ("", "Namespace")) and policy.audit is audit:
                yield self._rule(policy)

    def on_route(self, route: InboundRoute | None, *, audit: bool) -> Iterator[Rule]:
        """Yield the rules that target this route."""
        wanted = (route.group, route.kind, route.name) if route is not None else None
        for policy in self._policies:
            target = policy.target
            if (target.group, target.kind, target.name) == wanted and policy.audit is audit:
                yield self._rule(policy)

    def on_workload(self, *, audit: bool) -> Iterator[Rule]:
        """Yield the rules that target the workload itself. Such policies are attached to their targets only."""
        for policy in self._policies:
            if policy.target.is_workload and policy.audit is audit:
                yield self._rule(policy)

    def _server_rule(self, authorization: ServerAuthorization) -> Rule:
        if authorization.client is None:
            return authorization.rule
        return replace(authorization.rule, when=all_of([authorization.client, self._cluster]))

    def _rule(self, policy: AuthorizationPolicy) -> Rule:
        """Require ALL authentications. If one of them does not exist, no client meets the requirement."""
        conditions: list[Predicate] = []
        parts: list[_Part] = []
        for requirement in policy.requirements:
            condition, part = self._resolve(requirement)
            if isinstance(condition, UnresolvedReference):
                return Rule(NEVER, replace(policy.origin, derived=condition, parts=(part,)))
            conditions.append(condition)
            parts.append(part)
        return Rule(all_of(conditions), replace(policy.origin, parts=tuple(parts)))

    def _resolve(self, requirement: ClientRequirement) -> tuple[Predicate | UnresolvedReference, _Part]:
        if not isinstance(requirement.when, PolicyRef):
            return requirement.when, (requirement.attribute, requirement.span)
        match self._authentications.get(requirement.when):
            case MeshTLSAuthentication(who=who, who_span=span):
                return who, (MESH_NAME, span)
            case NetworkAuthentication(where=where, where_span=span):
                return where, (ADDRESS, span)
            case _:
                return UnresolvedReference(requirement.when), (requirement.attribute, requirement.span)


def _selects(authorization: ServerAuthorization, server: Server) -> bool:
    if isinstance(authorization.server, Selector):
        return authorization.server.matches(server.labels)
    return authorization.server == server.ref.name
