"""TLS passthrough: the server that a client's bytes reach at a gateway, compared with the engine."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from eastgate import Authority, Question
from eastgate.cluster.points import DeadEnd
from eastgate.cluster.routing import Routed
from eastgate.cluster.routing.journey import beyond
from eastgate.ir import Request
from eastgate.ir.attributes import HOST, PORT, SNI
from tests.cluster.routing.building import possible_routes
from tests.differential.gateways.world import BACKENDS, GATEWAY, PASSED
from tests.differential.world import Manifest

__all__ = ["client_hello", "server_names", "stream_difference"]

_NAMES = ["a.example", "b.example", "x.a.example", "toys.com", "a.toys.com", "A.Toys.com", "other.org", "example"]


def server_names(manifests: Sequence[Manifest], seed: int, number: int) -> list[tuple[int, str | None]]:
    """Return some ports with server names. Most names belong to a route."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    routes = [each["spec"] for each in manifests if each["kind"] == "TLSRoute"]
    named = [name.replace("*", "x") for route in routes for name in route.get("hostnames", _NAMES)]
    chosen = [random.choice([*named, *named, *_NAMES]) for _ in range(number)]
    return [(random.choice(PASSED), name) for name in chosen] + [(PASSED[0], None)]


def client_hello(name: str | None) -> bytes:
    """Return the ClientHello of a client with a server name, or without one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def stream_difference(
    authority: Authority, policies: Sequence[Manifest], port: int, name: str | None, reached: str | None
) -> str | None:
    """Return the difference from the engine in words, or None. `reached` is the server that got the bytes."""
    decision = authority.decide(Question.of("anonymous", GATEWAY, port=port, sni=name or "", source_ip="127.0.0.2"))
    request = Request({PORT: port, SNI: name, HOST: name})
    [routed] = possible_routes(authority.world, authority.world.gateways["n/g"], request)
    servers = _servers(authority, routed) if routed is not None else set()
    if reached is not None and not decision.allowed:
        return f"{name} reached {reached}, and the engine denies it ({decision.reason})"
    if reached is not None and reached not in servers:
        return f"{name} reached {reached}, and should be led to one of {servers}"
    is_led_on = decision.allowed and bool(servers) and None not in servers
    if reached is None and is_led_on and not _is_left_to_the_authorizer(policies):
        return f"{name} was closed, and the engine allows it ({decision.reason})"
    return None


def _is_left_to_the_authorizer(policies: Sequence[Manifest]) -> bool:
    """Return whether a policy has a condition for the authorizer, which a gateway does not ask about TLS."""
    rules = [rule for policy in policies for rule in policy["spec"].get("rules", ())]
    return any(rule.get("authorization", {}).get("type") == "CEL" for rule in rules)


def _servers(authority: Authority, routed: Routed) -> set[str | None]:
    """Return the servers of a rule, with None for a backend without a server."""
    if any(isinstance(point, DeadEnd) for _, point, _, _ in beyond(routed, authority.world)):
        return {None}
    servers: set[str | None] = set()
    for ref in routed.backends:
        name = BACKENDS.get(ref.name, "") if ref.kind == "XBackend" else ref.name
        servers.add(name if f"{ref.namespace}/{name}" in authority.world.services else None)
    return servers
