"""What surrounds a worker fits it: connections for every lane at once, and the name that OpenTelemetry was told."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from ticketgate.store.connect import connect
from ticketgate.streams.lane.taking import tracing
from ticketgate.streams.parts.valkey import Valkey


@pytest.mark.redis
async def test_300_calls_at_once_each_have_a_connection(valkey: Valkey) -> None:
    redis = connect(valkey.url, timeout=timedelta(seconds=60))
    try:
        found = await asyncio.gather(*(redis.execute_command("ECHO", str(number)) for number in range(300)))
    finally:
        await redis.aclose()

    assert found == [str(number).encode() for number in range(300)]


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "ticketgate"),
        ({"OTEL_SERVICE_NAME": "gate-eu"}, "gate-eu"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=eu,service.name=gate"}, "gate"),
        ({"OTEL_SERVICE_NAME": "gate-eu", "OTEL_RESOURCE_ATTRIBUTES": "service.name=gate"}, "gate-eu"),
    ],
)
def test_spans_bear_the_name_that_opentelemetry_was_told(
    environment: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `telemetry` is not installed")
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)

    assert tracing.resource_of(environment).attributes["service.name"] == name
