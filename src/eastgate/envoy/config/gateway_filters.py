"""The HTTP filters of a gateway's port.

attributes...  notes the values that policies look at, as at a sidecar; a token that proves an identity goes only to
               the authorizer
route          names the rule that routing chooses; it decides nothing
steer          draws a destination of that rule, reads the message, notes both, and sends the request there; it filters
               tool lists in answers
requests       decides
ask            asks the authorizer, if `requests` leaves the decision to it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from envoy.config.core.v3 import base_pb2
from envoy.extensions.filters.http.lua.v3 import lua_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from google.protobuf.message import Message

from eastgate.envoy.config.inbound_port import HTTP, InboundPort
from eastgate.envoy.config.matching import node_matcher, where_unclear
from eastgate.envoy.config.rbac import (
    connection_filters,
    extension_resource,
    filter_name,
    request_filters,
    write_action,
)
from eastgate.envoy.config.request_listener import noting_filters, requests_filter
from eastgate.envoy.config.tokens import CARRIER, TokenIdentity
from eastgate.envoy.config.typed import Plain, discovered, filter_, typed
from eastgate.envoy.config.values import literal
from eastgate.envoy.plan import ProxyVerdict
from eastgate.envoy.plan.decisions import ASK
from eastgate.envoy.plan.gateway import UNCLEAR_ROUTE, GatewayDestination, GatewayPlan
from eastgate.envoy.server.resources import XdsResource
from eastgate.reading.mcp.messages import METHODS
from eastgate.reading.mcp.requests import OVERRIDES

# Lua modules for Envoy. Each is a statement that defines a local variable, and is put in front of a script.


def messages_lua() -> str:
    """Return the module `messages`, which reads messages as `read_messages` does."""
    return _source("messages.lua").replace("--[[METHODS]]", _listed(METHODS))


def requests_lua() -> str:
    """Return the modules `messages` and `requests`, which reads requests as `read_request` does."""
    return messages_lua() + _source("requests.lua").replace("--[[OVERRIDES]]", _listed(OVERRIDES))


def sessions_lua() -> str:
    """Return the module `sessions`: session ids that are valid only for one agent and one server.

    The gateway keeps no sessions. It gives `<id>.<tag>` to the client, and accepts it only from the same peer for the
    same backend: the tag is a truncated HMAC of all three.
    """
    return _source("sessions.lua")


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in sorted(texts))


def _source(name: str) -> str:
    return files("eastgate.reading.mcp").joinpath(name).read_text("utf-8")


AUTHORIZER, TOOLS = "authorizer", "tools"  # the clusters of the authorizer: for decisions, and for tool lists
OWN_HEADERS = "x-eastgate-"  # prefix of headers that carry notes to the authorizer
_ROUTE, _STEER, _ASK = "route", "steer", "ask"  # the names of filters
LARGEST_MESSAGE = 1 << 20  # bytes
_AUTHORIZER_TIMEOUT = "30s"  # for the authorizer, which may itself wait
_CEL = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
_MCP = "eastgate.mcp"  # dynamic metadata: the id of a message, as written


def gateway_filters(inbound: InboundPort) -> list[Plain]:
    """Return the filters of a port, without the router."""
    return [
        *noting_filters(inbound, CARRIER),
        discovered(filter_name(inbound.name, _ROUTE), f"{HTTP}.rbac.v3.RBAC"),
        discovered(filter_name(inbound.name, _STEER), f"{HTTP}.lua.v3.Lua"),
        requests_filter(inbound),
        _ask_filter(),
    ]


def gateway_resources(plan: GatewayPlan, session_key: str, tokens: TokenIdentity | None = None) -> list[XdsResource]:
    """Return the configurations of those filters that depend on routes and policies.

    `session_key` is the secret that binds session ids to callers.
    """
    port, policies = plan.port.port, plan.port.policies
    return [
        *connection_filters(plan.port, str(port)),
        *request_filters(plan.port, str(port), tokens, plan.fields),
        extension_resource(filter_name(port, _ROUTE), _routing_rules(plan), policies),
        extension_resource(filter_name(port, _STEER), _steering(plan, session_key), policies),
    ]


def _routing_rules(plan: GatewayPlan) -> Message:
    """Build the filter that names the rule of a request: a shadow rule, which allows every request."""
    matcher = node_matcher(plan.routing, write_action)
    if plan.fields:
        unclear = ProxyVerdict(True, 200, UNCLEAR_ROUTE)
        matcher = where_unclear(plan.fields, lambda to: write_action(to, unclear), matcher)
    rules = http_rbac_pb2.RBAC(shadow_matcher=matcher, shadow_rules_stat_prefix="route_")
    message: Message = rules
    return message


def _steering(plan: GatewayPlan, session_key: str) -> Message:
    constants = {
        "GATEWAY": literal(f"{plan.gateway}:{plan.port.port}"),
        "TLS": str(plan.tls).lower(),
        "SESSION_KEY": literal(session_key),
        "RULES": _table({rule: _list(map(_weighted, of_rule)) for rule, of_rule in sorted(plan.rules.items())}),
        "DESTINATIONS": _table({each.id: _described(each) for each in plan.destinations}),
    }
    before = "".join(f"local {name} = {value}\n" for name, value in constants.items())
    config = lua_pb2.Lua(default_source_code=base_pb2.DataSource(inline_string=f"{before}\n{_script()}"))
    message: Message = config
    return message


def _weighted(destination: GatewayDestination) -> str:
    return f"{{ id = {literal(destination.id)}, weight = {destination.weight} }}"


def _described(destination: GatewayDestination) -> str:
    """Return the script's description of a destination. MCP servers have sessions; policies may need the message."""
    flags = {
        "messages": destination.reads_messages,
        "tools": destination.filters_tools,
        "schemes": destination.asks_schemes,
        "http2": destination.speaks_grpc,
    }
    parts = [f"{name} = true" for name, holds in flags.items() if holds]
    if destination.reads_messages and destination.backend_key is not None:
        parts.append(f"backend = {literal(destination.backend_key)}")
    return _list(parts)


