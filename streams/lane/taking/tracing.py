"""Spans of a worker's batches, for who has OpenTelemetry: the extra `ticketgate[telemetry]` and its own settings.

Promise: where `OTEL_EXPORTER_OTLP_ENDPOINT` is set, each batch is a span that links to the spans of its tickets'
producers, and each decision's `traceparent` header is that of the batch's span. Where it is not, headers pass on as
they came, and nothing of OpenTelemetry is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ticketgate.codecs.records.headers import Header
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.lane.transaction import Outgoing

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Span, Tracer

ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
# What W3C Trace Context calls its two headers.
TRACE_HEADERS = frozenset({"traceparent", "tracestate"})


class BatchSpan(Protocol):
    """One batch's span."""

    def stamp(self, record: Outgoing) -> Outgoing:
        """The record with this span as its parent."""
        ...


class Tracing(Protocol):
    """Makes the span of a batch; `headers` are those of its tickets."""

    def batch(
        self, topic: str, partition: int, headers: Sequence[Sequence[Header]]
    ) -> AbstractContextManager[BatchSpan]:
        """A span that ends with the block, and is marked failed if that raises."""
        ...


class Untraced:
    """No spans."""

    def batch(
        self, topic: str, partition: int, headers: Sequence[Sequence[Header]]
    ) -> AbstractContextManager[BatchSpan]:
        """Nothing."""
        return nullcontext(self)

    def stamp(self, record: Outgoing) -> Outgoing:
        """The record as it is."""
        return record


class Traced:
    """Spans of OpenTelemetry, by a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def batch(self, topic: str, partition: int, headers: Sequence[Sequence[Header]]) -> Iterator[BatchSpan]:
        """A span named as OpenTelemetry's messaging conventions ask, with a link to each producer's."""
        from opentelemetry.trace import Link, SpanKind, get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        read = TraceContextTextMapPropagator().extract
        contexts = (get_current_span(read(_carrier(each))).get_span_context() for each in headers)
        attributes: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": topic,
            "messaging.destination.partition.id": str(partition),
            "messaging.batch.message_count": len(headers),
        }
        links = [Link(context) for context in contexts if context.is_valid]
        with self._tracer.start_as_current_span(
            f"process {topic}", kind=SpanKind.CONSUMER, links=links, attributes=attributes
        ) as span:
            yield _Stamp(span)


class _Stamp:
    def __init__(self, span: Span) -> None:
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
        self._ours = tuple((name, value.encode()) for name, value in carrier.items())

    def stamp(self, record: Outgoing) -> Outgoing:
        """The record with this span as its parent, in the place of its producer's."""
        others = tuple(header for header in record.headers if header[0].lower() not in TRACE_HEADERS)
        return replace(record, headers=others + self._ours)


def open_tracing(environment: Mapping[str, str]) -> Tracing:
    """Spans if OpenTelemetry's own variable names where they go. Raises `SettingsError` without the extra."""
    if not environment.get(ENDPOINT_VARIABLE):
        return Untraced()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as err:
        raise SettingsError(
            ENDPOINT_VARIABLE,
            "set, but OpenTelemetry is not installed",
            "`pip install 'ticketgate[telemetry]'`",
        ) from err
    provider = TracerProvider(resource=resource_of(environment))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traced(provider.get_tracer("ticketgate"))


def resource_of(environment: Mapping[str, str]) -> Resource:
    """What spans say of their process: as OpenTelemetry's variables have it, and `ticketgate` where they name none."""
    from opentelemetry.sdk.resources import Resource

    attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    is_named = bool(environment.get("OTEL_SERVICE_NAME")) or any(
        each.strip().startswith("service.name=") for each in attributes
    )
    return Resource.create({} if is_named else {"service.name": "ticketgate"})


def _carrier(headers: Sequence[Header]) -> dict[str, str]:
    """The headers that a propagator reads; bytes that are no text are none of them."""
    return {
        name.lower(): value.decode("ascii", "replace")
        for name, value in headers
        if name.lower() in TRACE_HEADERS and value is not None
    }
