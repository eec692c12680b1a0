"""ConversionReview: the objects of a request in another version, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.admission.conversion.objects import ConversionError, convert_object
from eastgate.admission.reviews import request_of

__all__ = ["answer_conversion"]

_API_VERSION, _KIND = "apiextensions.k8s.io/v1", "ConversionReview"


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
