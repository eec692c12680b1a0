"""Filter chains: the callers on each, and the changes that close it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2

from eastgate import Settings
from eastgate.envoy.config.connection_listener import closing_connection_listener, connection_listener
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.plan import plan_port
from eastgate.ir import (
    ALWAYS,
    AllowAny,
    Chain,
    InNetwork,
    Is,
    Layer,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Present,
    Refusal,
    Rule,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, METHOD

X = "spiffe://td/ns/a/sa/x"
INBOUND = InboundPort("a/p0", "127.0.0.1", 80, 80)
NEVER_CALLERS = {"closed:0:no-caller", "closed:0:unfit-certificate"}
IS_X, IS_CALLER = Is(IDENTITY, OneOf(frozenset({X}))), Is(IDENTITY, Present())


def _layer(*predicates: Predicate, refusal: Refusal = Refusal.CLOSED) -> Layer:
    rules = tuple(Rule(when, Origin(PolicyRef("P", "n", "p"), n)) for n, when in enumerate(predicates))
    return Layer(Placement(None, "l"), Chain((AllowAny("allow", rules, refusal),)))


def _within(*texts: str) -> Predicate:
    return Is(ADDRESS, InNetwork(tuple(map(ip_network, texts))))


def _chains(inbound: InboundPort, *layers: Layer) -> dict[str, Any]:
    listener = connection_listener(inbound, plan_port(layers, 80, Settings.from_mapping({"trustDomain": "td"})))
    names = [chain.name for chain in listener.filter_chains]
    assert names == sorted(names)
    return {chain.name: chain for chain in listener.filter_chains}


def _proxy(chain: Any) -> Any:
    proxy = tcp_proxy_pb2.TcpProxy()
    assert chain.filters[-1].typed_config.Unpack(proxy)
    return proxy


def test_each_caller_has_a_chain_and_each_refusal_has_one() -> None:
    chains = _chains(INBOUND, _layer(IS_X))
    assert set(chains) == {f"app:{X}", "closed:0:none-of-1", *NEVER_CALLERS}
    assert _proxy(chains[f"app:{X}"]).cluster == "app/80"
    assert _proxy(chains[f"app:{X}"]).access_log  # the application is missing
    assert _proxy(chains["closed:0:none-of-1"]).cluster == "nowhere"


def test_where_the_address_decides_a_chain_is_named_after_what_was_asked() -> None:
    def own(*layers: Layer) -> set[str]:
        return {name for name in _chains(INBOUND, *layers) if name.startswith("app:none")}

    [tens] = own(_layer(_within("10.0.0.0/8")))
    [elevens] = own(_layer(_within("11.0.0.0/8")))
    assert own(_layer(ALWAYS)) == {"app:none"}
    assert len({tens, elevens, "app:none"}) == 3
    assert own(_layer(_within("10.0.0.0/8"), ALWAYS)) == {"app:none"}  # under any allowing rule
    assert own(_layer(_within("10.0.0.0/8"), _within("10.0.0.0/8"))) == {tens}
    [both] = own(_layer(_within("10.0.0.0/8", "11.0.0.0/8")))
    assert both not in (tens, elevens)


def test_connections_whose_requests_are_ended_get_a_new_chain() -> None:
    layers = _layer(IS_X), _layer(Is(METHOD, Present()), refusal=Refusal.FORBIDDEN)
    before, after = _chains(INBOUND, *layers), _chains(replace(INBOUND, ended={X: 7}), *layers)
    assert f"requests:{X}" in before
    assert f"requests:{X}~7" in after
    assert f"requests:{X}" not in after
    assert _proxy(before[f"requests:{X}"]).cluster == "requests/80"
    assert not _proxy(before[f"requests:{X}"]).access_log
    assert _chains(replace(INBOUND, ended={X: 7}), layers[0]) == _chains(INBOUND, layers[0])


@pytest.mark.parametrize("reads_http", [True, False])
def test_bytes_are_looked_at_where_http_is_read(reads_http: bool) -> None:
    layer = _layer(IS_CALLER, refusal=Refusal.FORBIDDEN if reads_http else Refusal.CLOSED)
    listener = connection_listener(INBOUND, plan_port([layer], 80, Settings()))
    assert [one.name for one in listener.listener_filters] == (["http"] if reads_http else [])
    assert listener.continue_on_listener_filters_timeout is reads_http
    assert listener.name == "connections/80"


def test_a_closed_port_refuses_all_callers() -> None:
    listener = closing_connection_listener(INBOUND)
    [chain] = listener.filter_chains
    assert (listener.name, chain.name) == ("connections/80", "closed:0:cannot-be-enforced")
    assert _proxy(chain).cluster == "nowhere"
    assert not listener.HasField("filter_chain_matcher")
