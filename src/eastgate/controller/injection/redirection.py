"""The redirection of a pod's TCP connections to its proxy, as the input of `iptables-restore`.

Whatever arrives from outside goes to the proxy, whichever process listens for it. What leaves goes to the proxy too,
but for the proxy's own connections, which are known by their user, and for those that stay in the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network

from eastgate.basics.records import dataclass
from eastgate.cluster.proxies import is_port
from eastgate.controller.injection.names import (
    CAPTURED_INBOUND,
    CAPTURED_OUTBOUND,
    EXCLUDED_INBOUND_PORTS,
    EXCLUDED_OUTBOUND_PORTS,
    EXCLUDED_OUTBOUND_RANGES,
    PROXY_UID,
)
from eastgate.controller.injection.options import InjectionRefused
from eastgate.envoy.config.probes import PROBE_PORT
from eastgate.ir.addresses import parse_network

_INBOUND, _OUTBOUND = "EASTGATE_INBOUND", "EASTGATE_OUTBOUND"


@dataclass(frozen=True, slots=True)
class Redirection:
    """What is not redirected: policies do not apply to it."""

    inbound_ports: tuple[int, ...] = ()
    outbound_ports: tuple[int, ...] = ()
    outbound_ranges: tuple[IPv4Network | IPv6Network, ...] = ()


def redirection_of(annotations: Mapping[str, str]) -> Redirection:
    """Read the exclusions of a pod. Raises InjectionRefused for what is no port and no range."""
    return Redirection(
        tuple(_ports(annotations, EXCLUDED_INBOUND_PORTS)),
        tuple(_ports(annotations, EXCLUDED_OUTBOUND_PORTS)),
        tuple(_ranges(annotations, EXCLUDED_OUTBOUND_RANGES)),
    )


def _words(annotations: Mapping[str, str], key: str) -> list[str]:
    return [word.strip() for word in annotations.get(key, "").split(",") if word.strip()]


def _ports(annotations: Mapping[str, str], key: str) -> Iterator[int]:
    for word in _words(annotations, key):
        if not is_port(word):
            raise InjectionRefused(f"the annotation {key} has {word!r}, which is no port")
        yield int(word)


def _ranges(annotations: Mapping[str, str], key: str) -> Iterator[IPv4Network | IPv6Network]:
    for word in _words(annotations, key):
        try:
            yield parse_network(word, strict=True)
        except ValueError:
            raise InjectionRefused(f"the annotation {key} has {word!r}, which is no range of addresses") from None


def render_rules(redirection: Redirection, version: int = 4) -> str:
    """Return the input of `iptables-restore`, or for version 6 of `ip6tables-restore`."""
    return "\n".join(("*nat", *_chains(), *_inbound(redirection), *_outbound(redirection, version), "COMMIT", ""))


def _chains() -> Iterator[str]:
    yield from (":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", f":{_INBOUND} - [0:0]", f":{_OUTBOUND} - [0:0]")
    yield f"-A PREROUTING -p tcp -j {_INBOUND}"
    yield f"-A OUTPUT -p tcp -j {_OUTBOUND}"


def _inbound(redirection: Redirection) -> Iterator[str]:
    for port in sorted({PROBE_PORT, *redirection.inbound_ports}):
        yield f"-A {_INBOUND} -p tcp --dport {port} -j RETURN"
    yield f"-A {_INBOUND} -p tcp -j REDIRECT --to-ports {CAPTURED_INBOUND}"


def _outbound(redirection: Redirection, version: int) -> Iterator[str]:
    yield f"-A {_OUTBOUND} -m owner --uid-owner {PROXY_UID} -j RETURN"
    yield f"-A {_OUTBOUND} -o lo -j RETURN"  # also a pod's calls to its own address
    for network in redirection.outbound_ranges:
        if network.version == version:
            yield f"-A {_OUTBOUND} -d {network} -j RETURN"
    for port in sorted(set(redirection.outbound_ports)):
        yield f"-A {_OUTBOUND} -p tcp --dport {port} -j RETURN"
    yield f"-A {_OUTBOUND} -p tcp -j REDIRECT --to-ports {CAPTURED_OUTBOUND}"
