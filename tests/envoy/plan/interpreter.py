"""The behaviour of an Envoy with this configuration: a small interpreter of the resources that Eastgate emits.

It follows Envoy's documentation and measurements of Envoy 1.40. It knows nothing of plans, predicates or the code that
writes matchers: it reads protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Protocol

import re2
from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.rbac.v3 import rbac_pb2
from envoy.extensions.filters.http.lua.v3 import lua_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.http.set_filter_state.v3 import set_filter_state_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from envoy.extensions.matching.input_matchers.ip.v3 import ip_pb2
from envoy.type.matcher.v3 import http_inputs_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.wrappers_pb2 import StringValue
from xds.type.v3 import typed_struct_pb2

from tests.envoy.plan.normalizing import is_authority, joined_values, normalized_path
from tests.envoy.plan.noting import note_values

__all__ = ["Interpreter", "Said", "Sent", "decide_matcher"]


class Written(Protocol):
    """A resource, as it goes over the wire."""

    @property
    def type_url(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes from a client. Without a method they are not HTTP."""

    peer: str | None
    address: str
    method: str | None = None
    target: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """The result: status 0 is a closed connection. `names` are those of the actions that decided, in order.

    `audit` is the name of the would-be decision; empty without an audited policy.
    """

    status: int
    names: tuple[str, ...]
    audit: str = ""

    @property
    def allowed(self) -> bool:
        return self.status == 200

    @property
    def who(self) -> str:
        """The last name other than that of an unopposed allow."""
        names = [name.partition(":")[2] for name in self.names]
        return next((one for one in reversed(names) if one != "open"), "open")


@dataclass(slots=True)
class _Seen:
    """All inputs of matchers."""

    state: dict[str, str] = field(default_factory=dict)
    headers: dict[str, list[str]] = field(default_factory=dict)
    protocol: str = ""

    def input(self, config: Any) -> str | None:
        packed = config.typed_config
        if packed.Is(network_inputs_pb2.FilterStateInput.DESCRIPTOR):
            return self.state.get(_unpack(packed, network_inputs_pb2.FilterStateInput()).key)
        if packed.Is(http_inputs_pb2.HttpRequestHeaderMatchInput.DESCRIPTOR):
            values = self.headers.get(_unpack(packed, http_inputs_pb2.HttpRequestHeaderMatchInput()).header_name)
            return ",".join(values) if values is not None else None
        if packed.Is(network_inputs_pb2.ApplicationProtocolInput.DESCRIPTOR):
            return self.protocol
        raise AssertionError(f"no such input: {packed.type_url}")


def _unpack(packed: Any, into: Any) -> Any:
    assert packed.Unpack(into), packed.type_url
    return into


# Matchers


def _match(matcher: Any, seen: _Seen) -> Any | None:
    """The action; None if nothing matches, not even `on_no_match`."""
    found = None
    if matcher.HasField("matcher_list"):
        found = _list(matcher, seen)
    elif matcher.HasField("matcher_tree"):
        found = _tree(matcher.matcher_tree, seen)
    if found is None and matcher.HasField("on_no_match"):
        return _on_match(matcher.on_no_match, seen)
    return found


def decide_matcher(matcher: Any, state: dict[str, str]) -> str:
    """Return the name of the action that a matcher comes to, for these notes in filter state."""
    action = _match(matcher, _Seen(state=state))
    return str(_unpack(action, rbac_pb2.Action()).name) if action is not None else ""


def _on_match(on_match: Any, seen: _Seen) -> Any | None:
    return on_match.action.typed_config if on_match.HasField("action") else _match(on_match.matcher, seen)


def _list(matcher: Any, seen: _Seen) -> Any | None:
    """The FIRST whose predicate holds. If its own matcher finds nothing, neither does the list."""
    assert matcher.matcher_list.matchers, "Envoy rejects an empty list"
    for one in matcher.matcher_list.matchers:
        if _holds(one.predicate, seen):
            return _on_match(one.on_match, seen)
    return None


def _tree(tree: Any, seen: _Seen) -> Any | None:
    value = seen.input(tree.input)
    if value is None:
        return None
    if tree.HasField("exact_match_map"):
        assert tree.exact_match_map.map, "Envoy rejects an empty map"
        entries = tree.exact_match_map.map
        return _on_match(entries[value], seen) if value in entries else None
    prefixes = tree.prefix_match_map.map
    for prefix in sorted((one for one in prefixes if value.startswith(one)), key=len, reverse=True):
        found = _on_match(prefixes[prefix], seen)
        if found is not None:  # otherwise a shorter prefix is tried
            return found
    return None


