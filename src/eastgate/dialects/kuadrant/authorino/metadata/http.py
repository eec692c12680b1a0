"""Fetches metadata with one HTTP request."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.calls import send
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found
from eastgate.dialects.kuadrant.authorino.model import HttpCall
from eastgate.reading.strict_json import JsonProblem, read_object

SERVER = "the server for metadata"


def by_http(call: HttpCall, evaluation: Evaluation) -> Finding:
    """Return the answer of the server: an object, or a text where it is not JSON."""
    answer = send(call, evaluation, SERVER)
    if not isinstance(answer, ServerResponse):
        return answer
    if 200 <= answer.status < 300 and "application/json" not in answer.content_type:
        text = answer.body.decode("utf-8", "replace")
        return Found(text, evaluation.secrets.mask_answer(text), "The server answered.")
    return read_answer(answer, evaluation)


def read_answer(answer: ServerResponse, evaluation: Evaluation) -> Finding:
    """Return the object that a server has answered with."""
    if not 200 <= answer.status < 300:
        return Broken(f"The server for metadata answers {answer.status}.")
    try:
        value = read_object(answer.body)
    except JsonProblem as problem:
        return Broken(f"The answer of the server for metadata {problem}.")
    return Found(value, evaluation.secrets.mask_answer(value), "The server answered.")
