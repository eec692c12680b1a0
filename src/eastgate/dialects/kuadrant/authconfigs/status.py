"""The status of an AuthConfig: whether its hosts are linked to it, in the words of Authorino."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.cluster.hosts import hosts_meaning
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.settings import Settings


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


def summary(policy: Policy, policies: Sequence[Policy], settings: Settings, _world: World) -> dict[str, object]:
    """Return the summary of an AuthConfig, with the names that Authorino has for it."""
    from eastgate.dialects.kuadrant.authorino.model import Wristband  # only where there is an AuthConfig

    linked = link_hosts(_rivals(policy, policies), settings).of(policy)
    hosts, scheme = dict.fromkeys(policy.hosts), policy.scheme
    return {
        "ready": len(linked) == len(hosts),
        "hostsReady": sorted(linked),
        "numHostsReady": f"{len(linked)}/{len(hosts)}",
        "numIdentitySources": len(scheme.identities),
        "numMetadataSources": len(scheme.metadata),
        "numAuthorizationPolicies": len(scheme.authorizations),
        "numResponseItems": len(scheme.responses),
        "festivalWristbandEnabled": any(isinstance(response.content, Wristband) for response in scheme.responses),
    }


def _rivals(policy: Policy, policies: Sequence[Policy]) -> list[Policy]:
    """Return the AuthConfigs that may have a host of one, and itself."""
    meaning = {other for host in policy.hosts for other in hosts_meaning(host)}
    return [each for each in policies if each is policy or not meaning.isdisjoint(each.hosts)]


def _taken(host: str, links: Links) -> str:
    holder = links.serving(host)
    return f"{host} is linked to {holder.ref}" if holder is not None else host
