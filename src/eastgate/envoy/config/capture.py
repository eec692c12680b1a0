"""The listener that a pod's inbound connections are redirected to, whichever port they were made to.

It hands over to the listener of the port that was called. Ports without one go through the same three listeners as all
others, `inbound/0`, `connections/0` and `requests/0`, to whatever was called.
"""

from __future__ import annotations

from functools import lru_cache

from envoy.config.listener.v3 import listener_pb2

from eastgate.envoy.config.inbound_listener import note, source_notes
from eastgate.envoy.config.inbound_port import ANY_PORT, NETWORK, UNSHARED, InboundPort
from eastgate.envoy.config.logs import ORIGINAL_KEY, capture_log, log_metadata, sent_connection_log
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.typed import Plain, filter_, message, struct, typed
from eastgate.envoy.plan.decisions import NOT_ENFORCED
from eastgate.envoy.server.resources import LISTENER, XdsResource

INBOUND_CAPTURE = 15006
_OWN_PORTS = (15000, 15001, INBOUND_CAPTURE, 15021)  # of the proxy itself, which would call itself again and again
_OWN, _ELSEWHERE = "port-of-the-proxy", "not-an-address-of-the-pod"


@lru_cache(maxsize=4096)
def capture_resource(inbound: InboundPort) -> XdsResource:
    """Return the listener that captures connections. `inbound` is that of `ANY_PORT`."""
    if inbound.capture is None:
        raise AssertionError("nothing is captured")
    known = sorted(set(inbound.capture.known) - set(_OWN_PORTS))
    chains = [
        *(_closing(inbound, f"own/{port}", _OWN, port) for port in _OWN_PORTS),
        # Their listeners are taken away only to close them.
        *(_closing(inbound, f"known/{port}", NOT_ENFORCED, port) for port in known),
        {
            "name": "other",
            "filter_chain_match": {"prefix_ranges": [_host(address) for address in inbound.capture.addresses]},
            "filters": _forwarding(inbound),
        },
    ]
    plain = {
        "name": "capture",
        **listening_addresses(inbound.capture.addresses, INBOUND_CAPTURE, ("0.0.0.0", "::")),  # noqa: S104
        "use_original_dst": True,
        "filter_chains": chains,
        "default_filter_chain": _closing(inbound, "elsewhere", _ELSEWHERE),
    }
    return XdsResource(LISTENER, "capture", serialize(message(listener_pb2.Listener, plain)))


def listening_addresses(addresses: tuple[str, ...], port: int, families: tuple[str, str]) -> Plain:
    """Return where a pod with these addresses listens: at an address of IPv4, of IPv6, or at both."""
    four, six = families
    wanted = [four] * any(":" not in address for address in addresses)
    wanted += [six] * any(":" in address for address in addresses)
    first, *others = ({"address": {"socket_address": {"address": each, "port_value": port}}} for each in wanted)
    return {**first, **({"additional_addresses": others} if others else {}), **UNSHARED}


def _forwarding(inbound: InboundPort) -> list[Plain]:
    called = note(ORIGINAL_KEY, "%DOWNSTREAM_LOCAL_ADDRESS%") | {"shared_with_upstream": "TRANSITIVE"}
    del called["factory_key"]  # its own
    notes = [*source_notes(), called]
    proxy = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix="capture", cluster=f"inbound/{inbound.port}")
    return [
        filter_("called", struct(f"{NETWORK}.set_filter_state.v3.Config", on_new_connection=notes)),
        filter_("proxy", proxy),
    ]


def _closing(inbound: InboundPort, name: str, verdict: str, port: int = ANY_PORT) -> Plain:
    log = [*capture_log(inbound.workload, verdict), *(sent_connection_log() if inbound.sends_logs else [])]
    proxy = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=f"denied/{name}", cluster="nowhere", access_log=log)
    matched = {"filter_chain_match": {"destination_port": port}} if port != ANY_PORT else {}
    metadata = {"metadata": log_metadata(decision=verdict)} if inbound.sends_logs else {}
    return {"name": name, **matched, **metadata, "filters": [filter_("proxy", proxy)]}


def _host(address: str) -> Plain:
    return {"address_prefix": address, "prefix_len": 128 if ":" in address else 32}
