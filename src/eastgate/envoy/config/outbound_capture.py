"""The listener that a pod's outbound connections are redirected to.

Where proxies of ours stand behind the address, the connection goes there inside mTLS, as TCP. Kubernetes chooses the
pod, as it would for anybody: the address stays what the application called, and what must be true is only that whoever
answers has an account that is behind it. Everything else goes where it was going, untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.basics.records import dataclass
from eastgate.envoy.config.capture import listening_addresses
from eastgate.envoy.config.clusters import ORIGINAL, cluster_resource, mutual_tls
from eastgate.envoy.config.inbound_port import NETWORK
from eastgate.envoy.config.packing import pack, serialize
from eastgate.envoy.config.typed import Plain, filter_, message, typed
from eastgate.envoy.server.resources import LISTENER, XdsResource

OUTBOUND_CAPTURE = 15001
_PASSED = "passed"
# Nothing that was redirected is addressed to loopback. A call of the proxy's own port is, and would never end.
_BACK = "back"
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class CapturedService:
    """A port of a Service all of whose pods have a sidecar, and the identities of those."""

    name: str
    addresses: tuple[str, ...]
    port: int
    identities: frozenset[str]


@dataclass(frozen=True, slots=True)
class CapturedAccount:
    """The pods of one identity that have a sidecar, by their addresses. At `passed` ports it does not answer."""

    identity: str
    addresses: tuple[str, ...]
    passed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CapturedOutbound:
    """What the proxies of pods know of the rest of the cluster: the same for all pods."""

    services: tuple[CapturedService, ...] = ()
    accounts: tuple[CapturedAccount, ...] = ()


def outbound_capture_resources(addresses: tuple[str, ...], outbound: CapturedOutbound) -> Iterator[XdsResource]:
    """Yield the resources for the connections that a pod with these addresses makes."""
    clusters = {_service_name(service): service.identities for service in outbound.services}
    clusters |= {_account_name(account): frozenset({account.identity}) for account in outbound.accounts}
    for name, identities in sorted(clusters.items()):
        yield cluster_resource(name, {**ORIGINAL, "transport_socket": filter_("tls", mutual_tls(identities))})
    yield cluster_resource(_PASSED, ORIGINAL)
    plain = {
        "name": "outbound",
        # Only the pod itself is redirected to loopback: nobody else can act as this workload.
        **listening_addresses(addresses, OUTBOUND_CAPTURE, _LOOPBACK),
        "listener_filters": [
            filter_("original", typed("envoy.extensions.filters.listener.original_dst.v3.OriginalDst"))
        ],
        "filter_chains": [*(_chain(name, name) for name in sorted((*clusters, _PASSED))), _chain(_BACK, "nowhere")],
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
    # A connection may be silent for as long as those at its ends like.
    proxy = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=name, cluster=cluster, idle_timeout="0s")
    return {"name": name, "filters": [filter_("proxy", proxy)]}


def _write_matcher(matcher: Any, outbound: CapturedOutbound) -> None:
    """Choose the chain by address, then by port."""
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
        _write_action(tree.exact_match_map.map[address], _BACK)
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
