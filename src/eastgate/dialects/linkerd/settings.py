"""The settings that only Linkerd reads."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import Networks, Section, networks

__all__ = ["InboundPolicy", "LinkerdSettings"]


class InboundPolicy(StrEnum):
    """Linkerd's default policies for ports without a Server."""

    ALL_UNAUTHENTICATED = "all-unauthenticated"
    ALL_AUTHENTICATED = "all-authenticated"
    CLUSTER_UNAUTHENTICATED = "cluster-unauthenticated"
    CLUSTER_AUTHENTICATED = "cluster-authenticated"
    DENY = "deny"
    AUDIT = "audit"


_PRIVATE = networks("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")
_EVERYWHERE = networks("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class LinkerdSettings(Section):
    """The settings of an installation of Linkerd."""

    linkerd_default_policy: InboundPolicy = InboundPolicy.ALL_UNAUTHENTICATED
    linkerd_cluster_networks: Networks = _PRIVATE
    linkerd_probe_networks: Networks = _EVERYWHERE
