"""Asks the API server what a user may do (SubjectAccessReview)."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import SubjectAccess, Value
from eastgate.dialects.kuadrant.authorino.values import resolve, stringified
from eastgate.ir.attributes import UNKNOWN
from eastgate.reading.strict_json import read_json


def by_access_review(access: SubjectAccess, evaluation: Evaluation) -> Finding:
    """Return whether the API server would let this user do it."""
    spec = _spec(access, evaluation)
    if not isinstance(spec, dict):
        return spec
    if evaluation.services.reviewer is None:
        return NotKnown("what an API server would say about the access")
    try:
        answer = evaluation.services.reviewer.access(spec)
    except Unavailable as problem:
        return Broken(f"The API server cannot be asked about the access: {problem}.")
    if answer.granted:
        return Found(True, True, "The API server grants the access.")
    return Refused(f"not authorized: {answer.reason or 'unknown reason'}", for_client=True)


def _spec(access: SubjectAccess, evaluation: Evaluation) -> dict[str, object] | NotKnown | Broken:
    user = _text(access.user, evaluation)
    if not isinstance(user, str):
        return user
    groups = _groups(access, evaluation)
    if not isinstance(groups, list):
        return groups
    if not user and not groups:
        return Broken("There is no user to ask the API server about.")
    spec: dict[str, object] = {"user": user}
    if groups:
        spec["groups"] = groups
    if access.resource is None:
        request = evaluation.request
        if request.path is UNKNOWN:
            return NotKnown("the path")
        if request.method is UNKNOWN:
            return NotKnown("the method")
        spec["nonResourceAttributes"] = {"path": request.path, "verb": request.method.lower()}
        return spec
    attributes: dict[str, str] = {}
    for name, value in access.resource.items():
        text = _text(value, evaluation)
        if not isinstance(text, str):
            return text
        attributes[name] = text
    spec["resourceAttributes"] = attributes
    return spec


def _groups(access: SubjectAccess, evaluation: Evaluation) -> list[str] | NotKnown | Broken:
    """Return the groups. Those that are selected are a list of texts, or a text that is one in JSON."""
    text = _text(access.selected_groups, evaluation) if access.selected_groups is not None else None
    if text is None:
        return list(access.groups)
    if not isinstance(text, str):
        return text
    try:
        groups = read_json(text.encode())
    except ValueError:
        groups = None
    if isinstance(groups, list):
        texts = [group for group in groups if isinstance(group, str)]
        if texts == groups:
            return texts
    return Broken("The groups to ask the API server about are not a list of texts.")


def _text(value: Value | None, evaluation: Evaluation) -> str | NotKnown | Broken:
    if value is None:
        return ""
    value_found = resolve(value, evaluation.document)
    return stringified(value_found.value) if isinstance(value_found, Found) else value_found
