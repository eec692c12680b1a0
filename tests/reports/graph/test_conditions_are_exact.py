"""On generated worlds, the condition of an edge holds for exactly the allowed requests, on each way."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.engine.reference import holds
from eastgate.ir import Request
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.destinations import Destination
from eastgate.reach.reachability import Reachability
from eastgate.reports.graph.conditions import allowed_when
from eastgate.reports.graph.reached import branches_on, ways_on
from tests.reach.asking import find_answer, find_entrance, first_allowed, with_answers
from tests.worlds import access_generate, kuadrant_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import Manifest
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, every_request, situations
from tests.worlds.test_generated_kuadrant import TO, accepted


def check_conditions(authority: Authority, reach: Reachability, asked: Question) -> None:
    kind, _, key = str(asked.destination).partition(":")
    destination = next(each for each in reach.destinations if each.kind == kind and key in each.members)
    request = authority.requests(asked)[0]
    allowed = first_allowed(reach, destination, request)
    if allowed is not None:
        assert allowed == _by_conditions(reach, destination, request), asked


def _by_conditions(reach: Reachability, destination: Destination, request: Request) -> bool:
    entrance = find_entrance(destination, request)
    if entrance is None:
        return False
    whole = with_answers(request, entrance.layers)
    condition = allowed_when(find_answer(reach, entrance, request).branches)
    (way,) = [way for way in ways_on(entrance, Facts()) if holds(way.guard, whole)]
    on_way = allowed_when(branches_on(way, find_answer(reach, way.entrance, request), Facts()))
    assert holds(on_way, whole) == holds(condition, whole)
    return holds(condition, whole)


@settings(max_examples=30, deadline=None)
@given(situations())
def test_of_policies_on_workloads(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    reach = Reachability(authority)
    for key in authority.world.workloads:
        for identity, port, method, path in itertools.islice(every_request(), 0, None, 2):
            check_conditions(
                authority,
                reach,
                Question.of(identity or "anonymous", f"pod:{key}", port=port, method=method, path=path),
            )


@settings(max_examples=20, deadline=None)
@given(access_generate.policies, access_generate.answers, st.sampled_from(["deny", "proceed"]))
def test_of_access_policies(policies: list[Manifest], answers: dict[str, str], unlisted: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    reach = Reachability(authority)
    for to, call in itertools.product(["gateway:n/g", "backend:n/b1"], every_call("b1")):
        check_conditions(authority, reach, question(call, to, answers))


@settings(max_examples=60, deadline=None)
@given(kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_of_auth_policies(manifests: list[Manifest], calls: list[HttpCall]) -> None:
    authority = authority_of(accepted(manifests), Settings())
    reach = Reachability(authority)
    for call in calls:
        claims = None if call.claims is None else json.loads(call.claims)
        asked = Question.of(
            "anonymous",
            TO[None],
            port=80,
            method=call.method,
            path=call.path,
            host=call.host,
            sni=call.sni,
            headers=dict(call.headers),
            claims=claims,
        )
        check_conditions(authority, reach, asked)
