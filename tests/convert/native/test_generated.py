"""Native policies equal their source, or the mesh allows less. The oracles share no code with Eastgate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Question, Settings
from eastgate.authority.authority import programs_of
from eastgate.convert import Options
from eastgate.convert.native import NativeMesh, NativePlan, NativeState, Unwritable, steps, wanted
from eastgate.dialects.gep3779.settings import GepSettings
from tests.convert.conversions import ALL_ASSUMED
from tests.convert.istio_semantics import Call, Istio, problems
from tests.convert.native.clusters import Manifest, after, by_id, is_source, mesh_authority, read
from tests.convert.test_gep_generated import clusters
from tests.convert.test_linkerd_generated import HTTP, SOURCES, with_ports
from tests.worlds.oracle import Ask, Rulebook
from tests.worlds.test_generated_clusters import authority_of, every_request

Cluster = tuple[list[Manifest], Settings]


def pods_in(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == "Pod"]


def plan_of(manifests: list[Manifest], chosen: Settings, mesh: NativeMesh, options: Options) -> NativePlan:
    read_manifests = read(manifests, chosen)
    assert read_manifests.reporter.errors == []
    plan = wanted(read_manifests, mesh, options, Unwritable.CLOSE)
    for outcome in plan.outcomes:
        event(str(outcome.state))
        explained = outcome.losses or outcome.differences or outcome.state is NativeState.WRITTEN
        assert explained, outcome
    return plan


def verdicts_of_istio(manifests: list[Manifest], natives: list[Manifest], chosen: Settings) -> Iterator[bool]:
    mesh = Istio(natives, chosen.trust_domain)
    for pod in pods_in(manifests):
        for identity, port, method, path in every_request():
            yield mesh.allows(pod, Call(identity, port, method, path))


def _exists(identity: str | None, chosen: Settings, options: Options) -> bool:
    """Return whether a caller may exist. If everything is assumed, only service accounts of the mesh do."""
    if identity is None or not options.assumed:
        return True
    segments = identity.removeprefix("spiffe://").split("/")
    return len(segments) == 5 and (segments[0], segments[1], segments[3]) == (chosen.trust_domain, "ns", "sa")


@pytest.mark.parametrize("options", [Options(), ALL_ASSUMED], ids=["nothing assumed", "all assumed"])
@settings(max_examples=60, deadline=None)
@given(cluster=clusters)
def test_istio_allows_what_the_policies_allow_and_never_more(options: Options, cluster: Cluster) -> None:
    manifests, chosen = cluster
    plan = plan_of(manifests, chosen, NativeMesh.ISTIO, options)
    natives = list(plan.objects)
    assert [problem for native in natives for problem in problems(native)] == []
    gep = chosen.section(GepSettings)
    rulebook = Rulebook(manifests, chosen.trust_domain, str(gep.deny_only), str(gep.service_target))
    becomes = verdicts_of_istio(manifests, natives, chosen)
    for pod in pods_in(manifests):
        inexact = [o for o in plan.outcomes if not o.is_exact]
        for identity, port, method, path in every_request():
            allowed = next(becomes)
            if "%" in path or not _exists(identity, chosen, options):
                continue
            was = rulebook.allows(Ask(identity, pod, port, None, method, path))
            shown = (pod["metadata"], identity, port, method, path, plan.outcomes)
            assert plan.is_wider or not allowed or was, ("wider", *shown)
            assert inexact or allowed == was, ("other", *shown)


@settings(max_examples=60, deadline=None)
@given(with_ports())
def test_linkerd_allows_what_the_policies_allow_and_never_more(cluster: Cluster) -> None:
    manifests, chosen = cluster
    plan = plan_of(manifests, chosen, NativeMesh.LINKERD, Options())
    is_closed = chosen.to_json()["linkerdDefaultPolicy"] == "deny"
    assert plan.objects == () or is_closed
    assert not plan.is_wider or not is_closed
    open_settings = Settings.from_mapping({"linkerdDefaultPolicy": "all-unauthenticated"}, chosen)
    before = authority_of(manifests, open_settings)
    mesh = mesh_authority(manifests, plan.objects, chosen)
    inexact = [outcome for outcome in plan.outcomes if not outcome.is_exact]
    for pod in pods_in(manifests):
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if not programs_of(before).attached(key):
            continue
        for number, source in enumerate(SOURCES):
            for port in (80, 443, 9090, 7):
                method, path = HTTP[(number + port) % len(HTTP)]
                question = Question.of(
                    source, f"pod:{key}", port=port, method=method, path=path, host="h", source_ip="10.1.2.3"
                )
                was, becomes = before.decide(question).allowed, mesh.decide(question).allowed
                assert not is_closed or not becomes or was, ("wider", question, plan.outcomes)
                assert inexact or becomes == was, ("other", question, plan.outcomes)


# Changes


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[Manifest], list[Manifest], Settings]:
    """Draw two states of a cluster: some policies of a second cluster are added, and some of the first are removed."""
    manifests, chosen = draw(clusters)
    others, _ = draw(clusters)
    things = [m for m in manifests if not is_source(m)]
    policies = [m for m in manifests if is_source(m)]
    namespaces = {m["metadata"]["namespace"] for m in pods_in(manifests)}
    new = [m for m in others if is_source(m) and m["metadata"].get("namespace") in namespaces]
    names = {m["metadata"]["name"] for m in new}
    kept = [m for m in policies if m["metadata"]["name"] not in names and draw(st.booleans())]
    return [*things, *policies], [*things, *kept, *new], chosen


@settings(max_examples=40, deadline=None)
@given(changes())
def test_no_step_opens_what_is_closed_before_and_after(change: tuple[list[Manifest], list[Manifest], Settings]) -> None:
    old, new, chosen = change
    if chosen.to_json()["serviceTarget"] == "traffic" or read(new, chosen).reporter.errors:
        return
    before, later = (plan_of(m, chosen, NativeMesh.ISTIO, ALL_ASSUMED) for m in (old, new))
    natives = by_id(before)
    old_verdicts = list(verdicts_of_istio(old, list(natives.values()), chosen))
    new_verdicts = list(verdicts_of_istio(new, list(later.objects), chosen))
    planned = steps(natives.values(), later.objects, later.sources)
    event(f"{min(len(planned), 6)} steps")
    for step in planned:
        natives = after(natives, step)
        verdicts = verdicts_of_istio(old, list(natives.values()), chosen)
        for now, was, becomes in zip(verdicts, old_verdicts, new_verdicts, strict=True):
            assert not now or was or becomes, step
    assert natives == by_id(later)
    assert steps(natives.values(), later.objects, later.sources) == []


@settings(max_examples=25, deadline=None)
@given(with_ports(), st.data())
def test_no_step_in_linkerd_opens_what_is_closed_before_and_after(cluster: Cluster, data: st.DataObject) -> None:
    manifests, chosen = cluster
    closed = Settings.from_mapping({"linkerdDefaultPolicy": "deny"}, chosen)
    sources = [m for m in manifests if is_source(m)]
    rest = [m for m in manifests if not is_source(m) or data.draw(st.booleans())] if sources else manifests
    states = [manifests, rest]
    if data.draw(st.booleans()):
        states.reverse()
    before, later = (plan_of(m, closed, NativeMesh.LINKERD, Options()) for m in states)
    natives = by_id(before)
    planned = steps(natives.values(), later.objects, later.sources | before.sources)
    event(f"{min(len(planned), 6)} steps")
    ends = mesh_authority(manifests, before.objects, closed), mesh_authority(manifests, later.objects, closed)
    for step in planned:
        natives = after(natives, step)
        between = mesh_authority(manifests, natives.values(), closed)
        for pod in pods_in(manifests):
            to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for source in SOURCES:
                for port in (80, 443, 9090):
                    question = Question.of(
                        source, to, port=port, method="GET", path="/a", host="h", source_ip="10.1.2.3"
                    )
                    if between.decide(question).allowed:
                        assert any(end.decide(question).allowed for end in ends), (step, question)
    assert natives == by_id(later)
