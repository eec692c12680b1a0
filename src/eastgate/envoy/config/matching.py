"""Decisions as Envoy's matcher trees.

A tree looks at the caller first, in one map; the tests of the request are at its leaves. In Envoy, a nested matcher
without a match falls through to its parent, so every matcher here has an `on_no_match` of its own.

Messages are built in place: a message that is built separately is copied once for each level.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from envoy.extensions.matching.common_inputs.network.v3 import network_inputs_pb2
from xds.type.matcher.v3 import matcher_pb2

from eastgate.cluster import account_of
from eastgate.envoy.config.client_certificates import (
    AUTHORITY,
    FOR_CLIENTS,
    NAMED_TWICE,
    SHOWN,
    WEAK,
    WITH_PURPOSES,
    WITH_USAGE,
)
from eastgate.envoy.config.predicates import (
    CERTIFICATE_KEY,
    PATH_KEY,
    PEER_KEY,
    TOKEN_KEY,
    TUNNEL_KEY,
    add_either,
    extension,
    filter_state,
    input_of,
    match_regex,
    match_text,
    write_test,
)
from eastgate.envoy.config.segments import Segment, TestMap, segments
from eastgate.envoy.config.values import CLEAR, each_key, field_key
from eastgate.envoy.plan import ENCODED_SLASH, ByCaller, Node, ProxyVerdict, RequestField
from eastgate.envoy.plan.decisions import NO_NAME, NOBODY
from eastgate.ir import ALWAYS, Predicate
from eastgate.ir.spiffe import LONGEST, SEGMENT, SPIFFE_ID, AccountsOf, service_account_id
from eastgate.ir.symbolic.callers import AccountsIn, OtherAccounts
from eastgate.ir.symbolic.trees import DecisionNode

NO_CALLER = ProxyVerdict(False, 0, "no-caller")  # no note about the caller, which cannot happen
_TOO_LONG = f".{{1000}}.{{1000}}.{{{LONGEST - 1999}}}(?s:.*)"  # 1,000 is the largest count in RE2
UNFIT = ProxyVerdict(False, 0, "unfit-certificate")
BESIDE = ProxyVerdict(False, 0, "not-through-the-waypoint")


OnMatch: TypeAlias = Any  # messages of generated code are untyped
Leaf: TypeAlias = "Callable[[OnMatch, ProxyVerdict], None]"  # writes a verdict

_M = matcher_pb2.Matcher


# Callers


def caller_matcher(decided: ByCaller[Node], leaf: Leaf, by_token: str | None = None) -> Any:
    """Build a matcher that decides for every caller. Without a note about the caller, which cannot happen, it denies.

    `by_token`: callers without a certificate may have a token with an identity, in this trust domain and no other.
    """
    matcher = _M()
    entries = _enter_callers(matcher, decided, leaf, PEER_KEY)
    _enter_nobody(entries[NOBODY], decided, leaf, by_token)
    entries[NO_NAME].CopyFrom(entries[NOBODY])
    return matcher


def _enter_nobody(nobody: OnMatch, decided: ByCaller[Node], leaf: Leaf, by_token: str | None) -> None:
    """Write the decision for callers without a certificate."""
    if by_token is None:
        _write_node(nobody, decided.nobody, leaf)
        return
    [identified], otherwise = _add_list(nobody.matcher, 1)
    is_identity, too_long = (identified.predicate.and_matcher.predicate.add() for _ in range(2))
    match_regex(is_identity, filter_state(TOKEN_KEY), f"spiffe://{re.escape(by_token)}(/{SEGMENT})+")
    match_regex(too_long.not_matcher, filter_state(TOKEN_KEY), _TOO_LONG)
    inner = _enter_callers(identified.on_match.matcher, decided, leaf, TOKEN_KEY)
    _write_node(inner[NOBODY], decided.nobody, leaf)
    _write_node(otherwise, decided.nobody, leaf)


def _enter_callers(to: Any, decided: ByCaller[Node], leaf: Leaf, key: str) -> Any:
    """Enter all callers except anonymous ones, and return the map for the latter."""
    to.matcher_tree.input.CopyFrom(filter_state(key))
    entries = to.matcher_tree.exact_match_map.map
    unknown = (decided.stranger, decided.other_account[1], *decided.accounts.values())
    all_alike = all(node == decided.stranger for node in unknown)
    for identity, node in decided.known.items():
        if node != (decided.stranger if all_alike else _fallback(decided, identity)):
            _write_node(entries[identity], node, leaf)
    _enter_unknown(to.on_no_match.matcher, decided, leaf, key)
    return entries


def _fallback(decided: ByCaller[Node], identity: str) -> Node:
    """Return the decision for a caller of this identity without an entry of its own."""
    account = account_of(identity)
    if account is None:
        return decided.stranger
    domain, namespace, _ = account
    other, node = decided.other_account
    return decided.accounts.get(AccountsIn(domain, namespace), node if domain == other.domain else decided.stranger)


def _enter_unknown(to: Any, decided: ByCaller[Node], leaf: Leaf, key: str) -> None:
    """Write the decisions for unknown callers: by namespace, by trust domain, and for all others."""
    if decided.accounts:
        to.matcher_tree.input.CopyFrom(filter_state(key))
        for cell, node in decided.accounts.items():
            entry = to.matcher_tree.prefix_match_map.map[AccountsOf(cell.domain, cell.namespace).prefix]
            _enter_account_or_stranger(entry.matcher, (cell, node), decided.stranger, leaf, key)
        to = to.on_no_match.matcher
    _enter_account_or_stranger(to, decided.other_account, decided.stranger, leaf, key)


def _enter_account_or_stranger(
    to: Any, accounts: tuple[AccountsIn | OtherAccounts, Node], stranger: Node, leaf: Leaf, key: str
) -> None:
    cell, node = accounts
    cells = [(_account_pattern(cell), node)] if node != stranger else []
    cells.append((SPIFFE_ID, stranger))  # Envoy joins several names of a certificate with commas
    tests, otherwise = _add_list(to, len(cells))
    for test, (pattern, decided) in zip(tests, cells, strict=True):
        match_regex(test.predicate, filter_state(key), pattern)
        _write_node(test.on_match, decided, leaf)
    leaf(otherwise, NO_CALLER)


def _account_pattern(cell: AccountsIn | OtherAccounts) -> str:
    namespace = re.escape(cell.namespace) if isinstance(cell, AccountsIn) else SEGMENT
    return service_account_id(re.escape(cell.domain), namespace, SEGMENT)


# Certificates


def _domain(name: str | None) -> str:
    return "[^/]*" if name is None else re.escape(name)


def with_fit_certificate(matcher: Any, leaf: Leaf, trust_domain: str | None = None) -> Any:
    """Build a matcher that denies unfit certificates before another matcher decides.

    A certificate is unfit if it is weak, of a CA, or not for clients. `trust_domain`: identities of other trust domains
    are unknown here, even if their CA is trusted.
    """
    checked = _M()
    [unfit], rest = _add_list(checked, 1)
    too_long, weak, authority, usage, purposes, foreign = add_either(unfit.predicate, 6)
    named, of_others = (foreign.and_matcher.predicate.add() for _ in range(2))
    match_regex(named, filter_state(PEER_KEY), "spiffe://(?s:.*)")
    match_regex(of_others.not_matcher, filter_state(PEER_KEY), f"spiffe://{_domain(trust_domain)}/(?s:.*)")
    match_regex(too_long, filter_state(PEER_KEY), _TOO_LONG)
    match_regex(weak, filter_state(CERTIFICATE_KEY), WEAK)
    match_regex(authority, filter_state(CERTIFICATE_KEY), AUTHORITY)
    shown, without_usage = (usage.and_matcher.predicate.add() for _ in range(2))
    match_regex(shown, filter_state(CERTIFICATE_KEY), SHOWN)
    match_regex(without_usage.not_matcher, filter_state(CERTIFICATE_KEY), WITH_USAGE)
    has_purposes, not_for_clients = (purposes.and_matcher.predicate.add() for _ in range(2))
    match_regex(has_purposes, filter_state(CERTIFICATE_KEY), WITH_PURPOSES)
    others, ambiguous = add_either(not_for_clients, 2)
    match_regex(others.not_matcher, filter_state(CERTIFICATE_KEY), FOR_CLIENTS)
    match_regex(ambiguous, filter_state(CERTIFICATE_KEY), NAMED_TWICE)
    leaf(unfit.on_match, UNFIT)
    rest.matcher.CopyFrom(matcher)
    return checked


def only_through(waypoint: str, matcher: Any, leaf: Leaf) -> Any:
    """Build a matcher that denies connections that came through no tunnel of this waypoint, before another decides."""
    checked = _M()
    [through], otherwise = _add_list(checked, 1)
    match_text(through.predicate, filter_state(TUNNEL_KEY), exact=waypoint)
    through.on_match.matcher.CopyFrom(matcher)
    leaf(otherwise, BESIDE)
    return checked


# Decisions


def where_slash_is_encoded(matcher: Any, otherwise: Any) -> Any:
    """Build a matcher of two: one for requests with an encoded slash, and one for the rest.

    A cheap test comes first, since few requests have one.
    """
    combined = _M()
    [first], rest = _add_list(combined, 1)
    hints, exactly = (first.predicate.and_matcher.predicate.add() for _ in range(2))
    for hint, character in zip(add_either(hints, 2), "%;", strict=True):
        match_text(hint, filter_state(PATH_KEY), contains=character)
    write_test(exactly, ENCODED_SLASH)
    first.on_match.matcher.CopyFrom(matcher)
    rest.matcher.CopyFrom(otherwise)
    return combined


def where(predicate: Predicate, write: Callable[[OnMatch], None], otherwise: Any) -> Any:
    """Build a matcher from `write` for requests that meet a predicate, and another matcher for the rest."""
    combined = _M()
    [first], rest = _add_list(combined, 1)
    write_test(first.predicate, predicate)
    write(first.on_match)
    rest.matcher.CopyFrom(otherwise)
    return combined


def where_unclear(fields: Sequence[RequestField], refused: Callable[[OnMatch], None], otherwise: Any) -> Any:
    """Build a matcher that refuses requests if the values of ANY field are missing or ambiguous in the notes."""
    combined = _M()
    [first], rest = _add_list(combined, 1)
    keys = [field_key(field.attribute) for field in fields]
    keys += [each_key(field.attribute) for field in fields if field.patterned]
    for unclear, key in zip(add_either(first.predicate, len(keys)), keys, strict=True):
        match_text(unclear.not_matcher, filter_state(key), prefix=CLEAR)
    refused(first.on_match)
    rest.matcher.CopyFrom(otherwise)
    return combined


_HTTP = ("'http/1.0'", "'http/1.1'", "'h2c'")  # in the form of Envoy's inspector


def by_protocol(http: Any, otherwise: Any) -> Any:
    """Build a matcher of two: one for connections that speak HTTP, and one for the others."""
    looked_at = extension("protocol", network_inputs_pb2.ApplicationProtocolInput())
    combined = _M()
    [first], rest = _add_list(combined, 1)
    for is_http, name in zip(add_either(first.predicate, len(_HTTP)), _HTTP, strict=True):
        match_text(is_http, looked_at, exact=name)
    first.on_match.matcher.CopyFrom(http)
    rest.matcher.CopyFrom(otherwise)
    return combined


def node_matcher(node: Node, leaf: Leaf) -> Any:
    """Build a matcher that decides for all callers alike."""
    matcher = _M()
    if isinstance(node, ProxyVerdict):
        leaf(matcher.on_no_match, node)
    else:
        _write_tests(matcher, node, leaf)
    return matcher


def _write_node(to: OnMatch, node: Node, leaf: Leaf) -> None:
    if isinstance(node, ProxyVerdict):
        leaf(to, node)
    else:
        _write_tests(to.matcher, node, leaf)


def _write_tests(to: Any, node: DecisionNode[ProxyVerdict], leaf: Leaf) -> None:
    """Write tests in order: as lists, and as maps if many compare one attribute with texts."""
    *before, last = segments(node.tests, node.otherwise)
    for segment in before:
        _write_segment(to, segment, leaf)
        to = to.on_no_match.matcher
    _write_segment(to, last, leaf)
    _write_node(to.on_no_match, node.otherwise, leaf)


def _write_segment(to: Any, segment: Segment, leaf: Leaf) -> None:
    if isinstance(segment, TestMap):
        to.matcher_tree.input.CopyFrom(input_of(segment.attribute))
        for value, tests in segment.entries.items():
            _write_map_entry(to.matcher_tree.exact_match_map.map[value], tests, leaf)
        return
    for test, (when, inner) in zip(_add_list(to, len(segment))[0], segment, strict=True):
        write_test(test.predicate, when)
        _write_node(test.on_match, inner, leaf)


def _write_map_entry(to: OnMatch, tests: Sequence[tuple[Predicate, Node]], leaf: Leaf) -> None:
    """Write the tests for requests with one value. If none holds, Envoy continues after the map."""
    if tests[0][0] == ALWAYS:
        _write_node(to, tests[0][1], leaf)
        return
    for when, inner in tests:
        if when == ALWAYS:
            _write_node(to.matcher.on_no_match, inner, leaf)
        else:
            test = to.matcher.matcher_list.matchers.add()
            write_test(test.predicate, when)
            _write_node(test.on_match, inner, leaf)


def _add_list(to: Any, size: int) -> tuple[list[Any], OnMatch]:
    """Add a list of `size` empty tests; return them and the fallback."""
    return [to.matcher_list.matchers.add() for _ in range(size)], to.on_no_match
