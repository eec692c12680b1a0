"""Whole objects in another version: the spec in its form there, and in annotations what that cannot say.

An annotation is believed only where the form of what it holds is the very spec that it stands beside. Whoever edits the
spec has thereby made it void, and the policy is what the spec says. Anybody who may label a policy writes annotations:
one that is not the JSON of an object is void, since a list with it could be read by nobody.
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
_MOST_BYTES = 256 * 1024  # of all annotations of an object

_WHY = {
    Narrowing.SEVERAL_TARGETS: "this version has one target, and no selector selects the pods of all its targets",
    Narrowing.APPLICATION: "this version has no enforcementLevel APPLICATION",
    Narrowing.UNREADABLE: "its spec has errors",
}


class ConversionError(ValueError):
    """An object of a kind or a version that there is no conversion for."""


def spec_annotation(version: str) -> str:
    """Return the annotation that holds the spec as it is in a version."""
    return f"eastgate.dev/{version}-spec"


_OURS = frozenset({NARROWED, *map(spec_annotation, VERSIONS)})


def convert_object(manifest: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    """Return an object in another version. Raises ConversionError where its kind has none of that name."""
    source, target = _version_of(manifest.get("apiVersion")), _version_of(api_version)
    if manifest.get("kind") != KIND[1] or source is None or target is None:
        raise ConversionError(f"there is no conversion of {manifest.get('apiVersion')} {manifest.get('kind')}")
    if source == target:
        return dict(manifest)
    metadata = _mapping(manifest.get("metadata"))
    namespace = metadata.get("namespace") or "default"
    annotations = {key: value for key, value in _mapping(metadata.get("annotations")).items() if key not in _OURS}
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
    """Return the object in the version that it was written in, where an annotation that is believed holds it."""
    source = _version_of(manifest.get("apiVersion"))
    if source is None or manifest.get("kind") != KIND[1]:
        return None
    target = next(version for version in VERSIONS if version != source)
    if _original(manifest, target) is None:
        return None
    return convert_object(manifest, f"{KIND[0]}/{target}")


@dataclass(frozen=True, slots=True)
class _Original:
    """A spec as it was written in another version; an object may have none."""

    spec: dict[str, Json] | None


def _original(manifest: Mapping[str, Any], version: str) -> _Original | None:
    """Return the spec in another version as an annotation holds it, where its form is the spec of the object."""
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
    """Return the annotations of a converted object: its spec where the way back would give another, and why."""
    noted = {}
    if form.narrowing is not None:
        noted[NARROWED] = f"{_WHY[form.narrowing]}; this form denies more, and an edit of its spec replaces the policy"
    text = _text(spec)
    if form.narrowing is not None or _text(form_in(source, form.spec, namespace).spec) != text:
        size = sum(len(str(part).encode()) for entry in others.items() for part in entry) + len(text.encode())
        if form.narrowing is not None or size <= _MOST_BYTES:  # nothing is lost but how the same thing was written
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
    """Answer a review in bytes, one object at a time: a list of all of them takes twenty times its bytes in memory.

    Raises MalformedReviewError.
    """
    try:
        try:
            review = _REVIEWS.decode(body)
        except RecursionError:
            review = _REVIEWS.decode(cut_depth(body))
        if (review.apiVersion, review.kind) != (_API_VERSION, _KIND):
            raise MalformedReviewError(f"this is no {_KIND} of {_API_VERSION}")
        wanted, objects = review.request, []
        for raw in wanted.objects:
            one = {"uid": wanted.uid, "desiredAPIVersion": wanted.desiredAPIVersion, "objects": [_loaded(bytes(raw))]}
            answer = answer_conversion({"apiVersion": _API_VERSION, "kind": _KIND, "request": one})
            if not answer["response"]["convertedObjects"]:
                return json.dumps(answer).encode()
            objects.append(json.dumps(answer["response"]["convertedObjects"][0]).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedReviewError(f"this is no {_KIND}: {error}") from None
    response = {"uid": wanted.uid, "convertedObjects": msgspec.Raw(b"[" + b",".join(objects) + b"]")}
    answered = {"apiVersion": _API_VERSION, "kind": _KIND, "response": response | {"result": {"status": "Success"}}}
    return msgspec.json.encode(answered)


def _loaded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError:  # one object that nobody can read must not fail a list of all of them
        return json.loads(cut_depth(content))


def answer_conversion(review: Any) -> dict[str, Any]:
    """Answer a review. Raises MalformedReviewError where it is none that an API server sends."""
    request = request_of(review, _API_VERSION, _KIND, {"desiredAPIVersion": str, "objects": list})
    try:
        objects = [_convert(manifest, request["desiredAPIVersion"]) for manifest in request["objects"]]
        response: dict[str, Any] = {"convertedObjects": objects, "result": {"status": "Success"}}
    except ConversionError as error:
        response = {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    return {"apiVersion": _API_VERSION, "kind": _KIND, "response": {"uid": request["uid"]} | response}


def _convert(manifest: Any, api_version: str) -> dict[str, Any]:
    if not isinstance(manifest, Mapping):
        raise ConversionError("an object is no mapping")
    return convert_object(manifest, api_version)
