"""Traces: spans if tracing is turned on, with the parent in a review. Otherwise nothing is imported."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from eastgate.control.authorizer.http_server import ServedRequest
from eastgate.controller.judging import ObservedWebhooks
from eastgate.controller.metrics import ControllerMetrics
from eastgate.controller.tracing import span, start_tracing, trace_by, wants_traces
from tests.controller.admission.reviews import admission_review, policy, rules

_RULES = [{"authorizationSource": {"serviceAccounts": ["web"]}}]
_TRACE, _PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = trace_by(provider)
    yield exporter
    stop()
    provider.shutdown()


def test_spans_inside_others_are_their_children(exporter: InMemorySpanExporter) -> None:
    with span("apply changes", {"put": 2}), span("push to proxies"):
        pass
    inner, outer = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("push to proxies", "apply changes")
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert dict(outer.attributes or {}) == {"eastgate.put": 2}


@pytest.mark.parametrize(
    ("header", "parent"),
    [(f"00-{_TRACE}-{_PARENT}-01", _PARENT), ("00-nonsense-01", None), (None, None)],
    ids=["named", "malformed", "missing"],
)
def test_a_review_is_part_of_the_trace_that_it_names(
    exporter: InMemorySpanExporter, header: str | None, parent: str | None
) -> None:
    async def review() -> None:
        webhooks = ObservedWebhooks(metrics=ControllerMetrics(CollectorRegistry()))
        headers = (("traceparent", header),) if header is not None else ()
        body = json.dumps(admission_review(policy(rules(_RULES)))).encode()
        await webhooks.answer(ServedRequest("POST", "/validate", "1.1", headers, body, None))
        webhooks.close()

    asyncio.run(review())
    (made,) = exporter.get_finished_spans()
    assert made.name == "admission review"
    assert dict(made.attributes or {}) == {"eastgate.webhook": "validate", "eastgate.result": "allowed"}
    assert (f"{made.parent.span_id:016x}" if made.parent is not None else None) == parent


def test_a_failure_is_noted_and_goes_on(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="no"), span("write status"):
        raise ValueError("no")
    (made,) = exporter.get_finished_spans()
    assert not made.status.is_ok


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_traces_are_off_unless_asked_for(environment: dict[str, str], wanted: bool) -> None:
    assert wants_traces(environment) is wanted


def test_without_traces_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    stop = start_tracing("a")
    with span("apply changes") as made:
        assert made is None
    stop()


@pytest.mark.real
def test_nothing_of_it_is_imported_by_the_controller() -> None:
    code = "import eastgate.controller.controller, sys; print([m for m in sys.modules if 'opentelemetry' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
