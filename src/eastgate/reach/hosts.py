"""Hosts with policies on two sides, and those with different decisions."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authority.authority import Authority, programs_of
from eastgate.cluster.ends import Host
from eastgate.dialects import HOSTS
from eastgate.ir import Layer
from eastgate.reach.alike import are_alike


def differing_hosts(old: Authority, new: Authority) -> Iterator[str]:
    """Yield the hosts of policies of either side whose decisions may differ, as questions name them.

    Hosts without policies on both sides are not included.
    """
    same_secrets = old.world.secrets == new.world.secrets
    for name in sorted({*host_names(old), *host_names(new)}):
        before, after = (_layers(side, name.removeprefix(Host.prefix)) for side in (old, new))
        if not are_alike(before, after) or not (same_secrets or _ask_no_authorizer(before)):
            yield name


def host_names(authority: Authority) -> list[str]:
    """Return the hosts that policies are for, as questions name them."""
    engine = programs_of(authority)
    return sorted({str(Host(host)) for ref in engine.host_refs for host in engine.hosts_of(ref) or ()})


def _layers(authority: Authority, host: str) -> tuple[Layer, ...]:
    point = programs_of(authority).host_point(host) or HOSTS.dead_end
    return programs_of(authority).program(point).layers


def _ask_no_authorizer(layers: tuple[Layer, ...]) -> bool:
    return not any(ask.evaluator is not None for layer in layers for ask in layer.asks)
