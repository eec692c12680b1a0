"""The removal of a policy changes a decision exactly if `Cluster.effects` reports the policy as enforced."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial

from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.questions import arrivals
from eastgate.cluster.points import Point
from eastgate.ir import PolicyRef
from eastgate.reports.cluster import Cluster
from eastgate.settings import DataPlane
from tests.worlds import access_generate, kuadrant_generate, linkerd_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, every_request, situations
from tests.worlds.test_generated_kuadrant import TO, accepted
from tests.worlds.test_generated_kuadrant import decided as decided_of_http
from tests.worlds.test_generated_linkerd import compared, decided

Sample = tuple[frozenset[Point], Callable[[], object]]  # the points of a request, and its decision there


def check_effects(authority: Authority, samples: Iterable[Sample]) -> None:
    cluster = Cluster(authority)
    asked = list(samples)
    before = [(cluster_effects(cluster, points), decide()) for points, decide in asked]
    for policy in authority.policies:
        authority.update(remove=[policy.ref])
        for (enforced, decision), (points, decide) in zip(before, asked, strict=True):
            after = decide()
            if after != decision:
                event("a decision changed")
                assert policy.ref in enforced, (policy.ref, points, decision, after)
        authority.update([policy])


def cluster_effects(cluster: Cluster, points: Iterable[Point]) -> frozenset[PolicyRef]:
    return frozenset().union(*(cluster.effects(point).enforced for point in points))


def sample(authority: Authority, asked: Question) -> Sample:
    ways = arrivals(asked, authority.world, authority.settings)
    points = frozenset(point for arrival in ways for point in arrival.points)
    return points, lambda: authority.decide(asked).status


@settings(max_examples=100, deadline=None)
@given(situations())
def test_of_policies_on_workloads(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    authority = authority_of(manifests, chosen)
    requests = list(itertools.islice(every_request(), 0, None, 4))
    targets = [f"pod:{key}" for key in authority.world.workloads]
    targets += [f"service:{key}" for key in authority.world.services if authority.world.pods_of(key)]
    check_effects(
        authority,
        (
            sample(authority, Question.of(identity or "anonymous", to, port=port, method=method, path=path))
            for to in targets
            for identity, port, method, path in requests
        ),
    )


@settings(max_examples=200, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    linkerd_generate.calls,
)
def test_of_linkerds_resources(
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    default: str,
    plane: DataPlane,
    calls: list[Call],
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    authority = authority_of([namespace, *pods, *resources], chosen)

    def status(pod: Manifest, call: Call) -> int:
        return decided(authority, pod, call)[0]

    check_effects(
        authority,
        (
            (frozenset({f"n/{pod['metadata']['name']}"}), partial(status, pod, call))
            for pod in pods
            for call in compared(calls, plane)
        ),
    )


@settings(max_examples=60, deadline=None)
@given(access_generate.policies, access_generate.answers, st.sampled_from(["deny", "proceed"]))
def test_of_access_policies(policies: list[Manifest], answers: dict[str, str], unlisted: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    targets = ["gateway:n/g", *(f"backend:n/{backend}" for backend in access_generate.BACKENDS)]
    calls = list(itertools.islice(every_call("b1"), 0, None, 3))
    check_effects(authority, (sample(authority, question(call, to, answers)) for to in targets for call in calls))


@settings(max_examples=200, deadline=None)
@given(kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_of_auth_policies(manifests: list[Manifest], calls: list[HttpCall]) -> None:
    authority = authority_of(accepted(manifests), Settings())

    def status(call: HttpCall, route: str | None) -> int:
        return decided_of_http(authority, call, route).status

    def points(call: HttpCall, route: str | None) -> frozenset[Point]:
        asked = Question.of(
            "anonymous", TO[route], port=80, method=call.method, path=call.path, host=call.host, sni=call.sni
        )
        ways = arrivals(asked, authority.world, authority.settings)
        return frozenset(point for arrival in ways for point in arrival.points)

    check_effects(authority, ((points(call, route), partial(status, call, route)) for call in calls for route in TO))
