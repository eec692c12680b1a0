"""OpenTelemetry traces, if an exporter is configured. Otherwise nothing is imported, and a span costs one call.

The variables are those of the OpenTelemetry SDK: `OTEL_EXPORTER_OTLP_ENDPOINT` turns traces on, `OTEL_SDK_DISABLED` and
`OTEL_TRACES_EXPORTER=none` turn them off. The SDK also configures samplers and batches.
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
    """Return whether the environment turns traces on."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def start_tracing(service: str) -> Callable[[], None]:
    """Export traces if the environment turns them on; return a function that sends the remaining ones and ends."""
    if not wants_traces(os.environ):
        return lambda: None
    try:
        from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _LOG.error("traces are turned on, but their packages are missing: install eastgate[otel]")
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
    """Use a provider for spans, until the returned function is called."""
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
    """Trace the block as a span, or yield None without tracing. `headers` may name a parent in the W3C format."""
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
