"""The redirection of a pod's TCP connections to its proxy, as the input of `iptables-restore`.

Every inbound connection goes to the proxy, for any listening process. Outbound connections go to the proxy too, except
those of the proxy itself, which has its own user, and connections within the pod.
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
    """The connections that are not redirected. Policies do not apply to them."""

    inbound_ports: tuple[int, ...] = ()
    outbound_ports: tuple[int, ...] = ()
    outbound_ranges: tuple[IPv4Network | IPv6Network, ...] = ()


def redirection_of(annotations: Mapping[str, str]) -> Redirection:
    """Read the exclusions of a pod. Raises InjectionRefused for an invalid port or range."""
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
            raise InjectionRefused(f"the annotation {key} has {word!r}, which is not a port")
        yield int(word)


def _ranges(annotations: Mapping[str, str], key: str) -> Iterator[IPv4Network | IPv6Network]:
    for word in _words(annotations, key):
        try:
            yield parse_network(word, strict=True)
        except ValueError:
            raise InjectionRefused(f"the annotation {key} has {word!r}, which is not a range of addresses") from None


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
    yield f"-A {_OUTBOUND} -o lo -j RETURN"  # includes calls of a pod to its own address
    for network in redirection.outbound_ranges:
        if network.version == version:
            yield f"-A {_OUTBOUND} -d {network} -j RETURN"
    for port in sorted(set(redirection.outbound_ports)):
        yield f"-A {_OUTBOUND} -p tcp --dport {port} -j RETURN"
    yield f"-A {_OUTBOUND} -p tcp -j REDIRECT --to-ports {CAPTURED_OUTBOUND}"
