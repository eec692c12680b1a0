"""CEL on documents gives the recorded answers of Authorino."""

from __future__ import annotations

import json

import pytest

from eastgate.dialects.cel import CelEvaluationError, CelProblem, compile_document_cel
from tests.expressions.record import CEL, DOCUMENT

_ROWS = json.loads(CEL.read_text(encoding="utf-8"))["rows"]
_NO_ANSWER = ({"no answer": "refused"}, {"no answer": "error"})
_STRICTER = frozenset(  # Eastgate has no answer here, which denies
    (
        'auth.?identity.?sub.?foo.orValue("x")',
        'auth.?identity.?n.?foo.orValue("x")',
        'bool("F")',
        '"%s".format([auth.identity.groups])',
        '"%s".format([auth.identity.o])',
        '"%e".format([12.5])',
        '{"a": 1, "a": 2}',
    )
)


def answered(text: str) -> object:
    expression = compile_document_cel(text)
    if isinstance(expression, CelProblem):
        return _NO_ANSWER[0]
    try:
        return expression.evaluate(DOCUMENT)
    except CelEvaluationError:
        return _NO_ANSWER[1]


@pytest.mark.parametrize(("text", "answer"), _ROWS, ids=[row[0] for row in _ROWS])
def test_an_expression_gives_what_it_gives_in_authorino(text: str, answer: object) -> None:
    ours = answered(text)
    if answer in _NO_ANSWER or text in _STRICTER:
        assert ours in _NO_ANSWER
    else:
        assert json.dumps(ours, sort_keys=True) == json.dumps(answer, sort_keys=True)  # 42 is not 42.0
