"""Decision trees, decision lists, the engine and the reference evaluator have the same verdict for every request."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    ALWAYS,
    AllowAny,
    AskAll,
    Chain,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Origin,
    Outcome,
    Placement,
    PolicyRef,
    Predicate,
    Request,
    Rule,
    Suffix,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, MESH_NAME, Attribute
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import CallerCell, cells_around
from eastgate.ir.symbolic.cells import TooManyEntries, list_tree
from eastgate.ir.symbolic.judging import possible_outcomes, with_answers
from eastgate.ir.symbolic.partial import ArmIndex, Facts, Partial, residual
from eastgate.ir.symbolic.trees import Tree, choice, flatten, leaves, truth
from tests.engine import strategies
from tests.ir.symbolic.drawing import decide

CALLERS = CallerCells(Settings.from_mapping({"trustDomain": "td"}))
known = st.sets(st.sampled_from(sorted(strategies.VALUES)))


def outcome_itself(outcome: Outcome, _chain: Chain) -> Outcome:
    return outcome


def tree_of(layer: Layer, facts: Facts) -> Tree[Outcome]:
    def left(predicate: Predicate) -> Predicate:
        return residual(predicate, facts)

    return Partial(layer, left, outcome_itself, ArmIndex(CALLERS), facts.caller).tree()


def answered(layer: Layer, request: Request) -> Request:
    for chain in layer.chains:
        for stage in chain.stages:
            if isinstance(stage, AskAll):
                request = with_answers(stage, request)
    return request


def cell_of(layer: Layer, identity: object) -> CallerCell:
    cells = CALLERS.cells(atom for atom in layer.atoms(observed=False) if isinstance(atom, Is))
    around = cells_around(identity if isinstance(identity, str) else None, CALLERS.domain)
    return next(cell for cell in around if cell in cells)


@settings(max_examples=250, deadline=None)
@given(strategies.layer, strategies.known_request(), known, st.booleans())
def test_the_tree_of_any_part_decides_as_the_engine_and_the_reference_do(
    layer: Layer, request: Request, part: set[Attribute], by_cell: bool
) -> None:
    """A part of the request is in the tree, and the rest is evaluated with it."""
    assume(not request.refused_path)
    assume(request.values[ADDRESS] not in (None, "::1"))  # conditions are about other callers than the workload itself
    facts = Facts({attribute: request.values[attribute] for attribute in part})
    if by_cell:
        cell = cell_of(layer, request.values[IDENTITY])
        facts = Facts({a: v for a, v in facts.values.items() if a != IDENTITY}).and_(Facts.of_caller(cell, CALLERS))
    tree = tree_of(layer, facts)
    asked = answered(layer, request)
    decided = decide(tree, asked)
    expected = reference.decide([layer], request)
    program = compile_layers([layer])
    assert decided is not None
    assert decided.allowed == expected.allowed == bool(program.decide(request) & 1)
    assert decided.rule is expected.rule
    flat = next(end for when, end in flatten(tree) if truth(when, asked))
    assert flat == decided
    try:
        listed = next(end for when, end in list_tree(tree) if truth(when, asked))
    except TooManyEntries:
        return
    assert listed == decided


@settings(max_examples=200, deadline=None)
@given(strategies.layer, strategies.known_request(), known)
def test_each_outcome_is_among_the_possible_outcomes(layer: Layer, request: Request, part: set[Attribute]) -> None:
    assume(not request.refused_path)
    expected = reference.decide([layer], request)
    vague = Request({attribute: request.values[attribute] for attribute in part}, request.answers)
    assert expected in list(possible_outcomes(layer, vague, answered=True))
    assert list(possible_outcomes(layer, request, answered=True)) == [expected]


NAMES = [*strategies.IDENTITIES, None]
SUFFIXES = [".a.serviceaccount.identity.linkerd.td", ".x.a.serviceaccount.identity.linkerd.td", ".td", ".example"]
name_atom = st.sampled_from(SUFFIXES).map(lambda text: Is(MESH_NAME, Suffix(text))) | st.builds(
    Is, st.just(MESH_NAME), strategies.one_of(["x.a.serviceaccount.identity.linkerd.td", "web.example", "spiffe://e/x"])
)


@settings(max_examples=400, deadline=None)
@given(st.lists(strategies.identity_atom | name_atom, max_size=5), st.sampled_from(NAMES))
def test_an_atom_has_one_result_for_a_cell_and_for_each_of_its_callers(asked: list[Is], identity: str | None) -> None:
    cells = CALLERS.cells(asked)
    name = CALLERS.names.mesh_name(identity) if identity is not None else None
    caller = Request({IDENTITY: identity, MESH_NAME: name})
    cell = next(cell for cell in cells_around(identity, CALLERS.domain) if cell in cells)
    (alike,) = (members for members in CALLERS.classes(cells, asked) if cell in members)
    for atom in asked:
        for member in {cell, alike[0]}:
            assert truth(CALLERS.settle(atom, member), caller) is atom.accepts(caller.values[atom.attribute])


def test_ten_thousand_rules_are_one_flat_list() -> None:
    tests = [(Is(MESH_NAME, Suffix(str(number))), number) for number in range(10_000)]
    tree = choice(tests, -1)
    assert len(list(leaves(tree))) == len(flatten(tree)) == 10_001
    assert decide(tree, Request({MESH_NAME: "x9999"})) == 9


def test_an_ordered_stage_that_accepts_by_default_leaves_the_rule_that_accepted_before() -> None:
    """A stage without rules keeps the rule that accepted earlier."""
    rule = Rule(ALWAYS, Origin(PolicyRef("P", "n", "p"), 0))
    stages = (AllowAny("allow", (rule,)), FirstMatch("tier", (), Effect.ACCEPT))
    layer = Layer(Placement(None, "l"), Chain(stages))
    (outcome,) = possible_outcomes(layer, Request({}))
    assert outcome.rule is rule
    assert decide(tree_of(layer, Facts()), Request({})) == outcome == reference.decide([layer], Request({}))
