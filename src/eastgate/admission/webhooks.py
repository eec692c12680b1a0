"""The webhooks: HTTP requests of an API server to reviews, and their answers back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from eastgate import dialects
from eastgate.admission.changes import (
    AdmissionJudgement,
    JudgeChange,
    MutateObject,
    RequestedChange,
    answer_to,
    answer_with_patch,
    change_of,
)
from eastgate.admission.configuration import DIAGNOSE, INJECT, VALIDATE
from eastgate.admission.conversion import answer_conversion
from eastgate.admission.reviews import MalformedReviewError
from eastgate.admission.storing import stored_form
from eastgate.admission.validation import judge_object
from eastgate.admission.wording import limit_refusals, limit_warnings
from eastgate.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.settings import Settings

__all__ = ["CONVERT", "Webhooks"]

CONVERT = "/convert"

_LOG = logging.getLogger(__name__)
_JSON = (("content-type", "application/json"),)
_THREADS = 4

P = ParamSpec("P")
T = TypeVar("T")
Answer = Callable[[Any], Awaitable[dict[str, Any]]]


class Webhooks:
    """Answers reviews.

    `judge` is asked about changes that are valid by themselves, as they are stored; `mutate` about pods. A review that
    takes longer than so many seconds, or fails, gets an error for its answer: the `failurePolicy` of the webhook says
    what follows.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        judge: JudgeChange | None = None,
        mutate: MutateObject | None = None,
        seconds: float = 9.0,
        conversion_seconds: float = 28.0,
    ) -> None:
        self.settings = settings or Settings()
        self._judge = judge
        self._mutate = mutate
        self._workers = ThreadPoolExecutor(_THREADS, "webhooks")
        self._paths: dict[str, tuple[Answer, float]] = {
            VALIDATE: (self.validate, seconds),
            DIAGNOSE: (self.diagnose, seconds),
            INJECT: (self.inject, seconds),
            CONVERT: (self.convert, conversion_seconds),
        }

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths at which reviews are answered."""
        return frozenset(self._paths)

    async def answer(self, request: ServedRequest) -> ServedResponse:
        """Answer a request with a review."""
        webhook = self._paths.get(urlsplit(request.target).path)
        if webhook is None:
            return _refuse(404, "there is no such webhook")
        if request.method != "POST":
            return _refuse(405, "send a review with POST")
        answer, seconds = webhook
        try:
            async with asyncio.timeout(seconds):
                review = await self._work(_decode, request.body)
                return ServedResponse(200, _JSON, await self._work(_encode, await answer(review)))
        except MalformedReviewError as error:
            return _refuse(400, str(error))
        except TimeoutError:
            _LOG.warning("a review at %s was not finished within %s seconds", request.target, seconds)
            return _refuse(504, "the review was not finished in time")

    async def validate(self, review: Any) -> dict[str, Any]:
        """JudgeChange a change by itself; then, where it means something, beside everything else."""
        uid, change = change_of(review)
        judgement = await self._work(judge_object, change, self.settings)
        if not judgement.refusals and self._judge is not None:
            stored = await self._work(stored_form, change)
            if _means_something(stored):
                judgement |= await self._judge(stored)
        return answer_to(uid, change, _limited(judgement))

    async def diagnose(self, review: Any) -> dict[str, Any]:
        """Refuse what has errors by itself, before the API server looks at it. The rest is said by `validate`."""
        uid, change = change_of(review)
        judgement = await self._work(judge_object, change, self.settings)
        return answer_to(uid, change, _limited(AdmissionJudgement(judgement.refusals)))

    async def inject(self, review: Any) -> dict[str, Any]:
        """Change a pod as `mutate` says; without one, not at all."""
        uid, change = change_of(review)
        if self._mutate is None:
            return answer_to(uid, change, AdmissionJudgement())
        mutation = await self._mutate(change)
        return answer_with_patch(uid, change, _limited(mutation.judgement), mutation.patch)

    async def convert(self, review: Any) -> dict[str, Any]:
        """Convert the objects of a review."""
        return await self._work(answer_conversion, review)

    def close(self) -> None:
        """Begin no more work."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what takes a while in a thread of ours: others may be busy with the whole cluster."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, partial(function, *args, **kwargs))


def _means_something(change: RequestedChange) -> bool:
    """Return whether a change can change decisions. Labels of what is no policy may be what policies select.

    What is being deleted counts until its finalizers are gone, and its spec can be changed until then.
    """
    if change.subresource is not None or (change.is_being_deleted and change.keeps_meaning):
        return False
    is_policy = (change.group, change.version, change.kind) in dialects.registered().policies
    return not (is_policy and change.keeps_meaning)


def _limited(judgement: AdmissionJudgement) -> AdmissionJudgement:
    return AdmissionJudgement(limit_refusals(judgement.refusals), limit_warnings(judgement.warnings))


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedReviewError("this is no JSON") from None


def _encode(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode()


def _refuse(status: int, message: str) -> ServedResponse:
    return ServedResponse(status, _JSON, json.dumps({"error": message}).encode())
