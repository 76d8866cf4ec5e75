"""Spans of what people ask: from the request over its decision to what a BMC answered. None is made until `begin`.

A span says who was asked for what and how it ended: names, ids and results. Reasons, arguments, bodies, headers and the
texts of outcomes stay out: they may hold secrets, and the journal has what of them may be kept.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NoOpTracer,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import NonRecordingSpan as Seen
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PARENT = "traceparent"
"""Header by which a caller's trace goes on here, and ours at the active controller (W3C Trace Context)."""

Facts = Mapping[str, str | int | bool]
"""Attributes by their names in OpenTelemetry's conventions, ours under `hostler.`."""

_OFF = NoOpTracer()
_NO_PARENT = Context()
_headers = TraceContextTextMapPropagator()
_tracer: Tracer = _OFF


def begin(tracer: Tracer) -> Callable[[], None]:
    """Make spans by this tracer from now on. Returns what ends that."""
    global _tracer  # noqa: PLW0603 - as the log, traces are the process's
    _tracer = tracer

    def end() -> None:
        global _tracer  # noqa: PLW0603
        _tracer = _OFF

    return end


def on() -> bool:
    """Whether spans are made."""
    return _tracer is not _OFF


@contextmanager
def root(name: str, headers: Mapping[str, str], facts: Facts) -> Iterator[Span]:
    """A request's span, which goes on with the caller's trace where its headers name one."""
    with _span(name, SpanKind.SERVER, _headers.extract({PARENT: headers.get(PARENT, "")}, _NO_PARENT), facts) as span:
        yield span


@contextmanager
def child(name: str, facts: Facts, *, leaves: bool = False) -> Iterator[Span]:
    """A span of the running one, none where none runs. `leaves`: it is a call to something outside."""
    if not get_current_span().is_recording():
        yield INVALID_SPAN
        return
    with _span(name, SpanKind.CLIENT if leaves else SpanKind.INTERNAL, None, facts) as span:
        yield span


@contextmanager
def after(earlier: SpanContext | None, name: str, facts: Facts) -> Iterator[Span]:
    """A span that goes on with an earlier one, which may have ended; none where there is no earlier one."""
    if earlier is None or not on():
        yield INVALID_SPAN
        return
    with _span(name, SpanKind.CLIENT, set_span_in_context(Seen(earlier), _NO_PARENT), facts) as span:
        yield span


@contextmanager
def _span(name: str, kind: SpanKind, parent: Context | None, facts: Facts) -> Iterator[Span]:
    """A span with `facts` as its attributes. An error is told by its type alone."""
    with _tracer.start_as_current_span(
        name, parent, kind, dict(facts), record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise


def failed(span: Span, why: str) -> None:
    """Mark the span as one that did not end well. `why` is one of a few words, for people to select by."""
    span.set_attribute("error.type", why)
    span.set_status(StatusCode.ERROR)


def running() -> SpanContext | None:
    """Context of the running span, None where none is recorded."""
    span = get_current_span()
    return span.get_span_context() if span.is_recording() else None


def trace_id(context: SpanContext | None = None) -> str:
    """The trace's id as headers and log lines name it: 32 hexadecimal digits, "" where nothing is traced."""
    found = context or running()
    return f"{found.trace_id:032x}" if found is not None else ""


def outgoing(came: Mapping[str, str]) -> list[tuple[str, str]]:
    """The header by which another process goes on with this trace, or with the caller's own where none runs here."""
    told: dict[str, str] = {}
    _headers.inject(told)
    parent = told.get(PARENT) or came.get(PARENT, "")
    return [(PARENT, parent)] if parent else []
