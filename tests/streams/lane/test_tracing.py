"""Spans of batches: what they link to, and what stands in the records' headers."""

from __future__ import annotations

import sys

import pytest
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.lane.taking.tracing import ENDPOINT_VARIABLE, Traced, Untraced, open_tracing
from ticketgate.streams.lane.transaction import Outgoing

pytest.importorskip("opentelemetry.sdk", reason="the extra `telemetry` is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, format_trace_id

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
RECORD = Outgoing("dispatch", b"k", b"v", headers=(("traceparent", PARENT.encode()), ("yours", b"\xc2")))


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traced(spans: InMemorySpanExporter) -> Traced:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return Traced(provider.get_tracer("test"))


def test_a_batch_is_one_span_that_links_to_its_producers(traced: Traced, spans: InMemorySpanExporter) -> None:
    headers = [(("traceparent", PARENT.encode()),), (), (("traceparent", b"\xff"), ("other", b"x"))]

    with traced.batch("tickets", 3, headers):
        pass

    (span,) = spans.get_finished_spans()
    assert span.name == "process tickets"
    assert [format_trace_id(link.context.trace_id) for link in span.links] == [PARENT.split("-")[1]]
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 3


def test_a_record_bears_our_span_in_the_place_of_its_producers(
    traced: Traced, spans: InMemorySpanExporter
) -> None:
    with traced.batch("tickets", 0, []) as batch:
        stamped = batch.stamp(RECORD)

    (span,) = spans.get_finished_spans()
    assert span.context is not None
    yours, (name, ours) = stamped.headers
    assert yours == ("yours", b"\xc2")
    assert name == "traceparent"
    assert (ours or b"").decode().split("-")[1] == format_trace_id(span.context.trace_id)


def test_a_batch_that_fails_is_a_failed_span(traced: Traced, spans: InMemorySpanExporter) -> None:
    with pytest.raises(TimeoutError), traced.batch("tickets", 0, []):
        raise TimeoutError

    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR


def test_without_an_endpoint_headers_pass_on_and_nothing_is_loaded() -> None:
    tracing = open_tracing({})

    assert isinstance(tracing, Untraced)
    with tracing.batch("tickets", 0, []) as batch:
        assert batch.stamp(RECORD) is RECORD


def test_an_endpoint_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(SettingsError, match=r"ticketgate\[telemetry\]"):
        open_tracing({ENDPOINT_VARIABLE: "http://127.0.0.1:4318"})


def test_an_endpoint_makes_spans() -> None:
    assert isinstance(open_tracing({ENDPOINT_VARIABLE: "http://127.0.0.1:4318"}), Traced)
