"""On generated clusters the engine, the reference evaluator and the oracle give the same answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.authority import programs_of
from eastgate.authority.reading import sort_documents
from eastgate.dialects import reads
from eastgate.dialects.gep3779.settings import GepSettings
from eastgate.engine import reference
from eastgate.reading.manifests import read_text
from tests.worlds import generate
from tests.worlds.oracle import Ask, Manifest, Rulebook


def authority_of(manifests: list[Manifest], chosen: Settings) -> Authority:
    reading = read_text(
        "generated.json", json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests}), positioned=reads
    )
    return Authority(sort_documents(reading.documents, chosen, reading.reporter), chosen)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    ambient = draw(st.booleans())
    written = {
        "trustDomain": "td",
        "meshMode": "ambient" if ambient else "sidecar",
        "denyOnly": draw(st.sampled_from(["deny", "allow"])),
        "serviceTarget": draw(st.sampled_from(["workloads", "traffic"])) if ambient else "workloads",
    }
    return draw(generate.clusters(ambient=ambient)), Settings.from_mapping(written)


def every_request() -> Iterator[tuple[str | None, int, str, str]]:
    """Yield every identity on every port, each with a few of the methods and paths."""
    http = itertools.cycle(itertools.product(generate.METHODS, generate.PATHS))
    for identity, port in itertools.product([None, *generate.IDENTITIES], generate.PORTS):
        for _ in range(3):  # the cycle has 10 steps: all combinations occur, with different identities
            yield identity, port, *next(http)


@settings(max_examples=150, deadline=None)
@given(situations())
def test_engine_reference_and_oracle_agree(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    authority = authority_of(manifests, chosen)
    gep = chosen.section(GepSettings)
    rulebook = Rulebook(manifests, "td", str(gep.deny_only), str(gep.service_target))
    for pod in (m for m in manifests if m["kind"] == "Pod"):
        to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for identity, port, method, path in every_request():
            decision = authority.decide(Question.of(identity or "anonymous", to, port=port, method=method, path=path))
            assert decision.outcome == reference.decide(decision.layers, decision.arrival.request)
            assert decision.allowed == rulebook.allows(Ask(identity, pod, port, None, method, path)), decision.reason
            assert decision.trace().outcome == decision.outcome


@settings(max_examples=100, deadline=None)
@given(situations())
def test_a_service_is_allowed_only_where_every_pod_allows(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    authority = authority_of(manifests, chosen)
    gep = chosen.section(GepSettings)
    rulebook = Rulebook(manifests, "td", str(gep.deny_only), str(gep.service_target))
    declared = {f"{m['metadata']['namespace']}/{m['metadata']['name']}": m for m in manifests if m["kind"] == "Pod"}
    for key in authority.world.services:
        pods = [declared[pod] for pod in authority.world.pods_of(key)]
        for identity, port, method, path in every_request() if pods else ():
            decision = authority.decide(
                Question.of(identity or "anonymous", f"service:{key}", port=port, method=method, path=path)
            )
            asks = [Ask(identity, pod, port, key, method, path) for pod in pods]
            assert len(decision.denied) == sum(not rulebook.allows(ask) for ask in asks)


@settings(max_examples=100, deadline=None)
@given(situations())
def test_what_is_left_out_is_allowed_only_if_every_value_is(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    authority = authority_of(manifests, chosen)
    for pod in authority.world.workloads:
        for identity, port, method, path in every_request():
            whole = Question.of(identity or "anonymous", f"pod:{pod}", port=port, method=method, path=path)
            for without in ({"port"}, {"path"}, {"port", "method"}, {"port", "method", "path"}):
                decision = authority.decide(replace(whole, **dict.fromkeys(without)))  # type: ignore[arg-type]
                expected = reference.decide(decision.layers, decision.arrival.request)
                assert decision.allowed == expected.allowed
                if decision.allowed and "%" not in path:
                    assert authority.decide(whole).allowed


@settings(max_examples=200, deadline=None)
@given(st.data(), situations())
def test_after_any_changes_the_engine_answers_as_one_built_anew(
    data: st.DataObject, situation: tuple[list[Manifest], Settings]
) -> None:
    before, chosen = situation
    after = data.draw(generate.clusters(ambient=str(chosen.mesh_mode) == "ambient"))
    authority, anew = authority_of(before, chosen), authority_of(after, chosen)
    engine = programs_of(authority)
    engine.compile_all()
    changes: list[Any] = [("policy", p.ref) for p in authority.policies if p.ref not in {q.ref for q in anew.policies}]
    changes += [("policy", p) for p in anew.policies]
    gone = authority.world.objects.keys() - anew.world.objects.keys()
    changes += [("remove", identity) for identity in sorted(gone)] + [("put", o) for o in anew.world.objects.values()]
    for kind, what in data.draw(st.permutations(changes)):
        if kind == "policy":
            authority.update([what]) if hasattr(what, "targets") else authority.update(remove=[what])
        else:
            authority.update(remove=[what]) if kind == "remove" else authority.update(put=[what])
        for workload in authority.world.workloads:
            engine.program(workload)  # compile it, so that a stale program would stay
    assert set(authority.world.workloads) == set(anew.world.workloads)
    for workload in anew.world.workloads:
        assert engine.attached(workload) == programs_of(anew).attached(workload)
        assert engine.program(workload).layers == programs_of(anew).program(workload).layers
