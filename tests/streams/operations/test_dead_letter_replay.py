"""Dead letters listed, mended and sent again, through a worker: identity is kept right."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from ...support.deployment import Deployment, Sent, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import PLACEHOLDER, batch, send_batches
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

AN_HOUR_AGO_MS = round(time.time() * 1000) - 3_600_000

TRUNCATED = Sent(b'{"id": "T-1", "state": "My card wa', key=b"T-1", headers=[("x", b"\xff"), ("null", None)])
WRONG_FIELD = Sent(b'{"id": "T-2", "state": "x", "priority": 1}', key=b"T-2")
BAD_HEADER = Sent(b'{"id":"T-3","state":"x"}', key=b"another key", headers=[(PLACEHOLDER, b"v"), ("y", b"z")])
TOO_LARGE = ticket("T-4", "x" * 5_000)


def decided(gate: Deployment) -> Counter[str]:
    return Counter(
        json.loads(each.value or b"")["ticket_id"] for each in gate.committed("dispatch", "review")
    )


def run(gate: Deployment, *arguments: str, code: int = 0) -> Any:
    done = gate.run("dead-letter", *arguments, "--json")
    assert done.returncode == code, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines if arguments[0] == "list" else lines[0]


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    """A worker that has put four records into dead-letter, from offsets 0 to 3 of partition 1."""
    gate = deploy(
        policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="3", max_ticket_bytes="4096"
    )
    gate.start_worker().wait_ready()
    records = batch([TRUNCATED, WRONG_FIELD, BAD_HEADER, TOO_LARGE], timestamp_ms=AN_HOUR_AGO_MS)
    send_batches(gate.bootstrap, gate.topic("tickets"), [(1, records)])
    gate.wait_for_records(4, "dead-letter")
    return gate


async def _replayed(gate: Deployment) -> list[ConsumerRecord[bytes, bytes]]:
    # From behind the four, one of which aiokafka cannot read.
    source = TopicPartition(gate.topic("tickets"), 1)
    async with AIOKafkaConsumer(bootstrap_servers=gate.bootstrap) as consumer:
        consumer.assign([source])
        end = (await consumer.end_offsets([source]))[source]
        consumer.seek(source, 4)
        found: list[ConsumerRecord[bytes, bytes]] = []
        while await consumer.position(source) < end:
            found += (await consumer.getmany(source, timeout_ms=500)).get(source, [])
        return found


def replayed(gate: Deployment) -> list[ConsumerRecord[bytes, bytes]]:
    """What has been sent again to the tickets topic, in order."""
    return asyncio.run(_replayed(gate))


def test_a_replayed_record_is_as_it_was_and_has_one_effect(gate: Deployment) -> None:
    dry = run(gate, "replay", code=3)
    assert (dry["ready"], dry["held"], dry["sent"]) == (1, 3, 0)

    done = run(gate, "replay", "--yes", code=3)

    assert (done["sent"], done["held"]) == (1, 3)
    (again,) = replayed(gate)
    assert (again.value, again.key, again.partition) == (BAD_HEADER.value, BAD_HEADER.key, 1)
    assert (again.timestamp, again.headers) == (AN_HOUR_AGO_MS + 2, (("y", b"z"),))
    gate.wait_for_records(1, "dispatch", "review")

    assert run(gate, "replay", "--yes", code=3)["sent"] == 1

    (worker,) = gate.workers
    worker.wait_for_metric(1, "ticketgate_records_total", outcome="replayed")
    assert decided(gate) == {"T-3": 1}
    assert gate.lag() == 0


def test_a_mended_copy_is_no_duplicate_and_its_second_copy_is(gate: Deployment, tmp_path: Path) -> None:
    lines = run(gate, "list", "--at", f"{gate.topic('tickets')}:1:0-1")
    lines.sort(key=lambda line: line["key"])
    assert [line["key"] for line in lines] == ["T-1", "T-2"]
    del lines[0]["value_text"]
    lines[0]["value"] = {"id": "T-1", "state": "My card was charged twice."}
    lines[1].pop("value_text", None)
    del lines[1]["value"]["priority"]
    mended = tmp_path / "mended.jsonl"
    mended.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    assert run(gate, "replay", str(mended), "--yes")["sent"] == 2

    gate.wait_for_records(2, "dispatch", "review")
    first, second = replayed(gate)
    assert first.headers == (("x", b"\xff"), ("null", None))
    assert (first.key, first.partition, first.timestamp) == (b"T-1", 1, AN_HOUR_AGO_MS)
    assert (second.key, second.headers) == (b"T-2", ())

    assert run(gate, "replay", str(mended), "--yes")["sent"] == 2

    (worker,) = gate.workers
    worker.wait_for_metric(2, "ticketgate_records_total", outcome="replayed")
    assert decided(gate) == {"T-1": 1, "T-2": 1}


def test_what_is_sent_unmended_comes_back_and_has_no_effect(gate: Deployment) -> None:
    assert run(gate, "replay", "--code", "unknown_field", "--unmended", "--yes")["sent"] == 1

    dead = gate.wait_for_records(5, "dead-letter")
    assert Counter(each.value for each in dead)[WRONG_FIELD.value] == 2
    assert decided(gate) == {}


def test_a_limit_that_was_raised_makes_a_large_ticket_good(gate: Deployment) -> None:
    (worker,) = gate.workers
    assert worker.stop() == 0
    gate.settings = {**gate.settings, "MAX_TICKET_BYTES": "8192"}
    gate.start_worker().wait_ready()

    assert run(gate, "replay", "--code", "too_large", "--yes")["sent"] == 1

    gate.wait_for_records(1, "dispatch", "review")
    assert decided(gate) == {"T-4": 1}


def test_dead_letters_are_listed_by_what_one_asks_for(gate: Deployment) -> None:
    def codes(*options: str) -> set[str]:
        lines = run(gate, "list", *options)
        return {dict(line["headers"])["ticketgate-error-code"] for line in lines}

    everything = {"not_json", "unknown_field", "header_not_utf8", "too_large"}
    topic = gate.topic("tickets")
    assert codes() == everything
    assert codes("--stage", "schema") == {"unknown_field"}
    assert codes("--code", "too_large", "--code", "not_json") == {"too_large", "not_json"}
    assert codes("--at", f"{topic}:1:2") == {"header_not_utf8"}
    assert codes("--at", f"{topic}:1") == everything
    assert codes("--at", f"{topic}:0") == set()
    assert codes("--since", "2001-09-09T00:00:00Z", "--until", "2001-09-10T00:00:00Z") == set()
    assert codes("--since", "2001-09-09T00:00:00Z") == everything
    table = gate.run("dead-letter", "list", "--stage", "schema")
    assert f"{topic}:1:1" in table.stdout
    assert 'unknown field "priority"' in table.stdout
    assert gate.run("dead-letter", "list", "--at", "nowhere").returncode == 2


def test_a_file_with_a_line_that_is_no_record_sends_nothing(gate: Deployment, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"value": {"id": "T-9", "state": "x"}}\n{"value"\n')

    done = gate.run("dead-letter", "replay", str(tmp_path / "lines.jsonl"), "--yes")

    assert done.returncode == 2
    assert "lines.jsonl:2: " in done.stderr
    assert replayed(gate) == []
