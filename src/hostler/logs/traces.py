"""Spans of what people ask: from the request over its decision to what a BMC answered. None is made until `begin`.

A span says who was asked for what and how it ended: names, ids and results. Reasons, arguments, bodies, headers and the
texts of outcomes stay out: they may hold secrets, and the journal has what of them may be kept.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b

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

from hostler.logs.secret_patterns import HIDDEN, is_secret, redact

PARENT = "traceparent"
"""Header by which a caller's trace goes on here, and ours at the active controller (W3C Trace Context)."""

Facts = Mapping[str, str | int | bool]
"""Attributes by their names in OpenTelemetry's conventions, ours under `hostler.`."""

Earlier = SpanContext | int | None
"""An earlier span; the trace's id alone where another process made that span; None where there is none."""

_wanted: ContextVar[int] = ContextVar("wanted", default=0)
_unnamed: ContextVar[list[str]] = ContextVar("unnamed")
_INTENT_ID_DIGITS = 32
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
    parent = _headers.extract({PARENT: headers.get(PARENT, "")}, _NO_PARENT)
    with _span(name, SpanKind.SERVER, parent, facts) as span:
        context = span.get_span_context()
        begun = context.is_valid and not get_current_span(parent).get_span_context().is_valid
        _unnamed.set([f"{context.trace_id:032x}"] if begun else [])
        yield span


def name_of_intent() -> str:
    """The running request's trace as the id of the one intent that it asks for; "" where the trace was begun elsewhere.

    Whoever decides later, in another process too, knows the trace by the intent's id.
    """
    unnamed = _unnamed.get([])
    return unnamed.pop() if unnamed else ""


def of_intent(identity: str) -> int:
    """The trace of an intent by its id: the id itself where it is 128 bits in hexadecimal, else a digest of it."""
    digits = set(identity) <= set("0123456789abcdef") and len(identity) == _INTENT_ID_DIGITS
    found = int(identity, 16) if digits else 0
    return found or int.from_bytes(blake2b(identity.encode(), digest_size=16).digest(), "big")


def wanted() -> int:
    """Id that the next trace is to have, 0 for any."""
    return _wanted.get()


@contextmanager
def decision(intent: str, name: str, facts: Facts) -> Iterator[Span]:
    """The span of an intent's decision: in the request's trace, or in one of its own where nobody's request runs."""
    if get_current_span().get_span_context().is_valid:
        with child(name, facts) as span:
            yield span
        return
    if not on():
        yield INVALID_SPAN
        return
    with _in_trace(of_intent(intent), name, SpanKind.INTERNAL, facts) as span:
        yield span


@contextmanager
def _in_trace(trace: int, name: str, kind: SpanKind, facts: Facts) -> Iterator[Span]:
    """A span without a parent in the trace of this id; whether it is kept is decided as for every trace that begins."""
    token = _wanted.set(trace)
    try:
        with _span(name, kind, _NO_PARENT, facts) as span:
            _wanted.reset(token)
            yield span
    finally:
        if _wanted.get() == trace:
            _wanted.set(0)


@contextmanager
def child(name: str, facts: Facts, *, leaves: bool = False) -> Iterator[Span]:
    """A span of the running one, none where none runs. `leaves`: it is a call to something outside."""
    if not get_current_span().is_recording():
        yield INVALID_SPAN
        return
    with _span(name, SpanKind.CLIENT if leaves else SpanKind.INTERNAL, None, facts) as span:
        yield span


@contextmanager
def after(earlier: Earlier, name: str, facts: Facts) -> Iterator[Span]:
    """A span that goes on with an earlier one, which may have ended; none where there is no earlier one."""
    if earlier is None or not on():
        yield INVALID_SPAN
        return
    if isinstance(earlier, int):
        with _in_trace(earlier, name, SpanKind.CLIENT, facts) as span:
            yield span
        return
    with _span(name, SpanKind.CLIENT, set_span_in_context(Seen(earlier), _NO_PARENT), facts) as span:
        yield span


@contextmanager
def _span(name: str, kind: SpanKind, parent: Context | None, facts: Facts) -> Iterator[Span]:
    """A span with `facts` as its attributes, without secrets. An error is told by its type alone."""
    told = {key: _kept(key, value) for key, value in facts.items()} if on() else {}
    with _tracer.start_as_current_span(
        redact(name) if on() else name, parent, kind, told, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise


def _kept(name: str, value: str | int | bool) -> str | int | bool:
    if not isinstance(value, str):
        return value
    return HIDDEN if is_secret(name, value) else redact(value)


def tell(span: Span, name: str, value: str | int | bool) -> None:
    """Add an attribute to a span that runs."""
    span.set_attribute(name, _kept(name, value))


def failed(span: Span, why: str) -> None:
    """Mark the span as one that did not end well. `why` is one of a few words, for people to select by."""
    tell(span, "error.type", why)
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
