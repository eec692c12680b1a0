"""Tests of requests as Envoy's predicates, and their inputs."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from envoy.config.core.v3 import address_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from envoy.extensions.matching.input_matchers.ip.v3 import ip_pb2
from envoy.type.matcher.v3 import http_inputs_pb2
from google.protobuf.message import Message
from xds.core.v3 import extension_pb2

from eastgate.envoy.config.packing import pack
from eastgate.envoy.config.spelling import host_pattern, path_pattern
from eastgate.envoy.config.values import field_key, marked, single_keys
from eastgate.envoy.plan.gateway import DESTINATION, MESSAGE
from eastgate.ir import And, Computed, InNetwork, Is, Matcher, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import ADDRESS, HOST, IDENTITY, MCP_METHOD, MCP_TOOL, METHOD, PATH, SNI, Attribute

PEER_KEY = "eastgate.peer"  # filter state: the SPIFFE ID of the caller, or NOBODY
TUNNEL_KEY = "eastgate.tunnel"  # all URI names of the proxy or caller at the other end of the tunnel
ADDRESS_KEY = "eastgate.address"
CERTIFICATE_KEY = "eastgate.certificate"
SOURCE_KEY = "eastgate.source"  # the address with its port, which identifies a log line
PATH_KEY = "eastgate.path"
SNI_KEY = "eastgate.sni"  # the server name in the TLS handshake
DESTINATION_KEY = "eastgate.destination"  # the destination that a gateway has chosen
MESSAGE_KEY = "eastgate.message"  # of an MCP message: whether it was read, its method, the name in its parameters
WAITING_KEY = "eastgate.waiting"  # the possible destination of a request whose body has not arrived
MCP_METHOD_KEY = "eastgate.mcp.method"
MCP_NAME_KEY = "eastgate.mcp.name"
CLAIM_KEY = "eastgate.claim"  # the claim of a verified token
TOKEN_KEY = "eastgate.token"  # the identity in a caller's token  # noqa: S105 - not a secret
_NOTED = {
    SNI: SNI_KEY,
    DESTINATION: DESTINATION_KEY,
    MESSAGE: MESSAGE_KEY,
    MCP_METHOD: MCP_METHOD_KEY,
    MCP_TOOL: MCP_NAME_KEY,
}
_ROOT, _DOUBLED = "/", "//"  # a path of slashes alone is the root to policies, and `//` to Envoy


# Predicates


def write_test(to: Any, predicate: Predicate) -> None:
    """Write a predicate as Envoy's test."""
    match predicate:
        case Is(attribute, matcher) if attribute.is_field:
            wanted = marked(matcher)
            for alternative, text in zip(add_either(to, len(wanted)), wanted, strict=True):
                match_text(alternative, filter_state(field_key(attribute)), contains=text)
        case Is(attribute, matcher):
            _test_matcher(to, attribute, matcher)
        case Computed(pattern=(attribute, pattern)) if attribute.is_field:
            keys = single_keys(attribute)
            for alternative, key in zip(add_either(to, len(keys)), keys, strict=True):
                match_regex(alternative, filter_state(key), pattern)
        case Computed(pattern=(attribute, pattern)):
            _test_pattern(to, predicate, attribute, pattern)
        case Not(part):
            write_test(to.not_matcher, part)
        case And(parts):
            for part in parts:
                write_test(to.and_matcher.predicate.add(), part)
        case Or(parts):
            for alternative, part in zip(add_either(to, len(parts)), parts, strict=True):
                write_test(alternative, part)
        case _:
            raise AssertionError(f"a plan has no such test: {predicate}")


