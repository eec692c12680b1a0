"""Converted policies decide the same if nothing is lost, and never allow more if something is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from tests.convert.conversions import ALL_ASSUMED, Manifest, Outcome, converted, is_policy
from tests.convert.crowds import crowds
from tests.convert.istio_semantics import Call, Istio, problems
from tests.worlds.test_generated_clusters import authority_of, every_request, situations

GEP = ["authorizationpolicy-v1alpha1", "authorizationpolicy-v1alpha2", "xauthorizationpolicy"]
Allows = Callable[[Manifest, str | None, int, str, str], bool]


def things(manifests: list[Manifest]) -> list[Manifest]:
    return [m for m in manifests if not is_policy(m)]


def by_engine(authority: Authority) -> Allows:
    def allows(pod: Manifest, identity: str | None, port: int, method: str, path: str) -> bool:
        to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        return authority.decide(Question.of(identity or "anonymous", to, port=port, method=method, path=path)).allowed

    return allows


def compare(manifests: list[Manifest], before: Allows, after: Allows, losses: list[str], *, encoded: bool) -> None:
    event("lossless" if not losses else "with losses")
    for pod in (m for m in manifests if m["kind"] == "Pod"):
        for identity, port, method, path in every_request():
            if not encoded and "%" in path:
                continue  # the mesh decides whether to refuse these
            was, becomes = before(pod, identity, port, method, path), after(pod, identity, port, method, path)
            told = (pod["metadata"]["name"], identity, port, method, path, losses)
            assert not becomes or was, ("wider", *told)
            assert losses or becomes == was, ("other", *told)


@st.composite
def spread(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    """Draw a cluster.

    Cluster-wide policies are always lost, so most clusters here have none and are compared exactly.
    """
    manifests, chosen = draw(situations())
    if draw(st.integers(0, 4)):
        manifests = [m for m in manifests if m["kind"] != "ClusterAuthorizationPolicy"]
    return manifests, chosen


clusters = crowds() | crowds() | spread()


@pytest.mark.parametrize("to", GEP)
@settings(max_examples=150, deadline=None)
@given(situation=clusters)
def test_between_the_forms_of_gep_3779(to: str, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    outcome = converted(manifests, to, chosen)
    anew = authority_of([*things(manifests), *outcome.written, *outcome.kept], chosen)
    compare(manifests, by_engine(authority_of(manifests, chosen)), by_engine(anew), outcome.losses, encoded=True)


def by_istio(outcome: Outcome, manifests: list[Manifest], chosen: Settings) -> Allows:
    """Decide with Istio and with the unconverted policies, which stay in force."""
    for policy in outcome.written:
        assert problems(policy) == [], policy
    stays = by_engine(authority_of([*things(manifests), *outcome.kept], chosen))
    mesh = Istio(outcome.written, chosen.trust_domain)

    def allows(pod: Manifest, identity: str | None, port: int, method: str, path: str) -> bool:
        call = Call(identity, port, method, path)
        return mesh.allows(pod, call) and stays(pod, identity, port, method, path)

    return allows


@pytest.mark.parametrize("assumed", [False, True])
@settings(max_examples=300, deadline=None)
@given(situation=clusters)
def test_to_istio(assumed: bool, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    if assumed:  # so no identity below that of a service account exists
        manifests = [_without_deeper(m) for m in manifests]
    outcome = converted(manifests, "istio", chosen, ALL_ASSUMED if assumed else None)
    before = by_engine(authority_of(manifests, chosen))
    after = by_istio(outcome, manifests, chosen)

    def known(allows: Allows) -> Allows:
        return lambda pod, identity, *rest: not (assumed and _is_deeper(identity)) and allows(pod, identity, *rest)

    compare(manifests, known(before), known(after), outcome.losses, encoded=False)


def _is_deeper(identity: str | None) -> bool:
    return identity is not None and identity.endswith("/deeper")


def _without_deeper(manifest: Any) -> Any:
    if isinstance(manifest, dict):
        return {key: _without_deeper(value) for key, value in manifest.items()}
    if isinstance(manifest, list):
        return [_without_deeper(value) for value in manifest]
    return manifest.removesuffix("/deeper") if isinstance(manifest, str) else manifest


@settings(max_examples=60, deadline=None)
@given(clusters, st.sampled_from(GEP), st.sampled_from(GEP))
def test_there_and_back_again(situation: tuple[list[Manifest], Settings], there: str, back: str) -> None:
    manifests, chosen = situation
    once = converted(manifests, there, chosen)
    twice = converted([*things(manifests), *once.written], back, chosen)
    if once.losses or twice.losses:
        return
    anew = authority_of([*things(manifests), *twice.written], chosen)
    compare(manifests, by_engine(authority_of(manifests, chosen)), by_engine(anew), [], encoded=True)
