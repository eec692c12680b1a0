"""Traces by OpenTelemetry, where an exporter is configured; else nothing of it is imported, and a span costs a call.

The variables are those of the OpenTelemetry SDK: `OTEL_EXPORTER_OTLP_ENDPOINT` turns traces on, `OTEL_SDK_DISABLED` and
`OTEL_TRACES_EXPORTER=none` turn them off; samplers and batches are the SDK's own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from eastgate._version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

_LOG = logging.getLogger(__name__)
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CONTEXT_HEADERS: Final = ("traceparent", "tracestate")
_tracer: Tracer | None = None


def wants_traces(environment: Mapping[str, str]) -> bool:
    """Return whether somebody has asked for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def start_tracing(service: str) -> Callable[[], None]:
    """Export traces if somebody has asked for them; return what ends that, and sends what is left."""
    if not wants_traces(os.environ):
        return lambda: None
    try:
        from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _LOG.error("traces are wanted, but the packages for them are missing: install eastgate[otel]")
        return lambda: None
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "eastgate")})
    provider = TracerProvider(resource=resource.merge(Resource({"service.instance.id": service})))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    stop = trace_by(provider)

    def end() -> None:
        stop()
        provider.shutdown()

    return end


def trace_by(provider: TracerProvider) -> Callable[[], None]:
    """Make spans by a provider, until the function that this returns is called."""
    global _tracer
    _tracer = provider.get_tracer("eastgate", __version__)
    return _stop


def _stop() -> None:
    global _tracer
    _tracer = None


@contextmanager
def span(
    name: str, attributes: Mapping[str, str | int | bool] | None = None, *, headers: Mapping[str, str] | None = None
) -> Iterator[Span | None]:
    """Make a span of what happens inside; None where nobody wants any. `headers` may name its parent, as W3C has it."""
    if _tracer is None:
        yield None
        return
    context = None
    if headers is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {key: headers[key] for key in _CONTEXT_HEADERS if key in headers}
        context = TraceContextTextMapPropagator().extract(carrier)
    named = {f"eastgate.{key}": value for key, value in (attributes or {}).items()}
    with _tracer.start_as_current_span(name, context, attributes=named) as started:
        yield started