def _test_matcher(to: Any, attribute: Attribute, matcher: Matcher) -> None:
    looked_at = input_of(attribute)
    match matcher:
        case OneOf(values):
            values = values | {_DOUBLED} if attribute == PATH and _ROOT in values else values
            for alternative, value in zip(add_either(to, len(values)), sorted(values, key=str), strict=True):
                _test_text(alternative, attribute, matcher, str(value))
        case Prefix(text) | Suffix(text) if text:
            _test_text(to, attribute, matcher, text)
        case InNetwork(networks):
            _match_network(to, looked_at, networks)
        case Present() | Prefix() | Suffix():
            match_regex(to, looked_at, "(?s).*")
        case _:
            raise AssertionError(f"a plan has no such matcher: {matcher}")


def _test_text(to: Any, attribute: Attribute, matcher: OneOf | Prefix | Suffix, text: str) -> None:
    """Test a text in all of its spellings; most texts have only one."""
    pattern = host_pattern(matcher, text) if attribute == HOST else None
    if attribute == PATH:
        pattern = path_pattern(matcher, text)
    if pattern is not None:
        match_regex(to, input_of(attribute), pattern)
    elif isinstance(matcher, Prefix):
        match_text(to, input_of(attribute), prefix=text)
    elif isinstance(matcher, Suffix):
        match_text(to, input_of(attribute), suffix=text)
    else:
        match_text(to, input_of(attribute), exact=text)


def _test_pattern(to: Any, test: Computed, attribute: Attribute, pattern: str) -> None:
    """Test a pattern. A path of slashes alone is treated like the root."""
    looked_at = input_of(attribute)
    root, doubled = (test.holds({attribute: path}) if attribute == PATH else False for path in (_ROOT, _DOUBLED))
    if root == doubled:
        match_regex(to, looked_at, pattern)
    elif root:
        match_regex(to, looked_at, f"(?:{pattern})|{_DOUBLED}")
    else:
        match_regex(to.and_matcher.predicate.add(), looked_at, pattern)
        match_text(to.and_matcher.predicate.add().not_matcher, looked_at, exact=_DOUBLED)


def add_either(to: Any, size: int) -> list[Any]:
    """Add `size` empty predicates, and return them: ANY must hold. A single one is not nested."""
    return [to] if size == 1 else [to.or_matcher.predicate.add() for _ in range(size)]


def match_text(to: Any, looked_at: Any, **how: str) -> None:
    to.single_predicate.input.CopyFrom(looked_at)
    for kind, text in how.items():
        setattr(to.single_predicate.value_match, kind, text)


def match_regex(to: Any, looked_at: Any, pattern: str) -> None:
    to.single_predicate.input.CopyFrom(looked_at)
    regex = to.single_predicate.value_match.safe_regex
    regex.regex = pattern or "(?:)"  # Envoy rejects an empty one
    regex.google_re2.SetInParent()


def _match_network(to: Any, looked_at: Any, networks: tuple[IPv4Network | IPv6Network, ...]) -> None:
    ranges = [
        address_pb2.CidrRange(address_prefix=str(network.network_address), prefix_len={"value": network.prefixlen})
        for network in networks
    ]
    to.single_predicate.input.CopyFrom(looked_at)
    to.single_predicate.custom_match.CopyFrom(extension("ip", ip_pb2.Ip(cidr_ranges=ranges, stat_prefix="eastgate")))


# Inputs


@cache
def input_of(attribute: Attribute) -> Any:
    if attribute == IDENTITY:
        return filter_state(PEER_KEY)
    if attribute == ADDRESS:
        return filter_state(ADDRESS_KEY)
    if attribute == PATH:
        return filter_state(PATH_KEY)
    if attribute in _NOTED:
        return filter_state(_NOTED[attribute])
    name = {HOST: ":authority", METHOD: ":method"}[attribute]
    return extension("header", http_inputs_pb2.HttpRequestHeaderMatchInput(header_name=name))


@cache
def filter_state(key: str) -> Any:
    return extension("state", network_inputs_pb2.FilterStateInput(key=key))


def extension(name: str, config: Message) -> Any:
    return extension_pb2.TypedExtensionConfig(name=name, typed_config=pack(config))
