"""The status of an AuthConfig: whether its hosts are linked to it, in the words of Authorino."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.settings import Settings

__all__ = ["conditions"]


def conditions(policy: Policy, policies: Sequence[Policy], settings: Settings, _world: World) -> list[Condition]:
    """Return the conditions `Available`, some host is linked, and `Ready`, all hosts are."""
    links = link_hosts(policies, settings)
    linked = links.of(policy)
    loose = [host for host in dict.fromkeys(policy.hosts) if host not in linked]
    available = Condition("Available", "True", "HostsLinked", "")
    if not linked:
        available = Condition("Available", "False", "HostsNotLinked", "No hosts linked to the resource")
    if not loose:
        return [available, Condition("Ready", "True", "Reconciled", "")]
    message = "One or more hosts are not linked to the resource: " + ", ".join(_taken(host, links) for host in loose)
    return [available, Condition("Ready", "False", "HostsNotLinked", message)]


def _taken(host: str, links: Links) -> str:
    holder = links.serving(host)
    return f"{host} is linked to {holder.ref}" if holder is not None else host
