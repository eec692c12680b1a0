"""And, Or and Not that keep a predicate short: what is certain disappears, and what contradicts itself is never true.

A condition is shown to a person, so `method is GET and method is POST` must not be, and an entry that nobody can reach
must go. Every step here keeps the meaning exactly; none tries to find all that could be said shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import product
from math import prod

from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    InNetwork,
    Is,
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
from eastgate.ir.attributes import ADDRESS, Attribute

__all__ = ["both", "either", "negation", "network"]

_LOOPBACK = {4: ip_network("127.0.0.0/8"), 6: ip_network("::1/128")}
_MOST_COMPARED = 60  # parts of an Or that are compared with each other


def negation(predicate: Predicate) -> Predicate:
    """Return the opposite of a predicate."""
    if isinstance(predicate, Not):
        return predicate.part
    return NEVER if predicate == ALWAYS else ALWAYS if predicate == NEVER else Not(predicate)


def both(parts: Iterable[Predicate]) -> Predicate:
    """Return that ALL of the parts hold."""
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
    """Return that ANY of the parts holds."""
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
    """Return an atom on networks for callers who have an address and are not the workload itself."""
    assert isinstance(atom.matcher, InNetwork)  # noqa: S101 - who calls has looked
    networks = tuple(one for one in atom.matcher.networks if not _is_loopback(one))
    if not networks:
        return NEVER
    everywhere = {4, 6} <= {one.version for one in networks if one.prefixlen == 0}
    return ALWAYS if everywhere and atom.attribute == ADDRESS else Is(atom.attribute, InNetwork(networks))


def _is_loopback(one: IPv4Network | IPv6Network) -> bool:
    loopback = _LOOPBACK[one.version]
    return one.network_address in loopback and one.prefixlen >= loopback.prefixlen


# ANY: values of one attribute become one list, and what another part covers goes


def _united(parts: Iterable[Predicate]) -> Iterator[Predicate]:
    values: dict[Attribute, OneOf] = {}
    networks: dict[Attribute, InNetwork] = {}
    rest: list[Predicate] = []
    places: dict[Attribute, int] = {}
    for part in parts:
        match part:
            case Is(attribute, OneOf(more), joined=False):
                known = values.get(attribute)
                values[attribute] = OneOf(known.values | more) if known else OneOf(more)
                if attribute not in places:
                    places[attribute] = len(rest)
                    rest.append(part)
            case Is(attribute, InNetwork(more_networks)):
                before = networks.get(attribute)
                networks[attribute] = InNetwork((*before.networks, *more_networks) if before else more_networks)
            case _:
                rest.append(part)
    for attribute, place in places.items():
        rest[place] = Is(attribute, values[attribute])
    yield from (part for part in rest if part != NEVER)
    yield from (network(Is(attribute, matcher)) for attribute, matcher in networks.items())


def _absorbed(parts: list[Predicate]) -> list[Predicate]:
    """Without the parts that ask for all that another asks for, and more."""
    if len(parts) > _MOST_COMPARED:
        return parts
    sets = [frozenset(conjuncts(part)) for part in parts]
    return [part for part, mine in zip(parts, sets, strict=True) if not any(other < mine for other in sets)]


# ALL: what is said of one attribute, together


def _narrowed(parts: list[Predicate]) -> list[Predicate] | None:
    """The same with one list of values for each attribute; None where nothing can be in all of them."""
    if NEVER in parts:
        return None
    about = Counter(attribute for part in parts if (attribute := _attribute(part)) is not None)
    for attribute in [one for one, count in about.items() if count > 1]:
        mine = [part for part in parts if _attribute(part) == attribute]
        narrowed = _of_one_attribute(attribute, mine)
        if narrowed is None:
            return None
        place = parts.index(mine[0])
        others = [part for part in parts if _attribute(part) != attribute]
        before = sum(1 for part in parts[:place] if _attribute(part) != attribute)
        parts = [*others[:before], *narrowed, *others[before:]]
    return parts


def _multiplied(parts: list[Predicate]) -> list[Predicate]:
    """With alternatives of one attribute compared with whatever else is said of it."""
    for place, part in enumerate(parts):
        attribute = _only_attribute(part)
        others = [one for one in parts if one is not part and attribute is not None and _about(one) == attribute]
        if attribute is None or not isinstance(part, Or) or not others:
            continue
        rest = [one for one in parts if one is not part and one not in others]
        options = [part.parts, *(one.parts if isinstance(one, Or) else (one,) for one in others)]
        if prod(len(one) for one in options) > _MOST_COMPARED:
            continue
        joined = either(both(combination) for combination in product(*options))
        return [*rest[:place], joined, *rest[place:]] if joined != NEVER else [NEVER]
    return parts


def _settled(parts: list[Predicate]) -> list[Predicate]:
    """Without alternatives that the other parts rule out, and without choices that they have made already."""
    plain = [one for one in parts if _attribute(one) is not None]
    kept: list[Predicate] = []
    for part in parts:
        if not isinstance(part, Or) or not plain or len(part.parts) > _MOST_COMPARED:
            kept.append(part)
            continue
        if any(set(conjuncts(option)) <= set(plain) for option in part.parts):
            continue
        possible = [one for one in part.parts if _narrowed([*plain, *conjuncts(one)]) is not None]
        if not possible:
            return [NEVER]
        kept += conjuncts(possible[0]) if len(possible) == 1 else [Or(tuple(possible))]
    return list(dict.fromkeys(kept))


def _only_attribute(part: Predicate) -> Attribute | None:
    """The attribute that ALL alternatives are about."""
    if not isinstance(part, Or):
        return None
    found = {one.attribute if isinstance(one, Is) else None for one in part.parts}
    return found.pop() if len(found) == 1 else None


def _about(part: Predicate) -> Attribute | None:
    return _only_attribute(part) if isinstance(part, Or) else _attribute(part)


def _attribute(part: Predicate) -> Attribute | None:
    match part:
        case Is(attribute) | Not(Is(attribute)):
            return attribute
        case _:
            return None


def _of_one_attribute(attribute: Attribute, parts: list[Predicate]) -> list[Predicate] | None:
    if attribute.is_repeatable:  # each of its values may meet another part
        return None if any(negation(part) in parts for part in parts) else parts
    wanted = [part.matcher for part in parts if isinstance(part, Is)]
    unwanted = [part.part.matcher for part in parts if isinstance(part, Not) and isinstance(part.part, Is)]
    if wanted and any(isinstance(one, Present) or one in wanted for one in unwanted):
        return None
    if any(isinstance(one, OneOf) for one in wanted):
        values = [one.values for one in wanted if isinstance(one, OneOf)]
        kept = frozenset(
            value
            for value in values[0].intersection(*values[1:])
            if all(one.contains(value) for one in wanted) and not any(one.contains(value) for one in unwanted)
        )
        return [Is(attribute, OneOf(kept))] if kept else None
    kept_matchers = _longest(wanted)
    if kept_matchers is None:
        return None
    return [*(Is(attribute, one) for one in kept_matchers), *(Not(Is(attribute, one)) for one in unwanted)]


def _longest(wanted: list[Matcher]) -> list[Matcher] | None:
    """The longest beginning and the longest end, which say all; None where two of them cannot both be."""
    prefixes = sorted((one.text for one in wanted if isinstance(one, Prefix)), key=len)
    suffixes = sorted((one.text for one in wanted if isinstance(one, Suffix)), key=len)
    if any(not prefixes[-1].startswith(text) for text in prefixes[:-1]):
        return None
    if any(not suffixes[-1].endswith(text) for text in suffixes[:-1]):
        return None
    others = [one for one in wanted if not isinstance(one, Prefix | Suffix | Present)]
    kept: list[Matcher] = [*others, *map(Prefix, prefixes[-1:]), *map(Suffix, suffixes[-1:])]
    present: list[Matcher] = [one for one in wanted if isinstance(one, Present)]
    return kept or present[:1]
