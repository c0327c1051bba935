"""Sends the spans of this process to an OpenTelemetry collector, when an endpoint is configured.

Who makes spans uses the OpenTelemetry API alone, which does nothing without this. Not here: what is traced
(requests in `gateway`, decisions and effects in `runtime`, calls to agentctl in `execution`).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final

import structlog

FLUSH_S: Final = 3
"""At the end: how long spans that were not sent yet may take. A collector that is down loses them, and holds
nothing up."""
SEND_S: Final = 2
"""For one batch, in seconds."""
PATH: Final = "/v1/traces"
"""Where a collector takes traces over HTTP (OTLP specification 1.x, "OTLP/HTTP Request")."""

log = structlog.get_logger(__name__)


@contextlib.asynccontextmanager
async def tracing(endpoint: str | None, version: str) -> AsyncIterator[None]:
    """Spans are sent to `endpoint` (a collector's base URL) as long as this lasts; None: nowhere.

    Further variables of the exporter (`OTEL_EXPORTER_OTLP_HEADERS`, …) are read as OpenTelemetry says.
    """
    if endpoint is None:
        yield
        return
    # Late, for they cost a third of the start, and most backends send no traces.
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        """Says once that its collector takes nothing, and again after it took something."""

        told = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            failed = result is not SpanExportResult.SUCCESS
            if failed and not self.told:
                log.warning("traces cannot be sent", endpoint=endpoint)
            self.told = failed
            return result

    # One line for each batch that a collector does not take would fill the log of a backend that works.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = Exporter(endpoint=endpoint.rstrip("/") + PATH, timeout=SEND_S)
    resource = Resource.create({"service.name": "kandev", "service.version": version})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    sender = BatchSpanProcessor(exporter)
    provider.add_span_processor(sender)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await asyncio.to_thread(provider.shutdown)
