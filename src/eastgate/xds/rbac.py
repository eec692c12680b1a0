"""HTTP decisions as RBAC filters, each one resource of its own: a change is enforced without touching a connection.

The name of a verdict is the name of Envoy's action, so that its log says which rule decided.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from envoy.config.core.v3 import extension_pb2
from envoy.config.rbac.v3 import rbac_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.http.set_filter_state.v3 import set_filter_state_pb2
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from xds.core.v3 import extension_pb2 as xds_extension_pb2

from eastgate.policy.attributes import Attribute
from eastgate.targets.envoy import ENCODED_SLASH, ByCaller, HttpFilter, Node, PortPlan, Verdict
from eastgate.xds.matching import PATH_KEY, TOKEN_KEY, caller_matcher, query_key, where
from eastgate.xds.packing import packed, serialized
from eastgate.xds.server.resources import EXTENSION, Resource
from eastgate.xds.tokens import TokenIdentity

__all__ = ["APPLICATION_SLOTS", "attributes_name", "connection_filters", "request_filters", "slot_name"]

APPLICATION_SLOTS = ("workload/application", "workload/inbound")
"""The layers that look at requests, in their order. Each has its place in every proxy, whether there is one or not."""


def slot_name(port: int, layer: str) -> str:
    """The name of the filter of one layer at one port."""
    return f"{port}/{layer}"


def attributes_name(port: int) -> str:
    """The name of the filter that notes what the others look at."""
    return f"{port}/attributes"


def request_filters(plan: PortPlan, tokens: TokenIdentity | None = None) -> list[Resource]:
    """The filters of a port that is read as HTTP."""
    by_layer = {one.layer: one for one in plan.filters}
    looked_at = frozenset().union(*(one.looks_at for one in plan.filters))
    found = [_resource(attributes_name(plan.port), _attributes(looked_at, tokens))]
    by_token = tokens.trust_domain if tokens is not None else None
    for layer in APPLICATION_SLOTS:
        one = by_layer.get(layer)
        rules = _rules(one, by_token) if one is not None else http_rbac_pb2.RBAC()
        found.append(_resource(slot_name(plan.port, layer), rules, one.policies if one is not None else frozenset()))
    return found


def _rules(one: HttpFilter, by_token: str | None) -> Any:
    matcher = caller_matcher(one.decision, _action, by_token)
    if one.refusal is not None:
        matcher = where(ENCODED_SLASH, caller_matcher(one.refusal, _action, by_token), matcher)
    prefix = f"{one.layer}."
    rules = http_rbac_pb2.RBAC(matcher=matcher, rules_stat_prefix=prefix, track_per_rule_stats=True)
    if one.audit is not None:
        rules.shadow_matcher.CopyFrom(caller_matcher(one.audit, _action, by_token))
        rules.shadow_rules_stat_prefix = f"audit.{prefix}"
    return rules


def connection_filters(plan: PortPlan) -> list[Resource]:
    """Name the rule that lets a connection in, and those in audit mode, for the log. They decide nothing: the listener
    behind them does.
    """
    return [
        _named(slot_name(plan.port, "connections"), "connections.", plan.connect, plan.policies),
        _named(slot_name(plan.port, "audit"), "audit.", plan.audit, plan.policies),
    ]


def _named(name: str, prefix: str, decided: ByCaller[Node] | None, policies: frozenset[str]) -> Resource:
    rules = network_rbac_pb2.RBAC(stat_prefix=prefix, shadow_rules_stat_prefix=prefix)
    if decided is not None:
        rules.shadow_matcher.CopyFrom(caller_matcher(decided, _action))
    return _resource(name, rules, policies)


def _action(to: Any, verdict: Verdict) -> None:
    to.action.CopyFrom(_named_action(verdict.name, verdict.allowed))


@lru_cache(maxsize=4096)
def _named_action(name: str, allowed: bool) -> Any:
    action = rbac_pb2.Action(name=name, action=rbac_pb2.RBAC.Action.ALLOW if allowed else rbac_pb2.RBAC.Action.DENY)
    return xds_extension_pb2.TypedExtensionConfig(name="verdict", typed_config=packed(action))


def _attributes(looked_at: frozenset[Attribute], tokens: TokenIdentity | None) -> Message:
    """The path without its query, each query parameter that a policy looks at, and whom a token names."""
    values: list[dict[str, object]] = [_noted(PATH_KEY, "%PATH(NQ:PATH)%")]
    if tokens is not None:
        values.append(_noted(TOKEN_KEY, tokens.claimed))
    queries = sorted(one.key for one in looked_at if one.name == "query parameter")
    values += [_noted(query_key(name), f"%QUERY_PARAM({name})%") for name in queries]
    found: Message = ParseDict({"on_request_headers": values}, set_filter_state_pb2.Config())
    return found


def _noted(key: str, text: str) -> dict[str, object]:
    """A missing value must stay missing: without `omit_empty_values` it would be a dash."""
    source = {"omit_empty_values": True, "text_format_source": {"inline_string": text}}
    return {"object_key": key, "factory_key": "envoy.string", "skip_if_empty": True, "format_string": source}


def _resource(name: str, config: Message, policies: frozenset[str] = frozenset()) -> Resource:
    message = extension_pb2.TypedExtensionConfig(name=name, typed_config=packed(config))
    return Resource(EXTENSION, name, serialized(message), policies)
