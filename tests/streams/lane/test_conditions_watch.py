"""A condition that ends while lanes serve: they close with cause and remedy, and serve again once it is mended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ...support.deployment import Deployment, Worker, ticket
from ...support.meddling import redis_call, remove
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

PARTITIONS = 2


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    """A deployment whose workers look every half second."""
    return deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions=str(PARTITIONS),
        session_timeout="2s",
        condition_interval="500ms",
    )


def configure(gate: Deployment, topic: str, **config: str) -> None:
    """Set a topic's configuration, as somebody else does: names with _ for the dots."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            # aiokafka has the request that sets a topic's whole configuration.
            wanted = {"cleanup.policy": "delete", "retention.ms": str(30 * 86_400_000)} | {
                name.replace("_", "."): value for name, value in config.items()
            }
            resource = ConfigResource(ConfigResourceType.TOPIC, gate.topic(topic), configs=wanted)
            await client.alter_configs([resource])
        finally:
            await client.close()

    asyncio.run(act())


def closed_for(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Whether every lane waits, and /readyz has these words for it."""

    def is_closed(state: dict[str, Any]) -> bool:
        lanes = [why for part, why in state.get("waiting", {}).items() if part.startswith("lane")]
        return len(lanes) == PARTITIONS and all(word in why for why in lanes for word in words)

    return is_closed


def serves(gate: Deployment, worker: Worker, name: str) -> None:
    """The worker is ready, and a ticket comes out."""
    worker.wait_ready()
    before = len(gate.committed("dispatch", "review"))
    gate.send([ticket(name)])
    gate.wait_for_records(before + 1, "dispatch", "review")


def test_a_redis_that_is_told_to_forget_closes_the_lanes_until_it_is_mended(gate: Deployment) -> None:
    worker = gate.start_worker()
    serves(gate, worker, "before")
    for name, broken, mended, words in (
        ("maxmemory-policy", "volatile-lru", "noeviction", "maxmemory-policy volatile-lru"),
        ("appendonly", "no", "yes", "keeps no append-only file"),
        ("appendfsync", "no", "always", "appendfsync no"),
    ):
        redis_call(gate.redis_url, "CONFIG", "SET", name, broken)
        worker.wait_for(closed_for("conditions: ", words))
        assert worker.get("/readyz")[0] == 503

        redis_call(gate.redis_url, "CONFIG", "SET", name, mended)
        serves(gate, worker, f"after {name}")


def test_an_output_that_can_no_longer_vouch_for_claims_closes_the_lanes_until_it_is_mended(
    gate: Deployment,
) -> None:
    worker = gate.start_worker()
    serves(gate, worker, "before")
    for broken, words in (
        ({"cleanup_policy": "compact"}, "is compacted"),
        ({"cleanup_policy": "compact,delete"}, "is compacted"),
        ({"retention_ms": str(86_400_000)}, "keeps records 1d"),
        ({"retention_bytes": "1000000"}, "retention.bytes 1000000"),
    ):
        configure(gate, "review", **broken)
        worker.wait_for(closed_for("conditions: ", words))

        configure(gate, "review")
        serves(gate, worker, f"after {broken}")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_worker_starts_on_an_output_that_lost_young_records_only_at_least_once(
    gate: Deployment, guarantee: str
) -> None:
    gate.settings = {**gate.settings, "GUARANTEE": guarantee}
    worker = gate.start_worker()
    worker.wait_ready()
    gate.send(ticket(f"T-{n}") for n in range(40))
    records = gate.wait_for_records(40, "dispatch", "review")
    assert worker.stop() == 0
    most = max((each.topic, each.partition, each.offset) for each in records)
    topic = most[0].removeprefix(f"{gate.name}-")
    remove(gate, topic, {most[1]: 1})

    worker = gate.start_worker()

    if guarantee == "exactly_once":
        worker.wait_for(closed_for("conditions: ", f"first records of {most[0]}:{most[1]} are gone"))
    else:
        worker.wait_ready()
        assert f"first records of {most[0]}:{most[1]} are gone" in worker.log()
