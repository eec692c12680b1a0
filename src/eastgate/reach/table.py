"""The effective table: the callers that may reach each destination, with the rules and conditions.

Callers and requests form classes that no rule distinguishes. For each pair of classes the layers are reduced to
branches, which include all policies, tiers and denials. Classes with equal branches share a row. The table is exact: a
row has the verdict of the engine for each request in it, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from eastgate.basics.records import dataclass
from eastgate.ir import Computed, Is, Layer
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.cells import TooManyEntries
from eastgate.ir.symbolic.partial import ArmIndex, Facts
from eastgate.reach.callers import CallerEntry, entry_of
from eastgate.reach.endings import Branch, EnforcementPoint, fold, list_points
from eastgate.reach.requests import EffectiveMessage, messages, port_classes
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class EffectiveDestination:
    """An address as callers use it. ALL of its points must allow. `others`: also every port that no rule names."""

    name: str
    points: tuple[EnforcementPoint, ...]
    ports: tuple[int, ...] = ()
    others: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdicts on some requests. `refusing` are points that allow nothing while another one allows something."""

    branches: tuple[Branch, ...]
    refusing: tuple[str, ...] = ()
    too_many: bool = False

    @property
    def verdict(self) -> str:
        """Return `allow` or `deny`, or `if` if the verdict depends on conditions."""
        if self.too_many:
            return "if"
        allowed = {branch.end.allowed for branch in self.branches}
        return "if" if len(allowed) > 1 else "allow" if True in allowed else "deny"


@dataclass(frozen=True, slots=True)
class Row:
    """Callers and requests with the same verdicts."""

    callers: tuple[CallerEntry, ...]
    destinations: tuple[EffectiveDestination, ...]
    messages: tuple[EffectiveMessage, ...]
    cell: Cell


@dataclass(frozen=True, slots=True)
class EffectiveTable:
    """All rows. Every caller and every request is in exactly one row."""

    rows: tuple[Row, ...]
    callers: tuple[CallerEntry, ...]
    destinations: tuple[EffectiveDestination, ...]
    messages: tuple[EffectiveMessage, ...]


def destinations_at(point: EnforcementPoint, declared: Iterable[int]) -> list[EffectiveDestination]:
    """Return the destinations at a point: the declared ports, the ports that rules name, and all others."""
    return [
        EffectiveDestination(
            "", (EnforcementPoint(point.names, point.layers, point.facts.and_(ports.facts)),), ports.ports, ports.others
        )
        for ports in port_classes(_atoms(point.layers), declared)
    ]


def _atoms(layers: Iterable[Layer]) -> list[Is | Computed]:
    """Return every atom that can change an outcome, once."""
    return list(dict.fromkeys(chain.from_iterable(layer.atoms(observed=False) for layer in layers)))


def effective_table(
    destinations: Sequence[EffectiveDestination], settings: Settings, given: Facts | None = None
) -> EffectiveTable:
    """Return the table of some destinations. `given`: only for requests with these facts."""
    layers = {
        id(layer): layer for destination in destinations for point in destination.points for layer in point.layers
    }
    asked = _atoms(layers.values())
    kinds = messages(asked)
    callers = CallerCells(settings)
    index = ArmIndex(callers)
    cells = callers.cells((atom for atom in asked if isinstance(atom, Is)), with_names=True)
    entries = {cell: entry_of(cell, callers) for cell in cells}
    classes = callers.classes(sorted(cells, key=lambda cell: entries[cell].order), asked)
    by_outcome: dict[tuple[tuple[Cell, ...], ...], list[CallerCell]] = {}
    for alike in classes:
        facts = Facts.of_caller(alike[0], callers)
        facts = facts if given is None else facts.and_(given)
        by_outcome.setdefault(_cells(facts, destinations, kinds, index), []).extend(alike)

    def shown(group: Iterable[CallerCell]) -> tuple[CallerEntry, ...]:
        return tuple(sorted((entries[cell] for cell in group), key=lambda entry: entry.order))

    rows = [
        Row(alike_callers, *row)
        for alike_callers, outcome in sorted(
            ((shown(group), outcome) for outcome, group in by_outcome.items()), key=lambda item: item[0][0].order
        )
        for row in _merge(outcome, destinations, kinds)
    ]
    return EffectiveTable(tuple(rows), shown(cells), tuple(destinations), tuple(kinds))


def _cells(
    caller: Facts, destinations: Sequence[EffectiveDestination], kinds: Sequence[EffectiveMessage], index: ArmIndex
) -> tuple[tuple[Cell, ...], ...]:
    """Return the cells of a caller: for each destination, one for each message."""
    return tuple(
        tuple(_cell(destination, caller.and_(message.facts), index) for message in kinds)
        for destination in destinations
    )


def _cell(destination: EffectiveDestination, facts: Facts, index: ArmIndex) -> Cell:
    try:
        lists, together = list_points(destination.points, facts, index)
        branches = fold(together)
    except TooManyEntries:
        return Cell((), too_many=True)
    letting = [any(branch.end.allowed for branch in branches_at_point) for branches_at_point in lists]
    refusing = [point.names for point, lets in zip(destination.points, letting, strict=True) if not lets]
    return Cell(branches, tuple(chain.from_iterable(refusing)) if any(letting) else ())


def _merge(
    cells: tuple[tuple[Cell, ...], ...], destinations: Sequence[EffectiveDestination], kinds: Sequence[EffectiveMessage]
) -> Iterable[tuple[tuple[EffectiveDestination, ...], tuple[EffectiveMessage, ...], Cell]]:
    """Merge destinations with equal cells for all messages into one row, and then messages with equal cells."""
    alike: dict[tuple[Cell, ...], list[EffectiveDestination]] = {}
    for destination, of_messages in zip(destinations, cells, strict=True):
        alike.setdefault(of_messages, []).append(destination)
    for of_messages, together in sorted(
        alike.items(), key=lambda item: any(destination.others for destination in item[1])
    ):
        by_cell: dict[Cell, list[EffectiveMessage]] = {}
        for message, cell in zip(kinds, of_messages, strict=True):
            by_cell.setdefault(cell, []).append(message)
        for cell, merged in by_cell.items():
            yield tuple(together), tuple(merged), cell
