"""Links hosts to AuthConfigs as Authorino's index does.

A host belongs to the AuthConfig that is reconciled first, the oldest. A host is taken if another AuthConfig has it, or
has a wildcard that covers it. With `allowSupersedingHostSubsets`, a wildcard of another AuthConfig takes only itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.cluster.hosts import find_host, hosts_meaning
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Links:
    """The linked hosts, each with its AuthConfig."""

    by_host: Mapping[str, Policy] = field(hash=False)

    def serving(self, host: str) -> Policy | None:
        """Return the AuthConfig that decides requests to a host."""
        linked = self.find(host)
        return self.by_host[linked] if linked is not None else None

    def find(self, host: str) -> str | None:
        """Return the linked host under which a host is found."""
        return find_host(host, self.by_host.__contains__)

    def is_linked(self, host: str, policy: Policy) -> bool:
        """Return whether a host, as an AuthConfig writes it, is linked to this AuthConfig."""
        return self.by_host.get(host) is policy

    def of(self, policy: Policy) -> tuple[str, ...]:
        """Return the hosts that are linked to an AuthConfig, in the order of the manifest."""
        return tuple(host for host in dict.fromkeys(policy.hosts) if self.is_linked(host, policy))


def link_hosts(policies: Iterable[Policy], settings: Settings) -> Links:
    """Link the hosts of AuthConfigs, from the oldest to the newest."""
    superseding = settings.section(KuadrantSettings).allow_superseding_host_subsets
    by_host: dict[str, Policy] = {}
    indexed: dict[Policy, set[str]] = {}
    for policy in sorted(policies, key=_age):
        own = indexed.setdefault(policy, set())
        for host in policy.hosts:
            holder = next((by_host[other] for other in hosts_meaning(host) if other in by_host), policy)
            if holder is policy or (superseding and host not in indexed[holder]):
                by_host[host] = policy
                own.add(host)
    return Links(by_host)


def _age(policy: Policy) -> tuple[bool, str, str, str]:
    """Return the sort key for age. An AuthConfig without a creation time is yet to be created, and so the newest."""
    return policy.created is None, policy.created or "", policy.ref.namespace or "", policy.ref.name
