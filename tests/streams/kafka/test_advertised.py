"""A broker that can be reached, and tells everybody to come to an address that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from tests.conftest import require_or_skip
from tests.streams.cli.conftest import process

DEAD = "kafka-0.kafka.svc.invalid:9092"
SAMPLE_POLICY = Path(__file__).resolve().parents[3] / "streams" / "samples" / "support.toml"


@pytest.fixture(scope="module")
def misleading() -> Iterator[Kafka]:
    try:
        broker = Kafka(properties={"advertised.listeners": f"PLAINTEXT://{DEAD}"})
    except PartMissing as err:
        require_or_skip(err)
    with broker:
        yield broker


@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create"),
        ("consume", "tickets"),
        ("produce", "tickets.jsonl"),
        ("audit",),
        ("dead-letter", "list"),
        ("worker", "--policy", str(SAMPLE_POLICY)),
    ],
)
def test_the_dead_address_that_a_broker_advertises_is_named_in_one_line(
    misleading: Kafka,
    valkey: Valkey,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.jsonl").write_text('{"id":"T-1","state":"x"}\n')
    monkeypatch.setenv("TICKETGATE_KAFKA", misleading.bootstrap)
    monkeypatch.setenv("TICKETGATE_REDIS", valkey.url)
    monkeypatch.setenv("TICKETGATE_WEB_PORT", "0")

    ran = process(*arguments)

    told = [line for line in ran.err.splitlines() if line.startswith("ticketgate: ")]
    assert (ran.code, ran.out) == (4, b""), ran.err
    assert "Traceback" not in ran.err
    assert len(told) == 1
    assert told[0].startswith("ticketgate: TICKETGATE_KAFKA: ")
    assert DEAD in told[0]
    assert "advertised.listeners" in told[0]
