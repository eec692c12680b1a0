"""Rules as ztunnel enforces them: only connections, by istiod's translation, which drops fields that need HTTP.

An ALLOW rule that reads HTTP is dropped as a whole, and its policy still closes the workload. In a DENY rule only the
fields are dropped. A source, an operation or a condition without remaining fields matches nothing, so the rule may deny
nothing at all. `trustDomains` are dropped without a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.chains import mtls_stage
from eastgate.dialects.istio.derived import rewrite_chain
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, PeerAuthentication
from eastgate.dialects.istio.peer_modes import ztunnel_denials, ztunnel_ties
from eastgate.dialects.istio.planes import (
    DirectScope,
    DroppedFields,
    TiedPolicies,
    UnsupportedAction,
    WaypointIdentity,
    WaypointScope,
)
from eastgate.dialects.istio.provenance import AT_ZTUNNEL, StageName
from eastgate.dialects.istio.waypoints import Binding, seen_from
from eastgate.dialects.istio.written import Fields, IstioRule, Values, When, WrittenValue, negated
from eastgate.ir import (
    NEVER,
    AllowAny,
    Chain,
    Computed,
    Deny,
    InNetwork,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Reading,
    Refusal,
    Rule,
    SelectorCase,
    Stage,
    Value,
    all_of,
    any_of,
    conjuncts,
)
from eastgate.ir.addresses import Network, parse_network
from eastgate.ir.attributes import ADDRESS, DESTINATION_ADDRESS, IDENTITY, PORT, SERVICE, Attribute
from eastgate.ir.spiffe import SCHEME

_HTTP_FIELDS: Final = frozenset({"hosts", "methods", "paths", "remoteIpBlocks", "requestPrincipals"})
_SEGMENT: Final = "[^/]+"


@dataclass(frozen=True, slots=True)
class ZtunnelRule:
    """A rule in ztunnel's form. `dropped` are the fields and keys that ztunnel does not read, as they are written."""

    when: Predicate
    dropped: tuple[str, ...] = ()


def lower_rule(rule: IstioRule, namespace: str, *, denies: bool) -> ZtunnelRule:
    """Return the remaining part of a rule of a policy in a namespace."""
    http, others = http_parts(rule), tuple(_unsupported(rule))
    dropped = tuple(sorted({*http, *others}))
    if http and not denies:
        return ZtunnelRule(NEVER, dropped)
    clauses = [
        *_clauses(_operation(fields) for fields in rule.operations or ()),
        *_clauses(_source(fields, namespace) for fields in rule.sources or ()),
        *(_condition(when) or NEVER for when in rule.conditions),
    ]
    when = NEVER if NEVER in clauses else all_of(part for clause in clauses for part in conjuncts(clause))
    return ZtunnelRule(when, dropped)


def http_parts(rule: IstioRule) -> tuple[str, ...]:
    """Return the fields and keys of a rule for which istiod warns that ztunnel has no HTTP, sorted."""
    written = {
        name
        for fields in (*(rule.sources or ()), *(rule.operations or ()))
        for name in _names(fields)
        if name in _HTTP_FIELDS or name in _NEGATED_HTTP
    }
    return tuple(sorted(written | {when.key for when in rule.conditions if when.key not in _CONDITIONS}))


_NEGATED_HTTP: Final = frozenset(map(negated, _HTTP_FIELDS))


def _names(fields: Fields) -> Iterator[str]:
    for name, values in fields.items():
        if values.values:
            yield name
        if values.not_values:
            yield negated(name)


def _unsupported(rule: IstioRule) -> Iterator[str]:
    for fields in rule.sources or ():
        yield from (name for name in _names(fields) if name in ("trustDomains", negated("trustDomains")))


def _clauses(matches: Iterable[Predicate | None]) -> Iterator[Predicate]:
    """Yield one clause in which ANY match must hold; no clause without matches. Empty matches match nothing."""
    alternatives = list(matches)
    if alternatives:
        yield any_of(match for match in alternatives if match is not None)


def _operation(fields: Fields) -> Predicate | None:
    return _match([(fields.get("ports"), _ports)])


def _source(fields: Fields, namespace: str) -> Predicate | None:
    return _match(
        [
            (fields.get("ipBlocks"), lambda values: _networks(ADDRESS, values)),
            (fields.get("serviceAccounts"), lambda values: _accounts(values, namespace)),
            (fields.get("principals"), _principals),
            (fields.get("namespaces"), _namespaces),
        ]
    )