def _table(entries: Mapping[str, str]) -> str:
    return "{\n" + "".join(f"  [{literal(key)}] = {value},\n" for key, value in entries.items()) + "}"


def _list(entries: Iterable[str]) -> str:
    return f"{{ {', '.join(entries)} }}"


@cache
def _script() -> str:
    own = files("eastgate.envoy.config").joinpath("gateway.lua").read_text("utf-8")
    return f"{requests_lua()}\n{sessions_lua()}\n{own}"


def _ask_filter() -> Plain:
    """Build the filter that asks the authorizer, if the decision is left to it. Without an answer, it denies."""
    asked = {
        "filter": "envoy.filters.http.rbac",
        "path": [{"key": "enforced_effective_policy_id"}],
        "value": {"string_match": {"exact": ASK.name}},
    }
    return filter_(
        _ASK,
        typed(
            f"{HTTP}.ext_authz.v3.ExtAuthz",
            transport_api_version="V3",
            grpc_service={"envoy_grpc": {"cluster_name": AUTHORIZER}, "timeout": _AUTHORIZER_TIMEOUT},
            failure_mode_allow=False,
            status_on_error={"code": "ServiceUnavailable"},
            filter_enabled_metadata=asked,
            with_request_body={
                "max_request_bytes": LARGEST_MESSAGE + 1,  # at this size, the body may be incomplete
                "allow_partial_message": True,
                "pack_as_bytes": True,
            },
            encode_raw_headers=True,  # otherwise several values of a header are joined
            clear_route_cache=False,
        ),
    )


def asking(destination: GatewayDestination) -> Plain:
    """Return a route's options for asking. Without a need for bodies, an endless request is not delayed."""
    if destination.shows_body:
        return {}
    without = typed(f"{HTTP}.ext_authz.v3.ExtAuthzPerRoute", check_settings={"disable_request_body_buffering": True})
    return {"typed_per_filter_config": {_ASK: without}}


def json_rpc_reply() -> Plain:
    """Map a refused MCP request to an answer that its client reads: an error with the id of the request."""
    expression = (
        "response.code == 403 && "
        f"'{_MCP}' in metadata.filter_metadata && 'id' in metadata.filter_metadata['{_MCP}'] && "
        "(response.code_details.startsWith('rbac_access_denied_matched_policy[403:')"
        " || response.code_details == 'ext_authz_denied')"
    )
    error = '{"code":-32001,"message":"forbidden"}'
    text = f'{{"jsonrpc":"2.0","id":%DYNAMIC_METADATA({_MCP}:id)%,"error":{error}}}\n'
    return {
        "filter": {"extension_filter": filter_("message", typed(_CEL, expression=expression))},
        "status_code": 200,
        "body_format_override": {
            "text_format_source": {"inline_string": text},
            "content_type": "application/json",
        },
    }
