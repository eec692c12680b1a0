"""Partial evaluation: the residual of layers for partly known requests, as ONE ordered decision tree.

`describe`, the Envoy plan and the comparison of policy versions use the same trees, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from eastgate.basics.records import dataclass
from eastgate.ir import (
    ALWAYS,
    NEVER,
    UNOPPOSED,
    AccountsOf,
    And,
    Chain,
    Computed,
    InNetwork,
    Is,
    Known,
    Layer,
    Not,
    OneOf,
    Or,
    Outcome,
    Predicate,
)
from eastgate.ir.attributes import IDENTITY, MESH_NAME, Attribute
from eastgate.ir.spiffe import account_of
from eastgate.ir.symbolic.caller_cells import CALLER_ATTRIBUTES, CallerCells
from eastgate.ir.symbolic.callers import AccountsIn, AnonymousCell, CallerCell, IdentityCell, Name
from eastgate.ir.symbolic.judging import AtomTest, cases_without
from eastgate.ir.symbolic.simplify import both, either, negation, network
from eastgate.ir.symbolic.stages import Arm, Move, OrderedStage, order_chain
from eastgate.ir.symbolic.trees import Tree, choice

# An index of arms by caller, so that the arms of one caller are found without a scan of all arms.


class PredicatesByCaller:
    """An index of predicates by the caller cells that they may hold for. It returns their indices, in order."""

    def __init__(self, predicates: Iterable[Predicate], callers: CallerCells) -> None:
        self._callers = callers
        self._by_cell: dict[CallerCell, list[int]] = {}
        self._anyone: list[int] = []
        for index, predicate in enumerate(predicates):
            concerned = self._concerned(predicate)
            if concerned is None:
                self._anyone.append(index)
            else:
                for cell in concerned:
                    self._by_cell.setdefault(cell, []).append(index)

    def concerning(self, cell: CallerCell) -> Sequence[int]:
        """Return the indices of all predicates that may hold for a caller of this cell, in order."""
        lists = [self._anyone, self._by_cell.get(cell, [])]
        if isinstance(cell, Name) and cell.identity is not None:
            lists.append(self._by_cell.get(IdentityCell(cell.identity), []))
        if isinstance(cell, IdentityCell | Name) and cell.identity is not None:
            account = account_of(cell.identity)
            if account is not None:
                lists.append(self._by_cell.get(AccountsIn(*account[:2]), []))
        filled = [indices for indices in lists if indices]
        if len(filled) <= 1:
            return filled[0] if filled else []
        return sorted({index for indices in filled for index in indices})

    def _concerned(self, predicate: Predicate) -> frozenset[CallerCell] | None:
        """Return the cells that a predicate may hold for; None: any cell."""
        match predicate:
            case Is(attribute, OneOf()) if attribute in (IDENTITY, MESH_NAME):
                return frozenset((*self._callers.named_by(predicate), *self._callers.literally_named_by(predicate)))
            case Is(attribute, AccountsOf()) if attribute == IDENTITY:
                return frozenset(self._callers.named_by(predicate))
            case And(parts):
                narrow = [cells for part in parts if (cells := self._concerned(part)) is not None]
                return min(narrow, key=len) if narrow else None
            case Or(parts):
                every: set[CallerCell] = set()
                for part in parts:
                    cells = self._concerned(part)
                    if cells is None:
                        return None
                    every |= cells
                return frozenset(every)
            case _:
                return None


L = TypeVar("L")
Residual = Callable[[Predicate], Predicate]


@dataclass(frozen=True, slots=True)
class Facts:
    """The known facts about all requests of one cell.

    The value of a `vague` attribute represents many values that no matcher distinguishes. Computed tests may
    distinguish them, so such a test on a vague attribute stays a condition. `caller` is the cell of the callers.
    """

    values: Mapping[Attribute, Known] = field(default_factory=dict)
    vague: frozenset[Attribute] = frozenset()
    caller: CallerCell | None = None
    callers: CallerCells | None = None

    @classmethod
    def of_caller(cls, cell: CallerCell, callers: CallerCells) -> Facts:
        """Return the facts about the requests of a caller cell."""
        return cls(caller=cell, callers=callers)

    def and_(self, other: Facts) -> Facts:
        """Return the facts of both."""
        return Facts(
            {**self.values, **other.values},
            self.vague | other.vague,
            self.caller if self.caller is not None else other.caller,
            self.callers if self.callers is not None else other.callers,
        )

    def settle(self, atom: Is | Computed) -> Predicate:
        """Return the residual of an atom: ALWAYS or NEVER if the facts decide it."""
        if isinstance(atom, Computed):
            return self._settle_computed(atom)
        if atom.attribute in self.values:
            return ALWAYS if atom.accepts(self.values[atom.attribute]) else NEVER
        if self.caller is not None and self.callers is not None and atom.attribute in CALLER_ATTRIBUTES:
            return self.callers.settle(atom, self.caller)
        return network(atom) if isinstance(atom.matcher, InNetwork) else atom

    def _settle_computed(self, test: Computed) -> Predicate:
        values = self.values
        if self.caller is not None and self.callers is not None and test.attributes & CALLER_ATTRIBUTES:
            if not isinstance(self.caller, IdentityCell | Name | AnonymousCell):
                return self._settle_pattern(test)
            identity, name = self.callers.representative(self.caller)
            values = {**values, IDENTITY: identity, MESH_NAME: name}
        settled = test.attributes <= values.keys() and not test.attributes & self.vague
        return (ALWAYS if test.holds(values) else NEVER) if settled else test

    def _settle_pattern(self, test: Computed) -> Predicate:
        """Return the residual of an expression for identities, for all callers of a cell at once."""
        if test.pattern is None or test.pattern[0] != IDENTITY or self.caller is None or self.callers is None:
            return test
        return self.callers.settle_pattern(test.pattern[1], self.caller) or test


def residual(predicate: Predicate, facts: Facts) -> Predicate:
    """Return the residual of a predicate, simplified."""
    match predicate:
        case Is() | Computed():
            return facts.settle(predicate)
        case Not(part):
            return negation(residual(part, facts))
        case And(parts):
            return both(residual(part, facts) for part in parts)
        case Or(parts):
            return either(residual(part, facts) for part in parts)


class ArmIndex:
    """Finds the arms of stages that may hold for a caller cell. Shared by all evaluations of the same layers."""

    def __init__(self, callers: CallerCells) -> None:
        self._callers = callers
        self._chains: dict[int, tuple[Chain, list[OrderedStage]]] = {}
        self._filed: dict[int, PredicatesByCaller] = {}
        self._depends: dict[tuple[int, AtomTest], bool] = {}

    def stages(self, chain: Chain) -> list[OrderedStage]:
        """Return the stages of a chain, ordered once."""
        cached = self._chains.get(id(chain))
        if cached is None:
            cached = self._chains[id(chain)] = chain, order_chain(chain)
        return cached[1]

    def depends(self, chain: Chain, asks: AtomTest) -> bool:
        """Return whether a rule that decides in a chain has such an atom."""
        self.stages(chain)  # keeps a reference to the chain, so that its id stays valid
        key = id(chain), asks
        if key not in self._depends:
            self._depends[key] = any(map(asks, chain.atoms(observed=False)))
        return self._depends[key]

    def arms(self, stage: OrderedStage, cell: CallerCell | None) -> Iterable[Arm]:
        """Return the arms of a stage that may hold for callers of a cell, in order. None: for any caller."""
        if cell is None:
            return stage.arms
        filed = self._filed.get(id(stage))
        if filed is None:
            filed = self._filed[id(stage)] = PredicatesByCaller((arm.when for arm in stage.arms), self._callers)
        return (stage.arms[index] for index in filed.concerning(cell))


class Partial(Generic[L]):
    """The partial evaluation of one layer: its decision tree for requests of one cell.

    `residual` returns the residual of a predicate, and `conclude` makes leaves from outcomes. If several cases share a
    chain, they share its tree.
    """

    def __init__(
        self,
        layer: Layer,
        residual: Residual,
        conclude: Callable[[Outcome, Chain], L],
        index: ArmIndex,
        cell: CallerCell | None = None,
    ) -> None:
        self._layer = layer
        self._residual = residual
        self._conclude = conclude
        self._index = index
        self._cell = cell
        self._chains: dict[int, Tree[L]] = {}

    def tree(self, selector: Residual | None = None, of: Callable[[Chain], Tree[L]] | None = None) -> Tree[L]:
        """Return the tree of the layer.

        `selector` returns the residual of a case, if more is known about cases. `of` replaces `chain` to make trees of
        chains.
        """
        chosen = of or self.chain
        cases = ((case.when, case.chain) for case in self._layer.cases)
        return self._select(cases, selector or self._residual, lambda chain: chosen(chain or self._layer.otherwise))

    def tree_without(self, asks: AtomTest, refused: L, selector: Residual | None = None) -> Tree[L]:
        """Return the tree for requests that some atoms may not read; `refused` if it depends on these atoms."""

        def of(chain: Chain | None) -> Tree[L]:
            return refused if chain is None or self._index.depends(chain, asks) else self.chain(chain)

        return self._select(cases_without(self._layer, asks), selector or self._residual, of)

    def _select(
        self,
        cases: Iterable[tuple[Predicate, Chain | None]],
        selector: Residual,
        of: Callable[[Chain | None], Tree[L]],
    ) -> Tree[L]:
        def tests() -> Iterator[tuple[Predicate, Tree[L]]]:
            for when, chain in cases:
                asked = selector(when)
                if asked != NEVER:
                    yield asked, of(chain)
                if asked == ALWAYS:
                    return

        return choice(tests(), of(self._layer.otherwise))

    def chain(self, chain: Chain) -> Tree[L]:
        """Return the tree of one chain."""
        tree = self._chains.get(id(chain))
        if tree is None:
            shared: dict[tuple[int, int], Tree[L]] = {}
            tree = self._chains[id(chain)] = self._from(chain, 0, UNOPPOSED, shared)
        return tree

    def _from(self, chain: Chain, index: int, accepted: Outcome, shared: dict[tuple[int, int], Tree[L]]) -> Tree[L]:
        """Return the tree of the stages of a chain from `index` on. `accepted`: the last acceptance so far."""
        stages = self._index.stages(chain)
        if index == len(stages):
            return self._conclude(accepted, chain)
        key = index, id(accepted.rule)
        if key in shared:
            return shared[key]
        stage = stages[index]
        name = self._layer.name

        def follow(move: Move, arm: Arm | None) -> Tree[L]:
            rule = arm.rule if arm is not None else None
            if move is Move.DENY:
                return self._conclude(Outcome(False, name, stage.name, rule, stage.refusal), chain)
            outcome = accepted if move is Move.PASS or rule is None else Outcome(True, name, stage.name, rule)
            if move is Move.ACCEPT:
                return self._conclude(outcome, chain)
            return self._from(chain, index + 1, outcome, shared)

        asked = ((self._residual(arm.when), arm) for arm in self._index.arms(stage, self._cell))
        tests = ((when, follow(arm.move, arm)) for when, arm in asked if when != NEVER)
        tree = shared[key] = choice(tests, follow(stage.otherwise, None))
        return tree
