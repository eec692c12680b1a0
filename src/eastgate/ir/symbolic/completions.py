"""Completions of requests with unknown attributes: ALLOW only if EVERY completion allows.

Each attribute has endlessly many values, but a layer compares it with only a few. So its values form finitely many
cells that the layer cannot distinguish, and one value of each cell is tried. The search sets one attribute at a time,
and stops as soon as the layer's answer no longer depends on the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.ir import (
    Computed,
    Is,
    Known,
    Layer,
    Outcome,
    Predicate,
    Refusal,
    Request,
    all_of,
    atoms,
    conjuncts,
    known,
    mentions,
)
from eastgate.ir.attributes import Attribute
from eastgate.ir.symbolic.cells import cells_of_attributes
from eastgate.ir.symbolic.judging import Undetermined, judge, prove_allow
from eastgate.ir.symbolic.stages import Ordering
from eastgate.ir.symbolic.trees import truth

# Unknown attributes that may be repeated: each value may meet another test.
#
# So the results of tests on such an attribute are nearly independent. A set of results is possible exactly if each test
# that holds has a value that meets none of the tests that do not hold. All these values together are the completion.


_Cells = Mapping[Attribute, list[Known]]


class Repeated:
    """The repeatable unknown attributes of a request, and the atoms that read them.

    Expressions read all values as one text. So an attribute that only expressions read has one value. If other tests
    read it too, the result of an expression may be true or false.
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
        """Return whether some values of the attribute of a test give all results that are assumed for it."""
        if isinstance(test, Computed) or test.attribute not in self.attributes:
            return True
        held, missed = self._assumed(test.attribute, assuming)
        avoided = self._meeting_any(missed, cells)
        return all(self._meeting(atom, cells) - avoided for atom in held)

    def values(self, assuming: Request, cells: _Cells) -> tuple[tuple[Attribute, Known], ...]:
        """Return values of each attribute with assumed results."""
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
        """Return the values that satisfy an atom."""
        if atom not in self._met:
            every = cells[atom.attribute]
            self._met[atom] = frozenset(value for value in every if isinstance(value, str) and atom.accepts(value))
        return self._met[atom]


