"""TLS of a gateway's port: the certificate for each name, and connections that are passed through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, TlsReference, World
from eastgate.envoy.config.gateway_routes import Leg
from eastgate.envoy.config.inbound_port import Handshake
from eastgate.envoy.config.secrets import certificate_secret, client_ca_secret
from eastgate.envoy.plan.gateway import Destination, TlsStream
from eastgate.envoy.server.resources import XdsResource
from eastgate.gateway import ListenerGroup
from eastgate.gateway.hostnames import comparable

__all__ = ["handshakes_of", "secrets_of"]

_CERTIFICATE, _KEY, _CA = "tls.crt", "tls.key", "ca.crt"


def handshakes_of(
    gateway: Gateway, group: ListenerGroup, streams: Iterable[TlsStream], legs: Mapping[Destination, Leg], world: World
) -> Iterator[Handshake]:
    """Yield what becomes of each name in a handshake; nothing for a port without TLS."""
    if not group.tls:
        return
    for listener in group.listeners:
        if not listener.passes_tls_through:
            yield _terminated(gateway, listener, world)
    for stream in streams:
        named = [(legs[destination].cluster, destination.weight) for destination in stream.destinations]
        known = tuple((cluster, weight) for cluster, weight in named if cluster is not None)
        is_open = stream.verdict.allowed and len(known) == len(stream.destinations) > 0
        yield Handshake(stream.hostname, clusters=known if is_open else (), closed=not is_open)


def _terminated(gateway: Gateway, listener: Listener, world: World) -> Handshake:
    """Return a handshake that ends here. A Secret that nobody declared is taken for one with a good certificate."""
    hostname, tls = comparable(listener.hostname), listener.tls
    if tls is None:
        return Handshake(hostname)
    declared = [ref for ref in tls.certificates if _key(ref) in world.secrets]
    usable = [ref for ref in declared if _is_granted(gateway, ref, world) and _pair(ref, world) is not None]
    cas = tls.client_validation.ca_certificates if tls.client_validation is not None else ()
    known_cas = [ref for ref in cas if _is_granted(gateway, ref, world) and _roots(ref, world) is not None]
    if len(usable) < len(declared) or len(known_cas) < len(cas):
        return Handshake(hostname, closed=True)
    clients = _secret_name("clients", known_cas[0]) if known_cas else None
    return Handshake(hostname, tuple(_secret_name("tls", ref) for ref in usable), clients)


def secrets_of(group: ListenerGroup, world: World) -> Iterator[XdsResource]:
    """Yield the secrets that the handshakes of a port name."""
    for listener in group.listeners:
        if listener.tls is None:
            continue
        for ref in listener.tls.certificates:
            pair = _pair(ref, world)
            if pair is not None:
                yield certificate_secret(_secret_name("tls", ref), *pair)
        validation = listener.tls.client_validation
        for ref in validation.ca_certificates[:1] if validation is not None else ():
            roots = _roots(ref, world)
            if roots is not None:
                yield client_ca_secret(_secret_name("clients", ref), roots)


def _pair(ref: TlsReference, world: World) -> tuple[bytes, bytes] | None:
    secret = world.secrets.get(_key(ref)) if ref.kind == "Secret" else None
    if secret is None or _CERTIFICATE not in secret.data or _KEY not in secret.data:
        return None
    return secret.data[_CERTIFICATE], secret.data[_KEY]


def _roots(ref: TlsReference, world: World) -> bytes | None:
    secret = world.secrets.get(_key(ref)) if ref.kind == "Secret" else None
    return secret.data.get(_CA) if secret is not None else None


def _is_granted(gateway: Gateway, ref: TlsReference, world: World) -> bool:
    return world.granted(GATEWAY_GROUP, "Gateway", gateway.namespace, ref.group, ref.kind, ref.namespace, ref.name)


def _key(ref: TlsReference) -> str:
    return f"{ref.namespace}/{ref.name}"


def _secret_name(kind: str, ref: TlsReference) -> str:
    return f"{kind}/{ref.namespace}/{ref.name}"
