"""Findings of lint about rules are true, on generated clusters: no request is a counterexample."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Settings
from eastgate.authority.authority import programs_of
from eastgate.dialects import Policy, assemble
from eastgate.dialects.gep3779 import Policy as GepPolicy
from eastgate.dialects.linting import codes
from eastgate.engine import reference
from eastgate.ir import Attachment, Layer, Request
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT, SERVICE
from eastgate.reports.lint import Finding, lint
from tests.worlds import generate
from tests.worlds.oracle import Manifest
from tests.worlds.test_generated_clusters import authority_of, situations

NEVER_MATCH = (codes.SHADOWED, codes.MATCHES_NOTHING, codes.CONTRADICTION)
NOT_NEEDED = (*NEVER_MATCH, codes.REDUNDANT, codes.DUPLICATE)


@st.composite
def crowded(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    """Draw one pod with many policies, whose rules overlap."""
    pod = draw(generate.pod("p0"))
    namespace = pod["metadata"]["namespace"]
    policies = []
    for number in range(draw(st.integers(2, 4))):
        level = draw(st.sampled_from(["network", "application"]))
        policy = draw(generate.v1alpha2(f"q{number}", ambient=False))
        policy["metadata"] = {"name": f"q{number}", "namespace": namespace}
        policy["spec"] = {
            "targetRefs": [{"kind": "Pod", "selector": {}}],
            "action": draw(st.sampled_from(["ALLOW", "DENY"])),
            "enforcementLevel": level,
            "rules": draw(st.lists(generate.rule(level, bare=True), min_size=1, max_size=3)),
        }
        policies.append(policy)
    tiers = [draw(generate.cluster_policy(f"c{n}")) for n in range(draw(st.integers(0, 2)))]
    return [pod, *policies, *tiers], Settings.from_mapping({"trustDomain": "td"})


clusters = situations() | crowded()


def well_formed(authority: Authority, pod: str) -> Iterator[Request]:
    """Yield the requests without encoded slashes, which are refused in every place where a rule reads paths."""
    return (request for request in requests(authority, pod) if not request.refused_path)


def requests(authority: Authority, pod: str) -> Iterator[Request]:
    """Yield every identity on every port, with a few methods and paths each."""
    http = itertools.cycle(itertools.product([*generate.METHODS, None], generate.PATHS))
    services = [None, *authority.world.services_of(pod)]
    for identity, port, service in itertools.product([None, *generate.IDENTITIES], generate.PORTS, services):
        for _ in range(2):
            method, path = next(http)
            yield Request({IDENTITY: identity, PORT: port, SERVICE: service, METHOD: method, PATH: path})


def rule_of(finding: Finding) -> tuple[str, int]:
    policy, _, rest = finding.message.partition(" rule ")
    return policy, int(rest.split()[0])


def layers(authority: Authority, pod: str, dropped: tuple[str, int] | None = None) -> list[Layer]:
    attached = [_without(one, dropped) for one in programs_of(authority).attached(pod)]
    return assemble(attached, authority.settings, authority.world)


def _without(one: Attachment[Policy], dropped: tuple[str, int] | None) -> Attachment[Policy]:
    policy = one.policy
    if dropped is None or str(policy.ref) != dropped[0] or not isinstance(policy, GepPolicy):
        return one
    kept = tuple(rule for rule in policy.rules if rule.origin.index != dropped[1])
    return Attachment(replace(policy, rules=kept), one.service)


@settings(max_examples=100, deadline=None)
@given(clusters)
def test_no_request_is_decided_by_a_rule_that_can_never_match(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    never = {rule_of(finding) for finding in lint(authority) if finding.code in NEVER_MATCH}
    for pod in authority.world.workloads if never else ():
        for request in requests(authority, pod):
            rule = reference.decide(layers(authority, pod), request).rule
            assert rule is None or (str(rule.origin.policy), rule.origin.index) not in never


@settings(max_examples=100, deadline=None)
@given(clusters, st.integers(0, 99))
def test_without_a_rule_that_is_not_needed_every_decision_stays(
    situation: tuple[list[Manifest], Settings], which: int
) -> None:
    authority = authority_of(*situation)
    spare = sorted({rule_of(finding) for finding in lint(authority) if finding.code in NOT_NEEDED})
    if not spare:
        return
    dropped = spare[which % len(spare)]
    for pod in authority.world.workloads:
        for request in well_formed(authority, pod):
            before = reference.decide(layers(authority, pod), request)
            assert reference.decide(layers(authority, pod, dropped), request).allowed == before.allowed


@settings(max_examples=60, deadline=None)
@given(clusters)
def test_all_rules_that_are_not_needed_may_go_at_once(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    spare = {rule_of(finding) for finding in lint(authority) if finding.code in NOT_NEEDED}
    for pod in authority.world.workloads if spare else ():
        attached = list(programs_of(authority).attached(pod))
        for dropped in spare:
            attached = [_without(one, dropped) for one in attached]
        thinner = assemble(attached, authority.settings, authority.world)
        for request in well_formed(authority, pod):
            before = reference.decide(layers(authority, pod), request)
            assert reference.decide(thinner, request).allowed == before.allowed


@settings(max_examples=100, deadline=None)
@given(clusters)
def test_no_caller_reaches_a_workload_that_is_reported_as_closed(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    closed = {s for one in lint(authority) if one.code is codes.LOCKED_OUT for s in one.subjects}
    for pod in closed & authority.world.workloads.keys():
        for request in requests(authority, pod):
            assert not reference.decide(layers(authority, pod), request).allowed
