"""Changes the listeners of istiod to those of an Envoy that answers questions without other servers.

The parts that decide stay: filter chain matches, inspectors, RBAC, tokens, external authorizers, the normalization of
paths. The other parts are replaced: certificates by those of the test, routes by an answer, upstreams by echo.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.istio.identities import TestCa
from tests.istio.observing import observed

REACHED = 299  # the status of a request that got through all filters
REACHED_TEXT = "reached the application"

HTTP_PROTOCOLS = ("istio-http/1.1", "istio-h2")
BYTES_PROTOCOLS = ("istio-peer-exchange", "istio")
"""The protocols that the proxies of callers offer in TLS, by the content of the call."""

_TYPES = "type.googleapis.com/envoy.extensions"
_INSPECTORS = ("envoy.filters.listener.tls_inspector", "envoy.filters.listener.http_inspector")
_DECIDING = ("RBAC", "JwtAuthentication", "ExtAuthz")
_NOT_NEEDED = ("tracing", "access_log_options", "rds", "upgrade_configs", "request_id_extension", "local_reply_config")
_OF_ROUTES = ("name", "virtual_hosts", "ignore_port_in_host_matching", "max_direct_response_body_size_bytes")
_BY_GRPC = "cluster_name"
_ANSWER = {"status": REACHED, "body": {"inline_string": REACHED_TEXT}}

Config = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """The address of a copy of a listener, and its inputs. `routes` are those of a gateway, by name."""

    address: str
    port: int
    ca: TestCa
    access_log: Config
    routes: Mapping[str, Config] | None = None

    @property
    def name(self) -> str:
        return f"{self.address}_{self.port}"


def type_of(filter_: Config) -> str:
    """Return the last word of the type of a filter."""
    return str((filter_.get("typed_config") or {}).get("@type", "")).rpartition(".")[2]


def listener_at(site: Site, listener: Config) -> Config:
    """Return a copy of a listener for one port, without the parts for other ports."""
    copied: Config = {
        name: listener[name]
        for name in ("listener_filters_timeout", "continue_on_listener_filters_timeout")
        if name in listener
    }
    copied["listener_filters"] = [each for each in listener.get("listener_filters", ()) if each["name"] in _INSPECTORS]
    chains = listener.get("filter_chains", ())
    copied["filter_chains"] = [filter_chain(site, chain) for chain in chains if _is_for(site.port, chain)]
    if "default_filter_chain" in listener:
        copied["default_filter_chain"] = filter_chain(site, listener["default_filter_chain"])
    return {**_bound(site), **copied}


def waypoint_listener_at(site: Site, http: Config | None, bytes_: Config | None) -> Config:
    """Return a listener with the chains of a waypoint, with mTLS instead of the tunnel of callers.

    The protocols that callers offer choose between the chains. With only one chain, all connections use it.
    """
    inspector = f"{_TYPES}.filters.listener.tls_inspector.v3.TlsInspector"
    chains = [
        _tunnelled(site, chain, protocols if http and bytes_ else ())
        for chain, protocols in ((http, HTTP_PROTOCOLS), (bytes_, BYTES_PROTOCOLS))
        if chain is not None
    ]
    return {
        **_bound(site),
        "listener_filters": [{"name": _INSPECTORS[0], "typed_config": {"@type": inspector}}],
        "filter_chains": chains,
    }


def has_tls(listener: Config) -> bool:
    """Return whether a chain of a listener for its port terminates TLS."""
    port = listener["address"]["socket_address"]["port_value"]
    chains = listener["filter_chains"]
    own = [chain for chain in chains if chain.get("filter_chain_match", {}).get("destination_port") == port]
    return any("transport_socket" in chain for chain in own or chains)


def authorizer_clusters(listeners: list[Config]) -> dict[str, bool]:
    """Return the clusters of the external authorizers of listeners, and whether each uses gRPC."""
    return {target[key]: key == _BY_GRPC for target, key in _references(listeners)}


def with_own_clusters(listeners: list[Config], prefix: str) -> list[Config]:
    """Return listeners whose external authorizers have unique names."""
    copied: list[Config] = json.loads(json.dumps(listeners))  # chains share filters, and a shallow copy would, too
    for target, key in _references(copied):
        target[key] = prefix + target[key]
    return copied


def filter_chain(site: Site, chain: Config) -> Config:
    """Return a chain with the filters that decide, and an end of the test."""
    copied: Config = {name: copy.deepcopy(chain[name]) for name in ("name", "filter_chain_match") if name in chain}
    if "transport_socket" in chain:
        copied["transport_socket"] = _with_own_certificates(chain["transport_socket"], site.ca)
    copied["filters"] = observed(
        [each for filter_ in chain.get("filters", ()) for each in _network_filters(site, filter_)]
    )
    return copied


def _bound(site: Site) -> Config:
    socket = {"address": site.address, "port_value": site.port}
    return {"name": site.name, "address": {"socket_address": socket}, "access_log": [site.access_log]}


def _is_for(port: int, chain: Config) -> bool:
    return chain.get("filter_chain_match", {}).get("destination_port") in (None, port)


def _network_filters(site: Site, filter_: Config) -> list[Config]:
    match type_of(filter_):
        case "RBAC" | "ExtAuthz":
            return [filter_]
        case "HttpConnectionManager":
            return [_http_manager(site, filter_)]
        case "TcpProxy":
            return [{"name": "echo", "typed_config": {"@type": f"{_TYPES}.filters.network.echo.v3.Echo"}}]
    return []


def _http_manager(site: Site, filter_: Config) -> Config:
    manager = copy.deepcopy(filter_["typed_config"])
    filters = manager.get("http_filters", ())
    deciding = observed(filter_ for filter_ in filters if type_of(filter_) in _DECIDING)
    manager["http_filters"] = [*deciding, *(each for each in filters if type_of(each) == "Router")]
    manager["route_config"] = _answering_routes(site, manager)
    manager["access_log"] = [site.access_log]
    for name in _NOT_NEEDED:
        manager.pop(name, None)
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}


def _answering_routes(site: Site, manager: Config) -> Config:
    """Return routes that answer with their destination. The routes of a workload all lead to its application."""
    if site.routes is None:
        everything = {"match": {"prefix": ""}, "direct_response": _ANSWER}
        return {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [everything]}]}
    name = manager.get("rds", {}).get("route_config_name")
    routes = copy.deepcopy(manager.get("route_config") or site.routes.get(name) or {})
    for host in routes.get("virtual_hosts", ()):
        host["routes"] = [_answering(route) for route in host.get("routes", ())]
        for key in [key for key in host if key not in ("name", "domains", "routes")]:
            del host[key]
    return {key: value for key, value in routes.items() if key in _OF_ROUTES}


def _answering(route: Config) -> Config:
    kept = {key: value for key, value in route.items() if key in ("name", "match", "direct_response")}
    return {"direct_response": _ANSWER, **kept}


def _with_own_certificates(socket: Config, ca: TestCa) -> Config:
    """Return a TLS socket with the test's certificates. The accepted names of a peer stay the same."""
    copied = copy.deepcopy(socket)
    context = copied["typed_config"].setdefault("common_tls_context", {})
    accepted = context.get("combined_validation_context", {}).get("default_validation_context", {})
    kept = {key: value for key, value in context.items() if "certificate" not in key and "validation" not in key}
    names = {key: value for key, value in accepted.items() if key == "match_typed_subject_alt_names"}
    context.clear()
    context.update(kept, **_certificates(ca, names))
    return copied


