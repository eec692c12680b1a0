"""Descriptions of AuthConfigs."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.cluster.hosts import hosts_meaning
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words
from eastgate.settings import Settings

# The status of an AuthConfig: whether its hosts are linked to it, with the reasons of Authorino.


def conditions(policy: Policy, policies: Sequence[Policy], settings: Settings, _world: World) -> list[Condition]:
    """Return the condition `Ready` (all hosts are linked) and the condition `Available` (some host is linked)."""
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
    """Return the summary of an AuthConfig, with Authorino's field names."""
    from eastgate.dialects.kuadrant.authorino.model import Wristband  # only if there is an AuthConfig

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
    """Return an AuthConfig and those that may have one of its hosts."""
    meaning = {other for host in policy.hosts for other in hosts_meaning(host)}
    return [each for each in policies if each is policy or not meaning.isdisjoint(each.hosts)]


def _taken(host: str, links: Links) -> str:
    holder = links.serving(host)
    return f"{host} is linked to {holder.ref}" if holder is not None else host


def _rules(policy: Policy) -> list[DescribedRule]:
    from eastgate.dialects.kuadrant.authorino.model import METHOD_NAMES  # only if there is an AuthConfig

    scheme = policy.scheme
    names = ", ".join(f"{identity.name} ({METHOD_NAMES[type(identity.method)]})" for identity in scheme.identities)
    agreed = "".join(f"; then {authorization.name}" for authorization in scheme.authorizations)
    asks = f"identity {names or 'none'}{agreed}"
    return [DescribedRule("AUTH", (asks,), policy.origin, policy.span)]


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return problem or ("other AuthConfigs have its hosts" if selects else NOTHING_SELECTED)


WORDS: Words[Policy] = Words(
    action=lambda _policy: "ASK",
    level=lambda _policy: "host",
    rules=_rules,
    why_idle=_why_idle,
)
