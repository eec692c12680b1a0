"""The wrong part of an expression is underlined, in any form of YAML or JSON."""

from __future__ import annotations

import json

import pytest

from tests.dialects.accesspolicy.reading import FORMS, GATEWAY, judge, manifest

WRONG = "request.nobody"
EXPRESSION = f"request.method == 'POST' && {WRONG} == 'a'"

WRITTEN = {
    "plain": f"expression: {EXPRESSION}",
    "double quotes": f'expression: "{EXPRESSION}"',
    "escaped": "expression: " + json.dumps(EXPRESSION.replace("'", '"')),
    "single quotes": "expression: '" + EXPRESSION.replace("'", "''") + "'",
    "begins with a quote": f"expression: \"'POST' == request.method && {WRONG} == 'a'\"",
    "begins with a bracket": f"expression: (request.method == 'POST') && {WRONG} == 'a'",
    "plain over lines": f"expression: request.method == 'POST'\n  && {WRONG} == 'a'",
    "quotes over lines": f"expression: \"request.method == 'POST'\n  && {WRONG} == 'a'\"",
    "literal": f"expression: |\n  request.method == 'POST' &&\n    {WRONG} == 'a'",
    "literal, stripped": f"expression: |-\n  request.method == 'POST'\n\n  && {WRONG} == 'a'",
    "folded": f"expression: >\n  request.method == 'POST'\n  && {WRONG}\n  == 'a'",
    "folded, indented": f"expression: >2-\n    request.method == 'POST' &&\n    {WRONG} == 'a'",
    "with a comment after it": f"expression: {EXPRESSION} # who?",
    "a tab": f"expression: \"request.method == 'POST' &&\t{WRONG} == 'a'\"",
    "other letters": f"expression: request.method == 'ÄÖÜ 😀' && {WRONG} == 'a'",
}


def block(written: str) -> str:
    indented = written.replace("\n", "\n        ")
    return f"{GATEWAY}action: Allow\nrules:\n- name: r\n  authorization:\n    type: CEL\n    cel:\n      {indented}"


@pytest.mark.parametrize("how", WRITTEN)
def test_the_wrong_part_is_underlined(how: str) -> None:
    text = manifest("v1alpha1", block(WRITTEN[how]))
    _, (found,) = judge(text)
    assert found.message == f"there is no variable `{WRONG}`"
    assert found.span is not None
    assert found.span.underlined == WRONG
    assert WRONG in text.splitlines()[found.span.line - 1]


def test_in_json_too() -> None:
    value = {
        "apiVersion": FORMS["v1alpha1"],
        "kind": "XAccessPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}],
            "action": "Allow",
            "rules": [
                {
                    "name": "r",
                    "authorization": {"type": "CEL", "cel": {"expression": EXPRESSION.replace("'", '"')}},
                }
            ],
        },
    }
    _, (found,) = judge(json.dumps(value, indent=1))
    assert found.span is not None
    assert found.span.underlined == WRONG


@pytest.mark.parametrize(
    ("written", "underlined"),
    [
        ("expression: request.method ==", "="),  # it ends too early, at its end
        ("expression: 'request.method'", "request.method"),  # it is no condition: all of it
        ('expression: ""', '""'),
        ('expression: "   "', '"   "'),
        ("expression: |\n  request.method\n  + request.path", "request.method"),
        (
            'expression: "request.\\u006dethods == 1"',
            '"request.\\u006dethods == 1"',
        ),  # not found in the file: all of it
    ],
)
def test_where_nothing_smaller_can_be_underlined(written: str, underlined: str) -> None:
    _, (found,) = judge(manifest("v1alpha1", block(written)))
    assert found.span is not None
    assert found.span.underlined == underlined
