"""Webhooks that are counted, timed and traced."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.controller.metrics import ControllerMetrics
from eastgate.controller.tracing import span


class _Response(msgspec.Struct):
    allowed: bool | None = None
    result: dict[str, Any] = {}


class _Review(msgspec.Struct):
    response: _Response


_ANSWERS: Final = msgspec.json.Decoder(_Review)  # of the rest, which may be a whole list of objects, nothing is made


class ObservedWebhooks(Webhooks):
    """Answers reviews, and notes what became of each."""

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
