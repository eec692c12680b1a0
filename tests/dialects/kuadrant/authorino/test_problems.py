"""Problems of a scheme that are reported before its evaluation."""

from __future__ import annotations

import pytest

from eastgate.dialects.cel import CelProblem
from eastgate.dialects.kuadrant.authorino import problems


@pytest.mark.parametrize(
    ("text", "as_value", "as_predicate"),
    [
        ("request.method == 'GET'", False, False),
        ("request.method", False, False),
        ("'x' + request.method", False, True),
        ("1", False, True),
        ("request.method ==", True, True),
        ("context.request.http.method == 'GET'", True, True),
    ],
)
def test_expressions(text: str, as_value: bool, as_predicate: bool) -> None:
    assert (problems.cel_problem(text) is not None) is as_value
    found = problems.predicate_problem(text)
    assert (found is not None) is as_predicate


def test_an_unknown_variable_names_those_that_there_are() -> None:
    found = problems.cel_problem("context.request")
    assert found == CelProblem(
        "there is no variable `context.request`",
        0,
        15,
        "there are `request`, `source`, `destination`, `metadata`, `auth`",
    )
