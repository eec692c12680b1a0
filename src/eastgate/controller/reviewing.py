"""Webhooks that are counted, timed and traced."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from eastgate.admission.webhooks import Webhooks
from eastgate.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.controller.metrics import ControllerMetrics
from eastgate.controller.tracing import span

__all__ = ["ObservedWebhooks"]


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
    answer = msgspec.json.decode(response.body).get("response", {})
    if "allowed" in answer:
        return "allowed" if answer["allowed"] else "denied"
    return "converted" if answer.get("result", {}).get("status") == "Success" else "error"
