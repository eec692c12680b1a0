"""Policies on a Gateway or a Backend give its layer, with the stages in the order of the rulings (20, 24, 25)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from eastgate import dialects
from eastgate.cluster import World
from eastgate.cluster.gateways import GrantFrom, GrantTo, ReferenceGrant
from eastgate.dialects.accesspolicy import Policy
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.ir import (
    AllowAny,
    AskAll,
    Attachment,
    AuthorizerName,
    Chain,
    Deny,
    ExternalProtocol,
    Layer,
    Observe,
    Refusal,
    Rule,
    Stage,
)
from eastgate.settings import Settings
from tests.dialects.accesspolicy.reading import BACKEND, CHECKOUT, GATEWAY, PROTOTYPE, manifest, policy

LITERAL = Settings()
PROCEED = Settings(sections=(AccessSettings(UnlistedCaller.PROCEED),))


def written(name: str, rule: str, *, action: str = "", targets: str = BACKEND, audit: bool = False) -> Policy:
    mode = ", annotations: {eastgate.dev/mode: audit}" if audit else ""
    spec = f"{targets}{action}rules: [{{name: r, source: {CHECKOUT}{rule}}}]"
    return policy(manifest("v0alpha0", spec, f"{{name: {name}, namespace: prod{mode}}}"))


def allows(name: str, *, targets: str = BACKEND, audit: bool = False) -> Policy:
    rule = ", authorization: {type: InlineTools, tools: [charge]}"
    return written(name, rule, targets=targets, audit=audit)


def denies(name: str, *, audit: bool = False) -> Policy:
    return written(name, "", action="action: Deny\n", audit=audit)


def asks(name: str, service: str = "fraud", *, where: str = "", audit: bool = False) -> Policy:
    ref = f"{{name: {service}, port: 9000{where}}}"
    external = f"{{protocol: GRPC, grpc: {{}}, backendRef: {ref}}}"
    return written(name, f", authorization: {{type: ExternalAuth, externalAuth: {external}}}", audit=audit)


def today(name: str, spec: str) -> Policy:
    return policy(manifest("v1alpha1", BACKEND + spec, f"{{name: {name}, namespace: prod}}"))


def layer(*policies: Policy, settings: Settings = LITERAL, world: World | None = None) -> Layer:
    (only,) = dialects.assemble([Attachment(one) for one in policies], settings, world or World())
    return only


def stage_lines(chain: Chain) -> list[str]:
    return [_stage(stage) for stage in chain.stages]


def _stage(stage: Stage) -> str:
    """Return a stage as a line: its name, and each of its rules by its policy, with its effect if that differs."""
    match stage:
        case Deny(name, rules) | AllowAny(name, rules):
            words = [_name(rule) for rule in rules]
        case AskAll(name, asked):
            words = [f"{_name(ask.rule)} {ask.authorizer}" for ask in asked]
        case Observe(name, rules, would):
            words = [f"{_name(rule)} {action}" for rule, action in zip(rules, would, strict=True)]
        case _:
            raise AssertionError(stage)
    return f"{name}: {', '.join(words)}".strip()


def _name(rule: Rule) -> str:
    assert rule.origin.policy is not None
    return rule.origin.policy.name


A, B, D = allows("a"), allows("b"), denies("d")
E, F = asks("e"), asks("f", "limits")
ELSEWHERE = asks("elsewhere", where=", namespace: security")
EVERYTHING = today("everything", "action: Allow")
NOTHING = today("nothing", "action: Allow\nrules: []")
AUDITED = (allows("a9", audit=True), denies("d9", audit=True), asks("e9", audit=True))

CHAINS = [
    ("one allow", [A], ["allow: a"]),
    ("several allow policies are a union", [A, B], ["allow: a, b"]),
    ("both forms of the API", [A, EVERYTHING], ["allow: a, everything"]),
    ("an allow policy without rules closes", [NOTHING], ["allow:"]),
    ("only deny passes the rest", [D], ["deny: d"]),
    ("only authorizers pass what none refuses", [E, F], ["external-auth: e fraud.prod:9000, f limits.prod:9000"]),
    ("authorizers, deny, allow", [A, D, E], ["external-auth: e fraud.prod:9000", "deny: d", "allow: a"]),
    ("an authorizer elsewhere without a grant denies", [ELSEWHERE], ["external-auth-not-granted: elsewhere"]),
    (
        "a broken authorizer denies before any is asked",
        [E, ELSEWHERE, A],
        ["external-auth-not-granted: elsewhere", "external-auth: e fraud.prod:9000", "allow: a"],
    ),
    ("audit decides nothing and closes nothing", list(AUDITED), ["audit: a9 ALLOW, d9 DENY, e9 ASK"]),
    (
        "audit comes first",
        [A, D, E, *AUDITED],
        ["audit: a9 ALLOW, d9 DENY, e9 ASK", "external-auth: e fraud.prod:9000", "deny: d", "allow: a"],
    ),
    (
        "an audited broken authorizer denies nothing",
        [asks("x", where=", namespace: security", audit=True)],
        ["audit: x ASK"],
    ),
    ("what asks about nothing asks nobody", [today("z", "action: Allow\nrules: []"), E], None),
]


@pytest.mark.parametrize(("policies", "stages"), [row[1:] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_the_stages_of_a_level_and_their_order(policies: list[Policy], stages: list[str] | None) -> None:
    expected = stages if stages is not None else ["external-auth: e fraud.prod:9000", "allow:"]
    assert stage_lines(layer(*policies).otherwise) == expected
    assert layer(*policies).cases == ()


def test_the_order_in_which_policies_are_given_does_not_matter() -> None:
    orders = {tuple(stage_lines(layer(*order).otherwise)) for order in permutations([A, B, D, E, AUDITED[0]])}
    assert len(orders) == 1


@pytest.mark.parametrize(("targets", "name"), [(GATEWAY, "gateway/access"), (BACKEND, "backend/access")])
def test_each_level_has_its_name(targets: str, name: str) -> None:
    assert layer(allows("a", targets=targets)).name == name


def test_what_no_policy_targets_has_no_layer() -> None:
    assert dialects.assemble([], LITERAL, World()) == []


def test_every_refusal_is_forbidden() -> None:
    stages = layer(A, D, E, ELSEWHERE).otherwise.stages
    deciding = [stage for stage in stages if isinstance(stage, Deny | AllowAny | AskAll)]
    assert (len(deciding), {stage.refusal for stage in deciding}) == (4, {Refusal.FORBIDDEN})


# Ruling 20


def test_by_default_what_no_rule_allows_is_denied_and_the_reading_is_said() -> None:
    only = layer(A, D)
    assert only.cases == ()
    assert stage_lines(only.otherwise) == ["deny: d", "allow: a"]
    assert [str(reading) for reading in only.otherwise.readings] == ["unlistedCaller: deny"]


def test_read_literally_a_caller_whom_no_rule_names_passes_what_is_not_denied() -> None:
    only = layer(A, D, E, settings=PROCEED)
    before = ["external-auth: e fraud.prod:9000", "deny: d"]
    caller = "identity is spiffe://cluster.local/ns/prod/sa/checkout"
    assert [(str(case.when), stage_lines(case.chain)) for case in only.cases] == [(caller, [*before, "allow: a"])]
    assert stage_lines(only.otherwise) == before
    assert {tuple(map(str, chain.readings)) for chain in only.chains} == {("unlistedCaller: proceed",)}


def test_read_literally_a_rule_without_source_names_everyone() -> None:
    (case,) = layer(EVERYTHING, settings=PROCEED).cases
    assert str(case.when) == "(anything)"


@pytest.mark.parametrize("policies", [[D], [E], [D, E], [*AUDITED]])
def test_the_setting_changes_nothing_where_no_policy_allows(policies: list[Policy]) -> None:
    literal, proceed = layer(*policies), layer(*policies, settings=PROCEED)
    assert replace(literal, audit=None) == replace(proceed, audit=None)
    assert layer(*policies).otherwise.readings == ()


# Ruling F


def grant(kind: str = "XAccessPolicy", namespace: str = "prod", name: str | None = None) -> World:
    origin, destination = GrantFrom(PROTOTYPE, kind, namespace), GrantTo("", "Service", name)
    return World.of([ReferenceGrant("security", "g", (origin,), (destination,))])


@pytest.mark.parametrize(
    ("world", "granted"),
    [
        (grant(), True),
        (grant(name="fraud"), True),
        (grant(name="other"), False),
        (grant(kind="AccessPolicy"), False),
        (grant(namespace="shop"), False),
        (World(), False),
    ],
)
def test_an_authorizer_in_another_namespace_needs_a_grant_there(world: World, granted: bool) -> None:
    stages = stage_lines(layer(ELSEWHERE, world=world).otherwise)
    sound = "external-auth: elsewhere fraud.security:9000"
    assert stages == [sound if granted else "external-auth-not-granted: elsewhere"]


def test_one_service_that_is_asked_in_two_ways_is_two_authorizers_of_one_name() -> None:
    other = today(
        "h",
        "action: ExternalAuth\n"
        "externalAuth: {protocol: HTTP, http: {path: /check}, backendRef: {name: fraud, port: 9000}}",
    )
    first, second = (ask.authorizer for ask in layer(E, other).asks)
    assert isinstance(first, AuthorizerName)
    assert isinstance(second, AuthorizerName)
    assert (first.external.protocol, second.external.path) == (ExternalProtocol.GRPC, "/check")
    assert str(first) == str(second) == "fraud.prod:9000"
    assert first != second
    assert {"fraud.prod:9000": "allow"}[first] == {"fraud.prod:9000": "allow"}[second]