def _condition(when: When) -> Predicate | None:
    lower = _CONDITIONS.get(when.key)
    return None if lower is None else _match([(when.values, lower)])


_Lower = Callable[[tuple[WrittenValue, ...]], Predicate | None]


def _match(fields: Iterable[tuple[Values | None, _Lower]]) -> Predicate | None:
    """Return a match: ALL fields hold, each with ANY of its values and NONE of the negated. None: it has no field."""
    parts: list[Predicate] = []
    for values, lower in fields:
        if values is None:
            continue
        positive = lower(values.values) if values.values else None
        negative = lower(values.not_values) if values.not_values else None
        parts += [positive] if positive is not None else []
        parts += [Not(negative)] if negative is not None else []
    return all_of(parts) if parts else None


# Values: None if none of them is valid


def _ports(values: tuple[WrittenValue, ...]) -> Predicate | None:
    numbers = frozenset(int(value.text) for value in values if value.text.isdecimal() and int(value.text) <= _LAST_PORT)
    return Is(PORT, OneOf(numbers)) if numbers else None


_LAST_PORT: Final = 65535


def _networks(attribute: Attribute, values: tuple[WrittenValue, ...]) -> Predicate | None:
    networks = tuple(network for value in values if (network := _network(value.text)) is not None)
    return Is(attribute, InNetwork(networks)) if networks else None


def _network(text: str) -> Network | None:
    try:
        return parse_network(text)
    except ValueError:
        return None


def _principals(values: tuple[WrittenValue, ...]) -> Predicate:
    return any_of(_principal(value.text) for value in values)


def _principal(text: str) -> Predicate:
    if text == "*":
        return Is(IDENTITY, Present())
    if text.startswith("*"):
        return _identities(f"principal {text}", f"{SCHEME}.*{re.escape(text[1:])}")
    if text.endswith("*"):
        return Is(IDENTITY, Prefix(f"{SCHEME}{text[:-1]}"))
    return Is(IDENTITY, OneOf(frozenset({f"{SCHEME}{text}"})))


def _namespaces(values: tuple[WrittenValue, ...]) -> Predicate:
    return any_of(
        _identities(f"namespace {value.text}", _account_pattern(_segment(value.text), _SEGMENT)) for value in values
    )


def _segment(text: str) -> str:
    """Return the pattern of a name with a wildcard at one end. Any other `*` is a character."""
    if text == "*":
        return _SEGMENT
    if text.startswith("*"):
        return f"[^/]*{re.escape(text[1:])}"
    if text.endswith("*"):
        return f"{re.escape(text[:-1])}[^/]*"
    return re.escape(text)


def _accounts(values: tuple[WrittenValue, ...], own_namespace: str) -> Predicate:
    return any_of(_account(value.text, own_namespace) for value in values)


def _account(text: str, own_namespace: str) -> Predicate:
    first, slash, rest = text.partition("/")
    namespace, name = (first, rest) if slash else (own_namespace, first)
    return _identities(f"service account {namespace}/{name}", _account_pattern(re.escape(namespace), re.escape(name)))


def _account_pattern(namespace: str, name: str) -> str:
    return f"{SCHEME}{_SEGMENT}/ns/{namespace}/sa/{name}"


def _identities(text: str, pattern: str) -> Computed:
    """Return a test of the caller's identity by a regular expression for all of it."""

    def test(values: Mapping[Attribute, Value | None]) -> bool:
        identity = values.get(IDENTITY)
        return isinstance(identity, str) and re.fullmatch(pattern, identity) is not None

    return Computed(f"{text}, at ztunnel", frozenset({IDENTITY}), test, pattern=(IDENTITY, pattern))


_CONDITIONS: Final[dict[str, _Lower]] = {
    "source.ip": lambda values: _networks(ADDRESS, values),
    "source.namespace": _namespaces,
    "source.principal": _principals,
    "destination.ip": lambda values: _networks(DESTINATION_ADDRESS, values),
    "destination.port": _ports,
}


# The layer of a workload that ztunnel serves: connections from callers, or from the waypoint before it.


