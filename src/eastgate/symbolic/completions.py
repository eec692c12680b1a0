"""Unknown attributes: allow only if EVERY completion allows.

Each attribute has endlessly many values, but a layer compares it with only a few, so its values fall into
finitely many cells that the layer cannot tell apart. One value of each cell is tried. The search fixes one
attribute at a time and stops as soon as the layer's answer no longer depends on the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eastgate.ir import Computed, Is, Known, Layer, Outcome, Refusal, Request
from eastgate.ir.attributes import Attribute
from eastgate.records import dataclass
from eastgate.symbolic.cells import cells_of_attributes
from eastgate.symbolic.judging import Undetermined, judge, prove_allow
from eastgate.symbolic.repeated import Repeated
from eastgate.symbolic.stages import Ordering

__all__ = ["Completion", "complete"]

# How much is tried for one layer; past it the answer is deny, because nobody knows. A try looks at every atom.
_MOST_LOOKS = 2_000_000
_FEWEST_TRIES = 1_000
_MOST_OTHERS = 256  # values of one attribute that are tried to see whether it matters


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome that stands, and what brings it about: values of unknown attributes, and tests over them.

    `telling` are those of the values that matter: with another one, the outcome would be the opposite.
    """

    outcome: Outcome
    assumed: tuple[tuple[Attribute, Known], ...] = ()
    tests: tuple[tuple[Is | Computed, bool], ...] = ()
    exhausted: bool = False
    telling: tuple[tuple[Attribute, Known], ...] = ()

    def of(self, request: Request) -> Request:
        """Return the request, completed so."""
        for attribute, value in self.assumed:
            request = request.with_value(attribute, value)
        return request.assuming(dict(self.tests)) if self.tests else request


def complete(layer: Layer, request: Request) -> Completion:
    """Return a denying completion if there is one, otherwise any."""
    deciding = list(layer.atoms(observed=False))
    repeated = Repeated(deciding, request)
    unknown = [a for a in sorted(layer.looks_at) if a not in request.values and a not in repeated.attributes]
    tests: list[Is | Computed] = [
        t for t in dict.fromkeys(deciding) if isinstance(t, Computed) and not t.attributes <= request.values.keys()
    ]
    tests = [*repeated.atoms, *tests]
    order = Ordering()
    budget = max(_FEWEST_TRIES, _MOST_LOOKS // (1 + len(deciding)))
    cells: dict[Attribute, list[Known]] = {}
    every = True
    first: Completion | None = None
    todo: list[tuple[Request, int]] = [(request.assuming(dict.fromkeys(tests)) if tests else request, 0)]
    while todo:
        if not budget:
            return _given_up(layer, request)
        budget -= 1
        candidate, depth = todo.pop()
        try:
            outcome = judge(layer, candidate, order)
        except Undetermined:
            if not cells and (unknown or repeated.attributes):
                cells, every = cells_of_attributes(deciding, [*unknown, *repeated.attributes])
            if depth < len(unknown):
                attribute = unknown[depth]
                todo.extend((candidate.with_value(attribute, v), depth + 1) for v in reversed(cells[attribute]))
            else:  # a test over something unknown may come out either way
                test = tests[depth - len(unknown)]
                either = (candidate.assuming({test: held}) for held in (True, False))
                todo.extend((assuming, depth + 1) for assuming in either if repeated.is_possible(test, assuming, cells))
            continue
        if outcome.allowed and first is not None:
            continue
        values = tuple((a, candidate.values[a]) for a in unknown[:depth]) + repeated.values(candidate, cells)
        outcomes = tuple((test, held) for test in tests if (held := candidate.assumed[test]) is not None)
        completion = Completion(outcome, values, outcomes)
        if not outcome.allowed:
            return (
                replace(completion, telling=_telling(layer, candidate, values, cells, order)) if values else completion
            )
        first = completion
    assert first is not None  # noqa: S101 - an attribute has at least one cell
    return first if every else _given_up(layer, request)


def _telling(
    layer: Layer,
    denied: Request,
    values: tuple[tuple[Attribute, Known], ...],
    cells: Mapping[Attribute, list[Known]],
    order: Ordering,
) -> tuple[tuple[Attribute, Known], ...]:
    return tuple(
        (attribute, value)
        for attribute, value in values
        if any(
            _might_allow(layer, denied.with_value(attribute, other), order) for other in cells[attribute][:_MOST_OTHERS]
        )
    )


def _might_allow(layer: Layer, request: Request, order: Ordering) -> bool:
    try:
        return judge(layer, request, order).allowed
    except Undetermined:
        return True


def _given_up(layer: Layer, request: Request) -> Completion:
    """Return what can be said without trying everything."""
    proven = prove_allow(layer, request)
    if proven is not None:
        return Completion(proven)
    return Completion(Outcome(False, layer.name, None, None, Refusal.FORBIDDEN), exhausted=True)
