"""The benchmark's worlds are what they say they are, and get the same answers however they are written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from bench import load, memory, tables
from bench.built import Built, check_reference
from bench.change import Change
from bench.manifests import manifests_of
from bench.plans import Ask, Plan
from bench.report import Section, Target, text
from bench.worlds import ask_http, ask_many, ask_some, crowded, generate, with_paths

from eastgate import Authority, Question, read_manifests

SMALL: list[Plan] = [generate(60), crowded(40), with_paths(30)]


def asks_of(built: Built) -> list[Ask]:
    if built.plan.policies[0].rules[0].paths:
        return ask_http(built.plan, 300)
    return ask_many(built.plan, 300) if len(built.plan.pods) == 1 else ask_some(built.plan, built.targeted, 300)


@pytest.mark.parametrize("plan", SMALL, ids=["world", "crowded", "paths"])
def test_the_engine_and_the_reference_evaluator_agree_on_generated_worlds(plan: Plan) -> None:
    built = Built.of(plan)
    questions = built.questions(asks_of(built))
    assert check_reference(built.engine, questions) == len(questions)
    assert {built.engine.decide(*question) & 1 for question in questions} == {0, 1}


@pytest.mark.parametrize("plan", SMALL, ids=["world", "crowded", "paths"])
def test_manifests_of_a_plan_mean_what_its_objects_mean(plan: Plan, tmp_path: Path) -> None:
    built = Built.of(plan)
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(manifests_of(plan)), encoding="utf-8")
    authority = Authority(read_manifests([file]))
    for ask, question in zip(asks_of(built), built.questions(asks_of(built)), strict=True):
        source = ask.identity or "anonymous"
        decision = authority.decide(Question(source, f"pod:{ask.workload}", ask.port, ask.method, ask.path))
        program = built.engine.program(ask.workload)
        assert decision.outcome.allowed == bool(built.engine.decide(*question) & 1)
        rule = program.outcome(program.decide(question[1])).rule
        assert decision.policy == (str(rule.origin.policy) if rule else None)


def test_the_same_seed_gives_the_same_world() -> None:
    assert generate(40, seed=7) == generate(40, seed=7)
    assert generate(40, seed=7) != generate(40, seed=8)


def test_changed_engines_are_compared_with_new_ones() -> None:
    change = Change(quick=True)
    change.add(Built.of(generate(60)))
    assert change.section.rows


@pytest.mark.parametrize("run", [load.run, memory.run, tables.run])
def test_sections_can_be_printed(run: Callable[..., Section]) -> None:
    assert "##" in text(run(quick=True))


def test_a_missed_target_is_shown_as_missed() -> None:
    section = Section("t", "m", ("a",), [[1.0]], [Target("fast", "slow", met=False)])
    assert "MISSED  fast: slow" in text(section)
