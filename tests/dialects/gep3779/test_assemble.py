"""Policies that target a workload give its layers: one for each level, with stages in the order of the ruling."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from eastgate import dialects
from eastgate.cluster import World
from eastgate.dialects.gep3779 import Policy
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
from eastgate.ir import AllowAny, Attachment, Chain, Deny, FirstMatch, Layer, Observe, Refusal, Rule, Stage
from eastgate.settings import MeshMode, Settings
from tests.dialects.reading import manifest, policy

LITERAL = Settings()
ISTIO = Settings(sections=(GepSettings(deny_only=DenyOnly.ALLOW),))
TRAFFIC = Settings(mesh_mode=MeshMode.AMBIENT, sections=(GepSettings(service_target=ServiceTarget.TRAFFIC),))
DENY_ONLY = "denyOnly: {} (only DENY policies target this workload)"


def namespaced(name: str, action: str, *, rules: int = 1, level: str = "", audit: bool = False) -> Policy:
    mode = ", annotations: {eastgate.dev/mode: audit}" if audit else ""
    written = ", ".join(f"{{networkAttributes: {{ports: [{port}]}}}}" for port in range(1, rules + 1))
    spec = f"targetRefs: [{{kind: Pod, selector: {{}}}}]\naction: {action}\n{level}\nrules: [{written}]"
    return policy(manifest("v1alpha2", spec, f"{{name: {name}, namespace: shop{mode}}}"))


def cluster(name: str, tier: str, action: str, priority: int = 10, *, level: str = "", audit: bool = False) -> Policy:
    mode = ", annotations: {eastgate.dev/mode: audit}" if audit else ""
    spec = f"tier: {tier}\npriority: {priority}\naction: {action}\n{level}\nrules: [{{}}]"
    return policy(manifest("cluster", spec, f"{{name: {name}{mode}}}"))


def layers(*policies: Policy, settings: Settings = LITERAL) -> list[Layer]:
    return dialects.assemble([Attachment(one) for one in policies], settings, World())


def chain(*policies: Policy, settings: Settings = LITERAL) -> list[str]:
    """Return the stages of the only layer."""
    (layer,) = layers(*policies, settings=settings)
    return stage_lines(layer.otherwise)


def stage_lines(one: Chain) -> list[str]:
    return [_stage(stage) for stage in one.stages]


def _stage(stage: Stage) -> str:
    """Return a stage as a line: its name, and each of its rules as policy.index, with its effect if that differs."""
    match stage:
        case Deny(name, rules) | AllowAny(name, rules):
            words = [_rule(rule) for rule in rules]
        case FirstMatch(name, steps):
            words = [f"{_rule(step.rule)} {step.effect}" for step in steps]
        case Observe(name, rules, would):
            words = [f"{_rule(rule)} {action}" for rule, action in zip(rules, would, strict=True)]
        case _:
            raise AssertionError(stage)
    return f"{name}: {', '.join(words)}".strip()


def _rule(rule: Rule) -> str:
    assert rule.origin.policy is not None
    return f"{rule.origin.policy.name}.{rule.origin.index}"


A = namespaced("a", "ALLOW", rules=2)
B = namespaced("b", "DENY", rules=2)
C = namespaced("c", "ALLOW", rules=0)
D = namespaced("d", "DENY")
AUDITED = namespaced("audited", "DENY", audit=True)
ADMIN = cluster("admin", "Admin", "DENY")
BASELINE = cluster("base", "Baseline", "DENY")

CHAINS = [
    # namespaced policies: DENY goes first, then one ALLOW must match
    ("allow alone", [A], ["allow: a.0, a.1"]),
    ("allow without rules allows nothing", [C], ["allow:"]),
    ("several allow policies are a union", [A, C, namespaced("z", "ALLOW")], ["allow: a.0, a.1, z.0"]),
    ("deny before allow", [A, B, D], ["deny: b.0, b.1, d.0", "allow: a.0, a.1"]),
    # audit: recorded before any decision; an audited policy enforces nothing
    ("audit alone does not close", [AUDITED], ["audit: audited.0 DENY"]),
    ("audit first", [A, AUDITED], ["audit: audited.0 DENY", "allow: a.0, a.1"]),
    (
        "an audited ALLOW says what it would do",
        [namespaced("audited", "ALLOW", audit=True), B, A],
        ["audit: audited.0 ALLOW", "deny: b.0, b.1", "allow: a.0, a.1"],
    ),
    ("audited cluster policies", [cluster("x", "Admin", "PASS", audit=True)], ["audit: x.0 PASS"]),
    # Admin precedes everything; Baseline applies only if no enforced namespaced policy does
    ("admin alone falls through", [ADMIN], ["admin: admin.0 deny"]),
    ("baseline alone", [BASELINE], ["baseline: base.0 deny"]),
    ("admin before namespaced", [ADMIN, A, B], ["admin: admin.0 deny", "deny: b.0, b.1", "allow: a.0, a.1"]),
    ("no baseline beside namespaced", [BASELINE, A], ["allow: a.0, a.1"]),
    ("baseline beside an audited policy", [BASELINE, AUDITED], ["audit: audited.0 DENY", "baseline: base.0 deny"]),
    ("admin and baseline", [ADMIN, BASELINE], ["admin: admin.0 deny", "baseline: base.0 deny"]),
    (
        "all of them",
        [AUDITED, ADMIN, BASELINE, A, D],
        ["audit: audited.0 DENY", "admin: admin.0 deny", "deny: d.0", "allow: a.0, a.1"],
    ),
]


@pytest.mark.parametrize(("policies", "stages"), [row[1:] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_the_stages_of_a_chain_and_their_order(policies: list[Policy], stages: list[str]) -> None:
    assert chain(*policies) == stages


def test_the_order_in_which_policies_are_given_does_not_matter() -> None:
    orders = {tuple(chain(*order)) for order in permutations([A, B, ADMIN, BASELINE, AUDITED])}
    assert len(orders) == 1


def test_in_a_tier_lower_priority_goes_first_then_deny_then_pass_then_allow_then_the_name() -> None:
    policies = [
        cluster("last", "Admin", "DENY", 1000),
        cluster("allow-2", "Admin", "ALLOW", 5),
        cluster("allow-1", "Admin", "ALLOW", 5),
        cluster("pass", "Admin", "PASS", 5),
        cluster("deny", "Admin", "DENY", 5),
        cluster("first", "Admin", "ALLOW", 0),
    ]
    expected = "admin: first.0 accept, deny.0 deny, pass.0 pass, allow-1.0 accept, allow-2.0 accept, last.0 deny"
    assert chain(*policies) == [expected]
    assert chain(*reversed(policies)) == [expected]


@pytest.mark.parametrize(
    ("settings", "stages", "readings"),
    [
        (LITERAL, ["deny: d.0", "allow:"], (DENY_ONLY.format("deny"),)),
        (ISTIO, ["deny: d.0"], (DENY_ONLY.format("allow"),)),
    ],
)
def test_the_rest_of_a_workload_that_only_deny_policies_target_is_a_setting_and_is_said(
    settings: Settings, stages: list[str], readings: tuple[str, ...]
) -> None:
    (layer,) = layers(D, settings=settings)
    assert stage_lines(layer.otherwise) == stages
    assert tuple(map(str, layer.otherwise.readings)) == readings


@pytest.mark.parametrize("policies", [[A, D], [C, D], [A], [ADMIN], [AUDITED], [BASELINE]])
def test_the_setting_for_deny_only_changes_nothing_elsewhere(policies: list[Policy]) -> None:
    literal, istio = (layers(*policies, settings=each) for each in (LITERAL, ISTIO))
    assert [replace(each, audit=None) for each in literal] == [replace(each, audit=None) for each in istio]
    assert [layer.otherwise.readings for layer in layers(*policies)] == [()]


def test_an_audited_allow_policy_does_not_count_as_one_for_deny_only() -> None:
    audited = namespaced("audited", "ALLOW", audit=True)
    assert chain(audited, D, settings=ISTIO) == ["audit: audited.0 ALLOW", "deny: d.0"]
    assert chain(audited, D) == ["audit: audited.0 ALLOW", "deny: d.0", "allow:"]


L7 = "enforcementLevel: APPLICATION"


def test_each_level_is_a_layer_of_its_own_and_network_comes_first() -> None:
    found = layers(namespaced("app", "ALLOW", level=L7), A, cluster("admin7", "Admin", "DENY", level=L7), BASELINE)
    assert [(layer.name, stage_lines(layer.otherwise)) for layer in found] == [
        ("workload/network", ["allow: a.0, a.1"]),
        ("workload/application", ["admin: admin7.0 deny", "allow: app.0"]),
    ]


def test_a_level_that_no_policy_targets_has_no_layer() -> None:
    assert [layer.name for layer in layers(namespaced("app", "DENY", level=L7))] == ["workload/application"]
    assert layers() == []


def test_baseline_and_deny_only_are_judged_level_by_level() -> None:
    found = layers(A, cluster("base7", "Baseline", "DENY", level=L7), namespaced("d4", "DENY"), settings=ISTIO)
    assert [stage_lines(layer.otherwise) for layer in found] == [
        ["deny: d4.0", "allow: a.0, a.1"],
        ["baseline: base7.0 deny"],
    ]


@pytest.mark.parametrize(("level", "refusal"), [("", Refusal.CLOSED), (L7, Refusal.FORBIDDEN)])
def test_a_refusal_is_what_the_level_can_say(level: str, refusal: Refusal) -> None:
    (layer,) = layers(
        namespaced("a", "ALLOW", level=level),
        namespaced("d", "DENY", level=level),
        cluster("admin", "Admin", "DENY", level=level),
    )
    refusals = {stage.refusal for stage in layer.otherwise.stages if isinstance(stage, Deny | AllowAny | FirstMatch)}
    assert (len(layer.otherwise.stages), refusals) == (3, {refusal})


# A policy on a Service: the pods behind it, or the traffic addressed to it (ruling 10)

REVIEWS, RATINGS = "shop/reviews", "shop/ratings"


def test_read_as_workloads_a_policy_on_a_service_governs_the_pods_whatever_the_address() -> None:
    attached = [Attachment(A, REVIEWS), Attachment(D, RATINGS), Attachment(B)]
    (layer,) = dialects.assemble(attached, LITERAL, World())
    assert layer.cases == ()
    assert stage_lines(layer.otherwise) == ["deny: b.0, b.1, d.0", "allow: a.0, a.1"]


def test_a_policy_that_reaches_a_workload_through_two_services_is_there_once() -> None:
    attached = [Attachment(A, REVIEWS), Attachment(A, RATINGS), Attachment(A)]
    assert dialects.assemble(attached, LITERAL, World()) == layers(A)


def test_read_as_traffic_each_service_has_its_chain_and_what_goes_to_the_pod_has_another() -> None:
    attached = [Attachment(A, REVIEWS), Attachment(D, RATINGS), Attachment(B), Attachment(ADMIN)]
    (layer,) = dialects.assemble(attached, TRAFFIC, World())
    admin, deny = "admin: admin.0 deny", "deny: b.0, b.1"
    assert [(str(case.when), stage_lines(case.chain)) for case in layer.cases] == [
        ("service is shop/ratings", [admin, "deny: b.0, b.1, d.0", "allow:"]),
        ("service is shop/reviews", [admin, deny, "allow: a.0, a.1"]),
    ]
    assert stage_lines(layer.otherwise) == [admin, deny, "allow:"]


def test_read_as_traffic_what_no_policy_governs_is_open() -> None:
    (layer,) = dialects.assemble([Attachment(A, REVIEWS)], TRAFFIC, World())
    assert stage_lines(layer.otherwise) == []


def test_read_as_traffic_the_services_are_in_the_order_of_their_names() -> None:
    names = [f"shop/s{number}" for number in range(9)]
    (layer,) = dialects.assemble([Attachment(A, name) for name in reversed(names)], TRAFFIC, World())
    assert [str(case.when) for case in layer.cases] == [f"service is {name}" for name in names]