def ztunnel_layer(
    policies: Sequence[IstioAuthorizationPolicy],
    peers: Sequence[PeerAuthentication],
    bindings: Sequence[Binding],
    root_namespace: str,
) -> Layer:
    """Return the layer. ztunnel does not enforce policies with targets, or with actions that it does not have.

    It also does not enforce a policy with a selector without labels: istiod sends it for reference by workloads, and no
    workload refers to it.
    """
    chain = _chain([policy for policy in policies if _is_sent_to_ztunnel(policy)], peers, root_namespace)
    if not bindings:
        return Layer(AT_ZTUNNEL, chain)
    cases = tuple(
        SelectorCase(through_waypoint(binding), _chain_behind_waypoint(binding, chain)) for binding in bindings
    )
    return Layer(AT_ZTUNNEL, replace(chain, scope=DirectScope()), cases)


def _is_sent_to_ztunnel(policy: IstioAuthorizationPolicy) -> bool:
    return not policy.refs and (bool(policy.selector.match_labels) or not policy.has_selector)


def through_waypoint(binding: Binding) -> Predicate:
    """Return a predicate for requests through a waypoint. Only callers in the mesh use it."""
    past = [Not(Is(IDENTITY, OneOf(binding.passing)))] if binding.passing else []
    past += [Not(Is(IDENTITY, accounts)) for accounts in binding.sidecars]
    led = Is(IDENTITY, OneOf(binding.only)) if binding.only else Is(IDENTITY, Present())
    return all_of((addressed_to(binding), led, *past))


def addressed_to(binding: Binding) -> Predicate:
    """Return a predicate for requests that are addressed to the waypoint's Service or workload."""
    if binding.service is None:
        unaddressed = Not(Is(SERVICE, Present()))
        return Or((unaddressed, Is(SERVICE, OneOf(binding.headless)))) if binding.headless else unaddressed
    return Is(SERVICE, OneOf(frozenset({binding.service})))


def _chain_behind_waypoint(binding: Binding, chain: Chain) -> Chain:
    waypoint = binding.waypoint
    seen = rewrite_chain(chain, lambda predicate: seen_from(waypoint, predicate))
    reading = WaypointIdentity(str(waypoint), waypoint.identity)
    scope = WaypointScope(str(waypoint), binding.service)
    return replace(seen, readings=(*chain.readings, reading), scope=scope)


def _chain(
    policies: Sequence[IstioAuthorizationPolicy], peers: Sequence[PeerAuthentication], root_namespace: str
) -> Chain:
    enforced = [policy for policy in policies if not policy.audit]
    enforced_peers = [peer for peer in peers if not peer.audit]
    denials = ztunnel_denials(enforced_peers, root_namespace)
    ties = (TiedPolicies(tuple(policy.ref for policy in tie)) for tie in ztunnel_ties(enforced_peers, root_namespace))
    observed = [
        (rule, "deny" if policy.action is Action.DENY else "allow")
        for policy in policies
        if policy.audit and not policy.dry_run
        for rule in _rules([policy], policy.action)
    ]
    deny, allow = _rules(enforced, Action.DENY), _rules(enforced, Action.ALLOW)
    stages: list[Stage] = []
    if denials:
        stages.append(mtls_stage(denials))
    if observed:
        rules, would = zip(*observed, strict=True)
        stages.append(Observe(StageName.AUDIT, rules, would))
    if deny:
        stages.append(Deny(StageName.DENY, deny, Refusal.CLOSED))
    if any(policy.action is Action.ALLOW for policy in enforced):
        stages.append(AllowAny(StageName.ALLOW, allow, Refusal.CLOSED))
    return Chain(tuple(stages), (*ties, *_readings(enforced)))


def _rules(policies: Sequence[IstioAuthorizationPolicy], action: Action) -> tuple[Rule, ...]:
    lowered = (
        (rule.origin, lower_rule(rule, policy.namespace, denies=action is Action.DENY))
        for policy in policies
        if policy.action is action and action in (Action.ALLOW, Action.DENY)
        for rule in policy.rules
    )
    return tuple(Rule(rule.when, origin) for origin, rule in lowered if rule.when != NEVER)


def _readings(policies: Sequence[IstioAuthorizationPolicy]) -> Iterator[Reading]:
    for policy in policies:
        if policy.action not in (Action.ALLOW, Action.DENY):
            yield UnsupportedAction(policy.ref, str(policy.action))
            continue
        for rule in policy.rules:
            lowered = lower_rule(rule, policy.namespace, denies=policy.action is Action.DENY)
            if lowered.dropped:
                yield DroppedFields(policy.ref, rule.index, lowered.dropped, _effect(policy.action, lowered))


def _effect(action: Action, lowered: ZtunnelRule) -> str:
    verb = "denies" if action is Action.DENY else "allows"
    return f"{verb} nothing" if lowered.when == NEVER else f"{verb} more than its text says"
