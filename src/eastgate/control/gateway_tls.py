"""TLS of a gateway's port: the certificate for each name, and connections that are passed through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from eastgate.cluster import Gateway, Listener, TlsReference, World
from eastgate.cluster.routing import ListenerGroup
from eastgate.cluster.routing.attachment import is_http
from eastgate.cluster.routing.certificates import (
    CertificateProblem,
    ClientAuthority,
    client_authorities,
    listener_certificates,
)
from eastgate.cluster.routing.hostnames import comparable
from eastgate.envoy.config.gateway_routes import Leg
from eastgate.envoy.config.inbound_port import Handshake
from eastgate.envoy.config.secrets import certificate_secret, client_ca_secret
from eastgate.envoy.plan.gateway import GatewayDestination, TlsStream
from eastgate.envoy.server.resources import XdsResource


def handshakes_of(
    gateway: Gateway,
    group: ListenerGroup,
    streams: Iterable[TlsStream],
    legs: Mapping[GatewayDestination, Leg],
    world: World,
    *,
    whole: bool = False,
) -> Iterator[Handshake]:
    """Yield what becomes of each name in a handshake; nothing for a port without TLS.

    `whole`: what the world does not have is not there. Manifests often leave Secrets out, a cluster does not.
    """
    if not group.tls:
        return
    for listener in group.listeners:
        if is_http(listener):
            yield _terminated(gateway, listener, world, group.port, whole=whole)
    for stream in streams:
        named = [(legs[destination].cluster, destination.weight) for destination in stream.destinations]
        known = tuple((cluster, weight) for cluster, weight in named if cluster is not None)
        is_open = stream.verdict.allowed and len(known) == len(stream.destinations) > 0
        yield Handshake(stream.hostname, clusters=known if is_open else (), closed=not is_open)


def _terminated(gateway: Gateway, listener: Listener, world: World, port: int, *, whole: bool) -> Handshake:
    """Return a handshake that ends here. Unless the world is whole, a Secret that is missing counts as a good one."""
    hostname = comparable(listener.hostname)
    if why_closed(gateway, listener, world, whole=whole) is not None:
        return Handshake(hostname, closed=True)
    named = listener_certificates(world, gateway, listener)
    cas = client_authorities(world, gateway, listener)
    certificates = tuple(_secret_name("tls", port, each.reference) for each in named if each.problem is None)
    return Handshake(hostname, certificates, _authority_name(port, cas[0]) if cas else None)


def why_closed(gateway: Gateway, listener: Listener, world: World, *, whole: bool = False) -> str | None:
    """Return why a listener that ends TLS takes no connection; None where it does."""
    if listener.tls is None:
        return "it says nothing of TLS"
    if not is_http(listener):
        return "only TLS of HTTP can end here"
    for named in listener_certificates(world, gateway, listener):
        if named.problem is not None and (whole or named.problem is not CertificateProblem.NOT_DECLARED):
            return f"the certificate {named.reference.namespace}/{named.reference.name} cannot be used: {named.problem}"
    for ca in client_authorities(world, gateway, listener):
        if ca.problem is not None:
            return f"the authority of clients {ca.reference.namespace}/{ca.reference.name} cannot be used: {ca.problem}"
    return None


def secrets_of(gateway: Gateway, group: ListenerGroup, world: World) -> Iterable[XdsResource]:
    """Return the secrets that the handshakes of a port name, each once: listeners may share one."""
    found: dict[str, XdsResource] = {}
    for listener in group.listeners:
        for named in listener_certificates(world, gateway, listener):
            if named.problem is None:
                name = _secret_name("tls", group.port, named.reference)
                found[name] = certificate_secret(name, named.chain, named.key)
        for ca in client_authorities(world, gateway, listener)[:1]:
            if ca.problem is None:
                name = _authority_name(group.port, ca)
                found[name] = client_ca_secret(name, ca.roots)
    return found.values()


def _secret_name(kind: str, port: int, ref: TlsReference) -> str:
    """Name a secret of a port. Other ports have copies of their own: what a proxy rejects closes its port."""
    return f"{kind}/{port}/{ref.namespace}/{ref.name}"


def _authority_name(port: int, authority: ClientAuthority) -> str:
    """Name a CA of clients after what is in it: with another, connections of before are closed."""
    roots = blake2b(authority.roots, digest_size=6).hexdigest()
    return f"{_secret_name('clients', port, authority.reference)}/{roots}"
