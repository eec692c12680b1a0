"""The webhooks: they read reviews from HTTP requests of an API server, and write the answers."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from eastgate import dialects
from eastgate.basics.regexes import regex
from eastgate.cluster import uses
from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.controller.admission.changes import (
    AdmissionJudgement,
    JudgeChange,
    JudgeLate,
    MutateObject,
    RequestedChange,
    answer_to,
    answer_with_patch,
    change_of,
    stored_form,
)
from eastgate.controller.admission.configuration import (
    DIAGNOSE,
    INJECT,
    MUTATING,
    VALIDATE,
    VALIDATING,
    converted_definitions,
)
from eastgate.controller.admission.conversion import answer_conversion, answer_large_conversion
from eastgate.controller.admission.reviews import MalformedReviewError
from eastgate.controller.admission.semantic.shadow import BINDING
from eastgate.controller.admission.turns import FairThreads, ReviewClient
from eastgate.controller.admission.validation import judge_object, limit_refusals, limit_warnings
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource
from eastgate.reading.kubernetes.depth import cut_depth
from eastgate.settings import Settings

# The `caBundle` of webhook configurations and definitions, by which an API server verifies the certificate.
#
# One replica writes it, and restores it after a change by another program.


_LOG = logging.getLogger(__name__)
_UNWRITTEN = "a caBundle that could not be written"
_MAX_TRIES = 5
_ADMISSION = "admissionregistration.k8s.io"
_VALIDATING = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
_MUTATING = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def with_ca_bundle(manifest: Mapping[str, Any], certificates: str) -> JsonObject | None:
    """Return a configuration or a definition that trusts these certificates (PEM), or None if it does already."""
    changed: JsonObject = deepcopy(dict(manifest))
    for client in _clients(changed):
        client["caBundle"] = b64encode(certificates.encode()).decode()
    return changed if changed != manifest else None


def _clients(manifest: JsonObject) -> list[JsonObject]:
    entries = list(manifest.get("webhooks") or ())
    conversion = (manifest.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        entries.append(conversion.setdefault("webhook", {}))
    return [entry.setdefault("clientConfig", {}) for entry in entries]


class CaBundleKeeper:
    """Keeps the `caBundle` of Eastgate's configurations and definitions at `certificates()`. For the leader only."""

    def __init__(self, connection: Connection, certificates: Callable[[], str]) -> None:
        self._connection = connection
        self._certificates = certificates
        self._objects = [(_VALIDATING, VALIDATING), (_MUTATING, MUTATING)]
        self._objects += [(_DEFINITIONS, name) for name in converted_definitions()]
        self._nudge = asyncio.Event()

    def write_soon(self) -> None:
        """Write at once, since the certificates have changed."""
        self._nudge.set()

    async def run(self, seconds: float = 10.0) -> None:
        """Write every `seconds`, and after each `write_soon`, until cancelled."""
        while True:
            self._nudge.clear()
            await self.write()
            try:
                async with asyncio.timeout(seconds):
                    await self._nudge.wait()
            except TimeoutError:
                continue

    async def write(self) -> int:
        """Write the objects that differ; return their number. A failed write does not stop the others.

        Raises UnreachableError.
        """
        written = 0
        for resource, name in self._objects:
            fields = {"kind": resource.kind, "object": name}
            try:
                written += await self._write(resource, name)
                over = {**fields, "over": _UNWRITTEN}
                _LOG.info("the caBundle of %s %s can be written again", resource.kind, name, extra=over)
            except ApiError as error:
                if not error.is_missing:
                    trouble = {**fields, "trouble": _UNWRITTEN}
                    message = "the caBundle of %s %s could not be written: %s"
                    _LOG.warning(message, resource.kind, name, error, extra=trouble)
        return written

    async def _write(self, resource: Resource, name: str) -> bool:
        for attempt in range(_MAX_TRIES):
            changed = with_ca_bundle(await self._connection.get(resource, name), self._certificates())
            if changed is None:
                return False
            try:
                await self._connection.replace(resource, changed)
            except ApiError as error:
                if not error.is_conflict or attempt == _MAX_TRIES - 1:
                    raise
            else:
                fields = {"kind": resource.kind, "object": name}
                _LOG.info("the caBundle of %s %s was written", resource.kind, name, extra=fields)
                return True
        return False


