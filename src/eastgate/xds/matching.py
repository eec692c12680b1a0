"""Decisions as Envoy's matcher trees.

A tree looks at the caller first, in one map; what is left to ask of the request stands at its leaves. A nested matcher
that matches nothing falls through to its parent in Envoy, so every one here has an `on_no_match` of its own.

Messages are written where they will stand: one that is made apart and put there is copied once for each level.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from typing import Any, TypeAlias

from envoy.config.core.v3 import address_pb2
from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from envoy.extensions.matching.input_matchers.ip.v3 import ip_pb2
from envoy.type.matcher.v3 import http_inputs_pb2
from google.protobuf.message import Message
from xds.core.v3 import extension_pb2
from xds.type.matcher.v3 import matcher_pb2

from eastgate.policy import And, Computed, InNetwork, Is, Matcher, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.policy.attributes import ADDRESS, HOST, IDENTITY, METHOD, PATH, Attribute
from eastgate.policy.spiffe import LONGEST, SEGMENT, SPIFFE_ID
from eastgate.symbolic.callers import AccountsIn, OtherAccounts
from eastgate.targets.envoy import ENCODED_SLASH, ByCaller, Field, Node, Verdict
from eastgate.world import account_of
from eastgate.xds.client_certificates import FOR_CLIENTS, NAMED_TWICE, WEAK, WITH_PURPOSES
from eastgate.xds.packing import packed
from eastgate.xds.spelling import host_pattern, path_pattern
from eastgate.xds.values import CLEAR, each_key, field_key, marked, single_keys

__all__ = [
    "ADDRESS_KEY",
    "CERTIFICATE_KEY",
    "NOBODY",
    "NO_CALLER",
    "PATH_KEY",
    "PEER_KEY",
    "SOURCE_KEY",
    "TOKEN_KEY",
    "UNFIT",
    "by_protocol",
    "caller_matcher",
    "where",
    "where_slash_is_encoded",
    "where_unclear",
    "with_fit_certificate",
]

PEER_KEY = "eastgate.peer"  # filter state: the SPIFFE ID of the caller, or NOBODY
ADDRESS_KEY = "eastgate.address"
CERTIFICATE_KEY = "eastgate.certificate"
SOURCE_KEY = "eastgate.source"  # the address with its port, by which a log line is found again
PATH_KEY = "eastgate.path"
TOKEN_KEY = "eastgate.token"  # the claim of a verified token  # noqa: S105 - not a secret
NOBODY = "none"
NO_CALLER = Verdict(False, 0, "no-caller")  # nothing was noted of the caller, which cannot be
_TOO_LONG = f".{{1000}}.{{1000}}.{{{LONGEST - 1999}}}(?s:.*)"  # 1,000 is the most that RE2 counts
UNFIT = Verdict(False, 0, "unfit-certificate")
_ROOT, _DOUBLED = "/", "//"  # a path of slashes alone is the root to policies, and `//` to Envoy

OnMatch: TypeAlias = Any  # messages of generated code are untyped
Leaf: TypeAlias = "Callable[[OnMatch, Verdict], None]"  # writes a verdict

_M = matcher_pb2.Matcher


# Callers


def caller_matcher(decided: ByCaller[Node], leaf: Leaf, by_token: str | None = None) -> Any:
    """A matcher that decides for every caller. Without any word on the caller, which cannot be, it denies.

    `by_token`: who has no certificate may have a token that says who it is, in this trust domain and no other.
    """
    found = _M()
    entries = _callers(found, decided, leaf, PEER_KEY)
    nobody = entries[NOBODY]
    if by_token is None:
        _node(nobody, decided.nobody, leaf)
        return found
    [identified], otherwise = _list(nobody.matcher, 1)
    named, too_long = (identified.predicate.and_matcher.predicate.add() for _ in range(2))
    _regex(named, _state(TOKEN_KEY), f"spiffe://{re.escape(by_token)}(/{SEGMENT})+")
    _regex(too_long.not_matcher, _state(TOKEN_KEY), _TOO_LONG)
    inner = _callers(identified.on_match.matcher, decided, leaf, TOKEN_KEY)
    _node(inner[NOBODY], decided.nobody, leaf)
    _node(otherwise, decided.nobody, leaf)
    return found


def _callers(to: Any, decided: ByCaller[Node], leaf: Leaf, key: str) -> Any:
    """All callers but nobody, who is still to be entered into what this gives."""
    to.matcher_tree.input.CopyFrom(_state(key))
    entries = to.matcher_tree.exact_match_map.map
    for identity, node in decided.known.items():
        if node != _fallback(decided, identity):
            _node(entries[identity], node, leaf)
    _others(to.on_no_match.matcher, decided, leaf, key)
    return entries


def _fallback(decided: ByCaller[Node], identity: str) -> Node:
    """What a caller of this identity would get without an entry of its own."""
    account = account_of(identity)
    if account is None:
        return decided.stranger
    domain, namespace, _ = account
    other, node = decided.other_account
    return decided.accounts.get(AccountsIn(domain, namespace), node if domain == other.domain else decided.stranger)


def _others(to: Any, decided: ByCaller[Node], leaf: Leaf, key: str) -> None:
    """Callers whom nobody knows: by namespace, by trust domain, any at all."""
    if decided.accounts:
        to.matcher_tree.input.CopyFrom(_state(key))
        for cell, node in decided.accounts.items():
            entry = to.matcher_tree.prefix_match_map.map[f"spiffe://{cell.domain}/ns/{cell.namespace}/sa/"]
            _account_or_stranger(entry.matcher, (cell, node), decided.stranger, leaf, key)
        to = to.on_no_match.matcher
    _account_or_stranger(to, decided.other_account, decided.stranger, leaf, key)


def _account_or_stranger(
    to: Any, accounts: tuple[AccountsIn | OtherAccounts, Node], stranger: Node, leaf: Leaf, key: str
) -> None:
    cell, node = accounts
    cells = [(_accounts(cell), node)] if node != stranger else []
    cells.append((SPIFFE_ID, stranger))  # Envoy writes several names of a certificate with commas
    tests, otherwise = _list(to, len(cells))
    for test, (pattern, decided) in zip(tests, cells, strict=True):
        _regex(test.predicate, _state(key), pattern)
        _node(test.on_match, decided, leaf)
    leaf(otherwise, NO_CALLER)


def _accounts(cell: AccountsIn | OtherAccounts) -> str:
    namespace = re.escape(cell.namespace) if isinstance(cell, AccountsIn) else SEGMENT
    return f"spiffe://{re.escape(cell.domain)}/ns/{namespace}/sa/{SEGMENT}"


# Certificates


def with_fit_certificate(matcher: Any, leaf: Leaf) -> Any:
    """The same matcher for callers whose certificate is for clients and not weak, and for those who have none; others
    are denied.
    """
    found = _M()
    [unfit], rest = _list(found, 1)
    too_long, weak, purposes = _either(unfit.predicate, 3)
    _regex(too_long, _state(PEER_KEY), _TOO_LONG)
    _regex(weak, _state(CERTIFICATE_KEY), WEAK)
    has_purposes, not_for_clients = (purposes.and_matcher.predicate.add() for _ in range(2))
    _regex(has_purposes, _state(CERTIFICATE_KEY), WITH_PURPOSES)
    others, ambiguous = _either(not_for_clients, 2)
    _regex(others.not_matcher, _state(CERTIFICATE_KEY), FOR_CLIENTS)
    _regex(ambiguous, _state(CERTIFICATE_KEY), NAMED_TWICE)
    leaf(unfit.on_match, UNFIT)
    rest.matcher.CopyFrom(matcher)
    return found


# Decisions


def where_slash_is_encoded(matcher: Any, otherwise: Any) -> Any:
    """One matcher for requests with an encoded slash, and another for the rest, of which few have what it needs."""
    found = _M()
    [first], rest = _list(found, 1)
    hints, exactly = (first.predicate.and_matcher.predicate.add() for _ in range(2))
    for one, character in zip(_either(hints, 2), "%;", strict=True):
        _text(one, _state(PATH_KEY), contains=character)
    _test(exactly, ENCODED_SLASH)
    first.on_match.matcher.CopyFrom(matcher)
    rest.matcher.CopyFrom(otherwise)
    return found


def where(predicate: Predicate, write: Callable[[OnMatch], None], otherwise: Any) -> Any:
    """What is written for requests of which a predicate holds, and a matcher for the others."""
    found = _M()
    [first], rest = _list(found, 1)
    _test(first.predicate, predicate)
    write(first.on_match)
    rest.matcher.CopyFrom(otherwise)
    return found


def where_unclear(fields: Sequence[Field], refused: Callable[[OnMatch], None], otherwise: Any) -> Any:
    """Refuses requests of which the values of ANY field were not noted, or not for certain."""
    found = _M()
    [first], rest = _list(found, 1)
    keys = [field_key(one.attribute) for one in fields]
    keys += [each_key(one.attribute) for one in fields if one.patterned]
    for one, key in zip(_either(first.predicate, len(keys)), keys, strict=True):
        _text(one.not_matcher, _state(key), prefix=CLEAR)
    refused(first.on_match)
    rest.matcher.CopyFrom(otherwise)
    return found


_HTTP = ("'http/1.0'", "'http/1.1'", "'h2c'")  # as Envoy writes what its inspector found


def by_protocol(http: Any, otherwise: Any) -> Any:
    """A matcher for connections that speak HTTP, and one for the others."""
    looked_at = _extension("protocol", network_inputs_pb2.ApplicationProtocolInput())
    found = _M()
    [first], rest = _list(found, 1)
    for one, name in zip(_either(first.predicate, len(_HTTP)), _HTTP, strict=True):
        _text(one, looked_at, exact=name)
    first.on_match.matcher.CopyFrom(http)
    rest.matcher.CopyFrom(otherwise)
    return found


def _node(to: OnMatch, node: Node, leaf: Leaf) -> None:
    if isinstance(node, Verdict):
        leaf(to, node)
        return
    tests, otherwise = _list(to.matcher, len(node.tests))
    for test, (when, inner) in zip(tests, node.tests, strict=True):
        _test(test.predicate, when)
        _node(test.on_match, inner, leaf)
    _node(otherwise, node.otherwise, leaf)


def _list(to: Any, size: int) -> tuple[list[Any], OnMatch]:
    """A list of so many tests, and what comes of none, all still to be written."""
    return [to.matcher_list.matchers.add() for _ in range(size)], to.on_no_match


# Predicates


def _test(to: Any, predicate: Predicate) -> None:
    """A predicate, as Envoy tests it."""
    match predicate:
        case Is(attribute, matcher) if attribute.is_repeatable:
            wanted = marked(matcher)
            for one, text in zip(_either(to, len(wanted)), wanted, strict=True):
                _text(one, _state(field_key(attribute)), contains=text)
        case Is(attribute, matcher):
            _is(to, attribute, matcher)
        case Computed(pattern=(attribute, pattern)) if attribute.is_repeatable:
            keys = single_keys(attribute)
            for one, key in zip(_either(to, len(keys)), keys, strict=True):
                _regex(one, _state(key), pattern)
        case Computed(pattern=(attribute, pattern)):
            _pattern(to, predicate, attribute, pattern)
        case Not(part):
            _test(to.not_matcher, part)
        case And(parts):
            for part in parts:
                _test(to.and_matcher.predicate.add(), part)
        case Or(parts):
            for one, part in zip(_either(to, len(parts)), parts, strict=True):
                _test(one, part)
        case _:
            raise AssertionError(f"a plan has no such test: {predicate}")


def _is(to: Any, attribute: Attribute, matcher: Matcher) -> None:
    looked_at = _input(attribute)
    match matcher:
        case OneOf(values):
            values = values | {_DOUBLED} if attribute == PATH and _ROOT in values else values
            for one, value in zip(_either(to, len(values)), sorted(values, key=str), strict=True):
                _literal(one, attribute, matcher, str(value))
        case Prefix(text) | Suffix(text) if text:
            _literal(to, attribute, matcher, text)
        case InNetwork(networks):
            _inside(to, looked_at, networks)
        case Present() | Prefix() | Suffix():
            _regex(to, looked_at, "(?s).*")
        case _:
            raise AssertionError(f"a plan has no such matcher: {matcher}")


def _literal(to: Any, attribute: Attribute, matcher: OneOf | Prefix | Suffix, text: str) -> None:
    """A text, in all the ways in which requests write it; most have one way only."""
    pattern = host_pattern(matcher, text) if attribute == HOST else None
    if attribute == PATH:
        pattern = path_pattern(matcher, text)
    if pattern is not None:
        _regex(to, _input(attribute), pattern)
    elif isinstance(matcher, Prefix):
        _text(to, _input(attribute), prefix=text)
    elif isinstance(matcher, Suffix):
        _text(to, _input(attribute), suffix=text)
    else:
        _text(to, _input(attribute), exact=text)


def _pattern(to: Any, test: Computed, attribute: Attribute, pattern: str) -> None:
    """What a pattern says of the root, it says of a path of slashes alone."""
    looked_at = _input(attribute)
    root, doubled = (test.holds({attribute: path}) if attribute == PATH else False for path in (_ROOT, _DOUBLED))
    if root == doubled:
        _regex(to, looked_at, pattern)
    elif root:
        _regex(to, looked_at, f"(?:{pattern})|{_DOUBLED}")
    else:
        _regex(to.and_matcher.predicate.add(), looked_at, pattern)
        _text(to.and_matcher.predicate.add().not_matcher, looked_at, exact=_DOUBLED)


def _either(to: Any, size: int) -> list[Any]:
    """So many predicates of which ANY must hold, still to be written; one stands alone."""
    return [to] if size == 1 else [to.or_matcher.predicate.add() for _ in range(size)]


def _text(to: Any, looked_at: Any, **how: str) -> None:
    to.single_predicate.input.CopyFrom(looked_at)
    for kind, text in how.items():
        setattr(to.single_predicate.value_match, kind, text)


def _regex(to: Any, looked_at: Any, pattern: str) -> None:
    to.single_predicate.input.CopyFrom(looked_at)
    regex = to.single_predicate.value_match.safe_regex
    regex.regex = pattern or "(?:)"  # Envoy rejects an empty one
    regex.google_re2.SetInParent()


def _inside(to: Any, looked_at: Any, networks: tuple[IPv4Network | IPv6Network, ...]) -> None:
    ranges = [
        address_pb2.CidrRange(address_prefix=str(network.network_address), prefix_len={"value": network.prefixlen})
        for network in networks
    ]
    to.single_predicate.input.CopyFrom(looked_at)
    to.single_predicate.custom_match.CopyFrom(_extension("ip", ip_pb2.Ip(cidr_ranges=ranges, stat_prefix="eastgate")))


# Inputs


@cache
def _input(attribute: Attribute) -> Any:
    if attribute == IDENTITY:
        return _state(PEER_KEY)
    if attribute == ADDRESS:
        return _state(ADDRESS_KEY)
    if attribute == PATH:
        return _state(PATH_KEY)
    name = {HOST: ":authority", METHOD: ":method"}[attribute]
    return _extension("header", http_inputs_pb2.HttpRequestHeaderMatchInput(header_name=name))


@cache
def _state(key: str) -> Any:
    return _extension("state", network_inputs_pb2.FilterStateInput(key=key))


def _extension(name: str, config: Message) -> Any:
    return extension_pb2.TypedExtensionConfig(name=name, typed_config=packed(config))
