"""Rego gives the recorded answers of OPA: modules test the language, calls test the built-in functions."""

from __future__ import annotations

import json

import pytest

from eastgate.dialects.kuadrant.rego import NoAnswer, UnsupportedModule, evaluate, program
from tests.expressions import rego_calls
from tests.expressions.record import INPUT, REGO_CALLS, REGO_MODULES

_MODULES = json.loads(REGO_MODULES.read_text(encoding="utf-8"))["rows"]
_NO_ANSWER = ({"no answer": "refused"}, {"no answer": "error"})
_NOW = 1_700_000_000 * 10**9
# OPA accepts these, and Eastgate refuses them
_REFUSED = ("p.q = 1", '"a": 2}', "[0.0]", "[1.0]", "[1e0]")
# OPA decides these in an unusual way, mostly by mistake; Eastgate has no answer
_PECULIAR = (
    *(r'regex.match("\\C", "a")', r'regex.is_valid("\\C")', r'regex.match("\\B", input.user.city)'),
    *("ceil(-0.5) == 0", "floor(-0.5) == -1", 'min([{"a": 1}, 1, null, [1]]) == null', "1e300 % 7 == 0"),
    *('glob.match("?", [], "")', 'glob.match("***", [], "")', 'glob.match("*?", ["/"], "a/")'),
    *('glob.match("???", ["/"], "/ba")', 'glob.match("\u00e9?", ["\u00e9"], "\u00e9a")'),
    *("json.marshal(1.0)", 'sprintf("%v", [1.0])', "[1e3] == [1000]", "data", "data[input.method]", "data.authorino.x"),
)


def allowed(module: str) -> object:
    found = program(f"default allow = false\n{module}")
    if isinstance(found, UnsupportedModule):
        return _NO_ANSWER[0]
    try:
        return evaluate(found, INPUT, _NOW).get("allow")
    except NoAnswer:
        return _NO_ANSWER[1]


@pytest.mark.parametrize(("module", "answer"), _MODULES, ids=[row[0] for row in _MODULES])
def test_a_module_decides_as_in_opa(module: str, answer: object) -> None:
    ours = allowed(module)
    if answer in _NO_ANSWER or any(text in module for text in _REFUSED):
        assert ours in _NO_ANSWER
    else:
        assert ours == answer


@pytest.mark.parametrize("condition", _PECULIAR)
@pytest.mark.parametrize("negation", ["", "not "])
def test_what_opa_decides_in_its_own_way_has_no_answer(condition: str, negation: str) -> None:
    assert allowed(f"allow {{ {negation}{condition} }}") in _NO_ANSWER


def _plain(value: object) -> object:
    """Return numbers by their value: 1.0 is 1."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("name", rego_calls.CALLS)
def test_a_built_in_function_gives_what_it_gives_in_opa(name: str) -> None:
    recorded = dict(json.loads(REGO_CALLS.read_text(encoding="utf-8"))["rows"])
    compared = 0
    for call in rego_calls.CALLS[name]:
        found = program(f"{rego_calls.HEAD}r = [x | x := {call}]")
        assert not isinstance(found, UnsupportedModule), f"{call}: {found}"
        try:
            ours = evaluate(found, rego_calls.INPUT, _NOW)["r"]
        except NoAnswer:
            continue  # no answer denies
        if call in recorded:
            compared += 1
            assert json.dumps(_plain(ours), sort_keys=True) == json.dumps(_plain(recorded[call]), sort_keys=True), call
    assert compared