def _holds(predicate: Any, seen: _Seen) -> bool:
    match predicate.WhichOneof("match_type"):
        case "single_predicate":
            return _single(predicate.single_predicate, seen)
        case "and_matcher":
            assert len(predicate.and_matcher.predicate) >= 2, "Envoy rejects one alone"
            return all(_holds(one, seen) for one in predicate.and_matcher.predicate)
        case "or_matcher":
            assert len(predicate.or_matcher.predicate) >= 2, "Envoy rejects one alone"
            return any(_holds(one, seen) for one in predicate.or_matcher.predicate)
        case "not_matcher":
            return not _holds(predicate.not_matcher, seen)
        case kind:
            raise AssertionError(f"no such predicate: {kind}")


def _single(single: Any, seen: _Seen) -> bool:
    value = seen.input(single.input)
    if value is None:
        return False
    if single.HasField("custom_match"):
        ranges = _unpack(single.custom_match.typed_config, ip_pb2.Ip()).cidr_ranges
        networks = [ip_network(f"{one.address_prefix}/{one.prefix_len.value}") for one in ranges]
        return any(ip_address(value) in network for network in networks)
    return _text(single.value_match, value)


def _text(how: Any, value: str) -> bool:
    kind = how.WhichOneof("match_pattern")
    if kind == "safe_regex":
        assert how.safe_regex.HasField("google_re2"), "Envoy wants to know the engine"
        assert how.safe_regex.regex, "Envoy rejects an empty pattern"
        return re2.fullmatch(how.safe_regex.regex.encode(), value.encode("utf-8", "surrogateescape")) is not None
    wanted = getattr(how, kind)
    if how.ignore_case:
        wanted, value = wanted.lower(), value.lower()
    assert wanted or kind == "exact", f"Envoy rejects an empty {kind}"
    holds = {
        "exact": value == wanted,
        "prefix": value.startswith(wanted),
        "suffix": value.endswith(wanted),
        "contains": wanted in value,
    }
    return bool(holds[kind])


# Listeners


