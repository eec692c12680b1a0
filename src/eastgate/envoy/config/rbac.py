"""Decisions as RBAC filters, each a resource of its own: a changed decision closes no connection.

The name of a verdict is the name of Envoy's action, so that its log names the deciding rule.
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

from eastgate.envoy.config.matching import (
    caller_matcher,
    where,
    where_slash_is_encoded,
    where_unclear,
    with_fit_certificate,
)
from eastgate.envoy.config.packing import pack, serialize
from eastgate.envoy.config.predicates import CLAIM_KEY, PATH_KEY
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.config.values import values_filter
from eastgate.envoy.plan import BAD_HOST, ENCODED_CHARACTER, UNCLEAR, PortPlan, ProxyVerdict, RequestField, Requests
from eastgate.envoy.plan.fields import merged
from eastgate.envoy.server.resources import EXTENSION, XdsResource
from eastgate.ir import REFUSED_HOST, Refusal

CONNECTIONS, AUDIT = "connections", "audit"  # they name the verdict about a connection
ATTRIBUTES, REQUESTS = "attributes", "requests"  # they note the values that rules look at, and decide
# Both note the same values. Envoy applies resources in the order of their names: the first has the values of new rules
# before these are there, and the second those of old rules until these are gone.
VALUES = ("fields", "values")
_UNCLEAR = ProxyVerdict(False, int(Refusal.BAD_REQUEST), UNCLEAR)


_BAD_HOST = ProxyVerdict(False, int(Refusal.BAD_REQUEST), REFUSED_HOST)


def filter_name(port: str | int, which: str) -> str:
    """Return the name of a filter whose configuration is a resource of its own."""
    return f"{port}/{which}"


def request_filters(
    plan: PortPlan, name: str, tokens: TokenIdentity | None = None, more_fields: tuple[RequestField, ...] = ()
) -> list[XdsResource]:
    """Return the filters of a port that is read as HTTP; none for other ports. `more_fields` are noted too."""
    if plan.requests is None:
        return []
    noted = values_filter(merged(plan.requests.fields, more_fields))
    return [
        extension_resource(filter_name(name, ATTRIBUTES), _attributes_filter(tokens)),
        *(extension_resource(filter_name(name, which), noted, plan.policies) for which in VALUES),
        extension_resource(filter_name(name, REQUESTS), _request_rules(plan.requests, tokens), plan.policies),
    ]


def _request_rules(requests: Requests, tokens: TokenIdentity | None) -> Message:
    by_token = tokens.trust_domain if tokens is not None else None
    matcher = caller_matcher(requests.decision, write_action, by_token)
    if requests.respelled is not None:
        respelled = caller_matcher(requests.respelled, write_action, by_token)
        matcher = where(ENCODED_CHARACTER, lambda to: to.matcher.CopyFrom(respelled), matcher)
    if requests.refusal is not None:
        matcher = where_slash_is_encoded(caller_matcher(requests.refusal, write_action, by_token), matcher)
    deciding = [field for field in requests.fields if field.decides]
    if deciding:
        matcher = where_unclear(deciding, lambda to: write_action(to, _UNCLEAR), matcher)
    rules = http_rbac_pb2.RBAC(matcher=where(BAD_HOST, lambda to: write_action(to, _BAD_HOST), matcher))
    if requests.audit is not None:
        rules.shadow_matcher.CopyFrom(caller_matcher(requests.audit, write_action, by_token))
    message: Message = rules
    return message


def connection_filters(plan: PortPlan, name: str) -> list[XdsResource]:
    """Return the filters that name, for the log, the rule that allows a connection, and the rules in audit mode.

    They decide nothing: the listener behind them does.
    """
    connect = with_fit_certificate(caller_matcher(plan.connect, write_action), write_action)
    audit = caller_matcher(plan.audit, write_action) if plan.audit is not None else None
    return [_shadow_filter(plan, name, CONNECTIONS, connect), _shadow_filter(plan, name, AUDIT, audit)]


def _shadow_filter(plan: PortPlan, name: str, which: str, matcher: Any) -> XdsResource:
    rules = network_rbac_pb2.RBAC(stat_prefix=f"{which}.", shadow_rules_stat_prefix=f"{which}.")
    if matcher is not None:
        rules.shadow_matcher.CopyFrom(matcher)
    return extension_resource(filter_name(name, which), rules, plan.policies)


def write_action(to: Any, verdict: ProxyVerdict) -> None:
    to.action.CopyFrom(_named_action(verdict.name, verdict.allowed))


@lru_cache(maxsize=4096)
def _named_action(name: str, allowed: bool) -> Any:
    action = rbac_pb2.Action(name=name, action=rbac_pb2.RBAC.Action.ALLOW if allowed else rbac_pb2.RBAC.Action.DENY)
    return xds_extension_pb2.TypedExtensionConfig(name="verdict", typed_config=pack(action))


def _attributes_filter(tokens: TokenIdentity | None) -> Message:
    """Build the filter that notes the path without its query, and the claim of a token."""
    values: list[dict[str, object]] = [_note(PATH_KEY, "%PATH(NQ:PATH)%")]
    if tokens is not None:
        values.append(_note(CLAIM_KEY, tokens.claimed))
    config: Message = ParseDict({"on_request_headers": values}, set_filter_state_pb2.Config())
    return config


def _note(key: str, text: str) -> dict[str, object]:
    """Note a text. A missing value must stay missing: without `omit_empty_values` it would be a dash."""
    source = {"omit_empty_values": True, "text_format_source": {"inline_string": text}}
    return {"object_key": key, "factory_key": "envoy.string", "skip_if_empty": True, "format_string": source}


def extension_resource(name: str, config: Message, policies: frozenset[str] = frozenset()) -> XdsResource:
    message = extension_pb2.TypedExtensionConfig(name=name, typed_config=pack(config))
    return XdsResource(EXTENSION, name, serialize(message), policies)
