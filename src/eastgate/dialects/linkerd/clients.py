"""Predicates about the identity and the address of a client."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.ir import ALWAYS, And, InNetwork, Is, Not, OneOf, Predicate, Prefix, Present, Suffix, any_of
from eastgate.ir.addresses import Network
from eastgate.ir.attributes import ADDRESS, MESH_NAME
from eastgate.settings import Networks, Settings

# The proxy tries suffixes, and so the lone `*`, on DNS names only: a SPIFFE ID is compared as a whole.
_DNS = Not(Is(MESH_NAME, Prefix("spiffe://")))
ANY_NAME: Predicate = And((Is(MESH_NAME, Present()), _DNS))


def with_identities(identities: Iterable[str]) -> Predicate:
    """Match clients with ANY of these identities: a whole name, `*` for any name, `*.suffix` for any below one."""
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
    """Return the networks of the cluster, with those of the machine that stands for one."""
    return (*settings.section(LinkerdSettings).linkerd_cluster_networks, *settings.local_networks)


def in_networks(networks: Networks) -> Predicate:
    """Match clients in ANY of these networks; every client where the networks cover all addresses."""
    everywhere = {4, 6} <= {network.version for network in networks if network.prefixlen == 0}
    return ALWAYS if everywhere else Is(ADDRESS, InNetwork(networks))


def in_network_except(network: Network, exceptions: Networks) -> Predicate:
    """Match clients in one network and in none of its exceptions; another network may still allow those."""
    inside = Is(ADDRESS, InNetwork((network,)))
    return And((inside, Not(Is(ADDRESS, InNetwork(exceptions))))) if exceptions else inside


def default_client(policy: InboundPolicy, networks_of_cluster: Networks) -> Predicate | None:
    """Match the clients that a default policy allows; None where it allows none."""
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
