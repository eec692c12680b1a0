"""Decisions as Envoy's matcher trees.

A tree looks at the caller first, in one map; what is left to ask of the request stands at its leaves. A nested matcher
that matches nothing falls through to its parent in Envoy, so every one here has an `on_no_match` of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network
from typing import Any, TypeAlias

from envoy.config.core.v3 import address_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from envoy.extensions.matching.input_matchers.ip.v3 import ip_pb2
from envoy.type.matcher.v3 import http_inputs_pb2
from google.protobuf.message import Message
from xds.core.v3 import extension_pb2
from xds.type.matcher.v3 import matcher_pb2, regex_pb2, string_pb2

from eastgate.policy import And, Computed, InNetwork, Is, Matcher, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.policy.attributes import ADDRESS, HOST, IDENTITY, METHOD, PATH, Attribute
from eastgate.targets.envoy import AccountOf, ByCaller, Choice, Node, OtherAccount, Verdict
from eastgate.xds.packing import packed

__all__ = [
    "ADDRESS_KEY",
    "NOBODY",
    "PATH_KEY",
    "PEER_KEY",
    "SOURCE_KEY",
    "TOKEN_KEY",
    "by_protocol",
    "caller_matcher",
    "first_match",
    "query_key",
]

PEER_KEY = "eastgate.peer"  # filter state: the SPIFFE ID of the caller, or NOBODY
ADDRESS_KEY = "eastgate.address"
SOURCE_KEY = "eastgate.source"  # the address with its port, by which a log line is found again
PATH_KEY = "eastgate.path"
TOKEN_KEY = "eastgate.token"  # the claim of a verified token  # noqa: S105 - not a secret
NOBODY = "none"

OnMatch: TypeAlias = Any  # messages of generated code are untyped
Leaf: TypeAlias = "Callable[[Verdict], OnMatch]"

_M = matcher_pb2.Matcher


def query_key(name: str) -> str:
    """The filter state that holds a query parameter."""
    return f"eastgate.query.{name}"


# Callers


def caller_matcher(decided: ByCaller[Node], leaf: Leaf, by_token: str | None = None) -> Any:
    """A matcher that decides for every caller. Without any word on the caller, which cannot be, it denies.

    `by_token`: who has no certificate may have a token that says who it is, in this trust domain and no other.
    """
    nobody = _node(decided.nobody, leaf)
    if by_token is not None:
        identified = _nested(_callers(decided, leaf, TOKEN_KEY, nobody))
        nobody = _nested(_list([(_regex(_state(TOKEN_KEY), f"spiffe://{re.escape(by_token)}/.+"), identified)], nobody))
    return _callers(decided, leaf, PEER_KEY, nobody)


def _callers(decided: ByCaller[Node], leaf: Leaf, key: str, nobody: OnMatch) -> Any:
    entries: dict[str, OnMatch] = {NOBODY: nobody}
    for identity, node in decided.known.items():
        if node != _fallback(decided, identity):
            entries[identity] = _node(node, leaf)
    return _map(_state(key), _others(decided, leaf, key), exact=entries)


def _fallback(decided: ByCaller[Node], identity: str) -> Node:
    """What a caller of this identity would get without an entry of its own."""
    stem, _, name = identity.rpartition("/sa/")
    before, _, namespace = stem.rpartition("/ns/")
    if not name or "/" in name or not namespace or "/" in namespace:
        return decided.stranger
    domain = before.removeprefix("spiffe://")
    other, node = decided.other_account
    return decided.accounts.get(AccountOf(domain, namespace), node if domain == other.domain else decided.stranger)


def _others(decided: ByCaller[Node], leaf: Leaf, key: str) -> Any:
    """Callers whom nobody knows: by namespace, by trust domain, any at all."""
    other, node = decided.other_account
    last = _list(
        [
            (_regex(_state(key), _accounts(other)), _node(node, leaf)),
            (_regex(_state(key), "spiffe://.+"), _node(decided.stranger, leaf)),
        ],
        leaf(Verdict(False, 0, "no-caller")),
    )
    if not decided.accounts:
        return last
    entries = {
        f"spiffe://{cell.domain}/ns/{cell.namespace}/sa/": _nested(
            _list([(_regex(_state(key), _accounts(cell)), _node(inner, leaf))], _node(decided.stranger, leaf))
        )
        for cell, inner in decided.accounts.items()
    }
    return _map(_state(key), last, prefix=entries)


def _accounts(cell: AccountOf | OtherAccount) -> str:
    namespace = re.escape(cell.namespace) if isinstance(cell, AccountOf) else "[^/]+"
    return f"spiffe://{re.escape(cell.domain)}/ns/{namespace}/sa/[^/]+"


# Decisions


def first_match(tests: list[tuple[Predicate, Any]], otherwise: Any) -> Any:
    """A matcher that asks for one thing after the other."""
    return _list([(_test(when), _nested(matcher)) for when, matcher in tests], _nested(otherwise))


def _node(node: Node, leaf: Leaf) -> OnMatch:
    if isinstance(node, Choice):
        return _nested(
            _list([(_test(when), _node(inner, leaf)) for when, inner in node.tests], _node(node.otherwise, leaf))
        )
    return leaf(node)


def _nested(matcher: Any) -> OnMatch:
    return _M.OnMatch(matcher=matcher)


def _list(tests: list[tuple[Any, OnMatch]], otherwise: OnMatch) -> Any:
    matchers = [_M.MatcherList.FieldMatcher(predicate=predicate, on_match=on_match) for predicate, on_match in tests]
    return _M(matcher_list=_M.MatcherList(matchers=matchers), on_no_match=otherwise)


def _map(
    looked_at: Any, otherwise: Any, *, exact: dict[str, OnMatch] | None = None, prefix: dict[str, OnMatch] | None = None
) -> Any:
    tree = _M.MatcherTree(input=looked_at)
    chosen = tree.exact_match_map if exact is not None else tree.prefix_match_map
    for key, on_match in (exact or prefix or {}).items():
        chosen.map[key].CopyFrom(on_match)
    return _M(matcher_tree=tree, on_no_match=_nested(otherwise))


_HTTP = ("'http/1.0'", "'http/1.1'", "'h2c'")  # as Envoy writes what its inspector found


def by_protocol(http: Any, otherwise: Any) -> Any:
    """A matcher for connections that speak HTTP, and one for the others."""
    looked_at = _extension("protocol", network_inputs_pb2.ApplicationProtocolInput())
    return _map(looked_at, otherwise, exact={name: _nested(http) for name in _HTTP})


# Predicates


def _test(predicate: Predicate) -> Any:
    """A predicate, as Envoy tests it."""
    kind = _M.MatcherList.Predicate
    match predicate:
        case Is(attribute, matcher):
            return _is(attribute, matcher)
        case Computed(pattern=(attribute, pattern)):
            return _regex(_input(attribute), pattern)
        case Not(part):
            return kind(not_matcher=_test(part))
        case And(parts):
            return kind(and_matcher=kind.PredicateList(predicate=[_test(part) for part in parts]))
        case Or(parts):
            return _any([_test(part) for part in parts])
        case _:
            raise AssertionError(f"a plan has no such test: {predicate}")


def _is(attribute: Attribute, matcher: Matcher) -> Any:
    looked_at = _input(attribute)
    fold = attribute == HOST
    match matcher:
        case OneOf(values):
            return _any([_text(looked_at, exact=str(value), ignore_case=fold) for value in sorted(values, key=str)])
        case Prefix(text) if text:
            return _text(looked_at, prefix=text, ignore_case=fold)
        case Suffix(text) if text:
            return _text(looked_at, suffix=text, ignore_case=fold)
        case InNetwork(networks):
            return _inside(looked_at, networks)
        case Present() | Prefix() | Suffix():
            return _regex(looked_at, "(?s).*")
        case _:
            raise AssertionError(f"a plan has no such matcher: {matcher}")


def _any(predicates: list[Any]) -> Any:
    kind = _M.MatcherList.Predicate
    if len(predicates) == 1:
        return predicates[0]
    return kind(or_matcher=kind.PredicateList(predicate=predicates))


def _text(looked_at: Any, **how: Any) -> Any:
    single = _M.MatcherList.Predicate.SinglePredicate(input=looked_at, value_match=string_pb2.StringMatcher(**how))
    return _M.MatcherList.Predicate(single_predicate=single)


def _regex(looked_at: Any, pattern: str) -> Any:
    regex = regex_pb2.RegexMatcher(regex=pattern, google_re2=regex_pb2.RegexMatcher.GoogleRE2())
    return _text(looked_at, safe_regex=regex)


def _inside(looked_at: Any, networks: tuple[IPv4Network | IPv6Network, ...]) -> Any:
    ranges = [
        address_pb2.CidrRange(address_prefix=str(network.network_address), prefix_len={"value": network.prefixlen})
        for network in networks
    ]
    custom = _extension("ip", ip_pb2.Ip(cidr_ranges=ranges, stat_prefix="eastgate"))
    single = _M.MatcherList.Predicate.SinglePredicate(input=looked_at, custom_match=custom)
    return _M.MatcherList.Predicate(single_predicate=single)


# Inputs


def _input(attribute: Attribute) -> Any:
    if attribute == IDENTITY:
        return _state(PEER_KEY)
    if attribute == ADDRESS:
        return _state(ADDRESS_KEY)
    if attribute == PATH:
        return _state(PATH_KEY)
    if attribute.name == "query parameter":
        return _state(query_key(attribute.key))
    name = {HOST: ":authority", METHOD: ":method"}.get(attribute, attribute.key)
    return _extension("header", http_inputs_pb2.HttpRequestHeaderMatchInput(header_name=name))


def _state(key: str) -> Any:
    return _extension("state", network_inputs_pb2.FilterStateInput(key=key))


def _extension(name: str, config: Message) -> Any:
    return extension_pb2.TypedExtensionConfig(name=name, typed_config=packed(config))
