"""Sets of callers as bits of a number: one bit for each caller cell.

A predicate has two such sets: callers that certainly meet it, and callers that may meet it, depending on other parts of
a request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eastgate.ir import ALWAYS, NEVER, AccountsOf, And, Computed, Is, Not, OneOf, Or, Predicate, Value
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import account_of
from eastgate.ir.symbolic.caller_cells import CALLER_ATTRIBUTES, CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    Name,
    NamesUnder,
    OtherNames,
    cells_around,
)
from eastgate.ir.symbolic.partial import Facts

CallerSet = int
"""A set of caller cells. Bit n represents cell number n."""


class Holding(NamedTuple):
    """The callers that certainly meet a predicate, and those that may meet it."""

    sure: CallerSet
    possible: CallerSet


_NO_CALLERS = Holding(0, 0)


class CallerSets:
    """All caller cells, with numbers, and the sets of them that predicates match."""

    def __init__(
        self, callers: CallerCells, cells: Sequence[CallerCell], unnamed: frozenset[CallerCell] = frozenset()
    ) -> None:
        """`unnamed` are cells of existing accounts that no rule and no question names."""
        self.callers = callers
        self.unnamed = unnamed
        self.cells = tuple(cells)
        self.everybody: CallerSet = (1 << len(self.cells)) - 1
        self._numbers = {cell: number for number, cell in enumerate(self.cells)}
        self._everybody = Holding(self.everybody, self.everybody)
        self._depends = Holding(0, self.everybody)
        self._identities: dict[Value, CallerSet] = defaultdict(int)
        for cell, number in self._numbers.items():
            if isinstance(cell, IdentityCell | Name) and cell.identity is not None:
                self._identities[cell.identity] |= 1 << number
        self._accounts = self._by_namespace()
        self._atoms: dict[Is, Holding] = {}
        self._parts: dict[int, tuple[Predicate, Holding]] = {}  # keeps the predicate, so that its id stays valid

    def _by_namespace(self) -> dict[tuple[str, str], CallerSet]:
        accounts: dict[tuple[str, str], CallerSet] = defaultdict(int)
        for cell, number in self._numbers.items():
            if isinstance(cell, AccountsIn):
                accounts[cell.domain, cell.namespace] |= 1 << number
            elif isinstance(cell, IdentityCell | Name) and cell.identity is not None:
                account = account_of(cell.identity)
                if account is not None:
                    accounts[account[:2]] |= 1 << number
        return accounts

    # Cells and sets

    def set_of(self, cells: Iterable[CallerCell]) -> CallerSet:
        """Return the set of some cells, without cells that this object does not contain."""
        bits = 0
        for cell in cells:
            number = self._numbers.get(cell)
            if number is not None:
                bits |= 1 << number
        return bits

    def cells_in(self, chosen: CallerSet) -> Iterator[CallerCell]:
        """Yield the cells of a set."""
        while chosen:
            lowest = chosen & -chosen
            yield self.cells[lowest.bit_length() - 1]
            chosen ^= lowest

    def cell_of(self, identity: str | None, mesh_name: str | None) -> CallerCell:
        """Return the cell of a caller with a SPIFFE ID, or with only a mesh name, or of an anonymous caller."""
        if mesh_name is not None and mesh_name == identity and Name(mesh_name) in self._numbers:
            return Name(mesh_name)
        if identity is not None or mesh_name is None:
            around = cells_around(identity, self.callers.domain)
            return next(cell for cell in around if cell in self._numbers)
        if Name(mesh_name) in self._numbers:
            return Name(mesh_name)
        under = [cell for cell in self.cells if isinstance(cell, NamesUnder) and mesh_name.endswith(cell.suffix)]
        if under:
            return max(under, key=lambda cell: len(cell.suffix))
        return OtherNames() if OtherNames() in self._numbers else AnonymousCell()

    # Evaluation of predicates

    def holding(self, predicate: Predicate, facts: Facts) -> Holding:
        """Return the callers that meet a predicate, given these facts about the other parts of a request."""
        match predicate:
            case Is(attribute) if attribute in CALLER_ATTRIBUTES:
                return self.named(predicate)
            case Is() | Computed():
                settled = facts.settle(predicate)
                return self._everybody if settled is ALWAYS else _NO_CALLERS if settled is NEVER else self._depends
            case Not(part):
                held = self.holding(part, facts)
                return Holding(self.everybody & ~held.possible, self.everybody & ~held.sure)
            case And(parts):
                sure = possible = self.everybody
                for part in parts:
                    held = self.holding(part, facts)
                    sure &= held.sure
                    possible &= held.possible
                    if not possible:
                        return _NO_CALLERS
                return Holding(sure, possible)
            case Or(parts):
                sure = possible = 0
                for part in parts:
                    held = self.holding(part, facts)
                    sure |= held.sure
                    possible |= held.possible
                return Holding(sure, possible)

    def named(self, atom: Is) -> Holding:
        """Return the callers that meet an atom on callers."""
        cached = self._parts.get(id(atom))
        if cached is None:
            cached = self._parts[id(atom)] = atom, self._named(atom)
        return cached[1]

    def _named(self, atom: Is) -> Holding:
        matcher = atom.matcher
        if atom.attribute is IDENTITY and isinstance(matcher, OneOf):
            sure = 0
            for value in matcher.values:
                sure |= self._identities.get(value, 0)
            return Holding(sure, sure)
        if atom.attribute is IDENTITY and isinstance(matcher, AccountsOf):
            sure = self._accounts.get((matcher.trust_domain, matcher.namespace), 0)
            return Holding(sure, sure)
        held = self._atoms.get(atom)
        if held is None:
            is_exact = isinstance(matcher, OneOf)
            named = (*self.callers.named_by(atom), *self.callers.literally_named_by(atom)) if is_exact else self.cells
            held = self._atoms[atom] = self._settle(atom, named)
        return held

    def _settle(self, atom: Is, candidates: Iterable[CallerCell]) -> Holding:
        sure = unsure = 0
        for cell in candidates:
            number = self._numbers.get(cell)
            settled = self.callers.settle(atom, cell) if number is not None else NEVER
            if number is None or settled == NEVER:
                continue
            if settled == ALWAYS:
                sure |= 1 << number
            else:
                unsure |= 1 << number
        return Holding(sure, sure | unsure)

    def alike(self, chosen: CallerSet, atoms: Iterable[Is | Computed]) -> list[CallerSet]:
        """Split a set into callers that none of these atoms distinguishes."""
        blocks = [chosen] if chosen else []
        for atom in atoms:
            if isinstance(atom, Computed):
                if atom.attributes & CALLER_ATTRIBUTES:  # a computed test may distinguish any two cells
                    return [self.set_of((cell,)) for cell in self.cells_in(chosen)]
                continue
            if atom.attribute in CALLER_ATTRIBUTES:
                held = self.named(atom)
                blocks = _split(blocks, held.sure)
                if held.possible != held.sure:
                    blocks = _split(blocks, held.possible)
        return blocks


def _split(blocks: list[CallerSet], by: CallerSet) -> list[CallerSet]:
    pieces: list[CallerSet] = []
    for block in blocks:
        inside = block & by
        if inside and inside != block:
            pieces += (inside, block ^ inside)
        else:
            pieces.append(block)
    return pieces
