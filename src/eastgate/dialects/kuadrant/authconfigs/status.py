"""The status of an AuthConfig: whether its hosts are linked to it, in the words of Authorino."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.cluster.hosts import hosts_meaning
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.settings import Settings

__all__ = ["conditions"]


def conditions(policy: Policy, policies: Sequence[Policy], settings: Settings, _world: World) -> list[Condition]:
    """Return the conditions `Ready`, all hosts are linked, and `Available`, some host is."""
    links = link_hosts(_rivals(policy, policies), settings)
    linked = links.of(policy)
    loose = [host for host in dict.fromkeys(policy.hosts) if host not in linked]
    ready = Condition("Ready", "True", "Reconciled", "")
    if loose:
        message = "One or more hosts are not linked to the resource: " + ", ".join(
            _taken(host, links) for host in loose
        )
        ready = Condition("Ready", "False", "HostsNotLinked", message)
    available = Condition("Available", "True", "HostsLinked", "")
    if not linked:
        available = Condition("Available", "False", "HostsNotLinked", "No hosts linked to the resource")
    return [ready, available]


def _rivals(policy: Policy, policies: Sequence[Policy]) -> list[Policy]:
    """Return the AuthConfigs that may have a host of one, and itself."""
    meaning = {other for host in policy.hosts for other in hosts_meaning(host)}
    return [each for each in policies if each is policy or not meaning.isdisjoint(each.hosts)]


def _taken(host: str, links: Links) -> str:
    holder = links.serving(host)
    return f"{host} is linked to {holder.ref}" if holder is not None else host
