"""ConversionReview: the objects of a request in another version, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from eastgate.controller.admission.conversion.objects import ConversionError, convert_object
from eastgate.controller.admission.reviews import MalformedReviewError, request_of
from eastgate.reading.kubernetes.depth import cut_depth

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
