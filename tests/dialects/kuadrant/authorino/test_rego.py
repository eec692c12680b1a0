"""Rego modules that allow, that deny, and that never reach the engine."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import Authorization, Json, Property, Rego, Response, Selected
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.dialects.kuadrant.authorino.problems import rego_problem
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import request, scheme, trail


@pytest.fixture
def services() -> Services:
    return Services()


def asked(module: str, services: Services, facts: RequestFacts | None = None, **more: Any) -> Judgement:
    guarded = scheme(Authorization("rego", Rego(module, **more)))
    facts = facts or request(headers={"x-user": "alice"}, metadata={"groups": ["dev", "ops"], "n": 1})
    return evaluate(guarded, facts, services)


# OPA uses strconv.ParseFloat, and refuses infinities and NaN. Other texts than numbers of JSON have no answer.
_SPELLINGS = (
    *("18", "1e3", "-1.5E+2", "0", " 18", "18 ", "18\\n", "\u00a018", "1_0", "0x10", "Infinity", "-inf", "nan", ""),
    *("\uff11\uff12", "\u0663", "1e", "--1", "0b1", "+1", ".5", "5.", "01", "0x1p4"),
)


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ('allow { input.request.method == "GET" }', True),
        ('allow { input.context.request.http.method == "GET" }', True),
        ('allow { input.request.method == "PUT" }', False),
        ('import rego.v1\nallow if input.request.method == "GET"', True),
        ('package other\nimport rego.v1\nallow if { input.request.method == "GET" }', True),
        ('import future.keywords.in\nallow { "ops" in input.metadata.groups }', True),
        ('allow { some i; input.metadata.groups[i] == "ops" }', True),
        ('allow { input.metadata.groups[_] == "nope" }', False),
        ("allow { input.missing }", False),
        ("allow { not input.missing }", True),
        ("", False),
        ("other { true }", False),
        ('allow = "true"', False),
        ("allow = 1", False),
        ("allow = x { x := input.metadata.n }", False),
        ("allow = input.metadata", False),
        ("allow = true", True),
        ('deny[msg] { input.request.method == "GET"; msg := "no" }\nallow { count(deny) == 0 }', False),
        ("allow { input.metadata.n + 1 == 2 }", True),
        ('allow { input.request.method + 1 == "x" }', False),
        ('allow { startswith(input.request.path, "/orders"); lower("A") == "a" }', True),
        ('deny[m] { m := "x" }\nallow { not "x" in deny }', False),
        ("deny[m] { m := 1 }\nallow { deny != set() }", True),
        ("import rego.v1\nallow if true else := true if false", True),
        ('allow { regex.match("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab") }', False),
        ('allow { to_number("abc") > 1 }\nallow { input.request.method == "GET" }', True),
        ('allow { to_number("18abc") == 18 }', False),
        ('allow { to_number("\uff11\uff12") > 1 }\nallow { input.request.method == "GET" }', True),
        *((f'allow {{ to_number("{text}") }}', text in ("18", "1e3", "-1.5E+2", "0")) for text in _SPELLINGS),
        ('allow { lower("\u212a") == "k" }', True),
        ('allow { "A\u00c4" == upper("a\u00e4") }', True),
        ('allow { input.metadata.groups[_] != "dev" }', True),
        ('allow { walk(input, [path, value]); value == "ops"; path[count(path) - 1] == 1 }', True),
        ('allow { input.metadata.n > "0" }', False),
        ('allow { net.cidr_contains("10.0.0.0/8", "10.1.2.3") }', True),
    ],
)
def test_allow_must_be_exactly_true(services: Services, module: str, allowed: bool) -> None:
    found = asked(module, services)
    assert found.allowed is allowed
    assert allowed or (found.status, found.message) == (403, "Unauthorized")


@pytest.mark.parametrize(
    "module",
    [
        "allow {",
        "allow }",
        "allow { not user }",
        "allow { inptu.x == 1 }",
        "import rego.v1\nallow if not v1",
        "import future.keywords.in\nallow { not user }",
        "import future.keywords.every\nimport future.keywords.if\nallow if { not user }",
        "allow { a := b }",
        "allow { a := b; b := a }",
        "allow { x = y }",
        "allow { not input.groups[x] }",
        "allow { input.metadata.groups[_]; not input.x[_] }",
        "allow { count([x | x := input.a[_]]) >= 0; not x }",
        "allow { some user; not user.x }\nuser = 1",
        "default allow = true",
        '# about\npackage other; allow { input.request.method == "GET" }',
        '# about\npackage other\nallow { input.request.method == "GET" }',
        "allow { true } # of the package\nallow { false }",
        'allow { 1 == "1" }',
        'allow { count(input.x) == "1" }',
        "allow { startswith(input.x, 1) }",
        "allow { opa.runtime().env.A }",
        "default allow = false\nallow { true }",
        "allow { nosuchfunction(1) }",
        'allow { http.send({"method": "get", "url": "http://127.0.0.1"}) }',
        'allow { not http.send({"method": "get", "url": "http://127.0.0.1"}) }',
        "allow { p }\np { q }\nq { p }",
        "allow { true } # " + "x" * 70_000,
        "{" * 1000,
        "allow { \x00 }",
    ],
)
def test_what_cannot_be_understood_denies_and_its_author_can_know(services: Services, module: str) -> None:
    found = asked(module, services)
    assert (found.allowed, trail(found)[-1]) == (False, ("rego", "error"))
    assert rego_problem(module)


@pytest.mark.parametrize(
    "module",
    [
        'allow { not to_number("abc") }',
        "allow { not 1 / 0 }",
        'bad { to_number("abc") > 1 }\nother { bad }\nallow { not bad }',
        "allow { true }\nallow = false { true }",
        "allow { true }\nx = 1 { true }\nx = 2 { true }",
        'x["a"] = 1 { true }\nx["a"] = 2 { true }\nallow { true }',
    ],
)
def test_an_error_that_would_make_a_not_hold_and_two_values_deny(services: Services, module: str) -> None:
    found = asked(module, services)
    assert (found.allowed, trail(found)[-1]) == (False, ("rego", "error"))


def test_the_name_of_a_function_that_is_not_supported_is_told() -> None:
    assert rego_problem('allow { http.send({"method": "get", "url": "http://a"}).status_code == 200 }') == (
        "the built-in function http.send is not supported"
    )


def test_a_good_module_has_no_problem() -> None:
    assert rego_problem('package x\nallow { input.request.method == "GET" }') is None


@pytest.mark.parametrize(
    "bomb",
    [
        "allow { count([1 | numbers.range(1, 3000)[_]; numbers.range(1, 3000)[_]; numbers.range(1, 3000)[_]]) > 0 }",
        "allow { count(numbers.range(1, 1000000000)) > 0 }",
    ],
)
def test_a_bomb_ends_soon_and_denies_and_the_next_question_is_answered(services: Services, bomb: str) -> None:
    assert asked("allow { true }", services).allowed
    found = asked(bomb, services)
    assert (found.allowed, trail(found)[-1]) == (False, ("rego", "error"))
    assert asked("allow { true }", services).allowed


def test_all_values_are_kept_for_later_steps(services: Services) -> None:
    module = 'allow { true }\ngroups := [g | g := input.metadata.groups[_]]\nuser := "alice"'
    stage_lines = Response("x", Json((Property("u", Selected("auth.authorization.rego.user")),)), "x-user")
    guarded = scheme(Authorization("rego", Rego(module, all_values=True)), responses=(stage_lines,))
    found = evaluate(guarded, request(metadata={"groups": ["dev"]}), services)
    assert found.response_headers == {"x-user": '{"u":"alice"}'}
    assert found.document["auth"]["authorization"]["rego"]["groups"] == ["dev"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("module", "verdict"),
    [
        ('allow { input.request.method == "GET" }', "accepted"),
        ('allow { input.request.headers.x == "1" }', "unknown"),
        ("allow { not input.request.headers.x }", "unknown"),
        ('allow { input["request"].headers.x == "1" }', "unknown"),
        ("allow { x := input; x.request }", "unknown"),
        ("import input.request as r\nallow { not r.headers.x }", "unknown"),
    ],
)
def test_what_a_module_may_look_at_must_be_known(services: Services, module: str, verdict: str) -> None:
    assert trail(asked(module, services, request(headers=UNKNOWN)))[-1] == ("rego", verdict)
