"""The listener that reads HTTP, and decides each request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envoy.config.listener.v3 import listener_pb2

from eastgate.envoy.config.inbound_port import HEADERS, HTTP, NETWORK, TIMEOUTS, InboundPort
from eastgate.envoy.config.logs import log_metadata, open_request_log, request_log, sent_request_log
from eastgate.envoy.config.rbac import ATTRIBUTES, REQUESTS, VALUES, filter_name
from eastgate.envoy.config.tokens import identity_filter, token_filter
from eastgate.envoy.config.typed import ADS, Plain, discovered, filter_, message, struct, typed

_OPEN_LOG_INTERVAL = "0.5s"  # between two log lines about an open request
_REPLIES = {
    0: (403, "forbidden\n"),
    400: (400, "bad request\n"),
    403: (403, "forbidden\n"),
    404: (404, "not found\n"),
    405: (405, "method not allowed\n"),
}


def request_listener(inbound: InboundPort) -> Any:
    """Build the listener that decides HTTP requests one by one. It does not depend on the policies."""
    return build_request_listener(inbound, [*noting_filters(inbound), requests_filter(inbound)])


def noting_filters(inbound: InboundPort, carrier: str | None = None) -> list[Plain]:
    """Return the filters that note the values for policies. `carrier` is the header for a token of an identity."""
    noting = [
        discovered(filter_name(inbound.name, ATTRIBUTES), f"{HTTP}.set_filter_state.v3.Config"),
        *(discovered(filter_name(inbound.name, which), f"{HTTP}.lua.v3.Lua") for which in VALUES),
    ]
    if inbound.tokens is None:
        return noting
    return [token_filter(inbound.tokens), *noting, identity_filter(inbound.tokens, carrier)]


def requests_filter(inbound: InboundPort) -> Plain:
    """Return the filter that decides."""
    return discovered(filter_name(inbound.name, REQUESTS), f"{HTTP}.rbac.v3.RBAC")


def build_request_listener(
    inbound: InboundPort,
    filters: list[Plain],
    replies: Iterable[Plain] = (),
    own_headers: tuple[str, ...] = (),
    logged: Mapping[str, str] | None = None,
    scheme: str | None = None,
) -> Any:
    """Build a listener with these HTTP filters before the router, and mappers of replies before the usual ones.

    `own_headers` are prefixes of headers that no client may send. `logged` are further fields of its log. `scheme` is
    that of all requests, whatever clients send.
    """
    manager = typed(
        f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=f"requests/{inbound.name}",
        codec_type="AUTO",
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="KEEP_UNCHANGED",  # policies that look at paths refuse them
        server_header_transformation="PASS_THROUGH",
        generate_request_id=False,
        early_header_mutation_extensions=[_strip_headers("x-envoy-", *own_headers)],
        request_headers_timeout=HEADERS,
        **TIMEOUTS,
        http_protocol_options={"accept_http_10": True},
        upgrade_configs=[{"upgrade_type": "websocket"}],
        **({"scheme_header_transformation": {"scheme_to_overwrite": scheme}} if scheme is not None else {}),
        **_logs(inbound, logged or {}),
        local_reply_config={"mappers": [*replies, *(_reply(status, *reply) for status, reply in _REPLIES.items())]},
        http_filters=[*filters, filter_("router", typed(f"{HTTP}.router.v3.Router", suppress_envoy_headers=True))],
        rds={"config_source": ADS, "route_config_name": f"requests/{inbound.name}"},
    )
    chains = [{"name": "requests", "filters": [filter_("http", manager)]}]
    plain = {
        "name": f"requests/{inbound.name}",
        "internal_listener": {},
        "filter_chains": chains,
        **({"metadata": log_metadata(port=str(inbound.port))} if inbound.sends_logs else {}),
    }
    return message(listener_pb2.Listener, plain)


def _logs(inbound: InboundPort, more: Mapping[str, str]) -> Plain:
    log = [
        *request_log(inbound.workload, inbound.port, more),
        *(sent_request_log() if inbound.sends_logs else []),
    ]
    if not inbound.logs_open_requests:
        return {"access_log": log}
    options = {"access_log_flush_interval": _OPEN_LOG_INTERVAL}
    return {"access_log": [*log, *open_request_log(inbound.workload, inbound.port)], "access_log_options": options}


def _strip_headers(*prefixes: str) -> Plain:
    """Drop headers from clients: with `x-envoy-original-path`, a client could choose the path for policies."""
    kind = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    mutations = [{"remove_on_match": {"key_matcher": {"prefix": prefix}}} for prefix in prefixes]
    return filter_("words", struct(kind, mutations=mutations))


def _reply(verdict_status: int, status: int, body: str) -> Plain:
    """Map the refusal of a verdict to its status. Envoy's RBAC always answers 403; the verdict's name differs."""
    kind = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    expression = f"response.code_details.startsWith('rbac_access_denied_matched_policy[{verdict_status}:')"
    chosen = {"extension_filter": filter_("named", typed(kind, expression=expression))}
    return {"filter": chosen, "status_code": status, "body": {"inline_string": body}}
