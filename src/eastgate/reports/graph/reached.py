"""The result of reachability by destination: sets of callers, and the ways that their requests take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, NEVER, Between, Is, Known, OneOf, Origin, Predicate, conjuncts
from eastgate.ir.attributes import Attribute
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Destination, Entrance, Passage
from eastgate.reach.endings import Branch
from eastgate.reach.reachability import Answer, Reachability
from eastgate.reach.requests import EVERY_PORT
from eastgate.reports.conditions import USUAL_FACTS
from eastgate.reports.graph.conditions import explain_branches, explain_predicate, narrow, within, without
from eastgate.reports.graph.model import AllowedWay, ReachVerdict

_TOO_MANY = "too many conditions to list"
_HIDDEN = "HTTP attributes, which no proxy reads here"


@dataclass(frozen=True, slots=True)
class ReachOutcome:
    """The outcome for some callers: all requests are allowed, those on these ways are, or none."""

    callers: CallerSet
    verdict: ReachVerdict
    ways: tuple[AllowedWay, ...] = ()
    denied_by: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class EntranceVerdicts:
    """The outcomes for all callers at one entrance; `ranges` are those of its other ports."""

    ports: tuple[int, ...]
    other_ports: bool
    service: str | None
    tls: bool | None
    outcomes: tuple[ReachOutcome, ...]
    ranges: tuple[Between, ...] = (EVERY_PORT,)


@dataclass(frozen=True, slots=True)
class DestinationVerdicts:
    """A destination, or its selected members, and the outcomes at each of its entrances."""

    destination: Destination
    members: tuple[str, ...]
    entrances: tuple[EntranceVerdicts, ...]


def entrance_verdicts(
    reach: Reachability, destination: Destination, port: int | None, facts: Facts, *, exact: bool
) -> Iterator[EntranceVerdicts]:
    """Yield the outcomes at the entrances of a destination for requests with these facts."""
    for entrance, ports, others in entrances_at(destination, port):
        outcomes = tuple(_outcomes(reach, entrance, facts, exact))
        yield EntranceVerdicts(ports, others, entrance.service, entrance.tls, outcomes, entrance.ranges)


def entrances_at(destination: Destination, port: int | None) -> Iterator[tuple[Entrance, tuple[int, ...], bool]]:
    """Yield the entrances that accept requests to a port, with the selected ports; port None means any port."""
    declared = {number for entrance in destination.entrances for number in entrance.ports}
    for entrance in destination.entrances:
        if port is None:
            yield entrance, entrance.ports, entrance.others
        elif port in entrance.ports or (port not in declared and entrance.takes(port)):
            yield entrance, (port,), False


def _outcomes(reach: Reachability, entrance: Entrance, facts: Facts, exact: bool) -> Iterator[ReachOutcome]:
    """Yield the outcome of each set of callers. Callers with equal ways are merged."""
    ways = list(ways_on(entrance, facts))
    merged: dict[tuple[ReachVerdict, tuple[AllowedWay, ...], tuple[Origin, ...]], CallerSet] = {}
    for answer in reach.answers(entrance):
        branches = narrow(answer.branches, facts)
        allowed = _verdict(answer, branches)
        for callers, taken in _split(reach, answer.callers, ways):
            outcome = _outcome(allowed, branches, taken, facts, exact)
            merged[outcome] = merged.get(outcome, 0) | callers
    return (ReachOutcome(callers, *outcome) for outcome, callers in merged.items())


def outcome_of(
    entrance: Entrance, answer: Answer, branches: Sequence[Branch], facts: Facts, *, exact: bool = False
) -> ReachOutcome:
    """Return the outcome at the entrance of a workload for the callers of an answer, limited to these
    branches and facts.
    """
    alone = replace(answer, branches=tuple(branches))
    taken = tuple((way, alone) for way in ways_on(entrance, facts))
    return ReachOutcome(0, *_outcome(_verdict(alone, branches), branches, taken, facts, exact))


def _verdict(answer: Answer, branches: Sequence[Branch]) -> bool | None:
    if answer.too_many:
        return None
    verdicts = {branch.end.allowed for branch in branches}
    if len(verdicts) > 1 and all(branch.end.allowed for branch in narrow(branches, USUAL_FACTS)):
        return True  # all usual requests are allowed, and conditions are written for usual requests only
    return verdicts.pop() if len(verdicts) == 1 else None


@dataclass(frozen=True, slots=True)
class EntranceWay:
    """One passage of an entrance as an entrance of its own, and the requests that take it."""

    guard: Predicate
    entrance: Entrance
    leads_to: tuple[str, ...]


def ways_on(entrance: Entrance, facts: Facts) -> Iterator[EntranceWay]:
    """Yield the passages that requests can take. Each is limited to requests that no earlier passage takes."""
    known = entrance.facts.and_(facts)
    earlier: list[Predicate] = []
    for passage in entrance.passages:
        when = residual(passage.when, known)
        guard = without(when, earlier) if when != NEVER else NEVER
        earlier.append(when)
        if guard != NEVER:
            yield EntranceWay(guard, _only(entrance, passage), passage.leads_to)
        if when == ALWAYS:
            return


def _only(entrance: Entrance, passage: Passage) -> Entrance:
    if len(entrance.passages) == 1:
        return entrance
    alone = (Passage(ALWAYS, passage.points, passage.leads_to),)
    facts, hides = entrance.facts, entrance.hides_http
    return Entrance(entrance.ports, entrance.others, facts, alone, entrance.service, entrance.tls, hides)


_Taken = tuple[tuple[EntranceWay, Answer], ...]


def _split(reach: Reachability, callers: CallerSet, ways: Sequence[EntranceWay]) -> list[tuple[CallerSet, _Taken]]:
    """Split callers by their answers on each way."""
    blocks: list[tuple[CallerSet, _Taken]] = [(callers, ())]
    for way in ways:
        answers = reach.answers(way.entrance)
        blocks = [
            (common, (*taken, (way, answer)))
            for block, taken in blocks
            for answer in answers
            if (common := block & answer.callers)
        ]
    return blocks


def _outcome(
    allowed: bool | None, branches: Sequence[Branch], taken: _Taken, facts: Facts, exact: bool
) -> tuple[ReachVerdict, tuple[AllowedWay, ...], tuple[Origin, ...]]:
    if allowed is False:
        return ReachVerdict.DENY, (), _origins(branches, allowed=False)
    ways = tuple(way for on, answer in taken if (way := _way(on, answer, facts, exact)) is not None)
    if allowed:
        leads_to = tuple(dict.fromkeys(node for way in ways for node in way.leads_to))
        return ReachVerdict.ALLOW, (AllowedWay(None, _origins(branches, allowed=True), leads_to),), ()
    return ReachVerdict.DEPENDS, ways, ()


def _way(on: EntranceWay, answer: Answer, facts: Facts, exact: bool) -> AllowedWay | None:
    """Return the requests that are allowed on a way; None if there are none."""
    branches = branches_on(on, answer, facts)
    allowed = _verdict(answer, branches)
    if allowed is False:
        return None
    if answer.too_many:
        what = _HIDDEN if on.entrance.hides_http else _TOO_MANY
        guard = explain_predicate(on.guard)
        return AllowedWay(what if guard is None else f"{guard}: {what}", (), on.leads_to)
    return AllowedWay(explain_branches(branches, on.guard, exact=exact), _origins(branches, allowed=True), on.leads_to)


def branches_on(on: EntranceWay, answer: Answer, facts: Facts) -> tuple[Branch, ...]:
    """Return the branches of an answer for requests that take a way, without conditions that all of them meet."""
    return within(narrow(answer.branches, facts.and_(_values_in(on.guard))), on.guard)


def _values_in(guard: Predicate) -> Facts:
    """Return the attributes that have one value in all requests that meet a guard."""
    values: dict[Attribute, Known] = {}
    for part in conjuncts(guard):
        match part:
            case Is(attribute, OneOf(single)) if len(single) == 1 and not attribute.is_repeatable:
                (values[attribute],) = single
    return Facts(values)


def _origins(branches: Sequence[Branch], *, allowed: bool) -> tuple[Origin, ...]:
    return tuple(
        dict.fromkeys(
            branch.end.origin for branch in branches if branch.end.allowed is allowed and branch.end.origin is not None
        )
    )
