"""The listener that gets a pod's inbound connections, which are redirected to it from every port.

It forwards a connection to the listener of the called port. Ports without a listener share the three listeners
`inbound/0`, `connections/0` and `requests/0`, which forward to the called address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.basics.records import dataclass
from eastgate.envoy.config.clusters import ORIGINAL, cluster_resource, mutual_tls
from eastgate.envoy.config.inbound_listener import note, source_notes
from eastgate.envoy.config.inbound_port import ANY_PORT, NETWORK, UNSHARED, InboundPort
from eastgate.envoy.config.logs import ORIGINAL_KEY, capture_log, log_metadata, sent_connection_log
from eastgate.envoy.config.packing import pack, serialize
from eastgate.envoy.config.typed import Plain, filter_, message, struct, typed
from eastgate.envoy.plan.decisions import NOT_ENFORCED
from eastgate.envoy.server.resources import LISTENER, XdsResource

INBOUND_CAPTURE = 15006
_OWN_PORTS = (15000, 15001, INBOUND_CAPTURE, 15021)  # of the proxy itself, which would call itself endlessly
_OWN, _ELSEWHERE = "port-of-the-proxy", "not-an-address-of-the-pod"


@lru_cache(maxsize=4096)
def capture_resource(inbound: InboundPort) -> XdsResource:
    """Return the listener that captures connections. `inbound` is that of `ANY_PORT`."""
    if inbound.capture is None:
        raise AssertionError("nothing is captured")
    known = sorted(set(inbound.capture.known) - set(_OWN_PORTS))
    chains = [
        *(_closing(inbound, f"own/{port}", _OWN, port) for port in _OWN_PORTS),
        # Their listeners are missing only if the port is closed.
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
    """Return the listening addresses of a pod: of IPv4, of IPv6, or of both."""
    four, six = families
    wanted = [four] * any(":" not in address for address in addresses)
    wanted += [six] * any(":" in address for address in addresses)
    first, *others = ({"address": {"socket_address": {"address": each, "port_value": port}}} for each in wanted)
    return {**first, **({"additional_addresses": others} if others else {}), **UNSHARED}


def _forwarding(inbound: InboundPort) -> list[Plain]:
    called = note(ORIGINAL_KEY, "%DOWNSTREAM_LOCAL_ADDRESS%") | {"shared_with_upstream": "TRANSITIVE"}
    del called["factory_key"]  # this filter has a key of its own
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


# The listener that gets a pod's outbound connections, which are redirected to it. If proxies of Eastgate are behind the
# address, the connection goes there inside mTLS, as TCP. Kubernetes chooses the pod, as for every client: the address
# stays that of the application's call, and the answering proxy only needs an identity behind it. All other connections
# go to their destination unchanged.


OUTBOUND_CAPTURE = 15001
_PASSED = "passed"
# A redirected connection never has a loopback address. A call of the proxy's own port does, and would loop.
_LOOPING = "back"
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class CapturedService:
    """A port of a Service whose pods all have a sidecar, and the identities of these pods."""

    name: str
    addresses: tuple[str, ...]
    port: int
    identities: frozenset[str]


@dataclass(frozen=True, slots=True)
class CapturedAccount:
    """The pods of one identity that have a sidecar, by their addresses. Their `passed` ports have no sidecar."""

    identity: str
    addresses: tuple[str, ...]
    passed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CapturedOutbound:
    """The part of the cluster that the proxies of pods know: the same for all pods."""

    services: tuple[CapturedService, ...] = ()
    accounts: tuple[CapturedAccount, ...] = ()


def outbound_capture_resources(addresses: tuple[str, ...], outbound: CapturedOutbound) -> Iterator[XdsResource]:
    """Yield the resources for the outbound connections of a pod with these addresses."""
    clusters = {_service_name(service): service.identities for service in outbound.services}
    clusters |= {_account_name(account): frozenset({account.identity}) for account in outbound.accounts}
    for name, identities in sorted(clusters.items()):
        yield cluster_resource(name, {**ORIGINAL, "transport_socket": filter_("tls", mutual_tls(identities))})
    yield cluster_resource(_PASSED, ORIGINAL)
    plain = {
        "name": "outbound",
        # Only the pod itself is redirected to loopback: no other process can act as this workload.
        **listening_addresses(addresses, OUTBOUND_CAPTURE, _LOOPBACK),
        "listener_filters": [
            filter_("original", typed("envoy.extensions.filters.listener.original_dst.v3.OriginalDst"))
        ],
        "filter_chains": [*(_chain(name, name) for name in sorted((*clusters, _PASSED))), _chain(_LOOPING, "nowhere")],
    }
    listener: Any = message(listener_pb2.Listener, plain)
    _write_matcher(listener.filter_chain_matcher, outbound)
    yield XdsResource(LISTENER, "outbound", serialize(listener))


def _service_name(service: CapturedService) -> str:
    return f"service/{service.name}/{service.port}"


def _account_name(account: CapturedAccount) -> str:
    passed = "".join(f"-{port}" for port in account.passed)
    return f"account/{account.identity}{passed}"


def _chain(name: str, cluster: str) -> Plain:
    # Both ends of a connection may be silent without limit.
    proxy = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=name, cluster=cluster, idle_timeout="0s")
    return {"name": name, "filters": [filter_("proxy", proxy)]}


def _write_matcher(matcher: Any, outbound: CapturedOutbound) -> None:
    """Write a matcher that chooses the chain by address, then by port."""
    ports: dict[str, dict[int, str]] = {}
    others: dict[str, str] = {}
    for service in outbound.services:
        for address in service.addresses:
            ports.setdefault(address, {})[service.port] = _service_name(service)
    for account in outbound.accounts:
        for address in account.addresses:
            others[address] = _account_name(account)
            ports.setdefault(address, {}).update(dict.fromkeys(account.passed, _PASSED))
    _write_action(matcher.on_no_match, _PASSED)
    tree = matcher.matcher_tree
    _write_input(tree.input, "DestinationIPInput")
    for address in _LOOPBACK:
        _write_action(tree.exact_match_map.map[address], _LOOPING)
    for address in sorted(ports):
        by_port = tree.exact_match_map.map[address]
        otherwise = others.get(address, _PASSED)
        if not ports[address]:
            _write_action(by_port, otherwise)
            continue
        inner = by_port.matcher
        _write_action(inner.on_no_match, otherwise)
        _write_input(inner.matcher_tree.input, "DestinationPortInput")
        for port, name in sorted(ports[address].items()):
            _write_action(inner.matcher_tree.exact_match_map.map[str(port)], name)


def _write_input(to: Any, kind: str) -> None:
    to.name = kind
    to.typed_config.CopyFrom(pack(getattr(network_inputs_pb2, kind)()))


def _write_action(to: Any, chain: str) -> None:
    to.action.name = "chain"
    to.action.typed_config.CopyFrom(pack(StringValue(value=chain)))


def join_accounts(accounts: Iterable[CapturedAccount]) -> tuple[CapturedAccount, ...]:
    """Join pods of one identity with the same exceptions."""
    joined: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for account in accounts:
        joined.setdefault((account.identity, account.passed), []).extend(account.addresses)
    return tuple(
        CapturedAccount(identity, tuple(sorted(addresses)), passed)
        for (identity, passed), addresses in sorted(joined.items())
    )
