"""Authorino's templates: text with selectors in curly braces."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_TEMPLATE, Budget, Pieces, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.selection import select_within


def fill(template: str, document: object) -> str:
    """Replace each `{selector}` of a template by the selected value.

    A backslash makes the next character literal. A brace that never closes drops the rest, as in Authorino. Raises
    TooMuch over a limit: fail closed.
    """
    if len(template) > MAX_TEMPLATE:
        raise TooMuch(f"the template is longer than {MAX_TEMPLATE} characters")
    budget = Budget()
    out = Pieces(budget)
    at = 0
    while at < len(template):
        character = template[at]
        at += 1
        if character == "{":
            end = _end_of_placeholder(template, at)
            if end is None:
                break
            if end > at:
                out.add(select_within(budget, document, template[at:end]).text)
            at = end + 1
        elif character == "\\":
            out.add(template[at : at + 1])
            at += 1
        else:
            out.add(character)
    return out.joined()


def _end_of_placeholder(template: str, at: int) -> int | None:
    """Return the index of the brace that closes the placeholder.

    Braces nest; quotes and backslashes do not hide them.
    """
    depth = 0
    for index in range(at, len(template)):
        if template[index] == "{":
            depth += 1
        elif template[index] == "}":
            if depth == 0:
                return index
            depth -= 1
    return None


def is_template(text: str) -> bool:
    """Return whether Authorino reads a selector as a template: it has a brace that opens no argument."""
    arguments, end = 0, 0
    at = text.find("@")
    while at >= 0:
        stop = at + 1
        while stop < len(text) and text[stop].isascii() and (text[stop].isalnum() or text[stop] == "_"):
            stop += 1
        if at > end and text[at - 1] != "@" and stop > at + 1 and text.startswith(":{", stop):
            arguments += 1
            end = stop + 2
        at = text.find("@", at + 1)
    return arguments != text.count("{")
