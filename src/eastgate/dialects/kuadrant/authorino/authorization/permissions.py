"""Asks a SpiceDB server whether a subject has a permission on a resource."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import PermissionAnswer, PermissionQuestion, Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import PermissionCheck
from eastgate.dialects.kuadrant.authorino.values import resolve, stringified

_NAMES = {0: "UNSPECIFIED", 1: "NO_PERMISSION", 2: "HAS_PERMISSION", 3: "CONDITIONAL_PERMISSION"}
_NO_NAME = "There is no name to ask the SpiceDB server about."


def by_permission(check: PermissionCheck, evaluation: Evaluation) -> Finding:
    """Return whether the server grants the permission, without conditions."""
    question = _question(check, evaluation)
    if not isinstance(question, PermissionQuestion):
        return question
    if evaluation.services.permissions is None:
        return NotKnown("what the SpiceDB server would say about the permission")
    try:
        answer = evaluation.services.permissions.check(question)
    except Unavailable as problem:
        return Broken(f"The SpiceDB server cannot be asked about the permission: {problem}.")
    if answer.permissionship != PermissionAnswer.HAS_PERMISSION:
        name = _NAMES.get(answer.permissionship, str(answer.permissionship))
        token = f";token={answer.checked_at}" if answer.checked_at else ""
        return Refused(f"PERMISSIONSHIP_{name}{token}", for_client=True)
    value: dict[str, object] = {"permissionship": answer.permissionship}
    if answer.checked_at:
        value["checked_at"] = {"token": answer.checked_at}
    return Found(value, value, "The SpiceDB server grants the permission.")


def _question(check: PermissionCheck, evaluation: Evaluation) -> PermissionQuestion | NotKnown | Broken:
    texts: list[str] = []
    for value in (check.resource_kind, check.resource, check.permission, check.subject_kind, check.subject):
        if value is None:
            return Broken(_NO_NAME)
        finding = resolve(value, evaluation.document)
        if not isinstance(finding, Found):
            return finding
        texts.append(stringified(finding.value))
    if not all(texts):
        return Broken(_NO_NAME)
    token = ""
    if check.shared_secret is not None:
        secret = evaluation.services.secret(evaluation.scheme.namespace, check.shared_secret.name)
        held = secret.data.get(check.shared_secret.key) if secret is not None else None
        if not held:
            reference = check.shared_secret
            return Broken(f"There is no {reference.key} in a Secret {reference.name} to ask the SpiceDB server with.")
        token = held.decode("utf-8", "replace")
        evaluation.secrets.add_proven(token)
    resource_kind, resource, permission, subject_kind, subject = texts
    return PermissionQuestion(
        check.endpoint, (resource_kind, resource), permission, (subject_kind, subject), check.insecure, token
    )
