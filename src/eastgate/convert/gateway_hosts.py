"""Hosts of the requests that come to rules of routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import Listener, World
from eastgate.cluster.routing.model import Routed
from eastgate.dialects.kuadrant.hosts import ANY, is_inside


def arriving_hosts(ways: Sequence[Routed], world: World) -> Iterator[str]:
    """Yield the hosts, with wildcards, of requests that may come to some rules; each once."""
    yield from dict.fromkeys(host for rule in ways for host in hosts_on(rule, world))


def hosts_on(rule: Routed, world: World) -> list[str]:
    """Return the hosts that both the listener and the route of a rule mean."""
    listener = listener_of(rule, world)
    heard = (listener.hostname if listener is not None else None) or ANY
    routed = [host.lower() for host in rule.route.hostnames] or [ANY]
    met = [host if is_inside(host, heard.lower()) else heard.lower() for host in routed if _meet(host, heard.lower())]
    return list(dict.fromkeys(met))


def _meet(host: str, other: str) -> bool:
    return is_inside(host, other) or is_inside(other, host)


def are_mixed_up(host: str, other: str) -> bool:
    """Return whether Authorino may take a host for another: `*.example.com` is taken for example.com as well."""
    pairs = ((host, other), (other, host))
    return any(is_inside(inner, outer) or outer == f"*.{inner}" for inner, outer in pairs)


def listener_of(rule: Routed, world: World) -> Listener | None:
    """Return the listener that requests come to a rule by; None where no manifest declares it."""
    gateway = world.gateways.get(f"{rule.gateway.namespace}/{rule.gateway.name}") if rule.gateway is not None else None
    listeners = gateway.listeners if gateway is not None else ()
    return next((each for each in listeners if each.name == rule.listener), None)


def hears_tls(ways: Sequence[Routed], world: World) -> bool:
    """Return whether requests may come to some rules over TLS."""
    listeners = [listener_of(rule, world) for rule in ways]
    return any(listener is None or listener.protocol in ("HTTPS", "TLS") for listener in listeners)
