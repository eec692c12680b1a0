"""The frame of what an API server asks a webhook: a review with a request, which has a uid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MalformedReviewError(ValueError):
    """Something that is no review of the wanted kind: it is answered with 400."""


def request_of(review: Any, api_version: str, kind: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Return the request of a review that is of a kind, and has a uid and these fields. Raises MalformedReviewError."""
    if not isinstance(review, Mapping) or (review.get("apiVersion"), review.get("kind")) != (api_version, kind):
        raise MalformedReviewError(f"this is no {kind} of {api_version}")
    request = review.get("request")
    if not isinstance(request, Mapping):
        raise MalformedReviewError(f"the {kind} has no request")
    for name, wanted in {"uid": str, **fields}.items():
        if not isinstance(request.get(name), wanted) or request[name] == "":
            raise MalformedReviewError(f"the request has no `{name}`")
    return dict(request)
