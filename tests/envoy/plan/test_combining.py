"""A combination of decisions means the same as its parts: on drawn trees, for every request."""

from __future__ import annotations

from ipaddress import ip_network
from itertools import product
from random import Random

import pytest

from eastgate.envoy.plan import combining
from eastgate.envoy.plan.combining import TooManyEnds, either, or_else, then, unread
from eastgate.envoy.plan.decisions import NO_AUDIT, UNOPPOSED_NAME, Node, ProxyVerdict
from eastgate.ir import ALWAYS, NEVER, And, InNetwork, Is, Known, Not, OneOf, Or, Predicate, Request
from eastgate.ir.attributes import ADDRESS, METHOD, PATH, Attribute
from eastgate.ir.symbolic.trees import DecisionNode, choice, truth
from tests.ir.symbolic.drawing import decide

HERE, THERE = (Is(ADDRESS, InNetwork((ip_network(text),))) for text in ("10.0.0.0/24", "10.0.0.0/8"))
GET, ROOT = Is(METHOD, OneOf(frozenset({"GET"}))), Is(PATH, OneOf(frozenset({"/"})))
ATOMS: list[Predicate] = [HERE, THERE, GET, ROOT]
PREDICATES: list[Predicate] = [*ATOMS, Not(GET), Not(HERE), And((THERE, GET)), Or((HERE, ROOT)), Or((GET, ROOT))]
ADDRESSES, METHODS, PATHS = ["10.0.0.1", "10.1.0.0", "192.168.0.1"], ["GET", "PUT", None], ["/", "/a", None]
OPEN = ProxyVerdict(True, 200, UNOPPOSED_NAME)
ENDS = [
    OPEN,
    *(ProxyVerdict(True, 200, f"allow-{n}") for n in (1, 2)),
    *(ProxyVerdict(False, 403, f"deny-{n}") for n in (1, 2)),
]
AUDITS = [NO_AUDIT, NO_AUDIT, ProxyVerdict(True, 200, "would-allow"), ProxyVerdict(False, 403, "would-deny")]


def _requests() -> list[Request]:
    every = product(ADDRESSES, METHODS, PATHS)
    return [Request({ADDRESS: address, METHOD: method, PATH: path}) for address, method, path in every]


def _tree(random: Random, ends: list[ProxyVerdict], depth: int = 2) -> Node:
    if not depth or random.random() < 0.3:
        return random.choice(ends)
    tests = [(random.choice(PREDICATES), _tree(random, ends, depth - 1)) for _ in range(random.randint(1, 3))]
    return choice(tests, _tree(random, ends, depth - 1))


def _end(node: Node, request: Request) -> ProxyVerdict:
    verdict = decide(node, request)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize("seed", range(8))
def test_both_must_allow_and_the_last_rule_that_decided_gives_the_name(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(20):
        trees = _tree(random, ENDS), _tree(random, random.choice([ENDS, ENDS[1:]]))
        combined = then(*trees)
        for request in _requests():
            first, second = (_end(tree, request) for tree in trees)
            denied = not first.allowed or second == OPEN
            assert _end(combined, request) == (first if denied else second)


@pytest.mark.parametrize("seed", range(3))
def test_of_rules_in_audit_mode_the_first_that_matches_counts(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(20):
        trees = _tree(random, AUDITS), _tree(random, AUDITS)
        combined = or_else(*trees)
        for request in _requests():
            first, second = (_end(tree, request) for tree in trees)
            assert _end(combined, request) == (second if first == NO_AUDIT else first)


@pytest.mark.parametrize("seed", range(8))
def test_bytes_are_allowed_only_where_whatever_is_http_in_them_is(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(20):
        tree = _tree(random, ENDS)
        closed = unread(tree)
        for address in ADDRESSES:
            known: dict[Attribute, Known] = {ADDRESS: address}
            verdict = _end(closed, Request(known))
            possible = [_end(tree, Request({**known, METHOD: m, PATH: p})) for m, p in product(METHODS, PATHS)]
            assert verdict.allowed == _allows_bytes(tree, Request(known))
            assert not verdict.allowed or all(end.allowed for end in possible)
            assert verdict.allowed or verdict.status == 0


def _allows_bytes(node: Node, request: Request) -> bool:
    """Decide bytes literally: a test of HTTP may have either result, anywhere in the tree."""
    if isinstance(node, ProxyVerdict):
        return node.allowed
    for when, inner in node.tests:
        if _comes_out(when, request, helped=True) and not _allows_bytes(inner, request):
            return False
        if _comes_out(when, request, helped=False):
            return True
    return _allows_bytes(node.otherwise, request)


def _comes_out(predicate: Predicate, request: Request, *, helped: bool) -> bool:
    match predicate:
        case Not(part):
            return not _comes_out(part, request, helped=not helped)
        case And(parts):
            return all(_comes_out(part, request, helped=helped) for part in parts)
        case Or(parts):
            return any(_comes_out(part, request, helped=helped) for part in parts)
        case _:
            held = truth(predicate, request)
            return helped if held is None else held


def test_what_routes_share_is_asked_of_bytes_once() -> None:
    shared = choice([(HERE, ENDS[3])], ENDS[1])
    assert unread(choice([(GET, shared), (ROOT, shared)], shared)) == DecisionNode(
        ((HERE, ProxyVerdict(False, 0, "deny-1")),), ENDS[1]
    )


def test_two_decisions_may_have_too_many_ways_through_them(monkeypatch: pytest.MonkeyPatch) -> None:
    first = choice([(GET, ENDS[1]), (ROOT, ENDS[2])], ENDS[3])
    second = choice([(HERE, ENDS[1])], OPEN)
    monkeypatch.setattr(combining, "_MAX_ENDS", 6)
    assert isinstance(then(first, second), DecisionNode)
    monkeypatch.setattr(combining, "_MAX_ENDS", 5)
    with pytest.raises(TooManyEnds, match="6 ways"):
        then(first, second)
    assert isinstance(then(first, OPEN), DecisionNode)
    assert isinstance(then(first, choice([(HERE, ENDS[1])], ENDS[2])), DecisionNode)


def test_networks_become_one_test() -> None:
    both = Is(ADDRESS, InNetwork((*HERE.matcher.networks, *THERE.matcher.networks)))  # type: ignore[union-attr]
    assert either([HERE, THERE, HERE]) == both
    assert either([HERE, GET, THERE]) == Or((both, GET))
    assert either([GET, ROOT]) == Or((GET, ROOT))
    assert either([HERE, ALWAYS]) == ALWAYS
    assert either([]) == NEVER


@pytest.mark.parametrize("seed", range(3))
def test_any_of_several_holds(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(20):
        parts = random.sample(PREDICATES, random.randint(0, 4))
        for request in _requests():
            assert truth(either(parts), request) == any(truth(part, request) for part in parts)
