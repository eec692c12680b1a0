"""Values that a scheme selects from the authorization JSON, each with its version without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from eastgate.dialects.cel import CelEvaluationError, CelProblem, compile_document_cel
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.gjson import TooMuch, fill, is_template, select
from eastgate.dialects.kuadrant.authorino.model import CelExpression, LiteralValue, Property, Selected, Value
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.paths import Path, selected_mentions

_Evaluate: TypeAlias = Callable[[dict[str, object]], object]


def resolve(value: Value, document: AuthorizationJson) -> Found | NotKnown | Broken:
    """Return the value in this document."""
    match value:
        case LiteralValue(constant):
            return Found(constant, constant)
        case Selected(path):
            evaluate = fill if is_template(path) else _selected
            return _both(selected_mentions(path), document, lambda data: evaluate(path, data))
        case CelExpression(text):
            expression = compile_document_cel(text)
            if isinstance(expression, CelProblem):
                return Broken(f"The expression cannot be understood: {expression.message}.")
            return _both(expression.mentions, document, expression.evaluate)


def _selected(path: str, data: dict[str, object]) -> object:
    return select(data, path).value


def _both(mentions: Collection[Path], document: AuthorizationJson, evaluate: _Evaluate) -> Found | NotKnown | Broken:
    if unknown := document.unknown_to(mentions):
        return NotKnown(unknown)
    hidden = document.hidden_from(mentions)
    try:
        value = evaluate(document.plain_for(mentions))
    except TooMuch:
        return Broken("The selector takes too long on this request.")
    except CelEvaluationError as error:
        return Broken("The expression has no answer." if hidden else f"The expression has no answer: {error}.")
    return Found(value, value if not hidden else _twin(document, evaluate))


def _twin(document: AuthorizationJson, evaluate: _Evaluate) -> object:
    try:
        return evaluate(document.masked)
    except (TooMuch, CelEvaluationError):
        return "***"


def properties(listed: Iterable[Property], document: AuthorizationJson) -> Found | NotKnown | Broken:
    """Return an object of several values. Each value must resolve."""
    plain: dict[str, object] = {}
    masked: dict[str, object] = {}
    for each in listed:
        finding = resolve(each.value, document)
        if not isinstance(finding, Found):
            return finding
        plain[each.name], masked[each.name] = finding.value, finding.masked
    return Found(plain, masked)


def stringified(value: object) -> str:
    """Return a value as text, as Authorino prints it: a text as it is, nothing for null, JSON for all others."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return "" if value is None else json.dumps(_go_order(value), separators=(",", ":"), ensure_ascii=False)


def _go_order(value: object) -> object:
    """Sort the keys of a map, as Go does."""
    if isinstance(value, dict):
        return {key: _go_order(value[key]) for key in sorted(value)}
    return [_go_order(item) for item in value] if isinstance(value, list | tuple) else value