def _tunnelled(site: Site, chain: Config, protocols: Sequence[str]) -> Config:
    """Return a chain of a waypoint that sees the peer of its connection as the caller that ztunnel would name."""
    copied = filter_chain(site, chain)
    copied["filter_chain_match"] = {"application_protocols": list(protocols)} if protocols else {}
    copied["filters"] = [_remember_peer(), *copied["filters"]]
    copied["transport_socket"] = _mutual_tls(site.ca)
    return copied


def _remember_peer() -> Config:
    """Return a filter that records the peer's identity where a waypoint reads the identity from ztunnel."""
    value = {
        "object_key": "io.istio.peer_principal",
        "factory_key": "envoy.string",
        "format_string": {"text_format_source": {"inline_string": "%DOWNSTREAM_PEER_URI_SAN%"}},
    }
    type_ = f"{_TYPES}.filters.network.set_filter_state.v3.Config"
    return {
        "name": "envoy.filters.network.set_filter_state",
        "typed_config": {"@type": type_, "on_downstream_tls_handshake": [value]},
    }


def _mutual_tls(ca: TestCa) -> Config:
    type_ = f"{_TYPES}.transport_sockets.tls.v3.DownstreamTlsContext"
    context = _certificates(ca, {})
    config = {"@type": type_, "require_client_certificate": True, "common_tls_context": context}
    return {"name": "envoy.transport_sockets.tls", "typed_config": config}


def _certificates(ca: TestCa, names: Config) -> Config:
    certificate, key = ca.server
    pair = {"certificate_chain": {"inline_string": certificate}, "private_key": {"inline_string": key}}
    return {"tls_certificates": [pair], "validation_context": {"trusted_ca": {"inline_string": ca.root}, **names}}


def _references(config: object) -> Iterator[tuple[Config, str]]:
    """Yield every object that names the cluster of an authorizer, with its key."""
    if isinstance(config, dict):
        if "envoy_grpc" in config:
            yield config["envoy_grpc"], _BY_GRPC
        if "server_uri" in config:
            yield config["server_uri"], "cluster"
    for value in config.values() if isinstance(config, dict) else config if isinstance(config, list) else ():
        yield from _references(value)
