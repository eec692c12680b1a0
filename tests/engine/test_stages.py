"""Each stage alone: its effect on a request, and the rule that it names, in both evaluators."""

from __future__ import annotations

import pytest

from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AllowAny,
    And,
    Answer,
    Ask,
    AskAll,
    Chain,
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
    Placement,
    PolicyRef,
    Predicate,
    Refusal,
    Request,
    Rule,
    Ruling,
    SelectorCase,
    Stage,
    Step,
    rewrite_stage,
)
from eastgate.ir.attributes import BAD_HOST, HOST, IDENTITY, METHOD, PORT, Attribute

GET = Is(METHOD, OneOf(frozenset({"GET"})))
POST = Is(METHOD, OneOf(frozenset({"POST"})))


def rule(name: str, when: Predicate) -> Rule:
    return Rule(when, Origin(PolicyRef("P", "ns", name), 0))


A, B = rule("a", GET), rule("b", ALWAYS)
NOBODY = rule("nobody", NEVER)
YES, NO = Ruling(True, 200, "yes"), Ruling(False, 401, "who?")
ALLOW, FALLBACK = AllowAny("allow", (B,)), AllowAny("closed", ())


def layer(name: str, otherwise: Chain, *cases: SelectorCase) -> Layer:
    return Layer(Placement(None, name), otherwise, cases)


def ask(*asks: tuple[Rule, str]) -> AskAll:
    return AskAll("ask", tuple(Ask(asked, authorizer) for asked, authorizer in asks))


def tier(*steps: tuple[Rule, Effect], otherwise: Effect = Effect.PASS) -> FirstMatch:
    return FirstMatch("tier", tuple(Step(one, effect) for one, effect in steps), otherwise, Refusal.NOT_FOUND)


CASES: list[tuple[str, tuple[Stage, ...], dict[str, Answer], bool, Rule | None, int]] = [
    ("no stage", (), {}, True, None, 200),
    ("deny matches", (Deny("deny", (NOBODY, A)), ALLOW), {}, False, A, 403),
    ("deny does not match", (Deny("deny", (NOBODY,)), ALLOW), {}, True, B, 200),
    ("deny has a status", (Deny("deny", (A,), Refusal.NOT_FOUND),), {}, False, A, 404),
    ("allow matches", (AllowAny("allow", (NOBODY, A)),), {}, True, A, 200),
    ("the first that allows is named", (AllowAny("allow", (A, B)),), {}, True, A, 200),
    ("allow does not match", (AllowAny("allow", (NOBODY,)),), {}, False, None, 403),
    ("nothing is allowed", (FALLBACK,), {}, False, None, 403),
    ("allow goes on", (ALLOW, FALLBACK), {}, False, None, 403),
    ("the last that allows is named", (AllowAny("allow", (A,)), ALLOW), {}, True, B, 200),
    ("observing changes nothing", (Observe("audit", (A,)), ALLOW), {}, True, B, 200),
    ("an authorizer consents", (ask((A, "x")),), {"x": "allow"}, True, A, 200),
    ("an authorizer consents, and it goes on", (ask((A, "x")), FALLBACK), {"x": "allow"}, False, None, 403),
    ("an authorizer refuses", (ask((A, "x")), ALLOW), {"x": "deny"}, False, A, 403),
    ("an authorizer errs", (ask((A, "x")), ALLOW), {"x": "error"}, False, A, 403),
    ("an authorizer is silent", (ask((A, "x")), ALLOW), {}, False, A, 403),
    ("an authorizer is not asked", (ask((NOBODY, "x")), ALLOW), {"x": "deny"}, True, B, 200),
    ("none is asked", (ask((NOBODY, "x")),), {}, True, None, 200),
    ("both consent, the last is named", (ask((A, "x"), (B, "y")),), {"x": "allow", "y": "allow"}, True, B, 200),
    ("the second refuses", (ask((A, "x"), (B, "y")),), {"x": "allow", "y": "deny"}, False, B, 403),
    ("the first refuses", (ask((A, "x"), (B, "y")),), {"x": "deny", "y": "deny"}, False, A, 403),
    ("ours consents", (ask((A, "x")),), {"x": YES}, True, A, 200),
    ("ours refuses with a status", (ask((A, "x")),), {"x": NO}, False, A, 401),
    ("ours refuses behind one that consents", (ask((A, "y"), (B, "x")),), {"x": NO, "y": YES}, False, B, 401),
    ("a step accepts and ends", (tier((A, Effect.ACCEPT)), FALLBACK), {}, True, A, 200),
    ("a step denies", (tier((A, Effect.DENY)), ALLOW), {}, False, A, 404),
    ("a step passes", (tier((A, Effect.PASS), (B, Effect.DENY)), ALLOW), {}, True, B, 200),
    ("the first step decides", (tier((NOBODY, Effect.DENY), (A, Effect.ACCEPT), (B, Effect.DENY)),), {}, True, A, 200),
    ("no step: go on", (tier((NOBODY, Effect.ACCEPT)), FALLBACK), {}, False, None, 403),
    ("no step: accepted", (tier((NOBODY, Effect.DENY), otherwise=Effect.ACCEPT), FALLBACK), {}, True, None, 200),
    ("no step: denied", (tier((NOBODY, Effect.ACCEPT), otherwise=Effect.DENY), ALLOW), {}, False, None, 404),
]
REQUEST: dict[Attribute, Known] = {METHOD: "GET", IDENTITY: "spiffe://td/ns/a/sa/x", PORT: 80}


