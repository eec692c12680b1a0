"""On generated layers, every request of a tiny world, known or not, has the verdict of the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest

from eastgate import Settings
from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    ALWAYS,
    AllowAny,
    And,
    Answer,
    Ask,
    AskAll,
    Chain,
    Computed,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Known,
    Layer,
    Not,
    Observe,
    OneOf,
    Or,
    Origin,
    Outcome,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Refusal,
    Request,
    Rule,
    Ruling,
    SelectorCase,
    Stage,
    Step,
)
from eastgate.ir.attributes import BAD_HOST, HANDED_PATH, IDENTITY, METHOD, PATH, PORT, URL_PATH, Attribute
from eastgate.ir.paths import is_sensitive
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.judging import (
    Undetermined,
    is_about_path,
    judge,
    possible_outcomes,
    prove_allow,
    with_answers,
)
from eastgate.ir.symbolic.partial import ArmIndex, Facts, Partial, residual
from tests.ir.symbolic.drawing import EVERY, WORLD, decide, draw

CALLERS = CallerCells(Settings.from_mapping({"trustDomain": "td"}))
ANSWERS: list[dict[str, Answer]] = [{}, {"z": "allow"}, {"z": "deny"}, {"z": Ruling(False, 401, "who?")}]
Draw = Callable[[Random], Predicate]


def _layer(random: Random, draw_predicate: Draw) -> Layer:
    cases = tuple(
        SelectorCase(draw_predicate(random), _chain(random, draw_predicate), random.random() < 0.2)
        for _ in range(random.randint(0, 2))
    )
    return Layer(Placement(None, "l"), _chain(random, draw_predicate), cases)


def _chain(random: Random, draw_predicate: Draw) -> Chain:
    def rules() -> tuple[Rule, ...]:
        count = random.randint(0, 3)
        return tuple(Rule(draw_predicate(random), Origin(PolicyRef("P", "n", "p"), n)) for n in range(count))

    def stage() -> Stage:
        effects = list(Effect)
        kinds: list[Callable[[], Stage]] = [
            lambda: Deny("deny", rules(), random.choice([Refusal.FORBIDDEN, Refusal.CLOSED])),
            lambda: AllowAny("allow", rules()),
            lambda: FirstMatch(
                "tier", tuple(Step(rule, random.choice(effects)) for rule in rules()), random.choice(effects)
            ),
            lambda: AskAll("ask", tuple(Ask(rule, "z") for rule in rules())),
            lambda: Observe("audit", (made := rules()), ("DENY",) * len(made)),
        ]
        return random.choice(kinds)()

    return Chain(tuple(stage() for _ in range(random.randint(0, 3))))


def _tree_outcome(layer: Layer, facts: Facts, request: Request) -> Outcome | None:
    partial = Partial(layer, lambda when: residual(when, facts), lambda outcome, _: outcome, ArmIndex(CALLERS))
    return decide(partial.tree(), _answered(layer, request))


def _answered(layer: Layer, request: Request) -> Request:
    for chain in layer.chains:
        for stage in chain.stages:
            request = with_answers(stage, request)
    return request


@pytest.mark.parametrize("seed", range(6))
def test_a_known_request_is_judged_as_by_the_reference(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(15):
        layer = _layer(random, draw)
        for values in random.sample(EVERY, 20):
            request = Request({IDENTITY: None, **values}, random.choice(ANSWERS))
            expected = reference.decide([layer], request)
            assert judge(layer, request) == expected
            assert list(possible_outcomes(layer, request, answered=True)) == [expected]
            assert prove_allow(layer, request) == (expected if expected.allowed else None)
            facts = Facts({attribute: value for attribute, value in values.items() if random.random() < 0.5})
            decided = _tree_outcome(layer, facts, request)
            assert decided is not None
            assert (decided.allowed, decided.rule) == (expected.allowed, expected.rule)


@pytest.mark.parametrize("seed", range(6))
def test_unknown_attributes_are_completed_to_a_denial_if_one_exists(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(15):
        layer, answers = _layer(random, draw), random.choice(ANSWERS)
        given = random.choice(EVERY)
        known = {attribute: given[attribute] for attribute in WORLD if random.random() < 0.4}
        request = Request(known, answers)
        completions = [
            reference.decide([layer], Request(values, answers))
            for values in EVERY
            if all(values[attribute] == value for attribute, value in known.items())
        ]
        completion = complete(layer, request)
        assert completion.outcome.allowed == all(outcome.allowed for outcome in completions)
        assert completion.outcome in completions
        completed = Request({**dict.fromkeys(WORLD), **completion.of(request).values}, answers)
        assert judge(layer, completed) == completion.outcome
        assert set(completion.decisive) <= set(completion.assumed)
        possible = list(possible_outcomes(layer, request, answered=True))
        assert set(completions) <= set(possible)
        proven = prove_allow(layer, request)
        assert (proven is not None) == all(outcome.allowed for outcome in possible)
        try:
            assert judge(layer, request) == completions[0]
        except Undetermined:
            assert len(possible) > 1


# Paths that servers interpret differently, and paths with another result for regular expressions

GET = Is(METHOD, OneOf(frozenset({"GET"})))
IN_A = Is(PATH, Prefix("/a"))


def _pattern(text: str) -> Computed:
    return Computed(text, frozenset({PATH}), lambda values: "@" in str(values[PATH]), pattern=(PATH, text))


SENSITIVE, PLAIN = _pattern("/.*@.*"), _pattern("/a/.*")
ON_PATHS: list[Predicate] = [GET, Not(GET), IN_A, SENSITIVE, Not(SENSITIVE), PLAIN, ALWAYS]
ON_PATHS += [And((GET, SENSITIVE)), Or((GET, IN_A)), Or((GET, SENSITIVE)), And((GET, IN_A))]
EXPRESSION = Is(URL_PATH, OneOf(frozenset({"/a@b"})))  # the lowered form of an expression
ON_PATHS += [EXPRESSION, Not(EXPRESSION), And((GET, EXPRESSION)), Or((GET, EXPRESSION))]
PATHS: list[Mapping[Attribute, Known]] = [
    {PATH: "/a", URL_PATH: "/a"},
    {PATH: "/a@b", URL_PATH: "/a@b"},
    {PATH: "/a@b", URL_PATH: "/a%40b", HANDED_PATH: "/a%40b"},
    {PATH: "/b", URL_PATH: "/b", HANDED_PATH: "/%62"},
    {PATH: "/a%2fb", URL_PATH: "/a%2fb"},
    {PATH: "/b%2f", URL_PATH: "/b%2f", HANDED_PATH: "/b%2f"},
    {PATH: None, URL_PATH: None},
]


@pytest.mark.parametrize("seed", range(6))
def test_ambiguous_spellings_are_refused_as_by_the_reference(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(30):
        layer = _layer(random, lambda random: random.choice(ON_PATHS))
        program = compile_layers([layer])
        answers = random.choice(ANSWERS)
        for path in PATHS:
            for method in ("GET", "PUT"):
                request = Request({IDENTITY: None, PORT: 80, METHOD: method, **path}, answers)
                expected = reference.decide([layer], request)
                assert judge(layer, request) == expected
                assert program.outcome(program.decide(request)) == expected
                assert prove_allow(layer, request) is None or expected.allowed
                _check_tree(layer, request, expected)


def _check_tree(layer: Layer, request: Request, expected: Outcome) -> None:
    facts = Facts({METHOD: request.values[METHOD]})
    partial: Partial[Outcome | None] = Partial(
        layer, lambda when: residual(when, facts), lambda outcome, _: outcome, ArmIndex(CALLERS)
    )
    refused = Outcome(False, "refused")
    tree = partial.tree()
    if request.refused_path:
        tree = partial.tree_without(is_about_path, refused)
    elif request.respelled_path:
        tree = partial.tree_without(is_sensitive, refused)
    decided = decide(tree, _answered(layer, request))
    assert decided is not None
    assert decided.allowed == expected.allowed
    assert (decided is refused) == (expected.refusal is Refusal.BAD_REQUEST)


# Invalid hosts

ON_80 = Is(PORT, OneOf(frozenset({80})))
CLOSES, ANSWERS_HTTP = (
    Chain((Deny("deny", (Rule(ON_80, Origin(PolicyRef("P", "n", "p"), 0)),), refusal),))
    for refusal in (Refusal.CLOSED, Refusal.FORBIDDEN)
)


@pytest.mark.parametrize(
    ("layer", "port", "status"),
    [
        (Layer(Placement(None, "l"), CLOSES), 81, 200),
        (Layer(Placement(None, "l"), ANSWERS_HTTP), 81, 400),
        (Layer(Placement(None, "l"), ANSWERS_HTTP, (SelectorCase(ON_80, Chain(())),)), 80, 200),
        (Layer(Placement(None, "l"), ANSWERS_HTTP, (SelectorCase(ON_80, Chain(())),)), 81, 400),
        (Layer(Placement(None, "l"), ANSWERS_HTTP, (SelectorCase(ON_80, Chain(())),)), None, 0),
        (Layer(Placement(None, "l"), Chain((AllowAny("allow", ()),))), None, 400),
    ],
)
def test_an_invalid_host_is_refused_if_http_is_read(layer: Layer, port: int | None, status: int) -> None:
    """An unknown port may decide this, too."""
    request = Request({BAD_HOST: "a b", **({} if port is None else {PORT: port})})
    if status:
        assert judge(layer, request).status == status
    else:
        with pytest.raises(Undetermined):
            judge(layer, request)
    assert prove_allow(layer, request) is None
