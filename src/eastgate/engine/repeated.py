"""Unknown attributes that may be there several times: each value may meet another test.

So the tests on one of them come out nearly independently. Those that hold and those that do not go together exactly if
each that holds has a value of its own which meets none of the others: all such values at once are the completion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.policy import Computed, Is, Known, Request, Value, known
from eastgate.policy.attributes import Attribute

__all__ = ["Repeated"]

_Cells = Mapping[Attribute, list[Known]]


class Repeated:
    """The unknown attributes of a request that may be there several times, and the atoms that look at them.

    Expressions see all values as one text, so one that only they look at has one value. Beside other tests what an
    expression says may come out either way.
    """

    def __init__(self, deciding: Iterable[Is | Computed], request: Request) -> None:
        asked = [
            atom
            for atom in dict.fromkeys(deciding)
            if isinstance(atom, Is) and atom.attribute.is_repeatable and atom.attribute not in request.values
        ]
        self.attributes = dict.fromkeys(atom.attribute for atom in asked if not atom.joined)
        self.atoms = [atom for atom in asked if atom.attribute in self.attributes]

    def is_possible(self, test: Is | Computed, assuming: Request, cells: _Cells) -> bool:
        """Whether some values of the attribute of a test bring about all that is assumed of it."""
        if isinstance(test, Computed) or test.attribute not in self.attributes:
            return True
        held, missed = self._assumed(test.attribute, assuming)
        return all(_first(atom, missed, cells) is not None for atom in held)

    def values(self, assuming: Request, cells: _Cells) -> tuple[tuple[Attribute, Known], ...]:
        """Values of each attribute of which something is assumed."""
        return tuple(self._values(assuming, cells))

    def _values(self, assuming: Request, cells: _Cells) -> Iterator[tuple[Attribute, Known]]:
        for attribute in self.attributes:
            held, missed = self._assumed(attribute, assuming)
            if not held and missed:
                yield attribute, next(cell for cell in cells[attribute] if not _meets_any(cell, missed))
            elif held:
                chosen: list[str] = []
                for atom in held:
                    if not atom.accepts(tuple(chosen)):
                        chosen.append(str(_first(atom, missed, cells)))
                yield attribute, known(chosen)

    def _assumed(self, attribute: Attribute, assuming: Request) -> tuple[list[Is], list[Is]]:
        held: list[Is] = []
        missed: list[Is] = []
        for atom in self.atoms:
            outcome = assuming.assumed[atom] if atom.attribute == attribute and not atom.joined else None
            if outcome is not None:
                (held if outcome else missed).append(atom)
        return held, missed


def _first(atom: Is, missed: list[Is], cells: _Cells) -> Value | None:
    """A value that meets an atom and none of the others."""
    for cell in cells[atom.attribute]:
        if isinstance(cell, str) and atom.accepts(cell) and not _meets_any(cell, missed):
            return cell
    return None


def _meets_any(cell: Known, atoms: list[Is]) -> bool:
    return any(atom.accepts(cell) for atom in atoms)
