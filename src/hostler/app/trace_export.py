"""Sends spans to an OpenTelemetry collector by OTLP over HTTP, beside everything else; needs the extra `tracing`.

Spans wait in a bounded queue and leave in a thread: a collector that is down or slow costs spans, which are counted,
and nothing else. `OTEL_EXPORTER_OTLP_HEADERS` and the other variables of OpenTelemetry's SDK hold.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.logs import traces

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
except ImportError as error:
    raise InvalidInputError(
        (Problem("--traces", 0, f"traces cannot be sent: {error}", "install it with pip: 'hostler[tracing]'"),)
    ) from error

QUEUE_MOST = 2_048
"""Spans that wait or are on their way; what comes on top is dropped."""
BATCH = 512
EVERY_MS = 2_000
TIMEOUT_S = 5.0
"""How long one batch is tried; then its spans are lost."""
LEAVE_S = 1.0
"""How long a controller that stops waits for its last spans."""
PATH = "/v1/traces"


class CountedExporter(SpanExporter):
    """Exports as the one within, and counts what became of each span: sent, failed or dropped.

    `takes` says whether there is room for one more; what it takes is on its way until a batch has ended.
    """

    def __init__(self, within: SpanExporter, queue_most: int = QUEUE_MOST) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._spans = Counter(
            "hostler_trace_spans", "Spans of traces, by what became of them.", ("result",), registry=self.registry
        )
        for result in ("sent", "failed", "dropped"):
            self._spans.labels(result)
        self._within = within
        self._most = queue_most
        self._waiting = 0
        self._lock = threading.Lock()

    def takes(self) -> bool:
        """Whether one more span is taken; one that is not is counted as dropped."""
        with self._lock:
            if self._waiting < self._most:
                self._waiting += 1
                return True
        self._spans.labels("dropped").inc()
        return False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; runs in the queue's thread."""
        result = SpanExportResult.FAILURE
        try:
            result = self._within.export(spans)
        finally:
            with self._lock:
                self._waiting -= len(spans)
            self._spans.labels("sent" if result is SpanExportResult.SUCCESS else "failed").inc(len(spans))
        return result

    def shutdown(self) -> None:
        """Give up what is being sent."""
        self._within.shutdown()


class BoundedSpans(SpanProcessor):
    """The SDK's queue, given no more than the exporter takes: it never drops by itself, and never waits."""

    def __init__(self, exporter: CountedExporter, queue_most: int = QUEUE_MOST, every_ms: float = EVERY_MS) -> None:
        self._exporter = exporter
        self._batches = BatchSpanProcessor(exporter, queue_most, every_ms, min(BATCH, queue_most))

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span that has ended, where there is room."""
        if span.context is not None and span.context.trace_flags.sampled and self._exporter.takes():
            self._batches.on_end(span)

    def shutdown(self) -> None:
        """Send what waits, within `LEAVE_S`; the thread that does not end by then goes with the process."""
        ending = threading.Thread(target=self._batches.shutdown, daemon=True)
        ending.start()
        ending.join(LEAVE_S)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits now."""
        return self._batches.force_flush(timeout_millis)


class TraceIds(RandomIdGenerator):
    """Ids of traces: the one that is asked for, as every controller goes on with an intent's trace, else a new one."""

    def generate_trace_id(self) -> int:
        """Id for a trace that begins."""
        return traces.wanted() or super().generate_trace_id()


def endpoint_of(address: str) -> str:
    """The collector's URL for spans; "/v1/traces" is added where the address has no path. Raises InvalidInputError."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        instead = "give its URL, as http://collector:4318; what it asks for stands in OTEL_EXPORTER_OTLP_HEADERS"
        raise InvalidInputError((Problem("--traces", 0, f"'{address[:200]}' is no collector's address", instead),))
    return address if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{PATH}"


@contextmanager
def sending(address: str, version: str, controller: str) -> Iterator[CollectorRegistry]:
    """Make spans and send them until this ends; gives the counters. Raises InvalidInputError."""
    exporter = CountedExporter(OTLPSpanExporter(endpoint_of(address), timeout=TIMEOUT_S))
    named = {"service.name": "hostler", "service.version": version, "service.instance.id": controller}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False, id_generator=TraceIds())
    provider.add_span_processor(BoundedSpans(exporter))
    end = traces.begin(provider.get_tracer("hostler", version))
    try:
        yield exporter.registry
    finally:
        end()
        provider.shutdown()
