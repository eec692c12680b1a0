"""The webhooks: HTTP requests of an API server to reviews, and their answers back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from eastgate import dialects
from eastgate.admission.changes import Change, Judge, Judgement, Mutate, answer_to, answer_with_patch, change_of
from eastgate.admission.configuration import INJECT, VALIDATE
from eastgate.admission.conversion import answer_conversion
from eastgate.admission.reviews import MalformedReviewError
from eastgate.admission.validation import judge_object
from eastgate.admission.wording import limit_refusals, limit_warnings
from eastgate.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.settings import Settings

__all__ = ["CONVERT", "Webhooks"]

CONVERT = "/convert"

_LOG = logging.getLogger(__name__)
_JSON = (("content-type", "application/json"),)
_AT_ONCE = 8  # reviews that are worked on; others wait

Answer = Callable[[Any], Awaitable[dict[str, Any]]]


class Webhooks:
    """Answers reviews.

    `judge` is asked about changes that are valid by themselves, `mutate` about pods. A review that takes longer than so
    many seconds, or fails, gets an error for its answer: the `failurePolicy` of the webhook says what follows.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        judge: Judge | None = None,
        mutate: Mutate | None = None,
        seconds: float = 9.0,
        conversion_seconds: float = 28.0,
    ) -> None:
        self.settings = settings or Settings()
        self._judge = judge
        self._mutate = mutate
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._paths: dict[str, tuple[Answer, float]] = {
            VALIDATE: (self.validate, seconds),
            INJECT: (self.inject, seconds),
            CONVERT: (self.convert, conversion_seconds),
        }

    async def answer(self, request: ServedRequest) -> ServedResponse:
        """Answer a request with a review."""
        webhook = self._paths.get(urlsplit(request.target).path)
        if webhook is None:
            return _refuse(404, "there is no such webhook")
        if request.method != "POST":
            return _refuse(405, "send a review with POST")
        answer, seconds = webhook
        try:
            async with asyncio.timeout(seconds), self._at_once:
                review = await asyncio.to_thread(_decode, request.body)
                return ServedResponse(200, _JSON, await asyncio.to_thread(_encode, await answer(review)))
        except MalformedReviewError as error:
            return _refuse(400, str(error))
        except TimeoutError:
            _LOG.warning("a review at %s was not finished within %s seconds", request.target, seconds)
            return _refuse(504, "the review was not finished in time")

    async def validate(self, review: Any) -> dict[str, Any]:
        """Judge a change by itself; then, where it means something, beside everything else."""
        uid, change = change_of(review)
        judgement = await asyncio.to_thread(judge_object, change, self.settings)
        if not judgement.refusals and self._judge is not None and _means_something(change):
            judgement |= await self._judge(change)
        return answer_to(uid, change, _limited(judgement))

    async def inject(self, review: Any) -> dict[str, Any]:
        """Change a pod as `mutate` says; without one, not at all."""
        uid, change = change_of(review)
        if self._mutate is None:
            return answer_to(uid, change, Judgement())
        mutation = await self._mutate(change)
        return answer_with_patch(uid, change, _limited(mutation.judgement), mutation.patch)

    async def convert(self, review: Any) -> dict[str, Any]:
        """Convert the objects of a review."""
        return await asyncio.to_thread(answer_conversion, review)


def _means_something(change: Change) -> bool:
    """Return whether a change can change decisions. Labels of what is no policy may be what policies select."""
    if change.subresource is not None or change.is_being_deleted:
        return False
    is_policy = (change.group, change.version, change.kind) in dialects.registered().policies
    return not (is_policy and change.keeps_meaning)


def _limited(judgement: Judgement) -> Judgement:
    return Judgement(limit_refusals(judgement.refusals), limit_warnings(judgement.warnings))


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedReviewError("this is no JSON") from None


def _encode(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode()


def _refuse(status: int, message: str) -> ServedResponse:
    return ServedResponse(status, _JSON, json.dumps({"error": message}).encode())
