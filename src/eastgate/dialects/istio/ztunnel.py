"""Rules as ztunnel enforces them: connections alone, by istiod's translation, which drops what needs HTTP.

An ALLOW rule that looks at anything of HTTP is left out whole, and its policy still closes the workload. Of a DENY rule
only the fields are left out; a source, an operation or a condition of which nothing is left matches nothing, so that
the rule may deny nothing at all. `trustDomains` are left out without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.written import Fields, IstioRule, Values, When, WrittenValue, negated
from eastgate.ir import (
    NEVER,
    Computed,
    InNetwork,
    Is,
    Not,
    OneOf,
    Predicate,
    Prefix,
    Present,
    Value,
    all_of,
    any_of,
    conjuncts,
)
from eastgate.ir.addresses import Network, parse_network
from eastgate.ir.attributes import ADDRESS, DESTINATION_ADDRESS, IDENTITY, PORT, Attribute
from eastgate.ir.spiffe import SCHEME

_HTTP_FIELDS: Final = frozenset({"hosts", "methods", "paths", "remoteIpBlocks", "requestPrincipals"})
_SEGMENT: Final = "[^/]+"


@dataclass(frozen=True, slots=True)
class ZtunnelRule:
    """A rule as ztunnel has it. `dropped` are the fields and keys that it does not look at, as they are written."""

    when: Predicate
    dropped: tuple[str, ...] = ()


def lower_rule(rule: IstioRule, namespace: str, *, denies: bool) -> ZtunnelRule:
    """Return what is left of a rule of a policy in a namespace."""
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
    """Return the fields and keys of a rule for which istiod says that ztunnel has no HTTP, sorted."""
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
    """Yield one clause, of which ANY match must hold; none where there are no matches. Empty matches match nothing."""
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
    """Return a match: ALL fields hold, each with ANY of its values and NONE of the negated. None: it is empty."""
    parts: list[Predicate] = []
    for values, lower in fields:
        if values is None:
            continue
        positive = lower(values.values) if values.values else None
        negative = lower(values.not_values) if values.not_values else None
        parts += [positive] if positive is not None else []
        parts += [Not(negative)] if negative is not None else []
    return all_of(parts) if parts else None


# Values: None where none of them is one


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
    """Return the pattern of a name with a wildcard at one end; of several `*` the others are literal."""
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
