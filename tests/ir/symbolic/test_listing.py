"""Trees and decision lists: all forms of a tree decide like the tree."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from eastgate.ir import ALWAYS, NEVER, And, Is, OneOf, Predicate, Request
from eastgate.ir.attributes import METHOD, PORT
from eastgate.ir.symbolic import cells
from eastgate.ir.symbolic.cells import TooManyEntries, in_sequence, list_tree
from eastgate.ir.symbolic.trees import DecisionNode, Entry, Tree, choice, flatten, leaves, map_leaves
from tests.engine.brute_force import holds
from tests.ir.symbolic.drawing import EVERY, decide, draw


@dataclass(frozen=True)
class Verdict:
    """An end with a name."""

    name: str
    allowed: bool

    @property
    def is_unopposed(self) -> bool:
        """Return whether no rule applied."""
        return self.name == "open"


OPEN, NOTHING = Verdict("open", True), Verdict("nothing", True)
ENDS = [OPEN, Verdict("yes", True), Verdict("sure", True), Verdict("no", False), Verdict("never", False)]
A, B = (Is(METHOD, OneOf(frozenset({text}))) for text in "ab")
ON_1 = Is(PORT, OneOf(frozenset({1})))


def _tree(random: Random, depth: int = 2) -> Tree[Verdict]:
    if not depth or random.random() < 0.3:
        return random.choice(ENDS)
    tests = [(draw(random, 1), _tree(random, depth - 1)) for _ in range(random.randint(1, 3))]
    return choice(tests, _tree(random, depth - 1))


def _first(entries: list[Entry[Verdict]], request: Request) -> Verdict:
    return next(end for when, end in entries if holds(when, request.values))


def _by_the_letter(tree: Tree[Verdict], request: Request) -> Verdict:
    while isinstance(tree, DecisionNode):
        tree = next((node for when, node in tree.tests if holds(when, request.values)), tree.otherwise)
    return tree


@pytest.mark.parametrize("seed", range(5))
def test_trees_and_their_lists_decide_the_same(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(12):
        tree = _tree(random)
        listed, flat = list_tree(tree), flatten(tree)
        named = map_leaves(tree, lambda end: end.name)
        for request in map(Request, EVERY):
            expected = _by_the_letter(tree, request)
            assert decide(tree, request) == _first(listed, request) == _first(flat, request) == expected
            assert decide(named, request) == expected.name


@pytest.mark.parametrize("seed", range(5))
def test_lists_in_sequence_must_all_allow(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(8):
        lists = [list_tree(_tree(random, 1)) for _ in range(random.randint(0, 3))]
        combined = in_sequence(lists, OPEN)
        for request in map(Request, EVERY):
            decided = [_first(entries, request) for entries in lists]
            accepted = [end for end in decided if not end.is_unopposed]
            expected = next((end for end in decided if not end.allowed), accepted[-1] if accepted else OPEN)
            assert _first(combined, request) == expected


def test_no_lists_at_all_are_nothing() -> None:
    assert in_sequence([], NOTHING) == [Entry(ALWAYS, NOTHING)]
    assert in_sequence([[Entry(NEVER, ENDS[1]), Entry(ALWAYS, ENDS[3])]], OPEN) == [Entry(ALWAYS, ENDS[3])]


YES, NO = ENDS[1], ENDS[3]


@pytest.mark.parametrize(
    ("tests", "otherwise", "listed"),
    [
        ([], YES, [(ALWAYS, YES)]),
        ([(A, YES)], NO, [(A, YES), (ALWAYS, NO)]),
        ([(A, YES), (And((A, ON_1)), NO)], NO, [(A, YES), (ALWAYS, NO)]),  # no request reaches the second
        ([(A, YES), (A, NO)], OPEN, [(A, YES), (ALWAYS, OPEN)]),
        ([(A, YES), (B, NO)], NO, [(A, YES), (ALWAYS, NO)]),  # the last has the same end
        ([(A, YES), (B, NO), (ON_1, NO)], NO, [(A, YES), (ALWAYS, NO)]),
        ([(A, NO), (B, NO)], NO, [(ALWAYS, NO)]),
        ([(A, DecisionNode(((B, YES),), NO))], YES, [(A, NO), (ALWAYS, YES)]),  # a request has one method
        ([(ON_1, DecisionNode(((A, YES),), NO))], YES, [(And((ON_1, A)), YES), (ON_1, NO), (ALWAYS, YES)]),
    ],
)
def test_a_list_is_short(
    tests: list[tuple[Predicate, Tree[Verdict]]], otherwise: Verdict, listed: list[tuple[Predicate, Verdict]]
) -> None:
    assert list_tree(choice(tests, otherwise)) == [Entry(when, end) for when, end in listed]


def test_a_choice_has_no_tests_that_are_certain_and_is_flat() -> None:
    inner = choice([(B, NO)], OPEN)
    assert choice([(NEVER, NO), (A, YES), (ALWAYS, NO), (B, YES)], YES) == DecisionNode(((A, YES),), NO)
    assert choice([(A, YES)], inner) == DecisionNode(((A, YES), (B, NO)), OPEN)
    assert choice([(NEVER, YES)], NO) == NO
    assert list(leaves(choice([(A, inner)], inner))) == [NO, OPEN, NO, OPEN]


def test_a_result_that_depends_on_unknown_attributes_is_undecided() -> None:
    tree = choice([(ON_1, YES), (A, NO)], OPEN)
    assert decide(tree, Request({PORT: 1})) == YES
    assert decide(tree, Request({PORT: 2})) is None
    assert decide(tree, Request({METHOD: "a"})) is None


def test_a_list_may_be_too_long_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [Is(PORT, OneOf(frozenset({port}))) for port in range(1, 5)]
    tree = choice([(port, Verdict(str(port), True)) for port in ports], NO)
    monkeypatch.setattr(cells, "_MAX_ENTRIES", 4)
    assert len(list_tree(tree)) == 5
    monkeypatch.setattr(cells, "_MAX_ENTRIES", 3)
    with pytest.raises(TooManyEntries):
        list_tree(tree)


def test_entries_of_long_lists_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = choice([(A, YES), (And((A, ON_1)), NO), (And((A, B)), NO)], YES)
    monkeypatch.setattr(cells, "MAX_COMPARED_ENTRIES", 1)
    assert list_tree(tree) == [Entry(ALWAYS, YES)]
    monkeypatch.setattr(cells, "MAX_COMPARED_ENTRIES", 0)
    assert Entry(And((A, ON_1)), NO) in list_tree(tree)
