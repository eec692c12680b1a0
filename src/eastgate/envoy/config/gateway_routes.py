"""The destinations of a gateway: a route for each, and the clusters behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envoy.config.route.v3 import route_pb2

from eastgate.basics.records import dataclass
from eastgate.cluster import GrpcRule, HeaderModifier, PathModifier, Redirect, RouteFilter, RouteRule, UrlRewrite
from eastgate.cluster.routing import Routed
from eastgate.envoy.config.clusters import (
    HTTP2,
    SocketAddress,
    Upstream,
    cluster_resource,
    mutual_tls,
    options,
    service_resources,
)
from eastgate.envoy.config.gateway_filters import AUTHORIZER, TOOLS, asking
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.spelling import spell_path
from eastgate.envoy.config.typed import Plain, filter_, message, typed
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.envoy.server.resources import ROUTE, XdsResource

# Filters of Gateway API's routes, in Envoy's form.


_SET, _ADD = "OVERWRITE_IF_EXISTS_OR_ADD", "APPEND_IF_EXISTS_OR_ADD"
_RESPONSE_CODES = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}
_USUAL_PORTS = {"http": 80, "https": 443}


def header_changes(filters: Iterable[RouteFilter]) -> Plain:
    """Return the changes of headers by filters, in their order."""
    changes: Plain = {}
    for each in filters:
        if not isinstance(each, HeaderModifier):
            continue
        kind = "request" if each.type == HeaderModifier.REQUEST else "response"
        added = changes.setdefault(f"{kind}_headers_to_add", [])
        added += [_header(name, value, _SET) for name, value in each.set]
        added += [_header(name, value, _ADD) for name, value in each.add]
        changes.setdefault(f"{kind}_headers_to_remove", []).extend(each.remove)
    return {name: value for name, value in changes.items() if value}


def _header(name: str, value: str, action: str) -> Plain:
    escaped = value.replace("%", "%%")  # Envoy would interpret operators
    return {"header": {"key": name, "value": escaped}, "append_action": action, "keep_empty_value": True}


def rewrite_action(rewrite: UrlRewrite, prefix: str | None) -> Plain:
    """Return the changes of a forwarded request by a rewrite."""
    action: Plain = {"host_rewrite_literal": rewrite.hostname} if rewrite.hostname is not None else {}
    return action | _path_change(rewrite.path, prefix)


def redirect_action(redirect: Redirect, prefix: str | None, scheme: str, port: int) -> Plain:
    """Return the redirect that a gateway answers with. `scheme` and `port` are those of the requests."""
    action: Plain = {"response_code": _RESPONSE_CODES[redirect.status], **_path_change(redirect.path, prefix)}
    if redirect.path is not None and not redirect.path.prefix:
        del action["regex_rewrite"]
        action["path_redirect"] = redirect.path.value
    if redirect.scheme is not None:
        action["scheme_redirect"] = redirect.scheme
    if redirect.hostname is not None:
        action["host_redirect"] = redirect.hostname
    new_port = redirect.port or (_USUAL_PORTS[redirect.scheme] if redirect.scheme is not None else port)
    keeps_port = redirect.hostname is None and port not in _USUAL_PORTS.values()  # the port of the request's host
    if keeps_port or new_port != _USUAL_PORTS[redirect.scheme or scheme]:
        action["port_redirect"] = new_port
    return action


def _path_change(path: PathModifier | None, prefix: str | None) -> Plain:
    """Return the change of a path, all of it or its prefix. The query stays."""
    if path is None:
        return {}
    if not path.prefix:
        return _regex("^[^?#]*", _literal(path.value))
    stem, matched = path.value.rstrip("/"), spell_path(prefix or "")
    if not stem:
        return _regex(f"^{matched}/?([^?#]*)", r"/\1")
    return _regex(f"^{matched}(/[^?#]*)?", rf"{_literal(stem)}\1")


def _regex(pattern: str, substitution: str) -> Plain:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution}}


def _literal(text: str) -> str:
    """Return a literal text for a replacement, in which a backslash refers to a group."""
    return text.replace("\\", "\\\\")


def timeouts(routed: Routed | None) -> Plain:
    """Return the time limits of a rule. Without them a request may take any time: streams are requests."""
    rule = routed.spec if routed is not None else None
    if not isinstance(rule, RouteRule | GrpcRule):
        return {"timeout": "0s"}
    limits = [limit for limit in (rule.timeouts.request, rule.timeouts.backend_request) if limit]
    return {"timeout": f"{min(limits) / 1000}s" if limits else "0s"}


_DESTINATION = "x-eastgate-destination"
_NOT_DONE = {"status": 500, "body": {"inline_string": "the gateway does not support this route\n"}}
_NO_SERVER = {"status": 503, "body": {"inline_string": "no server is behind the route\n"}}
# The headers go to the authorizer only.
_CARRIED = ("address", "authorization", "certificate", "destination", "sni", "source", "target")


@dataclass(frozen=True, slots=True)
class ExternalHost:
    """A server outside of the cluster, by its name."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """Return the name of the cluster of the server."""
        return f"host/{self.host}/{self.port}"

    @property
    def speaks_tls(self) -> bool:
        """Return whether the gateway uses TLS for the server: at the port of HTTPS."""
        return self.port == 443


@dataclass(frozen=True, slots=True)
class AuthorizerAddress:
    """The authorizer as a Service, with its ports: for decisions by gRPC, and for tool lists by HTTP.

    `identity` is the SPIFFE ID that it must prove.
    """

    host: str
    grpc: int
    http: int
    identity: str


@dataclass(frozen=True, slots=True)
class Leg:
    """The last part of a way: a destination, and its servers, if it has any."""

    destination: GatewayDestination
    to: Upstream | ExternalHost | None
    http2: bool = False

    @property
    def cluster(self) -> str | None:
        """Return the cluster of the servers."""
        if self.to is None:
            return None
        return f"{self.to.name}{'/h2' if self.http2 else ''}"


def gateway_routes(port: int, scheme: str, legs: Iterable[Leg]) -> XdsResource:
    """Return the routes of a port, by destination alone. `scheme` is that of its requests."""
    host = {
        "name": "gateway",
        "domains": ["*"],
        "routes": [_route(leg, scheme, port) for leg in legs],
        "request_headers_to_remove": [f"x-eastgate-{name}" for name in _CARRIED],
    }
    plain = {"name": f"requests/{port}", "virtual_hosts": [host], "validate_clusters": False}
    return XdsResource(ROUTE, f"requests/{port}", serialize(message(route_pb2.RouteConfiguration, plain)))


def _route(leg: Leg, scheme: str, port: int) -> Plain:
    destination = leg.destination
    chosen = {"name": _DESTINATION, "string_match": {"exact": destination.id}}
    route: Plain = {"match": {"prefix": "/", "headers": [chosen]}, **asking(destination)}
    if destination.unsupported:
        return route | {"direct_response": _NOT_DONE}
    redirect = next((each for each in destination.filters if isinstance(each, Redirect)), None)
    if redirect is not None:
        action = redirect_action(redirect, destination.prefix, scheme, port)
        return route | {"redirect": action} | header_changes(destination.filters)
    if leg.cluster is None:
        return route | {"direct_response": _NO_SERVER}
    action = {"cluster": leg.cluster, **timeouts(destination.routed)}
    if isinstance(leg.to, ExternalHost):
        action["host_rewrite_literal"] = leg.to.host
    for each in destination.filters:
        if isinstance(each, UrlRewrite):
            action |= rewrite_action(each, destination.prefix)
    return route | {"route": action} | header_changes(destination.filters)


def leg_resources(legs: Iterable[Leg], source: str | None) -> Iterator[XdsResource]:
    """Yield the clusters of servers. `source` is the address that the gateway calls from; None: any."""
    seen: set[str] = set()
    for leg in legs:
        if leg.to is None or leg.cluster is None or leg.cluster in seen:
            continue
        seen.add(leg.cluster)
        if isinstance(leg.to, ExternalHost):
            yield _external(leg.cluster, leg.to, http2=leg.http2)
        else:
            yield from service_resources(leg.cluster, leg.to, source, http2=leg.http2)


def _external(name: str, to: ExternalHost, *, http2: bool) -> XdsResource:
    endpoint = {"endpoint": {"address": {"socket_address": {"address": to.host, "port_value": to.port}}}}
    config: Plain = {
        "type": "LOGICAL_DNS",
        "dns_lookup_family": "ALL",  # the first of its addresses that answers
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        **(options(HTTP2) if http2 else {}),
    }
    if to.speaks_tls:
        context = typed(
            "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            sni=to.host,
            common_tls_context={
                "validation_context": {
                    "system_root_certs": {},
                    "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": to.host}}],
                }
            },
        )
        config["transport_socket"] = filter_("tls", context)
    return cluster_resource(name, config)


def authorizer_resources(grpc: str, http: str) -> Iterator[XdsResource]:
    """Yield the clusters of the authorizer, by the paths of its sockets."""
    for name, path, more in ((AUTHORIZER, grpc, options(HTTP2)), (TOOLS, http, {})):
        endpoint = {"endpoint": {"address": SocketAddress(path).to_plain()}}
        assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
        yield cluster_resource(name, {"type": "STATIC", "load_assignment": assignment, **more})


def authorizer_service_resources(service: AuthorizerAddress) -> Iterator[XdsResource]:
    """Yield the clusters of an authorizer behind mTLS: both ends prove their identities with SVIDs."""
    socket = filter_("tls", mutual_tls([service.identity]))
    keepalive = {"http2_protocol_options": {"connection_keepalive": {"interval": "10s", "timeout": "5s"}}}
    for name, port, more in ((AUTHORIZER, service.grpc, options(keepalive)), (TOOLS, service.http, {})):
        endpoint = {"endpoint": {"address": SocketAddress(service.host, port).to_plain()}}
        assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
        config = {"type": "STRICT_DNS", "load_assignment": assignment, "transport_socket": socket, **more}
        yield cluster_resource(name, config)
