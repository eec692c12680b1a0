"""The listener that reads HTTP, and decides each request."""

from __future__ import annotations

from typing import Any

from envoy.config.listener.v3 import listener_pb2

from eastgate.xds.doors import HTTP, NETWORK, Door
from eastgate.xds.logs import request_log
from eastgate.xds.rbac import ATTRIBUTES, REQUESTS, filter_name
from eastgate.xds.tokens import token_filter
from eastgate.xds.typed import ADS, Plain, discovered, filter_, message, struct, typed

__all__ = ["requests"]

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
        request_headers_timeout="10s",
        http_protocol_options={"accept_http_10": True},
        upgrade_configs=[{"upgrade_type": "websocket"}],
        access_log=request_log(door.workload, door.port),
        local_reply_config={"mappers": [_reply(named, *told) for named, told in _REPLIES.items()]},
        http_filters=[
            *([token_filter(door.tokens)] if door.tokens is not None else []),
            discovered(filter_name(door.port, ATTRIBUTES), f"{HTTP}.set_filter_state.v3.Config"),
            discovered(filter_name(door.port, REQUESTS), f"{HTTP}.rbac.v3.RBAC"),
            filter_("router", typed(f"{HTTP}.router.v3.Router", suppress_envoy_headers=True)),
        ],
        rds={"config_source": ADS, "route_config_name": f"requests/{door.port}"},
    )
    chains = [{"name": "requests", "filters": [filter_("http", manager)]}]
    plain = {"name": f"requests/{door.port}", "internal_listener": {}, "filter_chains": chains}
    return message(listener_pb2.Listener, plain)


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
