"""Differences merged for output: callers, ports and destinations with the same outcome are one change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, Origin, Predicate
from eastgate.ir.symbolic.simplify import either
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.comparison import VerdictDifference
from eastgate.reach.destinations import DestinationKind, Entrance
from eastgate.reach.endings import Ending, Spelling
from eastgate.reach.pairing import Pair
from eastgate.reports.diff.model import ChangedPorts


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Differences that are shown as one; the first represents all.

    `when` holds for all of them with plain spellings.
    """

    kind: DestinationKind
    callers: CallerSet
    members: tuple[str, ...]
    services: tuple[str, ...]
    ports: ChangedPorts
    when: Predicate
    spellings: tuple[Spelling, ...]
    decided: Hashable
    differences: tuple[VerdictDifference, ...]

    @property
    def is_wider(self) -> bool:
        """Return whether these requests are allowed now."""
        return self.differences[0].new.allowed


def group(differences: Iterable[VerdictDifference]) -> list[ChangeGroup]:
    """Merge differences. Those that become allowed come first."""
    parts = [_single(difference) for difference in differences]
    parts = _merged(parts, lambda part: (*_where(part), part.when), _join_callers)
    parts = _merged(parts, lambda part: (*_where(part), part.callers), _join_conditions)
    by_pair = _merged(parts, _but_entrance, _join_entrances)
    groups = _merged(by_pair, _but_members, _join_members)
    groups = _merged(groups, _but_spelling, _join_spellings)
    return sorted(_folded(groups), key=lambda each: not each.is_wider)


def _single(difference: VerdictDifference) -> ChangeGroup:
    entrance, pair = difference.entrance, difference.pair
    return ChangeGroup(
        pair.kind,
        difference.callers,
        pair.members,
        () if entrance.service is None else (entrance.service,),
        _ports(pair, (entrance,)),
        difference.when,
        (difference.spelling,),
        (_decided_by(difference.old), _decided_by(difference.new)),
        (difference,),
    )


def _decided_by(ending: Ending) -> Hashable:
    return ending.allowed, None if ending.origin is None else _rule(ending.origin)


def _rule(origin: Origin) -> Hashable:
    return origin.policy, origin.index, origin.label


def _ports(pair: Pair, entrances: Sequence[Entrance]) -> ChangedPorts:
    numbers = sorted({port for entrance in entrances for port in entrance.ports})
    chosen = {(entrance.ports, entrance.others) for entrance in entrances}
    every = all((now.ports, now.others) in chosen for _, now in pair.entrances)
    others = any(entrance.others for entrance in entrances)
    return ChangedPorts(tuple(numbers), others, every and (others or pair.kind is DestinationKind.GATEWAY))


# Merging


def _merged(
    parts: Iterable[ChangeGroup],
    key: Callable[[ChangeGroup], Hashable],
    join: Callable[[Sequence[ChangeGroup]], ChangeGroup],
) -> list[ChangeGroup]:
    by_key: dict[Hashable, list[ChangeGroup]] = {}
    for part in parts:
        by_key.setdefault(key(part), []).append(part)
    return [alike[0] if len(alike) == 1 else join(alike) for alike in by_key.values()]


def _where(part: ChangeGroup) -> tuple[Hashable, ...]:
    """Return the key that all differences of one entrance that are decided alike share."""
    difference = part.differences[0]
    return id(difference.pair), id(difference.entrance), part.spellings, part.decided


def _but_entrance(part: ChangeGroup) -> Hashable:
    return id(part.differences[0].pair), part.spellings, part.decided, part.callers, part.when


def _but_members(part: ChangeGroup) -> Hashable:
    return part.kind, part.spellings, part.decided, part.callers, part.when, part.ports, part.services


def _but_spelling(part: ChangeGroup) -> Hashable:
    if part.spellings == (Spelling.PLAIN,):
        return id(part)
    return part.kind, part.decided, part.callers, part.when, part.ports, part.services, part.members


def _together(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    return replace(parts[0], differences=tuple(each for part in parts for each in part.differences))


def _join_callers(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    callers = 0
    for part in parts:
        callers |= part.callers
    return replace(_together(parts), callers=callers)


def _join_conditions(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    return replace(_together(parts), when=either(part.when for part in parts))


def _join_entrances(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    joined = _together(sorted(parts, key=_is_at_unknown_port))
    entrances = [difference.entrance for difference in joined.differences]
    services = tuple(dict.fromkeys(service for part in parts for service in part.services))
    return replace(joined, ports=_ports(joined.differences[0].pair, entrances), services=services)


def _is_at_unknown_port(part: ChangeGroup) -> bool:
    """Return whether the example of a group uses a port that its workload does not declare."""
    confirmation = part.differences[0].confirmation
    return confirmation is None or not confirmation.is_declared


def _join_members(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    members = tuple(dict.fromkeys(member for part in parts for member in part.members))
    return replace(_together(parts), members=members)


def _join_spellings(parts: Sequence[ChangeGroup]) -> ChangeGroup:
    return replace(_together(parts), spellings=tuple(dict.fromkeys(one for part in parts for one in part.spellings)))


def _folded(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """Merge a group of odd spellings into a plain group with the same outcome that covers its requests."""
    plain = [part for part in groups if part.spellings == (Spelling.PLAIN,)]
    alone: list[ChangeGroup] = []
    for part in groups:
        if part.spellings == (Spelling.PLAIN,):
            continue
        index = next((number for number, wider in enumerate(plain) if _covers(wider, part)), None)
        if index is None:
            alone.append(part)
        else:
            joined = _together((plain[index], part))
            spellings = tuple(dict.fromkeys([*plain[index].spellings, *part.spellings]))
            plain[index] = replace(joined, spellings=spellings)
    return [*plain, *alone]


def _covers(wider: ChangeGroup, part: ChangeGroup) -> bool:
    return (
        wider.is_wider == part.is_wider
        and wider.kind == part.kind
        and part.callers & ~wider.callers == 0
        and {*part.members} <= {*wider.members}
        and {*part.services} <= {*wider.services}
        and {*part.ports.numbers} <= {*wider.ports.numbers}
        and (wider.ports.others or not part.ports.others)
        and wider.when in (ALWAYS, part.when)
    )
