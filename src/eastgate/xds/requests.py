"""The listener that reads HTTP, and decides each request."""

from __future__ import annotations

from typing import Any

from envoy.config.listener.v3 import listener_pb2

from eastgate.xds.doors import HTTP, NETWORK, PATIENCE, Door
from eastgate.xds.logs import open_request_log, request_log
from eastgate.xds.rbac import ATTRIBUTES, REQUESTS, VALUES, filter_name
from eastgate.xds.tokens import token_filter
from eastgate.xds.typed import ADS, Plain, discovered, filter_, message, struct, typed

__all__ = ["requests"]

_HEADERS = "30s"  # from the first byte of a request to the last of its headers
_OPEN = "0.5s"  # how often a proxy tells of a request that is open
_REPLIES = {0: (403, "forbidden\n"), 400: (400, "bad request\n"), 403: (403, "forbidden\n"), 404: (404, "not found\n")}


def requests(door: Door) -> Any:
    """The listener that decides HTTP requests one by one. It is the same whatever the policies are."""
    manager = typed(
        f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=f"requests/{door.port}",
        codec_type="AUTO",
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="KEEP_UNCHANGED",  # policies that look at paths refuse them
        server_header_transformation="PASS_THROUGH",
        generate_request_id=False,
        early_header_mutation_extensions=[_without_envoys_words()],
        request_headers_timeout=_HEADERS,
        **PATIENCE,
        http_protocol_options={"accept_http_10": True},
        upgrade_configs=[{"upgrade_type": "websocket"}],
        **_logs(door),
        local_reply_config={"mappers": [_reply(named, *told) for named, told in _REPLIES.items()]},
        http_filters=[
            *([token_filter(door.tokens)] if door.tokens is not None else []),
            discovered(filter_name(door.port, ATTRIBUTES), f"{HTTP}.set_filter_state.v3.Config"),
            *(discovered(filter_name(door.port, one), f"{HTTP}.lua.v3.Lua") for one in VALUES),
            discovered(filter_name(door.port, REQUESTS), f"{HTTP}.rbac.v3.RBAC"),
            filter_("router", typed(f"{HTTP}.router.v3.Router", suppress_envoy_headers=True)),
        ],
        rds={"config_source": ADS, "route_config_name": f"requests/{door.port}"},
    )
    chains = [{"name": "requests", "filters": [filter_("http", manager)]}]
    plain = {"name": f"requests/{door.port}", "internal_listener": {}, "filter_chains": chains}
    return message(listener_pb2.Listener, plain)


def _logs(door: Door) -> Plain:
    log = request_log(door.workload, door.port)
    if not door.tells_of_open_requests:
        return {"access_log": log}
    options = {"access_log_flush_interval": _OPEN}
    return {"access_log": [*log, *open_request_log(door.workload, door.port)], "access_log_options": options}


def _without_envoys_words() -> Plain:
    """Takes away what only Envoy may say to itself: by `x-envoy-original-path` a client would choose its own path."""
    kind = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    return filter_("words", struct(kind, mutations=[{"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}}]))


def _reply(named: int, status: int, body: str) -> Plain:
    """Envoy's RBAC knows one refusal, 403; the name of the verdict tells of another. All replies are alike."""
    kind = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    expression = f"response.code_details.startsWith('rbac_access_denied_matched_policy[{named}:')"
    chosen = {"extension_filter": filter_("named", typed(kind, expression=expression))}
    return {"filter": chosen, "status_code": status, "body": {"inline_string": body}}