class Interpreter:
    """The proxy of one port."""

    def __init__(self, resources: Iterable[Written], port: int) -> None:
        self.port = port
        found: dict[str, Any] = {}
        for one in resources:
            kind = one.type_url.rpartition(".")[2]
            if kind == "Listener":
                found[one.name] = listener_pb2.Listener.FromString(one.body)
            elif kind == "TypedExtensionConfig":
                found[one.name] = extension_pb2.TypedExtensionConfig.FromString(one.body).typed_config
        self._found = found

    def say(self, sent: Sent) -> Said:
        """The result for a connection, and for the request on it."""
        seen = _Seen(self._noted(sent), {}, "'http/1.1'" if sent.method is not None else "")
        names = [self._named("connections", seen)]
        audit = self._named("audit", seen)
        cluster, reason = self._connect(seen)
        if cluster == "nowhere":
            return Said(0, (reason,))
        assert names[0].startswith("200:") or sent.method is None, "the log would name a rule that did not decide"
        if cluster == f"app/{self.port}":
            return Said(200, tuple(names), audit)
        assert cluster == f"requests/{self.port}"
        return self._request(sent, seen, names)

    def _noted(self, sent: Sent) -> dict[str, str]:
        """The filter state that the outer listener sets."""
        chains = {chain.name: chain for chain in self._found[f"inbound/{self.port}"].filter_chains}
        chain = chains["tls" if sent.peer is not None else "plain"]
        struct = _unpack(chain.filters[0].typed_config, typed_struct_pb2.TypedStruct())
        [notes] = MessageToDict(struct.value).values()
        words = {
            "%DOWNSTREAM_PEER_URI_SAN%": sent.peer or "-",
            "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%": sent.address,
            "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%": f"{sent.address}:1",
        }
        texts = {note["object_key"]: note["format_string"]["text_format_source"]["inline_string"] for note in notes}
        assert all(note["factory_key"] == "envoy.hashable_string" for note in notes), "or connections would be shared"
        return {key: words.get(text, text) for key, text in texts.items()}

    def _named(self, what: str, seen: _Seen) -> str:
        rules = _unpack(self._found[f"{self.port}/{what}"], network_rbac_pb2.RBAC())
        action = _match(rules.shadow_matcher, seen)
        return str(_unpack(action, rbac_pb2.Action()).name) if action is not None else ""

    def _connect(self, seen: _Seen) -> tuple[str, str]:
        """The destination of a connection, and the log line if it has none."""
        listener = self._found[f"connections/{self.port}"]
        action = _match(listener.filter_chain_matcher, seen)
        assert action is not None, "there is a word for every caller"
        name = _unpack(action, StringValue()).value
        [chain] = [one for one in listener.filter_chains if one.name == name]
        *noting, last = chain.filters
        seen.state = self._carried(noting, seen.state)
        proxy = _unpack(last.typed_config, tcp_proxy_pb2.TcpProxy())
        logs = [MessageToDict(one.typed_config)["logFormat"]["jsonFormat"] for one in proxy.access_log]
        return proxy.cluster, next((log["decision"] for log in logs if "decision" in log), "")

    def _carried(self, noting: Any, state: dict[str, str]) -> dict[str, str]:
        """The filter state for the next listener: only notes for it, since each note reaches one listener."""
        carried: dict[str, str] = {}
        for filter_ in noting:
            [notes] = MessageToDict(_unpack(filter_.typed_config, typed_struct_pb2.TypedStruct()).value).values()
            for note in notes:
                key, text = note["object_key"], note["format_string"]["text_format_source"]["inline_string"]
                assert text == f"%FILTER_STATE({key}:PLAIN)%"
                assert note["factory_key"] == "envoy.hashable_string", "or connections would be shared"
                carried[key] = state[key]
        return carried

    # Requests

    def _request(self, sent: Sent, seen: _Seen, names: list[str]) -> Said:
        [filter_] = self._found[f"requests/{self.port}"].filter_chains[0].filters
        manager = _unpack(filter_.typed_config, http_connection_manager_pb2.HttpConnectionManager())
        assert manager.normalize_path.value
        assert manager.merge_slashes
        assert not manager.strip_any_host_port
        assert not manager.strip_trailing_host_dot
        path = normalized_path(sent.target)
        if path is None or not is_authority(sent.host):
            return Said(400, ())
        seen.headers = _headers(sent, path)
        audit = ""
        for one in manager.http_filters:
            if not one.HasField("config_discovery"):
                continue
            config = self._found[one.name]
            if config.Is(set_filter_state_pb2.Config.DESCRIPTOR):
                self._note(_unpack(config, set_filter_state_pb2.Config()), seen)
                continue
            if config.Is(lua_pb2.Lua.DESCRIPTOR):
                note_values(_unpack(config, lua_pb2.Lua()).default_source_code.inline_string, seen.headers, seen.state)
                continue
            rules = _unpack(config, http_rbac_pb2.RBAC())
            if not rules.HasField("matcher"):
                continue  # without rules it allows everything
            action = _match(rules.matcher, seen)
            assert action is not None, "there is a word on every request"
            decided = _unpack(action, rbac_pb2.Action())
            names.append(decided.name)
            shadow = _match(rules.shadow_matcher, seen)
            audit = str(_unpack(shadow, rbac_pb2.Action()).name) if shadow is not None else ""
            if decided.action == rbac_pb2.RBAC.Action.DENY:
                return Said(_status(manager.local_reply_config, decided.name), (decided.name,), audit)
        return Said(200, tuple(names), audit)

    def _note(self, config: Any, seen: _Seen) -> None:
        for one in config.on_request_headers:
            if one.object_key == "eastgate.open":
                continue  # decides nothing
            text = one.format_string.text_format_source.inline_string
            value: str | None
            if text == "%PATH(NQ:PATH)%":
                value = seen.headers[":path"][0].partition("?")[0]
            else:
                raise AssertionError(f"no such format: {text}")
            assert one.skip_if_empty
            assert one.format_string.omit_empty_values
            if value:
                seen.state[one.object_key] = value


def _headers(sent: Sent, path: str) -> dict[str, list[str]]:
    """The headers for filters. Envoy removes those with `x-envoy-` and those that `connection` names earlier."""
    found: dict[str, list[str]] = {}
    for name, value in sent.headers:
        if not name.lower().startswith("x-envoy-"):
            found.setdefault(name.lower(), []).append(value.strip(" \t"))
    for word in ",".join(found.pop("connection", [])).split(","):
        found.pop(word.strip().lower(), None)
    joined = {name: joined_values(name, values) for name, values in found.items()}
    return {**joined, ":method": [sent.method or ""], ":path": [path], ":authority": [sent.host]}


def _status(replies: Any, name: str) -> int:
    """The status of a refusal: RBAC answers 403, and the mapper of replies changes it by the name of the action."""
    details = f"rbac_access_denied_matched_policy[{name}]"
    for mapper in replies.mappers:
        expression = MessageToDict(mapper.filter.extension_filter.typed_config)["expression"]
        begins = re.fullmatch(r"response\.code_details\.startsWith\('(.+)'\)", expression)
        assert begins is not None
        if details.startswith(begins[1]):
            return int(mapper.status_code.value)
    return 403