@pytest.mark.parametrize(
    ("stages", "answers", "allowed", "decided", "status"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_chain(
    stages: tuple[Stage, ...], answers: dict[str, Answer], allowed: bool, decided: Rule | None, status: int
) -> None:
    layers = [layer("l", Chain(stages))]
    request = Request(REQUEST, answers)
    program = compile_layers(layers)
    verdict = program.decide(request)
    outcome = program.outcome(verdict)
    assert (outcome.allowed, outcome.rule, outcome.status) == (allowed, decided, status)
    assert bool(verdict & 1) is allowed
    assert reference.decide(layers, request) == outcome


PASS, SHUT = Chain((AllowAny("allow", (B,)),)), Chain((FALLBACK,))


@pytest.mark.parametrize(
    ("layers", "allowed"),
    [
        ([layer("l", PASS), layer("m", PASS)], True),
        ([layer("l", PASS), layer("m", SHUT)], False),
        ([layer("l", SHUT), layer("m", PASS)], False),
        ([layer("l", SHUT, SelectorCase(GET, PASS))], True),
        ([layer("l", PASS, SelectorCase(GET, SHUT))], False),
        ([layer("l", PASS, SelectorCase(POST, SHUT))], True),
        ([layer("l", SHUT, SelectorCase(POST, SHUT), SelectorCase(GET, PASS), SelectorCase(ALWAYS, SHUT))], True),
        ([], True),
    ],
)
def test_layers_and_their_selectors(layers: list[Layer], allowed: bool) -> None:
    request = Request(REQUEST)
    program = compile_layers(layers)
    assert program.outcome(program.decide(request)).allowed is allowed
    assert reference.decide(layers, request).allowed is allowed


def test_the_last_layer_that_accepts_is_named_and_the_first_that_denies() -> None:
    layers = [
        layer("l", Chain((AllowAny("allow", (A,)),))),
        layer("m", Chain(())),
        layer("n", Chain((Deny("d", (B,)),))),
    ]
    request = Request(REQUEST)
    for count, (allowed, decided) in ((2, (True, A)), (3, (False, B))):
        program = compile_layers(layers[:count])
        outcome = program.outcome(program.decide(request))
        assert (outcome.allowed, outcome.rule) == (allowed, decided)
        assert reference.decide(layers[:count], request) == outcome


# Callers and ports: the keys of tables


def _who(name: str) -> str:
    return f"spiffe://td/ns/a/sa/{name}"


def _on(name: str, *ports: int) -> Predicate:
    return And((Is(IDENTITY, OneOf(frozenset({_who(name)}))), Is(PORT, OneOf(frozenset(ports)))))


NETWORK = AllowAny("allow", (rule("x", _on("x", 80, 443)), rule("y", _on("y", 9080)), rule("all", _on("z", 80))))


@pytest.mark.parametrize("behind", [(), (Deny("deny", (rule("get", POST),)),)], ids=["a table", "a search"])
@pytest.mark.parametrize(
    ("name", "port", "allowed"),
    [
        *[("x", 80, True), ("x", 443, True), ("x", 9080, False), ("x", 81, False)],
        *[("y", 9080, True), ("y", 80, False), ("z", 80, True), ("z", 443, False), ("w", 80, False)],
    ],
)
def test_a_rule_on_ports_is_about_no_other_port(name: str, port: int, allowed: bool, behind: tuple[Stage, ...]) -> None:
    layers = [layer("l", Chain((*behind, NETWORK)))]
    request = Request({METHOD: "GET", IDENTITY: _who(name), PORT: port})
    program = compile_layers(layers)
    assert program.outcome(program.decide(request)).allowed is allowed
    assert reference.decide(layers, request).allowed is allowed


# Invalid hosts

CLOSING = Deny("deny", (rule("never", Is(PORT, OneOf(frozenset({1})))),), Refusal.CLOSED)
ANSWERING = Deny("deny", (rule("never", Is(PORT, OneOf(frozenset({1})))),), Refusal.FORBIDDEN)
ON_80 = Is(PORT, OneOf(frozenset({80})))


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (layer("l", Chain((CLOSING,))), True),
        (layer("l", Chain((ANSWERING,))), False),
        (layer("l", Chain((Deny("deny", (rule("host", And((GET, NEVER))),), Refusal.CLOSED),))), False),
        (layer("l", Chain((CLOSING,)), SelectorCase(ON_80, Chain((ANSWERING,)))), False),
        (layer("l", Chain((ANSWERING,)), SelectorCase(ON_80, Chain((CLOSING,)))), True),
        (
            layer(
                "l",
                Chain((ANSWERING,)),
                SelectorCase(Not(ON_80), Chain((ANSWERING,))),
                SelectorCase(ON_80, Chain((CLOSING,))),
            ),
            True,
        ),
        (layer("l", Chain((CLOSING,)), SelectorCase(And((ON_80, GET)), Chain((CLOSING,)))), False),
        (layer("l", Chain((CLOSING,)), SelectorCase(And((Not(ON_80), GET)), Chain((ANSWERING,)))), True),
        (layer("l", Chain((ANSWERING,)), SelectorCase(Or((ON_80, GET)), Chain((CLOSING,)))), True),
    ],
)
def test_an_invalid_host_is_refused_if_http_is_read(made: Layer, allowed: bool) -> None:
    request = Request({**REQUEST, BAD_HOST: "a b", HOST: None})
    program = compile_layers([made])
    outcome = program.outcome(program.decide(request))
    assert outcome.allowed is allowed
    assert reference.decide([made], request) == outcome


@pytest.mark.parametrize(
    ("stage", "rewritten"),
    [
        (Deny("d", (A, B), Refusal.CLOSED), Deny("d", (NOBODY,), Refusal.CLOSED)),
        (AllowAny("a", (A, B), Refusal.CLOSED), AllowAny("a", (NOBODY,), Refusal.CLOSED)),
        (Observe("o", (A, B), ("DENY", "ALLOW")), Observe("o", (NOBODY,), ("ALLOW",))),
        (
            FirstMatch("f", (Step(A, Effect.DENY), Step(B, Effect.ACCEPT)), Effect.DENY, Refusal.CLOSED),
            FirstMatch("f", (Step(NOBODY, Effect.ACCEPT),), Effect.DENY, Refusal.CLOSED),
        ),
        (
            AskAll("x", (Ask(A, "a"), Ask(B, "b", fail_open=True)), Refusal.CLOSED),
            AskAll("x", (Ask(NOBODY, "b", fail_open=True),), Refusal.CLOSED),
        ),
    ],
)
def test_a_stage_is_rewritten_rule_by_rule_and_keeps_everything_else(stage: Stage, rewritten: Stage) -> None:
    assert rewrite_stage(stage, {A: None, B: NOBODY}.get) == rewritten
