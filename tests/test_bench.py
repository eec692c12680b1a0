"""The worlds of the benchmark have the described contents, and give the same answers in every form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from bench import analysis, authorizers, diffing, labels, load, tables
from bench.authorizers import engines
from bench.authorizers.schemes import CACHED, SCHEMES
from bench.built import Built, check_reference
from bench.change import Change
from bench.cluster.fleet import Fleet
from bench.cluster.growth import Growth
from bench.enforcement import connections, weight
from bench.enforcement import plot as enforcement_plot
from bench.enforcement.changes import Changes
from bench.enforcement.envoys import Envoy, until
from bench.enforcement.load import Load, accepts, request
from bench.enforcement.origin import origin
from bench.enforcement.throughput import Throughput
from bench.gateway.calls import ToolCalls
from bench.gateway.tool_rules import SHAPES
from bench.lanes import ALL, OWN, QUICK, Budget, Lane, MismatchError, peer_lane
from bench.manifests import manifests_of
from bench.memory import child
from bench.peers import PEERS, chosen, peer
from bench.plans import Ask, Plan
from bench.plot import points_of, svg
from bench.reach import connectivity, invariants, matrix
from bench.reach import peer as analyzer
from bench.report import Section, Target, duration, text
from bench.worlds import ask_http, ask_many, ask_some, crowded, generate, with_paths
from bench.worlds_l7 import ask_paths, ask_tools, http_world, mcp_world

from eastgate import Authority, Question
from eastgate.manifests import read_manifests

WORLDS: dict[str, Callable[[], Plan]] = {
    "world": partial(generate, 60),
    "http": partial(http_world, 60),
    "mcp": partial(mcp_world, 30),
    "crowded": partial(crowded, 40),
    "paths": partial(with_paths, 30),
}
PATIENT = Budget(seconds=60.0, loading=60.0, asks=120, round_seconds=0.001)


def asks_of(name: str, built: Built) -> list[Ask]:
    plan, targeted = built.plan, built.targeted
    asks = {
        "world": partial(ask_some, plan, targeted),
        "http": partial(ask_paths, plan, targeted),
        "mcp": partial(ask_tools, plan, targeted),
        "crowded": partial(ask_many, plan),
        "paths": partial(ask_http, plan),
    }
    return asks[name](300)


@pytest.fixture(params=WORLDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def built(name: str) -> Built:
    return Built.of(WORLDS[name]())


def test_the_engine_and_the_reference_evaluator_agree_on_generated_worlds(name: str, built: Built) -> None:
    questions = built.questions(asks_of(name, built))
    assert check_reference(built.engine, questions) == len(questions)
    assert {built.engine.decide(*question) & 1 for question in questions} == {0, 1}


@pytest.mark.parametrize("case", [OWN, ALL])
@pytest.mark.parametrize("other", PEERS)
def test_every_peer_gives_the_answers_of_the_engine(name: str, built: Built, other: str, case: str) -> None:
    asks = asks_of(name, built)
    answers = [bool(built.engine.decide(*question) & 1) for question in built.questions(asks)]
    assert peer_lane(peer(other), case, built, asks, answers, PATIENT).compared == PATIENT.asks


def test_another_answer_of_a_peer_fails_the_run() -> None:
    built = Built.of(generate(60))
    asks = asks_of("world", built)
    wrong = [not built.engine.decide(*question) & 1 for question in built.questions(asks)]
    with pytest.raises(MismatchError, match=r"vakt \(own, 60 policies\) says"):
        peer_lane(peer("vakt"), OWN, built, asks, wrong, QUICK)


def test_a_peer_that_was_too_slow_is_not_asked_about_more_policies() -> None:
    built = Built.of(generate(60))
    slow = Lane("vakt", ALL, 6, cut="3 answers in 2 s", times=[0.7])
    lane = peer_lane(peer("vakt"), ALL, built, asks_of("world", built), [], QUICK, slow)
    assert lane.cut == "not tried: too slow at 6"
    assert lane.ns is None


def test_manifests_and_objects_of_a_plan_have_the_same_meaning(name: str, built: Built, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(manifests_of(built.plan)), encoding="utf-8")
    authority = Authority(read_manifests([file]))
    asks = asks_of(name, built)
    for ask, question in zip(asks, built.questions(asks), strict=True):
        decision = authority.decide(as_question(ask))
        program = built.engine.program(question[0])
        assert decision.outcome.allowed == bool(built.engine.decide(*question) & 1)
        rule = program.outcome(program.decide(question[1])).rule
        assert decision.policy == (str(rule.origin.policy) if rule else None)


def as_question(ask: Ask) -> Question:
    source = ask.identity or "anonymous"
    if ask.tool is None:
        return Question.of(source, f"pod:{ask.workload}", port=ask.port, method=ask.method, path=ask.path)
    to = f"gateway:{ask.workload.removeprefix('Gateway ')}"
    return Question.of(source, to, port=ask.port, method=ask.method, path=ask.path, host="tools.example", tool=ask.tool)


@pytest.mark.parametrize("world", [generate, http_world, mcp_world])
def test_the_same_seed_gives_the_same_world(world: Callable[..., Plan]) -> None:
    assert world(40, seed=7) == world(40, seed=7)
    assert world(40, seed=7) != world(40, seed=8)


def test_changed_engines_are_compared_with_new_ones() -> None:
    change = Change(quick=True)
    change.add(Built.of(generate(60)))
    assert change.section.rows


@pytest.mark.parametrize("run", [load.run, tables.run, labels.run, analysis.run, diffing.run, invariants.run])
def test_sections_can_be_printed(run: Callable[..., Section]) -> None:
    assert "##" in text(run(quick=True))


@pytest.mark.parametrize("engine", ["eastgate", *PEERS])
def test_every_engine_can_be_weighed(engine: str) -> None:
    if engine != "eastgate":
        peer(engine)
    assert child(engine, 40).keys() == {"bytes", "seconds"}


def test_peers_are_chosen_by_name() -> None:
    for name in PEERS:
        peer(name)
    assert [one.name for one in chosen("vakt,cedar")] == ["vakt", "cedar"]
    assert tuple(one.name for one in chosen(None)) == PEERS
    assert chosen("") == []


def test_a_missed_target_is_shown_as_missed() -> None:
    section = Section("t", "m", ("a",), [[1.0]], [Target("fast", "slow", met=False)])
    assert "MISSED  fast: slow" in text(section)


@pytest.mark.parametrize(
    ("ns", "shown"), [(270.4, "270 ns"), (1185.0, "1.19 us"), (143e6, "143 ms"), (2.5e9, "2.5 s"), (5e12, "5,000 s")]
)
def test_a_duration_has_the_unit_that_suits_it(ns: float, shown: str) -> None:
    assert duration(ns) == shown


def test_the_chart_has_a_line_for_each_engine_and_case() -> None:
    points: list[dict[str, object]] = [
        {"world": "network", "engine": engine, "case": case, "policies": size, "ns": ns}
        for engine, case, ns in (("eastgate", "verdict", 300.0), ("cedar", "own", 3e4), ("cedar", "all", 3e5))
        for size in (10, 100)
    ]
    points += [{"world": "mcp", "engine": "vakt", "case": "own", "policies": 10, "ns": 9e3}]
    points += [{"world": "network", "engine": "rego", "case": "all", "policies": 10, "ns": None}]
    drawn = ElementTree.fromstring(svg(points_of({"sections": [{"points": points}]})))  # noqa: S314 - our own
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 3


def test_a_run_without_connections_has_no_chart() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        svg({})


def test_rules_are_enforced_the_same_by_trees_and_by_lists() -> None:
    section = asyncio.run(Throughput((12,), rounds=1, seconds=0.02).run())  # every answer is compared there
    assert [row[:2] for row in section.rows] == [[12, "last"], [12, "any"], [12, "denied"]]
    assert all(point["rate"] for point in section.points)


def test_calls_of_tools_are_measured_with_rules_of_every_shape() -> None:
    section = asyncio.run(ToolCalls((12,), rounds=1, seconds=0.02).run())
    assert [row[:2] for row in section.rows] == [[shape, 12] for shape in SHAPES]
    assert all(point["rate"] for point in section.points)
    assert "##" in text(section)


def test_an_authorizer_is_asked_by_both_protocols_about_every_scheme() -> None:
    [section] = authorizers.run(quick=True)  # every answer is compared there
    assert {(point["protocol"], point["scheme"]) for point in section.points} == {
        (protocol, scheme) for protocol in (engines.GRPC, engines.HTTP) for scheme in SCHEMES if scheme != CACHED
    }


def test_authorizers_are_compared_in_the_same_round() -> None:
    rates = {engines.EASTGATE: [100.0, 300.0, 200.0], engines.AUTHORINO: [50.0, 300.0, 400.0]}
    lanes = [
        {"authorizer": name, "protocol": protocol, "scheme": scheme, "rate": 1.0, "cpu_us": 1.0, "p50": 0.1, "p99": 0.2}
        | {"rates": rates[name], "cpu_rates": rates[name]}
        for name in rates
        for protocol in (engines.GRPC, engines.HTTP)
        for scheme in SCHEMES
    ]
    section = authorizers.section_of(lanes)
    assert {row[-1] for row in section.rows} == {1.0}
    assert [(target.reached, target.met) for target in section.targets] == [
        ("1.00 times", True),
        ("1.00 times as long", True),
    ] * 2


def test_an_answer_that_is_not_wanted_ends_the_load(tmp_path: Path) -> None:
    app = tmp_path / "app"
    with Envoy(origin((), app), "origin", tmp_path / "log") as envoy:
        until(lambda: accepts(app), "it does not listen")
        with pytest.raises(AssertionError, match=r"wanted 403, got b'HTTP/1\.1 200 OK"):
            Load([(app, request("/"))], 403)
        load = Load([(app, request("/"))], 200)
        assert load.run(0.02, envoy).cpu_us > 0
        load.close()


def test_connections_that_a_rule_allows_are_counted() -> None:
    section = asyncio.run(connections.run((10,), rounds=1, seconds=0.05))
    assert [point["connecting"] for point in section.points] == [0, 10]


@pytest.mark.parametrize("http", [True, False])
def test_changes_are_seen_by_every_proxy(http: bool) -> None:
    changes = Changes(2)
    asyncio.run(changes.add(2, 2, http=http))
    [point] = changes.section.points
    assert 0 < float(str(point["built_ms"])) < float(str(point["acked_ms"]))
    assert (point["closed_ms"] is None) == http


def test_what_enforcing_takes_can_be_weighed() -> None:
    assert weight.child("request", 2, 1).keys() == {"bytes", "bytes_after", "proxy"}


def test_the_chart_of_enforcement_has_a_line_for_each_way_to_do_it() -> None:
    points = [
        {"enforced": kind, "rules": size, "which": which, "part": 0.9}
        for kind in ("Eastgate", "list", "by certificate", "no policy")
        for size in (10, 100)
        for which in ("last", "denied")
    ]
    lines = enforcement_plot.points_of({"sections": [{"points": points}]})
    drawn = ElementTree.fromstring(enforcement_plot.svg(lines))  # noqa: S314 - our own
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 3


def test_sets_of_callers_agree_with_the_engine() -> None:
    assert matrix.child(1_000).keys() == {"seconds", "bytes", "classes", "cells", "accounts"}


def test_a_graph_has_every_connection_that_there_is(tmp_path: Path) -> None:
    drawn = connectivity.generate(20)
    connectivity.write(drawn, tmp_path / "ours", tmp_path / "theirs")
    assert analyzer.seconds_of_graph(drawn, tmp_path / "ours") > 0


@pytest.mark.apiserver
@pytest.mark.real
def test_a_cluster_is_followed_and_a_changed_policy_is_in_force_and_says_so() -> None:
    section = asyncio.run(Growth((5,), changes=1).run())
    assert [(point["pods"], point["policies"]) for point in section.points] == [(5, 1)]
    assert all(float(str(point["status_ms"])) > 0 for point in section.points)
    assert "growth with the number of pods" in text(section)


@pytest.mark.apiserver
@pytest.mark.real
def test_simulated_proxies_acknowledge_a_change_for_all_of_them() -> None:
    section = asyncio.run(Fleet(5, 10, changes=1).run())
    [point] = section.points
    assert all(float(str(point[name])) > 0 for name in ("settled_bytes", "policy_ms", "pod_ms", "sent"))
    assert "##" in text(section)