# Limits of the search in one layer. Beyond them the answer is deny. Each try evaluates every atom.
_MAX_EVALUATED_ATOMS = 2_000_000
_MIN_TRIES = 1_000
_MAX_OTHER_VALUES = 256  # values of one attribute that are tried to find whether it matters


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome of the search, and its cause: values of unknown attributes, and results of tests on them.

    `decisive` are the values that matter: another value would give the opposite outcome.
    """

    outcome: Outcome
    assumed: tuple[tuple[Attribute, Known], ...] = ()
    tests: tuple[tuple[Is | Computed, bool], ...] = ()
    exhausted: bool = False
    decisive: tuple[tuple[Attribute, Known], ...] = ()

    def of(self, request: Request) -> Request:
        """Return the request with the values and results of this completion."""
        for attribute, value in self.assumed:
            request = request.with_value(attribute, value)
        return request.assuming(dict(self.tests)) if self.tests else request


def complete(layer: Layer, request: Request) -> Completion:
    """Return a denying completion if there is one, otherwise any."""
    scope = _Scope.of(layer, request)
    repeated = Repeated(scope.deciding, request)
    unknown = [a for a in sorted(scope.looks_at) if a not in request.values and a not in repeated.attributes]
    tests: list[Is | Computed] = [
        t
        for t in dict.fromkeys(scope.deciding)
        if isinstance(t, Computed) and not t.attributes <= request.values.keys()
    ]
    tests = [*repeated.atoms, *tests]
    budget = max(_MIN_TRIES, _MAX_EVALUATED_ATOMS // (1 + len(scope.deciding)))
    cells: dict[Attribute, list[Known]] = {}
    every = True
    first: Completion | None = None
    todo: list[tuple[Request, int]] = [(request.assuming(dict.fromkeys(tests)) if tests else request, 0)]
    while todo:
        if not budget:
            return _without_search(layer, request)
        budget -= 1
        candidate, depth = todo.pop()
        try:
            outcome = scope.judge(candidate, is_any_enough=first is not None)
        except Undetermined:
            if not cells and (unknown or repeated.attributes):
                cells, every = cells_of_attributes(scope.deciding, [*unknown, *repeated.attributes])
            if depth < len(unknown):
                attribute = unknown[depth]
                todo.extend((candidate.with_value(attribute, v), depth + 1) for v in reversed(cells[attribute]))
            else:  # a test on an unknown attribute may have either result
                test = tests[depth - len(unknown)]
                either = (candidate.assuming({test: held}) for held in (True, False))
                todo.extend((assuming, depth + 1) for assuming in either if repeated.is_possible(test, assuming, cells))
            continue
        if outcome is None or (outcome.allowed and first is not None):
            continue
        values = tuple((a, candidate.values[a]) for a in unknown[:depth]) + repeated.values(candidate, cells)
        outcomes = tuple((test, held) for test in tests if (held := candidate.assumed[test]) is not None)
        completion = Completion(outcome, values, outcomes)
        if not outcome.allowed:
            return replace(completion, decisive=_decisive(scope, candidate, values, cells)) if values else completion
        first = completion
    if first is None:  # `within` excludes every completion, so decide without it
        return complete(layer, Request(request.values, request.answers, request.assumed))
    return first if every else _without_search(layer, request)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A layer, and the part of `Request.within` about attributes that the layer reads."""

    layer: Layer
    within: Predicate | None
    deciding: list[Is | Computed]
    looks_at: frozenset[Attribute]
    order: Ordering

    @classmethod
    def of(cls, layer: Layer, request: Request) -> _Scope:
        deciding = list(layer.atoms(observed=False))
        within = None if request.within is None else _about(request.within, layer.looks_at)
        if within is None:
            return cls(layer, None, deciding, layer.looks_at, Ordering())
        looks_at = layer.looks_at | mentions(within)
        return cls(layer, within, [*deciding, *atoms(within)], looks_at, Ordering())

    def judge(self, request: Request, *, is_any_enough: bool = True) -> Outcome | None:
        """Return the outcome of the layer, or None for requests that do not meet `within`. Raises Undetermined.

        `is_any_enough`: accept an outcome that allows even if some of the requests do not meet `within`.
        """
        held = self.within is None or truth(self.within, request)
        if held is False:
            return None
        outcome = judge(self.layer, request, self.order)
        if held is None and not (outcome.allowed and is_any_enough):
            raise Undetermined
        return outcome

    def might_allow(self, request: Request) -> bool:
        """Return whether the layer allows some requests that meet `within`."""
        try:
            outcome = self.judge(request)
        except Undetermined:
            return True
        return outcome is not None and outcome.allowed


def _about(within: Predicate, attributes: frozenset[Attribute]) -> Predicate | None:
    """Return the parts of a predicate that concern these attributes, directly or through other parts."""
    left, chosen, asked = list(conjuncts(within)), list[Predicate](), attributes
    while about := [part for part in left if not asked.isdisjoint(mentions(part))]:
        chosen += about
        left = [part for part in left if part not in about]
        asked = asked.union(*map(mentions, about))
    return all_of(chosen) if chosen else None


def _decisive(
    scope: _Scope,
    denied: Request,
    values: tuple[tuple[Attribute, Known], ...],
    cells: Mapping[Attribute, list[Known]],
) -> tuple[tuple[Attribute, Known], ...]:
    return tuple(
        (attribute, value)
        for attribute, value in values
        if any(scope.might_allow(denied.with_value(attribute, other)) for other in cells[attribute][:_MAX_OTHER_VALUES])
    )


def _without_search(layer: Layer, request: Request) -> Completion:
    """Return the completion that can be proved without a full search."""
    proven = prove_allow(layer, request)
    if proven is not None:
        return Completion(proven)
    return Completion(Outcome(False, layer.name, None, None, Refusal.FORBIDDEN), exhausted=True)
