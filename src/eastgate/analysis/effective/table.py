"""The effective table: who may reach what, by which rule, and under which conditions.

Callers and requests fall into classes that no rule tells apart. For each pair of classes the layers are reduced to
branches, all policies, tiers and denials taken into account; classes for which they come out equal share a row. The
table is exact: a row says of each request in it what the engine would (a test holds the two together).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from eastgate.analysis.effective.branches import Branch, TooManyBranches, branches, folded, in_turn
from eastgate.analysis.effective.callers import Caller, CallerClass, atoms_of, caller_classes
from eastgate.analysis.effective.requests import Message, messages, port_classes
from eastgate.analysis.effective.residual import Facts, specialised
from eastgate.policy import Layer
from eastgate.settings import Settings

__all__ = ["Cell", "Destination", "Place", "Row", "Table", "effective", "to_ports"]


@dataclass(frozen=True, slots=True)
class Place:
    """A point that guards itself, or several that do it alike, and what is known of all requests that arrive there."""

    names: tuple[str, ...]
    layers: tuple[Layer, ...]
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True)
class Destination:
    """What a caller addresses: it gets there only if ALL places let it in. `others`: also every port not named."""

    name: str
    places: tuple[Place, ...]
    ports: tuple[int, ...] = ()
    others: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What becomes of some requests. `refusing` are places that let nothing in while another lets something in."""

    branches: tuple[Branch, ...]
    refusing: tuple[str, ...] = ()
    too_many: bool = False

    @property
    def verdict(self) -> str:
        """`allow` or `deny`; `if` where that depends on conditions."""
        if self.too_many:
            return "if"
        allowed = {branch.allowed for branch in self.branches}
        return "if" if len(allowed) > 1 else "allow" if True in allowed else "deny"


@dataclass(frozen=True, slots=True)
class Row:
    """Callers and requests to which the same happens."""

    callers: tuple[Caller, ...]
    destinations: tuple[Destination, ...]
    messages: tuple[Message, ...]
    cell: Cell


@dataclass(frozen=True, slots=True)
class Table:
    """All rows; every caller and every request is in exactly one."""

    rows: tuple[Row, ...]
    callers: tuple[Caller, ...]
    destinations: tuple[Destination, ...]
    messages: tuple[Message, ...]


def to_ports(place: Place, declared: Iterable[int]) -> list[Destination]:
    """A place by its ports: those that are declared, those that some rule names, and all others."""
    return [
        Destination("", (Place(place.names, place.layers, place.facts.and_(one.facts)),), one.ports, one.others)
        for one in port_classes(atoms_of(place.layers), declared)
    ]


def effective(destinations: Sequence[Destination], settings: Settings) -> Table:
    """The table of some destinations."""
    layers = {id(layer): layer for one in destinations for place in one.places for layer in place.layers}
    looked_at = atoms_of(layers.values())
    said = messages(looked_at)
    classes = caller_classes(looked_at, settings)
    by_outcome: dict[tuple[tuple[Cell, ...], ...], list[CallerClass]] = {}
    for one in classes:
        by_outcome.setdefault(_cells(one, destinations, said, layers.values()), []).append(one)
    rows = [
        Row(_callers(alike), *row)
        for cells, alike in sorted(by_outcome.items(), key=lambda item: _callers(item[1])[0].order)
        for row in _merged(cells, destinations, said)
    ]
    return Table(tuple(rows), _callers(classes), tuple(destinations), tuple(said))


def _callers(classes: Iterable[CallerClass]) -> tuple[Caller, ...]:
    found = chain.from_iterable(one.callers for one in classes)
    return tuple(sorted(found, key=lambda caller: caller.order))


def _cells(
    caller: CallerClass, destinations: Sequence[Destination], said: Sequence[Message], layers: Iterable[Layer]
) -> tuple[tuple[Cell, ...], ...]:
    """What becomes of a caller's requests: for each destination, of each message."""
    mine = {id(layer): specialised(layer, caller.facts) for layer in layers}
    return tuple(
        tuple(_cell(destination, mine, caller.facts.and_(message.facts)) for message in said)
        for destination in destinations
    )


def _cell(destination: Destination, layers: dict[int, Layer], facts: Facts) -> Cell:
    try:
        lists = [
            branches([layers[id(layer)] for layer in place.layers], facts.and_(place.facts))
            for place in destination.places
        ]
        found = folded(in_turn(lists))
    except TooManyBranches:
        return Cell((), too_many=True)
    letting = [any(branch.allowed for branch in one) for one in lists]
    refusing = [place.names for place, lets in zip(destination.places, letting, strict=True) if not lets]
    return Cell(found, tuple(chain.from_iterable(refusing)) if any(letting) else ())


def _merged(
    cells: tuple[tuple[Cell, ...], ...], destinations: Sequence[Destination], said: Sequence[Message]
) -> Iterable[tuple[tuple[Destination, ...], tuple[Message, ...], Cell]]:
    """Destinations that come out equal for all messages are one row, and then messages that come out equal."""
    alike: dict[tuple[Cell, ...], list[Destination]] = {}
    for destination, of_messages in zip(destinations, cells, strict=True):
        alike.setdefault(of_messages, []).append(destination)
    for of_messages, together in sorted(alike.items(), key=lambda item: any(one.others for one in item[1])):
        by_cell: dict[Cell, list[Message]] = {}
        for message, cell in zip(said, of_messages, strict=True):
            by_cell.setdefault(cell, []).append(message)
        for cell, ones in by_cell.items():
            yield tuple(together), tuple(ones), cell
