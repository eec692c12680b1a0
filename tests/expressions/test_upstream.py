"""The real languages of Authorino, built first, give the recorded answers, and random calls agree."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.dialects.kuadrant.rego import NoAnswer, UnsupportedModule, evaluate, program
from tests.expressions import record, rego_calls
from tests.expressions.authorino import Upstream, running
from tests.expressions.test_rego import allowed

pytestmark = pytest.mark.expressions

_CONDITIONS = (
    *('input.roles[_] == "admin"', 'input.roles[i] != "dev"', "i > 0", "x := input.user", 'x.name == "alice"'),
    *("not input.user.banned", "not input.user.missing", 'not p["admin"]', "p[y]", 'y == "dev"', "count(p) == 2"),
    *('f(input.method) == "get"', "some i; input.matrix[i][i] == 4", "input.indexes[i] == i", "q.alice > 18"),
    *("z := [a | a := input.roles[_]; a != y]", "count(z) == 1", "input.user.age >= 18", 'input.user.age < "18"'),
    *("input.user.nothing == null", "[i, 4] = input.matrix[1]", "every_one", "level == 2", "walk(input, [w, 4])"),
    *("count(w) == 3", "to_number(input.user.phone) > 1", "not 1 / input.indexes[2] == 1", "data.other.x", "i == 1"),
    *('not startswith(input.user.missing, "a")', 'not lower(input.user.missing) == "a"', "not count(p) > 5"),
    *('not f(input.missing) == "get"', "not input.user.age > input.missing", "not input.matrix[input.missing]"),
    *(
        'input.user.city == "Z\u00fcrich"',
        "input.user.tags[j] == input.user.tags[k]",
        "j != k",
        "max(input.indexes) == 2",
    ),
)
_RULES = """
p[r] { r := input.roles[_] }
q[n] = a { n := input.user.name; a := input.user.age }
f(m) = lower(m)
every_one { count([r | r := input.roles[_]; count(r) < 3]) == 0 }
level = 1 { input.method == "PUT" } else = 2 { input.user.age > 10 } else = 3 { true }
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with running() as found:
        yield found


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("selectors", (record.SELECTORS,)),
        ("cel", (record.CEL,)),
        ("calls", (record.REGO_CALLS,)),
        ("modules", (record.REGO_MODULES,)),
    ],
)
def test_what_is_recorded_is_what_it_answers(upstream: Upstream, name: str, files: tuple[Path, ...]) -> None:
    before = [file.read_text(encoding="utf-8") for file in files]
    try:
        getattr(record, name)(upstream)
        assert [file.read_text(encoding="utf-8") for file in files] == before
    finally:
        for file, text in zip(files, before, strict=True):
            file.write_text(text, encoding="utf-8")


def _modules() -> Iterator[str]:
    chance = random.Random(1)  # noqa: S311 - the same for each run
    for _ in range(1500):
        bodies = (chance.sample(_CONDITIONS, chance.randint(1, 4)) for _ in range(chance.randint(1, 2)))
        yield _RULES + "\n".join("allow { " + "; ".join(body) + " }" for body in bodies)


def test_random_modules_decide_alike(upstream: Upstream) -> None:
    compared = 0
    for module in _modules():
        answer = upstream.rego(f"package p\ndefault allow = false\n{module}", "allow = data.p.allow", record.INPUT)
        ours = allowed(module)
        if "bindings" in answer:
            if isinstance(ours, bool):
                compared += 1
                assert ours == answer["bindings"]["allow"], module
        else:
            assert ours is not True, (module, answer)
    assert compared > 300


def test_random_calls_agree(upstream: Upstream) -> None:
    every = [call for calls in rego_calls.CALLS.values() for call in calls]
    chance = random.Random(2)  # noqa: S311 - the same for each run
    tests = [
        f"{first} == {second}"
        for first, second in zip(chance.sample(every, 200), chance.sample(every, 200), strict=True)
    ]
    for test in tests:
        module = f"{rego_calls.HEAD}r = [x | x := [{test}]]"
        answer = upstream.rego(f"package p\n{module}", "r = data.p.r", rego_calls.INPUT)
        found = program(module)
        if isinstance(found, UnsupportedModule) or "bindings" not in answer:
            continue
        try:
            ours = evaluate(found, rego_calls.INPUT, 0)["r"]
        except NoAnswer:
            continue
        assert json.dumps(ours) == json.dumps(answer["bindings"]["r"]), test
