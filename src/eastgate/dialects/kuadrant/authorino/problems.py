"""Finds problems of a scheme before it is evaluated, in words for its author.

The evaluator denies where one of these would find something, so a reader that calls them first turns an outage into a
message.
"""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino import fetching
from eastgate.dialects.kuadrant.authorino.authorization.rego import rego_problem
from eastgate.dialects.kuadrant.authorino.conditions import regex_problem
from eastgate.dialects.kuadrant.authorino.gjson import is_template, path_problem
from eastgate.dialects.kuadrant.authorino.model import All, AnyOf, CelPredicate, Condition, Pattern, PatternOperator
from eastgate.languages.cel import CelProblem, compile_document_cel

__all__ = [
    "cel_problem",
    "condition_problems",
    "pattern_problem",
    "predicate_problem",
    "rego_problem",
    "template_problem",
    "url_problem",
]


def template_problem(text: str) -> str | None:
    """Return what is wrong with a selector, or with a text that has selectors in braces."""
    if not is_template(text):
        return path_problem(text)
    depth = start = 0
    for at, character in enumerate(text):
        if character == "{" and not (depth == 0 and at and text[at - 1] == "\\"):
            depth += 1
            start = at + 1 if depth == 1 else start
        elif character == "}" and depth:
            depth -= 1
            if depth == 0 and (problem := path_problem(text[start:at])):
                return problem
    return "a brace is not closed" if depth else None


def pattern_problem(pattern: Pattern) -> str | None:
    """Return what is wrong with a pattern: its selector, or its regular expression."""
    problem = path_problem(pattern.selector)
    if problem is None and pattern.operator is PatternOperator.MATCHES and (bad := regex_problem(pattern.value)):
        return f"{pattern.value!r} is not a regular expression: {bad}"
    return problem


def cel_problem(text: str) -> CelProblem | None:
    """Return what is wrong with a CEL expression that gives a value."""
    compiled = compile_document_cel(text)
    return compiled if isinstance(compiled, CelProblem) else None


def predicate_problem(text: str) -> CelProblem | None:
    """Return what is wrong with a CEL expression that must be true or false."""
    compiled = compile_document_cel(text)
    if isinstance(compiled, CelProblem):
        return compiled
    if compiled.type not in ("BOOL", "DYN"):
        return CelProblem(f"the expression is of type {compiled.type.lower()}, not bool", 0, len(text))
    return None


def condition_problems(condition: Condition) -> list[tuple[Pattern | CelPredicate, str | CelProblem]]:
    """Return everything that is wrong in a condition, each with the part that it is wrong in."""
    match condition:
        case All(parts) | AnyOf(parts):
            return [each for part in parts for each in condition_problems(part)]
        case Pattern():
            problem = pattern_problem(condition)
            return [(condition, problem)] if problem else []
        case CelPredicate(text):
            bad = predicate_problem(text)
            return [(condition, bad)] if bad else []


def url_problem(url: str) -> str | None:
    """Return what is wrong with an address; selectors in braces may stand in it."""
    if "{" not in url:
        return fetching.url_problem(url)
    if problem := template_problem(url):
        return problem
    filled = _filled(url)
    return fetching.url_problem(filled)


def _filled(url: str) -> str:
    """Return the address with something harmless for each selector."""
    out: list[str] = []
    depth = 0
    for character in url:
        depth += (character == "{") - (character == "}")
        if character == "}" and depth == 0:
            out.append("x")
        elif depth == 0:
            out.append(character)
    return "".join(out)
