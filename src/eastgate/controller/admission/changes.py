"""Admission request and response."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.cluster.resources import MODE, SOURCE_UID, UNWRITABLE
from eastgate.controller.admission.conversion import convert_object
from eastgate.controller.admission.conversion.forms import KIND, STORED, VERSIONS
from eastgate.controller.admission.reviews import MalformedReviewError, request_of
from eastgate.dialects import registered

_API_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_NO_CONTENT = frozenset({"metadata", "status"})
_UNPROCESSABLE, _FORBIDDEN = 422, 403
_DEFAULT_FIELD = "spec"  # the field of refusals without a field


class ChangeOperation(StrEnum):
    """The operation on an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """A change of one object, from `old` to `new`. With `dry_run`, the API server stores nothing.

    `peer` is the address that sent the review.
    """

    operation: ChangeOperation
    group: str
    version: str
    kind: str
    namespace: str | None
    name: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    subresource: str | None = None
    user: str = ""
    dry_run: bool = False
    peer: str | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        where = "/".join(part for part in (self.kind, self.namespace, self.name) if part)
        return f"{self.operation.value} of {where} by {self.user or 'an unknown user'}"

    @property
    def fields(self) -> Mapping[str, str | None]:
        """Return the fields of its log records."""
        return {
            "user": self.user,
            "operation": self.operation.value,
            "kind": self.kind,
            "namespace": self.namespace,
            "object": self.name,
        }

    @property
    def keeps_meaning(self) -> bool:
        """Return whether the meaning of the object stays the same: only its metadata and its status change."""
        return self.old is not None and self.new is not None and _content(self.old) == _content(self.new)

    @property
    def changes_labels_alone(self) -> bool:
        """Return whether the meaning stays the same in every version: annotations may hold another version."""
        old, new = (_mapping(_mapping(side).get("metadata")).get("annotations") for side in (self.old, self.new))
        return self.keeps_meaning and old == new

    @property
    def is_being_deleted(self) -> bool:
        """Return whether the object is deleted and only waits for its finalizers."""
        return self.new is not None and bool(_mapping(self.new.get("metadata")).get("deletionTimestamp"))

    @property
    def removes(self) -> bool:
        """Return whether the change removes the object: it deletes the object, or removes its last finalizer."""
        if self.operation is ChangeOperation.DELETE:
            return True
        metadata = _mapping(self.new.get("metadata")) if self.new is not None else {}
        is_held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        return self.is_being_deleted and not is_held


