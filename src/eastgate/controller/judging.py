"""Judges the changes in reviews, together with everything else that a replica knows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.sources.sizes import PolicySizes
from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.controller.admission.changes import AdmissionJudgement, RequestedChange
from eastgate.controller.admission.semantic import Judge
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.controller.admitting import (
    judge_change,
    refuse_many_invariants,
    refuse_too_large,
    refuse_unjudged,
    warn_of_native,
)
from eastgate.controller.metrics import ControllerMetrics
from eastgate.controller.options import SERVICE, ControllerOptions
from eastgate.controller.tracing import span
from eastgate.convert.model import Options
from eastgate.convert.native import ForeseenOutcome, NativeMesh, foresee, is_copy, is_source
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import JsonObject
from eastgate.reports.invariants.objects import InvariantError, InvariantObject, is_invariant, read_invariant

# Webhooks with metrics and traces.


class _Response(msgspec.Struct):
    allowed: bool | None = None
    result: dict[str, Any] = {}


class _Review(msgspec.Struct):
    response: _Response


_ANSWERS: Final = msgspec.json.Decoder(_Review)  # it skips the rest, which may be a whole list of objects


class ObservedWebhooks(Webhooks):
    """Webhooks that record the result and the duration of each review."""

    def __init__(self, *args: Any, metrics: ControllerMetrics, **options: Any) -> None:
        super().__init__(*args, **options)
        self._metrics = metrics

    async def answer(self, request: ServedRequest) -> ServedResponse:
        """Answer a request with a review."""
        path = urlsplit(request.target).path
        webhook = path.strip("/") if path in self.paths else "unknown"
        began, result = time.monotonic(), "error"
        try:
            with span("admission review", {"webhook": webhook}, headers=dict(request.headers)) as traced:
                response = await super().answer(request)
                result = _result(response)
                if traced is not None:
                    traced.set_attribute("eastgate.result", result)
            return response
        finally:
            self._metrics.reviewed(webhook, result, time.monotonic() - began)


def _result(response: ServedResponse) -> str:
    if response.status != 200:
        return "error"
    answer = _ANSWERS.decode(response.body).response
    if answer.allowed is not None:
        return "allowed" if answer.allowed else "denied"
    return "converted" if answer.result.get("status") == "Success" else "error"


_LOG = logging.getLogger(__name__)
_FORESEE_SECONDS: Final = 2.0  # of the nine that a review may take


class ChangeJudges:
    """The judges of a replica. To change `authority`, hold `lock` and call `update` afterwards.

    `objects` are those of the API server, and `sizes` those of its policies. `on_unproven` is called for each change
    that is admitted without full proof.
    """

    def __init__(
        self,
        authority: Authority,
        objects: Mapping[PolicyRef, JsonObject],
        sizes: PolicySizes,
        options: ControllerOptions,
        lock: threading.RLock,
        on_unproven: Callable[[], None],
    ) -> None:
        self._authority = authority
        self._objects = objects
        self._sizes = sizes
        self._options = options
        self._lock = lock
        self._on_unproven = on_unproven
        self._own_user = f"system:serviceaccount:{options.namespace}:{SERVICE}"
        self._judges = [Judge(authority, self._invariants(), is_left_out=partial(is_copy, mesh=options.native))]
        if options.native is NativeMesh.ISTIO:
            self._judges.append(Judge(authority, self._invariants(), is_left_out=is_source))

    @property
    def enforced(self) -> Judge:
        """Return the judge of the enforced policies: with native policies for Istio, these are the written ones.

        The first judge considers the GEP-3779 policies themselves. They may differ: a policy may not be written, and
        Istio combines the written policies with other policies of Istio.
        """
        return self._judges[-1]

    def close(self) -> None:
        """Stop judging."""
        for judge in self._judges:
            judge.close()

    def update(self, applied: Iterable[Changes], put: Iterable[JsonObject]) -> None:
        """Apply changes that the authority has applied, and the objects of these."""
        invariants, changes = list(filter(is_invariant, put)), list(applied)
        errors: Iterable[InvariantError] = ()
        for judge in self._judges:
            for each in changes:
                judge.update(each.put, each.removed)
            errors = judge.update(invariants=invariants)
        for error in errors:
            _log_invalid(error)

    async def judge(self, change: RequestedChange) -> AdmissionJudgement:
        """Judge a change together with everything else in the cluster."""
        if self._ends_with_namespace(change):
            return AdmissionJudgement()
        too_large = self._refuse_too_large(change)
        if too_large.refusals:
            return too_large
        guarding = self._authority if self._options.native is None else None
        ask = partial(judge_change, own_user=self._own_user, change=change, on_unproven=self._on_unproven)
        judgement = await ask(self._judges[0], guarding=guarding)
        if self.enforced is not self._judges[0] and not is_source(change.new or change.old or {}):
            enforced = await ask(self.enforced, guarding=None)
            judgement = AdmissionJudgement(
                tuple(dict.fromkeys((*judgement.refusals, *enforced.refusals))),
                tuple(dict.fromkeys((*judgement.warnings, *enforced.warnings))),
            )
        if self._options.native is None or change.user == self._own_user:
            return judgement
        foresees = partial(self._foresee, self._options.native)
        return judgement | await warn_of_native(self._options.native, foresees, change)

    def refuse_unjudged(self, change: RequestedChange) -> AdmissionJudgement:
        """Return the answer to a change after its time has run out."""
        if self._ends_with_namespace(change):
            return AdmissionJudgement()
        too_large = self._refuse_too_large(change)
        return too_large if too_large.refusals else refuse_unjudged(self._judges[0], self._own_user, change)

    def _refuse_too_large(self, change: RequestedChange) -> AdmissionJudgement:
        too_large = refuse_too_large(self._sizes, self._own_user, change)
        return too_large | refuse_many_invariants(self._objects, self._own_user, change)

    def _ends_with_namespace(self, change: RequestedChange) -> bool:
        """Return whether an object is removed together with its namespace, whose end must not be blocked."""
        namespace = self._authority.world.namespaces.get(change.namespace or "")
        return change.removes and namespace is not None and namespace.is_ending

    def _foresee(self, native: NativeMesh, put: JsonObject) -> ForeseenOutcome | None:
        if not self._lock.acquire(timeout=_FORESEE_SECONDS):
            raise TimeoutError
        try:
            return foresee(self._authority, put, native, Options(self._options.assumed), self._options.unwritable)
        finally:
            self._lock.release()

    def _invariants(self) -> Iterable[InvariantObject]:
        for obj in self._objects.values():
            if is_invariant(obj):
                try:
                    yield read_invariant(obj)
                except InvariantError as error:
                    _log_invalid(error)


def _log_invalid(error: InvariantError) -> None:
    fields = {"invariant": str(error.ref), "namespace": error.ref.namespace}
    _LOG.warning("%s has errors, and does not count: %s", error.ref, error, extra=fields)