CONVERT = "/convert"


_JSON = (("content-type", "application/json"),)
_THREADS = 4
_CONVERSION_SECONDS = 28.0
_JUDGING_SHARE = 0.6  # of the time of a review; the rest is for the answer
_SMALL_BODY_BYTES = 512 * 1024  # decoded in milliseconds
_MAX_REVIEW_BYTES = 8 * 1024 * 1024  # with two objects: an API server accepts requests of 3 MiB
_TIMEOUT = regex(r"(?:^|&)timeout=(\d{1,4})s(?:&|$)")

P = ParamSpec("P")
T = TypeVar("T")
Answer = Callable[[Any, str | None], Awaitable[dict[str, Any]]]


class Webhooks:
    """The answers to reviews.

    `judge` judges stored changes that are valid by themselves. `mutate` changes pods. If judging takes longer than
    `seconds`, or than the API server waits, `late` gives the answer. Without `late`, and if a review fails, the answer
    is an error, and the `failurePolicy` of the webhook applies.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        judge: JudgeChange | None = None,
        late: JudgeLate | None = None,
        mutate: MutateObject | None = None,
        seconds: float = 9.0,
    ) -> None:
        self.settings = settings or Settings()
        self._judge = judge
        self._late = late
        self._mutate = mutate
        self._threads = FairThreads(_THREADS, "webhooks", each=_THREADS // 2)
        self._paths: dict[str, tuple[Answer, float]] = {
            VALIDATE: (self.validate, seconds),
            DIAGNOSE: (self.diagnose, seconds),
            INJECT: (self.inject, seconds),
            CONVERT: (self.convert, _CONVERSION_SECONDS),
        }

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of the webhooks."""
        return frozenset(self._paths)

    async def answer(self, request: ServedRequest) -> ServedResponse:
        """Answer a request with a review."""
        webhook = self._paths.get(urlsplit(request.target).path)
        if webhook is None:
            return _refuse(404, "there is no such webhook")
        if request.method != "POST":
            return _refuse(405, "send a review with POST")
        answer, seconds = webhook
        if answer != self.convert and len(request.body) > _MAX_REVIEW_BYTES:
            return _refuse(413, "the review is larger than any object that an API server stores")
        seconds = min(seconds, _seconds_left(request))
        try:
            async with asyncio.timeout(seconds):
                if answer == self.convert and len(request.body) > _SMALL_BODY_BYTES:
                    client = ReviewClient(request.peer or "", CONVERT)
                    return ServedResponse(200, _JSON, await self._work(client, answer_large_conversion, request.body))
                review = await self._read(request)
                if answer != self.validate:
                    return ServedResponse(200, _JSON, _encode(await answer(review, request.peer)))
            answered = await self.validate(review, request.peer, seconds)
            return ServedResponse(200, _JSON, _encode(answered))
        except MalformedReviewError as error:
            return _refuse(400, str(error))
        except TimeoutError:
            path = urlsplit(request.target).path
            fields = {"webhook": path.strip("/")}
            _LOG.warning("a review at %s was not finished within %s seconds", path, seconds, extra=fields)
            return _refuse(504, "the review was not finished in time")

    async def _read(self, request: ServedRequest) -> Any:
        """Decode a review. A small one is decoded at once, not in a thread: every answer needs it."""
        if len(request.body) <= _SMALL_BODY_BYTES:
            return _decode(request.body)
        return await self._work(ReviewClient(request.peer or "", request.target), _decode, request.body)

    async def validate(self, review: Any, peer: str | None = None, seconds: float | None = None) -> dict[str, Any]:
        """Judge a change by itself and then, if it can change decisions, together with the whole cluster."""
        uid, change = change_of(review, peer)
        client = ReviewClient.of(peer, change.user)
        judgement: AdmissionJudgement | None = None
        if seconds is not None and self._late is not None:
            seconds *= _JUDGING_SHARE
        try:
            async with asyncio.timeout(seconds):
                judgement = await self._work(client, judge_object, change, self.settings)
                if not judgement.refusals and self._judge is not None:
                    stored = await self._work(client, stored_form, change)
                    if _can_change_decisions(stored, stored.keeps_meaning):
                        judgement |= await self._judge(stored)
        except TimeoutError:
            if self._late is None:
                raise
            judgement = _judge_late(self._late, change, judgement)
        return answer_to(uid, change, _observed(change, judgement))

    async def diagnose(self, review: Any, peer: str | None = None) -> dict[str, Any]:
        """Refuse an object with errors before the API server validates its schema. `validate` does the rest."""
        uid, change = change_of(review, peer)
        judgement = await self._work(ReviewClient.of(peer, change.user), judge_object, change, self.settings)
        return answer_to(uid, change, _observed(change, AdmissionJudgement(judgement.refusals)))

    async def inject(self, review: Any, peer: str | None = None) -> dict[str, Any]:
        """Change a pod by `mutate`; without `mutate`, leave it as it is."""
        uid, change = change_of(review, peer)
        if self._mutate is None:
            return answer_to(uid, change, AdmissionJudgement())
        return await self._work(ReviewClient.of(peer, change.user), _mutated, self._mutate, uid, change)

    async def convert(self, review: Any, peer: str | None = None) -> dict[str, Any]:
        """Convert the objects of a review."""
        return await self._work(ReviewClient(peer or "", CONVERT), answer_conversion, review)

    def close(self) -> None:
        """Begin no more work."""
        self._threads.close()

    async def _work(self, client: ReviewClient, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread of the webhooks, in turns. Other threads may be busy with the whole cluster."""
        return await asyncio.wrap_future(self._threads.submit(client, partial(function, *args, **kwargs)))


def _mutated(mutate: MutateObject, uid: str, change: RequestedChange) -> dict[str, Any]:
    mutation = mutate(change)
    return answer_with_patch(uid, change, _observed(change, mutation.judgement), mutation.patch)


def _can_change_decisions(change: RequestedChange, keeps_meaning: bool) -> bool:
    """Return whether a change can change decisions. For other objects than policies, labels count, since policies
    select by labels.

    Some subresources can change labels too. An object that is being deleted counts until its last finalizer is gone,
    and its spec can change until then.
    """
    if change.subresource is not None or change.kind == BINDING:
        return change.kind == BINDING or uses(change.api_version, change.kind)
    is_policy = (change.group, change.version, change.kind) in dialects.registered().policies
    return change.removes or not (is_policy and keeps_meaning)


def _judge_late(late: JudgeLate, change: RequestedChange, judgement: AdmissionJudgement | None) -> AdmissionJudgement:
    """Return the judgement of a change after its time has run out: without an answer, some webhooks would be ignored.

    Raises TimeoutError if the change was not even validated by itself, and no Invariant refuses it.
    """
    _LOG.warning("a change of %s was not judged in time", change.kind, extra={"kind": change.kind})
    unjudged = late(change) if _can_change_decisions(change, change.changes_labels_alone) else AdmissionJudgement()
    if judgement is None and not unjudged.refusals:
        raise TimeoutError
    return (judgement or AdmissionJudgement()) | unjudged


def _seconds_left(request: ServedRequest) -> float:
    """Return the seconds until the timeout that the API server names, minus one second for the answer."""
    asked = _TIMEOUT.search(urlsplit(request.target).query)
    return max(1.0, int(asked[1]) - 1.0) if asked is not None else math.inf


def _observed(change: RequestedChange, judgement: AdmissionJudgement) -> AdmissionJudgement:
    """Return a judgement, limited to what an API server passes on. Log a refusal."""
    if judgement.refusals:
        level = logging.DEBUG if change.dry_run else logging.INFO
        others = len(judgement.refusals) - 1
        more = f" (and {others} more)" if others else ""
        why = f"{judgement.refusals[0]}{more}"
        _LOG.log(level, "%s is refused: %s", change, why, extra=change.fields)
    return AdmissionJudgement(limit_refusals(judgement.refusals), limit_warnings(judgement.warnings))


def _decode(body: bytes) -> Any:
    try:
        try:
            return json.loads(body)
        except RecursionError:  # one unreadable object must not make every list fail
            return json.loads(cut_depth(body))
    except (ValueError, RecursionError):
        raise MalformedReviewError("the body is not JSON") from None


def _encode(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode()


def _refuse(status: int, message: str) -> ServedResponse:
    return ServedResponse(status, _JSON, json.dumps({"error": message}).encode())