def _content(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    metadata = _mapping(manifest.get("metadata"))
    annotations = _mapping(metadata.get("annotations"))
    content = {key: value for key, value in manifest.items() if key not in _NO_CONTENT}
    labels = _mapping(metadata.get("labels"))
    is_selected = (_group_of(manifest), manifest.get("kind")) in registered().selected_kinds
    is_marked = SOURCE_UID in labels  # the writer of such copies removes those that should not exist
    selected = labels if is_marked or is_selected else None
    owners = metadata.get("ownerReferences") if is_marked else None
    deciding = (MODE, UNWRITABLE, *registered().deciding_annotations)
    return content, [selected, owners, *(annotations.get(key) for key in deciding)]


def _group_of(manifest: Mapping[str, Any]) -> str:
    return _text(manifest.get("apiVersion")).rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class AdmissionRefusal:
    """A reason to refuse a change, and the field that it is about."""

    message: str
    field: str | None = None

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class AdmissionJudgement:
    """The admission response: any refusal refuses the change; without one, it is allowed with the warnings."""

    refusals: tuple[AdmissionRefusal, ...] = ()
    warnings: tuple[str, ...] = ()

    def __or__(self, other: AdmissionJudgement) -> AdmissionJudgement:
        return AdmissionJudgement((*self.refusals, *other.refusals), (*self.warnings, *other.warnings))


JudgeChange = Callable[[RequestedChange], Awaitable[AdmissionJudgement]]
"""A function that judges a change together with everything else in the cluster."""

JudgeLate = Callable[[RequestedChange], AdmissionJudgement]
"""A function that judges a change at once, after its time has run out."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """The mutation of a new object: the operations of a JSON patch, and the admission response."""

    patch: tuple[Mapping[str, Any], ...] = ()
    judgement: AdmissionJudgement = AdmissionJudgement()


MutateObject = Callable[[RequestedChange], Mutation]
"""A function that changes a new object before it is stored. It runs in a thread, since an object may be large."""


def change_of(review: Any, peer: str | None = None) -> tuple[str, RequestedChange]:
    """Return the uid and the change of an AdmissionReview from some peer. Raises MalformedReviewError."""
    request = request_of(review, _API_VERSION, _KIND, {"kind": Mapping, "operation": str})
    kind = request["kind"]
    if not isinstance(kind.get("kind"), str) or not isinstance(kind.get("version"), str):
        raise MalformedReviewError("the request does not name the kind of its object")
    try:
        operation = ChangeOperation(request["operation"])
    except ValueError:
        raise MalformedReviewError("the operation is unknown") from None
    change = RequestedChange(
        operation,
        _text(kind.get("group")),
        kind["version"],
        kind["kind"],
        _text(request.get("namespace")) or None,
        _text(request.get("name")),
        _object(request, "oldObject", needed=operation in (ChangeOperation.UPDATE, ChangeOperation.DELETE)),
        _object(request, "object", needed=operation in (ChangeOperation.CREATE, ChangeOperation.UPDATE)),
        _text(request.get("subResource")) or None,
        _text(_mapping(request.get("userInfo")).get("username")),
        request.get("dryRun") is True,
        peer,
    )
    return request["uid"], change


def answer_to(uid: str, change: RequestedChange, judgement: AdmissionJudgement) -> dict[str, Any]:
    """Return the AdmissionReview with the answer to a change."""
    response: dict[str, Any] = {"uid": uid, "allowed": not judgement.refusals}
    if judgement.warnings:
        response["warnings"] = list(judgement.warnings)
    if judgement.refusals:
        response["status"] = _status(change, judgement.refusals)
    return {"apiVersion": _API_VERSION, "kind": _KIND, "response": response}


def answer_with_patch(
    uid: str, change: RequestedChange, judgement: AdmissionJudgement, patch: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the AdmissionReview with the answer to a change, and a patch if the change is allowed."""
    answer = answer_to(uid, change, judgement)
    if patch and not judgement.refusals:
        operations = b64encode(json.dumps(list(patch)).encode()).decode()
        answer["response"] |= {"patchType": "JSONPatch", "patch": operations}
    return answer


def _status(change: RequestedChange, refusals: tuple[AdmissionRefusal, ...]) -> dict[str, Any]:
    """Return the status of a refusal: an object with wrong fields is invalid, any other change is forbidden.

    For an invalid object kubectl prints only the causes, each as `field: message`, so each needs a field.
    """
    is_invalid = any(refusal.field for refusal in refusals)
    causes = [
        {"reason": "FieldValueInvalid", "message": refusal.message, "field": refusal.field or _DEFAULT_FIELD}
        for refusal in refusals
        if is_invalid
    ]
    return {
        "status": "Failure",
        "code": _UNPROCESSABLE if is_invalid else _FORBIDDEN,
        "reason": "Invalid" if is_invalid else "Forbidden",
        "message": "\n".join(map(str, refusals)),
        "details": {"group": change.group, "kind": change.kind, "name": change.name, "causes": causes},
    }


def _object(request: Mapping[str, Any], field: str, *, needed: bool) -> Mapping[str, Any] | None:
    value = request.get(field)
    if isinstance(value, Mapping):
        return value
    if value is not None or needed:
        raise MalformedReviewError(f"the request has no `{field}`")
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# Changes as they are stored: in the storage version, independent of the version of the request.


def stored_form(change: RequestedChange) -> RequestedChange:
    """Return the change of the stored object. An annotation may hold another spec than the object itself."""
    if (change.group, change.kind) != KIND or change.version == STORED or change.version not in VERSIONS:
        return change
    return replace(change, version=STORED, old=_stored(change.old, change), new=_stored(change.new, change))


def _stored(manifest: Mapping[str, Any] | None, change: RequestedChange) -> dict[str, Any] | None:
    if manifest is None:
        return None
    metadata = {"namespace": change.namespace} | dict(manifest.get("metadata") or {})
    whole = {"apiVersion": change.api_version, "kind": change.kind, **manifest, "metadata": metadata}
    return convert_object(whole, f"{change.group}/{STORED}")
