"""The callers that reach each class of workloads at each port, as sets: pods times accounts times ports, at once.

This module computes only sets, without the rules that decide: `Reachability.answers` has these. The conditions of a
rule on callers and ports are split once. So a class costs as much as it has rules, and a port costs a few operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eastgate.authority.authority import Authority
from eastgate.basics.records import dataclass
from eastgate.ir import AllowAny, And, Chain, Deny, Is, Layer, Observe, OneOf, Predicate, mentions
from eastgate.ir.attributes import PORT, SERVICE
from eastgate.ir.symbolic.partial import ArmIndex, Facts
from eastgate.ir.symbolic.stages import Move, OrderedStage
from eastgate.reach.caller_sets import CallerSet, CallerSets, Holding
from eastgate.reach.numbering import number_callers
from eastgate.reach.workloads import classes


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Workloads that decide alike, and for each port the callers that certainly or possibly reach them."""

    workloads: tuple[str, ...]
    at: tuple[Holding, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A row for each class of workloads; its columns are ports, and its values are sets of callers."""

    callers: CallerSets
    ports: tuple[int, ...]
    rows: tuple[MatrixRow, ...]


def reach_matrix(authority: Authority, ports: Sequence[int]) -> Matrix:
    """Return the callers that reach each class of workloads at these ports, by requests addressed to the pods."""
    alike = classes(authority)
    callers = number_callers((authority,), (layer for layers, _ in alike for layer in layers))
    sets = _Sets(callers, ports)
    rows = tuple(
        MatrixRow(tuple(workload.key for workload in members), sets.allowed(layers)) for layers, members in alike
    )
    return Matrix(callers, tuple(ports), rows)


class _Asked(NamedTuple):
    """A split predicate: ALL of its conditions on callers, and ANY of these ports; None: any port."""

    callers: Holding
    ports: tuple[int, ...] | None  # the indices of ports


_NO_CALLERS = Holding(0, 0)


def _join(one: Holding, other: Holding) -> Holding:
    sure = one.sure | other.sure
    if one.possible is one.sure and other.possible is other.sure:
        return Holding(sure, sure)
    return Holding(sure, one.possible | other.possible)


def _narrow(one: Holding, other: Holding) -> Holding:
    sure = one.sure & other.sure
    if one.possible is one.sure and other.possible is other.sure:
        return Holding(sure, sure)
    return Holding(sure, one.possible & other.possible)


def _without(one: Holding, other: Holding) -> Holding:
    sure = one.sure & ~other.possible
    if one.possible is one.sure and other.possible is other.sure:
        return Holding(sure, sure)
    return Holding(sure, one.possible & ~other.sure)


class _Sets:
    """Evaluates layers for all callers at each of some ports."""

    def __init__(self, callers: CallerSets, ports: Sequence[int]) -> None:
        self._callers = callers
        self._facts = [Facts({PORT: port, SERVICE: None}) for port in ports]
        self._numbers = {port: number for number, port in enumerate(ports)}
        self._everywhere = tuple(range(len(ports)))
        self._index = ArmIndex(callers.callers)
        self._asked: dict[int, tuple[Predicate, _Asked | None]] = {}  # keeps the predicate, so that its id stays valid

    def allowed(self, layers: Sequence[Layer]) -> tuple[Holding, ...]:
        """Return the allowed callers at each port. ALL layers must allow."""
        everybody = self._callers.everybody
        if not layers:
            return (Holding(everybody, everybody),) * len(self._everywhere)
        first, *others = (self._by_layer(layer) for layer in layers)
        for other in others:
            pairs = zip(first, other, strict=True)
            first = [_narrow(one, two) for one, two in pairs]
        return tuple(first)

    def _by_layer(self, layer: Layer) -> list[Holding]:
        if not layer.cases:
            return self._by_chain(layer.otherwise, self._everywhere)
        return [self._select(layer, number) for number in self._everywhere]

    def _select(self, layer: Layer, number: int) -> Holding:
        """Return the allowed callers at one port, by the chain that the selector chooses for each caller."""
        sure = possible = 0
        left = Holding(self._callers.everybody, self._callers.everybody)
        for case in layer.cases:
            held = self._callers.holding(case.when, self._facts[number])
            if held.possible & left.possible:
                (allowed,) = self._by_chain(case.chain, (number,))
                sure |= left.sure & held.sure & allowed.sure
                possible |= left.possible & held.possible & allowed.possible
                left = _without(left, held)
            if not left.possible:
                return Holding(sure, possible)
        (allowed,) = self._by_chain(layer.otherwise, (number,))
        return Holding(sure | left.sure & allowed.sure, possible | left.possible & allowed.possible)

    def _by_chain(self, chain: Chain, numbers: tuple[int, ...]) -> list[Holding]:
        return self._by_exact_sets(chain, numbers) or self._by_stages(chain, numbers)

    def _by_exact_sets(self, chain: Chain, numbers: tuple[int, ...]) -> list[Holding] | None:
        """Return the callers that pass a chain whose rules read only callers and ports, or None for another chain.

        Most ports are alike: `common` is the result for all ports that no rule so far has named.
        """
        common = self._callers.everybody
        special: dict[int, CallerSet] = {}
        for stage in chain.stages:
            if isinstance(stage, Observe):
                continue
            if not isinstance(stage, Deny | AllowAny):
                return None
            anywhere = 0
            at: dict[int, CallerSet] = {}
            for rule in stage.rules:
                asked = self._split_cached(rule.when)
                if asked is None or asked.callers.sure is not asked.callers.possible:
                    return None
                if asked.ports is None:
                    anywhere |= asked.callers.sure
                else:
                    for number in asked.ports:
                        at[number] = at.get(number, 0) | asked.callers.sure
            denies = isinstance(stage, Deny)
            for number in {*at, *special}:
                met = at.get(number, 0) | anywhere
                special[number] = special.get(number, common) & (~met if denies else met)
            common &= ~anywhere if denies else anywhere
        shared = Holding(common, common)
        return [Holding(special[number], special[number]) if number in special else shared for number in numbers]

    def _by_stages(self, chain: Chain, numbers: tuple[int, ...]) -> list[Holding]:
        """Return the callers that pass a chain, certainly and possibly."""
        everybody = self._callers.everybody
        accepted = [_NO_CALLERS] * len(numbers)
        going = [Holding(everybody, everybody)] * len(numbers)
        for stage in self._index.stages(chain):
            if stage.ranked:
                for at, number in enumerate(numbers):
                    accepted[at], going[at] = self._rank(stage, number, accepted[at], going[at])
                continue
            narrow = _narrow if stage.denies_by_default else _without
            going = list(map(narrow, going, self._meet_any(stage, numbers)))
        if not any(before.possible for before in accepted):
            return going
        return [_join(before, here) for before, here in zip(accepted, going, strict=True)]

    def _meet_any(self, stage: OrderedStage, numbers: tuple[int, ...]) -> list[Holding]:
        """Return the callers at each port that meet ANY arm of a stage in which all arms have the same move."""
        anywhere = _NO_CALLERS
        at: dict[int, Holding] = {}
        for arm in stage.arms:
            asked = self._split_cached(arm.when)
            if asked is None:
                for number in numbers:
                    at[number] = _join(
                        at.get(number, _NO_CALLERS), self._callers.holding(arm.when, self._facts[number])
                    )
            elif asked.ports is None:
                anywhere = _join(anywhere, asked.callers)
            else:
                for number in asked.ports:
                    at[number] = _join(at.get(number, _NO_CALLERS), asked.callers)
        return [_join(anywhere, at[number]) if number in at else anywhere for number in numbers]

    def _rank(self, stage: OrderedStage, number: int, accepted: Holding, going: Holding) -> tuple[Holding, Holding]:
        """Return the accepted callers, and the callers that go on, after a stage whose FIRST arm that holds decides."""
        left = going
        on = _NO_CALLERS
        cases = [(self._callers.holding(arm.when, self._facts[number]), arm.move) for arm in stage.arms]
        everybody = Holding(self._callers.everybody, self._callers.everybody)
        for held, move in [*cases, (everybody, stage.otherwise)]:
            met = _narrow(left, held)
            if move is Move.ACCEPT:
                accepted = _join(accepted, met)
            elif move is not Move.DENY:
                on = _join(on, met)
            left = _without(left, held)
        return accepted, on

    def _split_cached(self, predicate: Predicate) -> _Asked | None:
        """Return a predicate on callers and ports, split into both, or None if it cannot be split."""
        cached = self._asked.get(id(predicate))
        if cached is None:
            cached = self._asked[id(predicate)] = predicate, self._split(predicate)
        return cached[1]

    def _split(self, predicate: Predicate) -> _Asked | None:
        ports: tuple[int, ...] | None = None
        sure = possible = self._callers.everybody
        for part in predicate.parts if isinstance(predicate, And) else (predicate,):
            if isinstance(part, Is) and part.attribute is PORT and isinstance(part.matcher, OneOf):
                mine = tuple(self._numbers[value] for value in part.matcher.values if value in self._numbers)
                ports = mine if ports is None else tuple(number for number in mine if number in ports)
                continue
            if PORT in mentions(part) if not isinstance(part, Is) else part.attribute is PORT:
                return None
            held = self._callers.holding(part, self._facts[0])
            sure &= held.sure
            possible &= held.possible
        return _Asked(Holding(sure, sure if sure == possible else possible), ports)
