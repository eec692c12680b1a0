"""Objects in another version: the converted spec, and annotations with the parts that this version cannot express.

An annotation counts only if the conversion of its content is exactly the spec of the object. So an edit of the spec
makes the annotation void, and the spec alone is the policy. A user who may label a policy can write annotations. An
annotation that is not a JSON object is void, since otherwise it would make every list fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from eastgate.basics.records import dataclass
from eastgate.controller.admission.conversion.forms import KIND, VERSIONS, Form, Narrowing, form_in
from eastgate.controller.admission.reviews import MalformedReviewError, request_of
from eastgate.reading.kubernetes.depth import cut_depth
from eastgate.reading.strict_json import Json, read_json

NARROWED = "eastgate.dev/denies-more"
_MAX_ANNOTATION_BYTES = 256 * 1024  # of all annotations of an object

_REASONS = {
    Narrowing.SEVERAL_TARGETS: "this version has one target, and no selector selects the pods of all its targets",
    Narrowing.APPLICATION: "this version has no enforcementLevel APPLICATION",
    Narrowing.UNREADABLE: "its spec has errors",
}


class ConversionError(ValueError):
    """There is no conversion for the kind or version of an object."""


def spec_annotation(version: str) -> str:
    """Return the name of the annotation that holds the spec in a version."""
    return f"eastgate.dev/{version}-spec"


_OWN_ANNOTATIONS = frozenset({NARROWED, *map(spec_annotation, VERSIONS)})


def convert_object(manifest: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    """Return an object in another version. Raises ConversionError if its kind has no such version."""
    source, target = _version_of(manifest.get("apiVersion")), _version_of(api_version)
    if manifest.get("kind") != KIND[1] or source is None or target is None:
        raise ConversionError(f"there is no conversion of {manifest.get('apiVersion')} {manifest.get('kind')}")
    if source == target:
        return dict(manifest)
    metadata = _mapping(manifest.get("metadata"))
    namespace = metadata.get("namespace") or "default"
    annotations = {
        key: value for key, value in _mapping(metadata.get("annotations")).items() if key not in _OWN_ANNOTATIONS
    }
    spec = manifest.get("spec")
    original = _original(manifest, target)
    if original is not None:
        converted: Any = original.spec
    else:
        form = form_in(target, spec, namespace)
        converted = form.spec
        annotations |= _annotations(spec, form, source, namespace, annotations)
    changed = {key: value for key, value in metadata.items() if key != "annotations"}
    return (
        {key: value for key, value in manifest.items() if key != "spec"}
        | {"apiVersion": api_version, "metadata": changed | ({"annotations": annotations} if annotations else {})}
        | ({"spec": converted} if converted is not None else {})
    )


def original_in(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the object in the version in which it was written, or None without a valid annotation for it."""
    source = _version_of(manifest.get("apiVersion"))
    if source is None or manifest.get("kind") != KIND[1]:
        return None
    target = next(version for version in VERSIONS if version != source)
    if _original(manifest, target) is None:
        return None
    return convert_object(manifest, f"{KIND[0]}/{target}")


@dataclass(frozen=True, slots=True)
class _Original:
    """A spec as it was written in another version. None: the object had no spec."""

    spec: dict[str, Json] | None


def _original(manifest: Mapping[str, Any], version: str) -> _Original | None:
    """Return the spec in an annotation for another version, if its conversion is the spec of the object."""
    metadata = _mapping(manifest.get("metadata"))
    text = _mapping(metadata.get("annotations")).get(spec_annotation(version))
    source = _version_of(manifest.get("apiVersion"))
    if not isinstance(text, str) or source is None:
        return None
    try:
        spec = read_json(text.encode())
    except ValueError:
        return None
    if spec is not None and not isinstance(spec, dict):
        return None
    form = form_in(source, spec, metadata.get("namespace") or "default")
    return _Original(spec) if _text(form.spec) == _text(manifest.get("spec")) else None


def _annotations(spec: Any, form: Form, source: str, namespace: str, others: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of a converted object: its original spec if converting back would differ, and why."""
    noted = {}
    if form.narrowing is not None:
        noted[NARROWED] = (
            f"{_REASONS[form.narrowing]}; this form denies more, and an edit of its spec replaces the policy"
        )
    text = _text(spec)
    if form.narrowing is not None or _text(form_in(source, form.spec, namespace).spec) != text:
        size = sum(len(str(part).encode()) for entry in others.items() for part in entry) + len(text.encode())
        if form.narrowing is not None or size <= _MAX_ANNOTATION_BYTES:  # without it, only the spelling is lost
            noted[spec_annotation(source)] = text
    return noted


def _version_of(api_version: object) -> str | None:
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    return version if group == KIND[0] and version in VERSIONS else None


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _text(spec: Any) -> str:
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


# ConversionReview: the objects of a request in another version, all of them or none.


_API_VERSION, _KIND = "apiextensions.k8s.io/v1", "ConversionReview"


class _Request(msgspec.Struct):
    uid: str
    desiredAPIVersion: str  # noqa: N815 - as it is written
    objects: list[msgspec.Raw]


class _ConversionReview(msgspec.Struct):
    apiVersion: str  # noqa: N815 - as it is written
    kind: str
    request: _Request


_REVIEWS = msgspec.json.Decoder(_ConversionReview)


def answer_large_conversion(body: bytes) -> bytes:
    """Answer a review in bytes, one object at a time: decoding the whole list takes twenty times its size in memory.

    Raises MalformedReviewError.
    """
    try:
        try:
            review = _REVIEWS.decode(body)
        except RecursionError:
            review = _REVIEWS.decode(cut_depth(body))
        if (review.apiVersion, review.kind) != (_API_VERSION, _KIND):
            raise MalformedReviewError(f"this is not a {_KIND} of {_API_VERSION}")
        wanted, objects = review.request, []
        for raw in wanted.objects:
            one = {"uid": wanted.uid, "desiredAPIVersion": wanted.desiredAPIVersion, "objects": [_loaded(bytes(raw))]}
            answer = answer_conversion({"apiVersion": _API_VERSION, "kind": _KIND, "request": one})
            if not answer["response"]["convertedObjects"]:
                return json.dumps(answer).encode()
            objects.append(json.dumps(answer["response"]["convertedObjects"][0]).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedReviewError(f"this is not a {_KIND}: {error}") from None
    response = {"uid": wanted.uid, "convertedObjects": msgspec.Raw(b"[" + b",".join(objects) + b"]")}
    answered = {"apiVersion": _API_VERSION, "kind": _KIND, "response": response | {"result": {"status": "Success"}}}
    return msgspec.json.encode(answered)


def _loaded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError:  # one unreadable object must not make every list fail
        return json.loads(cut_depth(content))


def answer_conversion(review: Any) -> dict[str, Any]:
    """Answer a review. Raises MalformedReviewError if it is not a valid ConversionReview."""
    request = request_of(review, _API_VERSION, _KIND, {"desiredAPIVersion": str, "objects": list})
    try:
        objects = [_convert(manifest, request["desiredAPIVersion"]) for manifest in request["objects"]]
        response: dict[str, Any] = {"convertedObjects": objects, "result": {"status": "Success"}}
    except ConversionError as error:
        response = {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    return {"apiVersion": _API_VERSION, "kind": _KIND, "response": {"uid": request["uid"]} | response}


def _convert(manifest: Any, api_version: str) -> dict[str, Any]:
    if not isinstance(manifest, Mapping):
        raise ConversionError("an object is not a mapping")
    return convert_object(manifest, api_version)
