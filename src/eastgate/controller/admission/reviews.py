"""The common frame of reviews: a review has a request, and the request has a uid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MalformedReviewError(ValueError):
    """The body is not a review of the expected kind. The answer is status 400."""


def request_of(review: Any, api_version: str, kind: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Return the request of a review of this kind with a uid and these fields. Raises MalformedReviewError."""
    if not isinstance(review, Mapping) or (review.get("apiVersion"), review.get("kind")) != (api_version, kind):
        raise MalformedReviewError(f"this is not a {kind} of {api_version}")
    request = review.get("request")
    if not isinstance(request, Mapping):
        raise MalformedReviewError(f"the {kind} has no request")
    for name, wanted in {"uid": str, **fields}.items():
        if not isinstance(request.get(name), wanted) or request[name] == "":
            raise MalformedReviewError(f"the request has no `{name}`")
    return dict(request)
