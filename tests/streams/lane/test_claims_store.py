"""All workers of a group use one claims store: another Redis or namespace is refused, on a fresh start too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from ticketgate.streams.lane.opening.claims_store import StoreId, assignor_of
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

ONE, OTHER = StoreId("1" * 32, "ns"), StoreId("2" * 32, "ns")


def assigned(leader: StoreId, **members: bytes) -> dict[str, list[int]]:
    """What a leader gives to members by their user data."""
    cluster: Any = SimpleNamespace(partitions_for_topic=lambda _: {0, 1, 2, 3})
    told = {name: ConsumerProtocolMemberMetadata(0, ["tickets"], data) for name, data in members.items()}
    given = assignor_of(leader, lambda _: None).assign(cluster, told)
    return {name: sorted(each.partition for each in one.partitions()) for name, one in given.items()}


def test_a_leader_gives_partitions_to_members_of_its_store_and_to_those_that_tell_of_none() -> None:
    found = assigned(ONE, a=ONE.tell().encode(), b=OTHER.tell().encode(), c=b"", d=b"\xff?")

    assert found == {"a": [0, 3], "b": [], "c": [1], "d": [2]}


def test_a_leader_of_a_version_before_is_followed_and_one_of_another_store_is_told() -> None:
    told: list[StoreId] = []
    ours = assignor_of(ONE, told.append)
    cluster: Any = SimpleNamespace(partitions_for_topic=lambda _: {0})
    members = {"a": ours.metadata(["tickets"])}

    ours.on_assignment(RoundRobinPartitionAssignor.assign(cluster, members)["a"])
    ours.on_assignment(ours.assign(cluster, members)["a"])
    ours.on_assignment(assignor_of(OTHER, told.append).assign(cluster, members)["a"])

    assert told == [OTHER]
    assert ours.name == RoundRobinPartitionAssignor.name


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(
        policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="2", session_timeout="3s"
    )


def stays_out(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Whether /readyz says so of the group, and the worker has no lane."""

    def is_out(state: dict[str, Any]) -> bool:
        why = state.get("waiting", {}).get("kafka", "")
        return not state.get("lanes") and all(word in why for word in ("other_claims_store", *words))

    return is_out


def metadata(gate: Deployment) -> set[str]:
    """Of the group's committed offsets."""

    async def act() -> set[str]:
        async with AIOKafkaConsumer(
            bootstrap_servers=gate.bootstrap, group_id=gate.name, enable_auto_commit=False
        ) as consumer:
            places = [TopicPartition(gate.topic("tickets"), number) for number in range(2)]
            coordinator: Any = consumer._coordinator
            found = await coordinator.fetch_committed_offsets(places)
            return {each.metadata for each in found.values()}

    return asyncio.run(act())


def serves(gate: Deployment, worker: Worker, name: str) -> None:
    worker.wait_ready()
    before = len(gate.committed("dispatch", "review"))
    gate.send(ticket(f"{name}-{n}") for n in range(8))
    gate.wait_for_records(before + 8, "dispatch", "review")


@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.parametrize("is_fresh", [True, False])
@pytest.mark.parametrize("other", ["redis", "namespace"])
def test_a_worker_with_other_claims_stays_out_of_the_group(
    gate: Deployment, tmp_path: Path, is_fresh: bool, other: str
) -> None:
    worker = gate.start_worker()
    worker.wait_ready()
    if not is_fresh:
        serves(gate, worker, "before")

    with Valkey(data=tmp_path / "other") as valkey:
        settings = {"REDIS": valkey.url} if other == "redis" else {"NAMESPACE": f"{gate.name}-other"}
        stranger = gate.start_worker(**settings)
        stranger.wait_for(stays_out("TICKETGATE_REDIS and TICKETGATE_NAMESPACE"))
        assert stranger.get("/readyz")[0] == 503
        serves(gate, worker, "after")


@pytest.mark.kafka
@pytest.mark.redis
def test_two_workers_that_begin_at_the_same_moment_on_two_redis_are_never_both_given_partitions(
    gate: Deployment, tmp_path: Path
) -> None:
    with Valkey(data=tmp_path / "other") as valkey:
        workers = [gate.start_worker(), gate.start_worker(REDIS=valkey.url)]
        gate.send(ticket(f"T-{n}") for n in range(20))

        gate.wait_for_records(20, "dispatch", "review")
        for worker in workers:
            worker.wait_for(lambda state: state.get("ready") is True or stays_out()(state))
        assert sum(worker.ready().get("ready") is True for worker in workers) == 1
        gate.send(ticket(f"T-{n}") for n in range(20))
        workers[0].wait_for(lambda _: gate.lag() == 0)
        assert len(gate.committed("dispatch", "review")) == 20


@pytest.mark.kafka
@pytest.mark.redis
def test_the_store_stands_in_each_committed_offset_and_a_replay_writes_it_too(gate: Deployment) -> None:
    worker = gate.start_worker()
    serves(gate, worker, "T")
    assert worker.stop() == 0
    (told,) = metadata(gate)
    assert StoreId.read(told)

    done = gate.run("replay", "--replay-from", "beginning", "--yes")

    assert done.returncode == 0, done.stderr
    assert metadata(gate) == {told}
