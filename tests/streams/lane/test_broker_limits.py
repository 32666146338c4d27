"""What a broker does not allow is refused at the start by the setting's name, and nothing is made by asking for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...conftest import require_or_skip
from ...support.deployment import Deployment, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def creating_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker that makes topics which clients ask for."""
    try:
        broker = Kafka(data=tmp_path / "kafka", properties={"auto.create.topics.enable": "true"})
    except PartMissing as err:
        require_or_skip(err)
    with broker:
        yield broker


def topics(gate: Deployment) -> set[str]:
    """Topics as the broker has them, but for its own."""

    async def ask() -> set[str]:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            return {name for name in await client.list_topics() if not name.startswith("__")}
        finally:
            await client.close()

    return asyncio.run(ask())


def test_a_transaction_time_out_above_the_brokers_is_refused_at_start(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", transaction_timeout="20m")

    worker = gate.start_worker()

    assert worker.process.wait(60) == 2
    assert "TICKETGATE_TRANSACTION_TIMEOUT: 20m is more than the broker allows" in worker.log()
    assert "set it to at most 15m" in worker.log()


def test_without_transactions_their_time_out_does_not_matter(deploy: NewDeployment) -> None:
    gate = deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        transaction_timeout="20m",
        guarantee="at_least_once",
    )

    gate.start_worker().wait_ready()


def test_asking_for_a_topic_never_makes_it(creating_kafka: Kafka, valkey: Valkey, tmp_path: Path) -> None:
    settings = {"POLICY": str(SEED_POLICY), "SCORER": f"fixed:{FIXED_ANSWERS}", "PARTITIONS": "2"}
    gate = Deployment(creating_kafka.bootstrap, valkey.url, tmp_path, settings)
    tickets = tmp_path / "tickets.jsonl"
    tickets.write_text(json.dumps({"id": "T-1", "state": "x"}) + "\n")
    worker = gate.start_worker()
    try:
        seen = worker.wait_for(lambda state: "topic_missing" in json.dumps(state))

        for command in (
            ("produce", str(tickets)),
            ("consume", gate.topic("review")),
            ("audit",),
            ("replay", "--replay-from", "marks"),
            ("claims", "rebuild", "--dry-run"),
            ("dead-letter", "list"),
            ("dead-letter", "replay"),
            ("ledger", "rebuild", "--dry-run"),
        ):
            done = gate.run(*command)
            assert done.returncode != 0, command
        assert topics(gate) == set()
        assert "topics create" in json.dumps(seen)

        gate.create_topics()
        gate.send([ticket("T-2")])
        gate.wait_for_records(1, "dispatch", "review")
    finally:
        worker.kill()
