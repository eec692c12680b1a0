"""Expressions become the right predicates, or none."""

from __future__ import annotations

import pytest

from eastgate.dialects.cel.lower import negate
from eastgate.ir import ALWAYS, NEVER, And, Is, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import METHOD, PATH, PORT, header
from tests.dialects.cel.offer import compiled

X = Is(PATH, OneOf(frozenset({"/x"})))
GET = Is(METHOD, OneOf(frozenset({"GET"})))
MINUS = Is(PORT, OneOf(frozenset({-1})))
A, PATH_THERE, METHOD_THERE, PORT_THERE = (Is(of, Present()) for of in (header("a"), PATH, METHOD, PORT))
X_OR_ERROR, GET_OR_ERROR = Or((Not(PATH_THERE), X)), Or((Not(METHOD_THERE), GET))

# expression, predicate for true, predicate for true or an error
TABLE: list[tuple[str, Predicate | None, Predicate | None]] = [
    ("true", ALWAYS, ALWAYS),
    ("false", NEVER, NEVER),
    ("!false", ALWAYS, ALWAYS),
    ("request.path == '/x'", X, X_OR_ERROR),
    ("'/x' == request.path", X, X_OR_ERROR),
    ("request.path != '/x'", And((PATH_THERE, Not(X))), Not(X)),
    ("!(request.path == '/x')", And((PATH_THERE, Not(X))), Not(X)),
    ("request.path in ['/x']", X, X_OR_ERROR),
    ("request.path in []", NEVER, Not(PATH_THERE)),
    ("request.path.startsWith('/x')", Is(PATH, Prefix("/x")), Or((Not(PATH_THERE), Is(PATH, Prefix("/x"))))),
    ("request.path.endsWith('/x')", Is(PATH, Suffix("/x")), Or((Not(PATH_THERE), Is(PATH, Suffix("/x"))))),
    ("destination.port == -1", MINUS, Or((Not(PORT_THERE), MINUS))),
    ("has(request.path)", PATH_THERE, PATH_THERE),
    ("!has(request.path)", Not(PATH_THERE), Not(PATH_THERE)),
    ("'A' in request.headers", A, A),
    ("has(request.headers.a)", A, A),
    ("has(request.headers) && has(request.headers.a)", A, A),
    ("request.path == '/x' && request.method == 'GET'", And((X, GET)), And((X_OR_ERROR, GET_OR_ERROR))),
    ("request.path == '/x' || request.method == 'GET'", Or((X, GET)), Or((*X_OR_ERROR.parts, *GET_OR_ERROR.parts))),
    ("request.path != '/x' && request.path != '/x'", And((PATH_THERE, Not(X))), Not(X)),
    # expressions that are evaluated
    ("request.path.contains('/x')", None, None),
    ("request.path.matches('/x')", None, None),
    ("request.path == request.method", None, None),
    ("'/x'.startsWith('/')", None, None),
    ("request.path in ['/x', 1]", None, None),
    ("request.path in [request.method]", None, None),
    ("destination.port in [80, 80u]", None, None),
    ("destination.port >= 80", None, None),
    ("true ? true : false", None, None),
    ("request.time == timestamp('2026-09-26T10:15:00Z')", None, None),
    ("request.path == '/x' && request.path.contains('/')", None, None),
    # a side that decides makes the other irrelevant, sometimes for one of the two predicates only
    ("false && request.path.contains('/')", NEVER, NEVER),
    ("true || request.path.contains('/')", ALWAYS, ALWAYS),
    ("request.path in [] && request.path.contains('/')", NEVER, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "true", "or_error"), TABLE, ids=[row[0] for row in TABLE])
def test_a_simple_expression_is_a_predicate(text: str, true: Predicate | None, or_error: Predicate | None) -> None:
    expression = compiled(text)
    assert (expression.lowered, expression.lowered_or_error) == (true, or_error)


def test_a_negation_goes_to_the_atoms() -> None:
    assert negate(And((X, Or((Not(GET), A))))) == Or((Not(X), And((GET, Not(A)))))


def test_a_long_list_of_alternatives_is_flat() -> None:
    text = " || ".join(f"request.path == '/{number}'" for number in range(400))
    lowered = compiled(text).lowered
    assert isinstance(lowered, Or)
    assert len(lowered.parts) == 400
