"""Conversions from Istio, and there and back: the same if nothing is lost, and never more."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.authority import programs_of
from eastgate.convert import Assumption, Options
from tests.convert.conversions import Manifest, Outcome, converted, is_policy
from tests.convert.istio_generate import meshes
from tests.convert.test_gep_generated import GEP, clusters
from tests.worlds.test_generated_clusters import authority_of

ACCOUNTS = ["sa:a/x", "sa:a/y", "sa:b/x", "sa:b/y"]
FOREIGN = ["spiffe://evil/ns/a/sa/x", "spiffe://evil/ns/b/sa/y"]
DEEPER = ["spiffe://td/ns/a/sa/x/deeper", "spiffe://cluster.local/ns/a/sa/x/deeper", "spiffe://td/x/ns/b/y"]
HTTP = list(itertools.product(["GET", "POST", "DELETE"], ["/a", "/a/b", "/c/b", "/a*b"]))
PORTS = [80, 443, 9090]


def things(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if not is_policy(manifest)]


def compare(
    manifests: list[Manifest], outcome: Outcome, chosen: Settings, assumed: frozenset[Assumption], *, linkerd: bool
) -> None:
    ours = Settings.from_mapping({"dataPlane": "eastgate"}, chosen)
    # Before the conversion there is no Linkerd, so its default policy does not count.
    none = Settings.from_mapping({"linkerdDefaultPolicy": "all-unauthenticated"}, ours)
    before = authority_of(manifests, none)
    after = authority_of([*things(manifests), *outcome.written, *outcome.kept], ours if linkerd else none)
    event("lossless" if not outcome.losses else "with losses")
    event("written" if outcome.written else "nothing written")
    foreign = [] if Assumption.ISTIO_TRUST_DOMAIN in assumed else FOREIGN
    deeper = [] if Assumption.ISTIO_IDENTITIES in assumed else DEEPER
    http = itertools.cycle(HTTP)
    pods = [m for m in manifests if m["kind"] == "Pod"]
    if linkerd:
        pods = [m for m in pods if _is_attached(before, m)]
    addresses = ["10.1.2.3", "8.8.8.8"]
    for pod, source, port, address in itertools.product(
        pods, ["anonymous", *ACCOUNTS, *foreign, *deeper], PORTS, addresses
    ):
        method, path = next(http)
        to = f"pod:a/{pod['metadata']['name']}"
        question = Question.of(source, to, port=port, method=method, path=path, host="h", source_ip=address)
        was, becomes = before.decide(question), after.decide(question)
        assert not becomes.allowed or was.allowed, ("wider", question, was.reason, becomes.reason)
        assert outcome.losses or becomes.allowed == was.allowed, ("other", question, was.reason, becomes.reason)


def _is_attached(authority: Authority, pod: Manifest) -> bool:
    return bool(programs_of(authority).attached(f"a/{pod['metadata']['name']}"))


assumptions = st.sampled_from([frozenset(), frozenset(Assumption)])


@pytest.mark.parametrize("to", [*GEP, "linkerd"])
@settings(max_examples=50, deadline=None)
@given(mesh=meshes(), assumed=assumptions)
def test_from_istio(to: str, mesh: tuple[list[Manifest], Settings], assumed: frozenset[Assumption]) -> None:
    manifests, chosen = mesh
    outcome = converted(manifests, to, chosen, Options(assumed))
    compare(manifests, outcome, chosen, assumed, linkerd=to == "linkerd")


@pytest.mark.parametrize("back", GEP)
@settings(max_examples=30, deadline=None)
@given(situation=clusters)
def test_from_gep_3779_to_istio_and_back(back: str, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    everything = Options(frozenset(Assumption))
    once = converted(manifests, "istio", chosen, everything)
    twice = converted([*things(manifests), *once.written], back, chosen, everything)
    if once.losses or twice.losses:
        return
    before, after = authority_of(manifests, chosen), authority_of([*things(manifests), *twice.written], chosen)
    for pod in (m for m in manifests if m["kind"] == "Pod"):
        to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for source, port, (method, path) in itertools.product(["anonymous", *ACCOUNTS], PORTS, HTTP):
            question = Question.of(source, to, port=port, method=method, path=path)
            assert after.decide(question).allowed == before.decide(question).allowed, question


@settings(max_examples=50, deadline=None)
@given(situation=clusters)
def test_what_gep_3779_becomes_is_the_same_at_sidecars_of_istio(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    outcome = converted(manifests, "istio", chosen, Options(frozenset(Assumption)))
    mesh = {"dataPlane": "native", "istioDataPlane": "sidecar", "pathNormalization": "merge-slashes"}
    before = authority_of(manifests, chosen)
    kept = authority_of([*things(manifests), *outcome.kept], chosen)
    after = authority_of([*things(manifests), *outcome.written], Settings.from_mapping(mesh, chosen))
    callers = ["anonymous", *ACCOUNTS, "spiffe://evil/ns/a/sa/x"]
    for pod in (m for m in manifests if m["kind"] == "Pod"):
        to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for source, port, (method, path) in itertools.product(callers, PORTS, HTTP):
            question = Question.of(source, to, port=port, method=method, path=path, host="h")
            was = before.decide(question).allowed
            becomes = after.decide(question).allowed and kept.decide(question).allowed
            assert was or not becomes, ("wider", question)
            assert outcome.losses or was == becomes, ("other", question)
