"""And, Or and Not that keep predicates short: parts that are certain disappear, and contradictions become NEVER.

Users read these conditions. So `method is GET and method is POST` must disappear, and so must an entry that no request
can reach. Every step keeps the exact meaning. The result need not be the shortest predicate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations, product
from math import prod

from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    InNetwork,
    Is,
    Labelled,
    Matcher,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Suffix,
    conjuncts,
)
from eastgate.ir.attributes import ADDRESSES, Attribute

_LOOPBACK = {4: ip_network("127.0.0.0/8"), 6: ip_network("::1/128")}
_MAX_COMPARED_PARTS = 60  # parts of an Or that are compared with each other


def negation(predicate: Predicate) -> Predicate:
    """Return the opposite of a predicate."""
    if isinstance(predicate, Not):
        return predicate.part
    return NEVER if predicate == ALWAYS else ALWAYS if predicate == NEVER else Not(predicate)


def straightened(predicate: Predicate) -> Predicate:
    """Return a predicate without negations of negations: `not (a and not b)` is `b or not a`."""
    match predicate:
        case And(parts):
            return both(map(straightened, parts))
        case Or(parts):
            return either(_resolved(list(map(straightened, parts))))
        case Not(And() | Or() as negated):
            inner: Predicate = straightened(negated)
            options = inner.parts if isinstance(inner, Or) else conjuncts(inner)
            if not isinstance(inner, And | Or) or not any(isinstance(option, Not) for option in options):
                return negation(inner)
            options = sorted(map(negation, options), key=lambda option: isinstance(option, Not))
            return (both if isinstance(inner, Or) else either)(options)
        case Not(part):
            return negation(straightened(part))
        case _:
            return predicate


def _resolved(parts: list[Predicate]) -> list[Predicate]:
    """Return the alternatives with each pair `a and b or a and not b` replaced by `a`."""
    for first, second in combinations(parts, 2) if len(parts) <= _MAX_COMPARED_PARTS else ():
        one, other = set(conjuncts(first)), set(conjuncts(second))
        if len(one - other) == len(other - one) == 1 and negation(*(one - other)) in other:
            common = both(part for part in conjuncts(first) if part in other)
            return _resolved([common if part is first else part for part in parts if part is not second])
    return parts


def both(parts: Iterable[Predicate]) -> Predicate:
    """Return the conjunction of the parts."""
    flat: dict[Predicate, None] = {}
    for part in parts:
        if part == NEVER:
            return NEVER
        flat.update(dict.fromkeys(conjuncts(part)))
    chosen = list(flat)
    if len(chosen) > 1:
        narrowed = _narrowed(_settled(_multiplied(chosen)))
        if narrowed is None:
            return NEVER
        chosen = narrowed
    return chosen[0] if len(chosen) == 1 else And(tuple(chosen))


def either(parts: Iterable[Predicate]) -> Predicate:
    """Return the disjunction of the parts."""
    flat: dict[Predicate, None] = {}
    for part in parts:
        if part == ALWAYS:
            return ALWAYS
        flat.update(dict.fromkeys(part.parts if isinstance(part, Or) else (part,)))
    chosen = list(_united(flat))
    if ALWAYS in chosen:
        return ALWAYS
    chosen = _absorbed(chosen)
    return chosen[0] if len(chosen) == 1 else Or(tuple(chosen))


def network(atom: Is) -> Predicate:
    """Return an atom on networks, simplified for callers with an address that are not the workload itself."""
    assert isinstance(atom.matcher, InNetwork)  # noqa: S101 - callers check this
    networks = tuple(net for net in atom.matcher.networks if not _is_loopback(net))
    if not networks:
        return NEVER
    everywhere = {4, 6} <= {net.version for net in networks if net.prefixlen == 0}
    return ALWAYS if everywhere and atom.attribute in ADDRESSES else Is(atom.attribute, InNetwork(networks))


def _is_loopback(net: IPv4Network | IPv6Network) -> bool:
    loopback = _LOOPBACK[net.version]
    return net.network_address in loopback and net.prefixlen >= loopback.prefixlen


# ANY: values of one attribute become one list, and parts that another part covers disappear


def _united(parts: Iterable[Predicate]) -> Iterator[Predicate]:
    values: dict[Attribute, OneOf] = {}
    networks: dict[Attribute, InNetwork] = {}
    rest: list[Predicate] = []
    indices: dict[Attribute, int] = {}
    for part in parts:
        match part:
            case Is(attribute, OneOf(more), joined=False):
                earlier = values.get(attribute)
                values[attribute] = OneOf(earlier.values | more) if earlier else OneOf(more)
                if attribute not in indices:
                    indices[attribute] = len(rest)
                    rest.append(part)
            case Is(attribute, InNetwork(more_networks)):
                before = networks.get(attribute)
                networks[attribute] = InNetwork((*before.networks, *more_networks) if before else more_networks)
            case _:
                rest.append(part)
    for attribute, index in indices.items():
        rest[index] = Is(attribute, values[attribute])
    yield from (part for part in rest if part != NEVER)
    yield from (network(Is(attribute, matcher)) for attribute, matcher in networks.items())


def _absorbed(parts: list[Predicate]) -> list[Predicate]:
    """Return the parts without those that are narrower than another part."""
    if len(parts) > _MAX_COMPARED_PARTS:
        return parts
    sets = [frozenset(conjuncts(part)) for part in parts]
    return [part for part, mine in zip(parts, sets, strict=True) if not any(other < mine for other in sets)]


# ALL: parts about one attribute are combined


def _narrowed(parts: list[Predicate]) -> list[Predicate] | None:
    """Return the parts with one list of values for each attribute, or None if no value is in all of them."""
    if NEVER in parts:
        return None
    about = Counter(attribute for part in parts if (attribute := _attribute(part)) is not None)
    for attribute in [attribute for attribute, count in about.items() if count > 1]:
        mine = [part for part in parts if _attribute(part) == attribute]
        narrowed = _of_one_attribute(attribute, mine)
        if narrowed is None:
            return None
        index = parts.index(mine[0])
        others = [part for part in parts if _attribute(part) != attribute]
        before = sum(1 for part in parts[:index] if _attribute(part) != attribute)
        parts = [*others[:before], *narrowed, *others[before:]]
    return parts


def _multiplied(parts: list[Predicate]) -> list[Predicate]:
    """Distribute alternatives of one attribute over the other parts about it, so that contradictions disappear."""
    for index, part in enumerate(parts):
        attribute = _only_attribute(part)
        others = [
            other for other in parts if other is not part and attribute is not None and _about(other) == attribute
        ]
        if attribute is None or not isinstance(part, Or) or not others:
            continue
        rest = [other for other in parts if other is not part and other not in others]
        options = [part.parts, *(other.parts if isinstance(other, Or) else (other,) for other in others)]
        if prod(len(other) for other in options) > _MAX_COMPARED_PARTS:
            continue
        joined = either(both(combination) for combination in product(*options))
        return [*rest[:index], joined, *rest[index:]] if joined != NEVER else [NEVER]
    return parts


def _settled(parts: list[Predicate]) -> list[Predicate]:
    """Remove alternatives and exceptions that the other parts exclude, and choices that the other parts decide."""
    plain = [part for part in parts if _attribute(part) is not None]
    kept: list[Predicate] = []
    for part in parts:
        if isinstance(part, Not) and isinstance(part.part, And) and plain:
            if _narrowed([*plain, *conjuncts(part.part)]) is not None:
                excepted = [each for each in conjuncts(part.part) if each not in plain]
                kept += conjuncts(negation(excepted[0] if len(excepted) == 1 else And(tuple(excepted))))
            continue
        if not isinstance(part, Or) or not plain or len(part.parts) > _MAX_COMPARED_PARTS:
            kept.append(part)
            continue
        if any(set(conjuncts(option)) <= set(plain) for option in part.parts):
            continue
        possible = [option for option in part.parts if _narrowed([*plain, *conjuncts(option)]) is not None]
        if not possible:
            return [NEVER]
        kept += conjuncts(possible[0]) if len(possible) == 1 else [Or(tuple(possible))]
    return list(dict.fromkeys(kept))


def _only_attribute(part: Predicate) -> Attribute | None:
    """Return the attribute that ALL alternatives read, or None."""
    if not isinstance(part, Or):
        return None
    attributes = {option.attribute if isinstance(option, Is) else None for option in part.parts}
    return attributes.pop() if len(attributes) == 1 else None


def _about(part: Predicate) -> Attribute | None:
    return _only_attribute(part) if isinstance(part, Or) else _attribute(part)


def _attribute(part: Predicate) -> Attribute | None:
    match part:
        case Is(attribute) | Not(Is(attribute)):
            return attribute
        case _:
            return None


def _of_one_attribute(attribute: Attribute, parts: list[Predicate]) -> list[Predicate] | None:
    if attribute.is_repeatable:  # each of its values may satisfy another part
        return None if any(negation(part) in parts for part in parts) else parts
    wanted = [part.matcher for part in parts if isinstance(part, Is)]
    unwanted = [part.part.matcher for part in parts if isinstance(part, Not) and isinstance(part.part, Is)]
    if wanted and any(isinstance(matcher, Present) or matcher in wanted for matcher in unwanted):
        return None
    if any(isinstance(matcher, OneOf) for matcher in wanted):
        values = [matcher.values for matcher in wanted if isinstance(matcher, OneOf)]
        kept = frozenset(
            value
            for value in values[0].intersection(*values[1:])
            if all(matcher.contains(value) for matcher in wanted)
            and not any(matcher.contains(value) for matcher in unwanted)
        )
        return [Is(attribute, OneOf(kept))] if kept else None
    kept_matchers = _longest(wanted)
    if kept_matchers is None:
        return None
    return [
        *(Is(attribute, matcher) for matcher in kept_matchers),
        *(Not(Is(attribute, matcher)) for matcher in unwanted),
    ]


def _longest(wanted: list[Matcher]) -> list[Matcher] | None:
    """Return the longest prefix and suffix, which imply the others, or None if two matchers contradict each other."""
    prefixes = sorted((matcher.text for matcher in wanted if isinstance(matcher, Prefix)), key=len)
    suffixes = sorted((matcher.text for matcher in wanted if isinstance(matcher, Suffix)), key=len)
    if any(not prefixes[-1].startswith(text) for text in prefixes[:-1]):
        return None
    if any(not suffixes[-1].endswith(text) for text in suffixes[:-1]):
        return None
    labels = {term for matcher in wanted if isinstance(matcher, Labelled) for term in matcher.selector.equalities}
    if len({key for key, _ in labels}) < len(labels):  # a label has one value
        return None
    others = [matcher for matcher in wanted if not isinstance(matcher, Prefix | Suffix | Present)]
    kept: list[Matcher] = [*others, *map(Prefix, prefixes[-1:]), *map(Suffix, suffixes[-1:])]
    present: list[Matcher] = [matcher for matcher in wanted if isinstance(matcher, Present)]
    return kept or present[:1]
