"""Unknown attributes that may be there several times: each value may meet another test.

So the tests on one of them come out nearly independently. Those that hold and those that do not go together exactly if
each that holds has a value of its own which meets none of the others: all such values at once are the completion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.ir import Computed, Is, Known, Request, known
from eastgate.ir.attributes import Attribute

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
        self._met: dict[Is, frozenset[str]] = {}

    def is_possible(self, test: Is | Computed, assuming: Request, cells: _Cells) -> bool:
        """Return whether some values of the attribute of a test bring about all that is assumed of it."""
        if isinstance(test, Computed) or test.attribute not in self.attributes:
            return True
        held, missed = self._assumed(test.attribute, assuming)
        avoided = self._meeting_any(missed, cells)
        return all(self._meeting(atom, cells) - avoided for atom in held)

    def values(self, assuming: Request, cells: _Cells) -> tuple[tuple[Attribute, Known], ...]:
        """Return values of each attribute of which something is assumed."""
        return tuple(self._values(assuming, cells))

    def _values(self, assuming: Request, cells: _Cells) -> Iterator[tuple[Attribute, Known]]:
        for attribute in self.attributes:
            held, missed = self._assumed(attribute, assuming)
            avoided = self._meeting_any(missed, cells)
            if held:
                chosen: list[str] = []
                for atom in held:
                    if not atom.accepts(tuple(chosen)):
                        chosen.append(min(self._meeting(atom, cells) - avoided))
                yield attribute, known(chosen)
            elif missed:
                yield attribute, next(cell for cell in cells[attribute] if cell not in avoided)

    def _assumed(self, attribute: Attribute, assuming: Request) -> tuple[list[Is], list[Is]]:
        held: list[Is] = []
        missed: list[Is] = []
        for atom in self.atoms:
            outcome = assuming.assumed[atom] if atom.attribute == attribute and not atom.joined else None
            if outcome is not None:
                (held if outcome else missed).append(atom)
        return held, missed

    def _meeting_any(self, atoms: Iterable[Is], cells: _Cells) -> frozenset[str]:
        return frozenset().union(*(self._meeting(atom, cells) for atom in atoms))

    def _meeting(self, atom: Is, cells: _Cells) -> frozenset[str]:
        """Return the values that an atom is true of."""
        if atom not in self._met:
            every = cells[atom.attribute]
            self._met[atom] = frozenset(value for value in every if isinstance(value, str) and atom.accepts(value))
        return self._met[atom]
