"""A broker that stops verifying transactions, at a worker's start and under it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
SETTING = "transaction.partition.verification.enable"


def set_verification(broker: Kafka, value: str) -> None:
    """As an operator does, while the broker runs."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await client.start()
        try:
            resource = ConfigResource(
                ConfigResourceType.BROKER, str(broker.node_id), configs={SETTING: value}
            )
            answers: list[Any] = await client.alter_configs([resource])
            assert [code for answer in answers for code, *_ in answer.resources] == [0]
        finally:
            await client.close()

    asyncio.run(act())


def is_refused(state: dict[str, Any]) -> bool:
    return SETTING in str(state.get("waiting", "")) and not state["ready"]


def test_a_broker_that_does_not_verify_transactions_is_refused_at_start_and_while_running(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "1",
        "SESSION_TIMEOUT": "2s",
        "CONDITION_INTERVAL": "500ms",
    }
    set_verification(own_kafka, "false")
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "workers", settings) as gate:
        worker = gate.start_worker()
        gate.send([ticket("T-1")])
        worker.wait_for(is_refused)
        assert gate.committed("dispatch", "review") == []

        set_verification(own_kafka, "true")
        gate.wait_for_records(1, "dispatch", "review")
        worker.wait_ready()

        set_verification(own_kafka, "false")
        worker.wait_for(is_refused)
        set_verification(own_kafka, "true")
        gate.send([ticket("T-2")])
        gate.wait_for_records(2, "dispatch", "review")
