"""Redis that went back, changed, moved or was told to forget: noticed, handed over or refused; never emitted twice."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from ticketgate.store.connect import ServerGuard, connect
from ticketgate.store.keys import Keys
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.lane.opening.claims_store import ClaimsStore
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...network.redis_proxy import RedisProxy
from ...support import faulty_worker
from ...support.deployment import Deployment, Worker, ticket
from ...support.meddling import redis_call
from ...support.policies import FIXED_ANSWERS, SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

PARTITIONS = 2
NewDeployment = Callable[..., Deployment]


@pytest.fixture
def deploy_on(kafka: Kafka, tmp_path: Path) -> Iterator[NewDeployment]:
    """A deployment on a Redis of the test's choice, whose workers look every half second."""
    with ExitStack() as stack:

        def new(url: str, **settings: str) -> Deployment:
            wanted = {
                "POLICY": str(SEED_POLICY),
                "SCORER": f"fixed:{FIXED_ANSWERS}",
                "PARTITIONS": str(PARTITIONS),
                "SESSION_TIMEOUT": "3s",
                "CONDITION_INTERVAL": "500ms",
            }
            deployment = Deployment(kafka.bootstrap, url, tmp_path / "deployment", wanted | settings)
            return stack.enter_context(deployment)

        yield new


def decide(gate: Deployment, worker: Worker, numbers: range) -> None:
    """The worker decides these tickets."""
    worker.wait_ready()
    before = len(gate.committed("dispatch", "review"))
    gate.send(ticket(f"T-{n}") for n in numbers)
    gate.wait_for_records(before + len(numbers), "dispatch", "review")


def closed_for(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Whether every lane waits, and /readyz has these words for it."""

    def is_closed(state: dict[str, Any]) -> bool:
        lanes = [why for part, why in state.get("waiting", {}).items() if part.startswith("lane")]
        return len(lanes) == PARTITIONS and all(word in why for why in lanes for word in words)

    return is_closed


def info(url: str, section: str) -> dict[str, Any]:
    """A section of INFO."""
    found = redis_call(url, "INFO", section)
    assert isinstance(found, dict)
    return found


def is_decided_once(gate: Deployment, worker: Worker, numbers: range) -> None:
    """Sent again with one that is new, only the new one comes out."""
    worker.wait_ready()
    before = len(gate.committed("dispatch", "review"))
    gate.send([*(ticket(f"T-{n}") for n in numbers), ticket(f"new after {before}")])
    gate.wait_for_records(before + 1, "dispatch", "review")
    worker.wait_for(lambda _: gate.lag() == 0)
    found = Counter(
        json.loads(each.value or b"")["ticket_id"] for each in gate.committed("dispatch", "review")
    )
    assert set(found.values()) == {1}, found


def test_a_redis_that_restarts_with_all_its_data_goes_on_by_itself(
    valkey: Valkey, deploy_on: NewDeployment
) -> None:
    gate = deploy_on(valkey.url)
    workers = [gate.start_worker(), gate.start_worker()]
    for each in workers:
        each.wait_ready()
    decide(gate, workers[0], range(30))

    valkey.kill()
    valkey.start()

    decide(gate, workers[0], range(30, 60))
    is_decided_once(gate, workers[0], range(60))
    assert "no acknowledged claim is missing" in workers[0].log() + workers[1].log()


def test_a_handover_writes_down_what_is_committed_where_the_marks_had_lost_it(
    valkey: Valkey, deploy_on: NewDeployment
) -> None:
    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(20))
    worker.wait_for(lambda _: gate.lag() == 0)
    worker.kill()
    keys = Keys(gate.name)
    marks = [keys.committed(gate.topic("tickets"), partition) for partition in range(PARTITIONS)]
    before = redis_call(valkey.url, "MGET", *marks)
    assert isinstance(before, list)
    assert None not in before
    redis_call(valkey.url, "DEL", *marks)

    # Another server, as far as anybody can tell, and no lane that would write its own mark at its opening.
    redis_call(valkey.url, "HSET", keys.server, "id", "another")
    asyncio.run(hand_over(gate))

    assert redis_call(valkey.url, "MGET", *marks) == before


async def hand_over(gate: Deployment) -> None:
    """What a worker of no partition does when it meets a server that the namespace does not stand on."""
    settings = load_settings({}, environment=gate.environment).settings
    guard, store = ServerGuard(), ClaimsStore(Keys(settings.namespace))

    def new_client() -> Redis:
        return connect(settings.redis.get_secret_value(), timeout=settings.redis_timeout)

    await HandOver(settings, guard=guard, store=store, new_client=new_client).ensure("decide")


def test_a_redis_that_restarts_without_its_last_claims_is_noticed_by_idle_workers(
    valkey: Valkey, deploy_on: NewDeployment, tmp_path: Path
) -> None:
    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(20))
    copy = tmp_path / "copy"
    redis_call(gate.redis_url, "SAVE")
    shutil.copytree(tmp_path / "valkey", copy)
    decide(gate, worker, range(20, 40))

    valkey.kill()
    shutil.rmtree(tmp_path / "valkey" / "appendonlydir")
    shutil.copytree(copy / "appendonlydir", tmp_path / "valkey" / "appendonlydir")
    valkey.start()

    worker.wait_for(closed_for("claims_lost", "ticketgate claims rebuild"))
    assert worker.get("/readyz")[0] == 503
    done = gate.run("claims", "rebuild", "--json")
    assert done.returncode == 0, done.stderr
    is_decided_once(gate, worker, range(40))


def test_evicted_claims_close_the_lanes_at_the_next_claim_until_they_are_rebuilt(
    valkey: Valkey, deploy_on: NewDeployment
) -> None:
    # Looked at seldom: it is the claim that sees them.
    gate = deploy_on(valkey.url, CONDITION_INTERVAL="3m")
    worker = gate.start_worker()
    decide(gate, worker, range(60))
    redis_call(gate.redis_url, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    used = info(gate.redis_url, "memory")["used_memory"]
    redis_call(gate.redis_url, "CONFIG", "SET", "maxmemory", str(used))
    number = 0
    while info(gate.redis_url, "stats")["evicted_keys"] < 5:
        number += 1
        redis_call(gate.redis_url, "SET", f"other:{number}", "x" * 200)
    redis_call(gate.redis_url, "CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis_call(gate.redis_url, "CONFIG", "SET", "maxmemory", "0")

    before = len(gate.committed("dispatch", "review"))
    gate.send(ticket(f"T-{n}") for n in range(60))

    worker.wait_for(closed_for("claims_lost", "evicted keys", "ticketgate claims rebuild"))
    assert len(gate.committed("dispatch", "review")) == before
    # Forgotten neither by a restart of Redis, whose count begins at 0, nor by one of the worker.
    valkey.kill()
    valkey.start()
    worker.stop()
    worker = gate.start_worker()
    worker.wait_for(closed_for("claims_lost", "evicted keys"))
    assert gate.run("claims", "rebuild").returncode == 0
    is_decided_once(gate, worker, range(60))


def test_a_replica_that_is_promoted_behind_the_same_address_is_gone_on_with(
    valkey: Valkey, deploy_on: NewDeployment, tmp_path: Path
) -> None:
    with Valkey(data=tmp_path / "replica") as replica, RedisProxy(valkey.port) as proxy:
        redis_call(replica.url, "REPLICAOF", "127.0.0.1", str(valkey.port))
        gate = deploy_on(proxy.url, REDIS_REPLICAS="1")
        worker = gate.start_worker()
        decide(gate, worker, range(30))

        # The old primary lives on as a replica, and keeps the connections that it has.
        redis_call(replica.url, "REPLICAOF", "NO", "ONE")
        redis_call(valkey.url, "REPLICAOF", "127.0.0.1", str(replica.port))
        proxy.lead_to(replica.port)

        decide(gate, worker, range(30, 60))
        is_decided_once(gate, worker, range(60))


def test_a_failover_that_lost_claims_is_refused(
    valkey: Valkey, deploy_on: NewDeployment, tmp_path: Path
) -> None:
    with Valkey(data=tmp_path / "replica") as replica, RedisProxy(valkey.port) as proxy:
        redis_call(replica.url, "REPLICAOF", "127.0.0.1", str(valkey.port))
        gate = deploy_on(proxy.url)
        worker = gate.start_worker()
        decide(gate, worker, range(30))
        # Cut off: what is claimed now does not come to it.
        redis_call(replica.url, "REPLICAOF", "NO", "ONE")
        decide(gate, worker, range(30, 60))

        valkey.kill()
        proxy.lead_to(replica.port)

        worker.wait_for(closed_for("claims_lost", "ticketgate claims rebuild"))
        assert gate.run("claims", "rebuild").returncode == 0
        is_decided_once(gate, worker, range(60))


def test_a_rebuild_that_died_leaves_lanes_refusing_until_a_second_one_went_on(
    valkey: Valkey, deploy_on: NewDeployment
) -> None:
    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(20))
    # As a rebuild that was killed after its first step: no mark tells of it.
    redis_call(
        valkey.url, "HSET", f"ticketgate:{gate.name}:server", "id", "rebuilding:x", "claims", "rebuilding"
    )
    worker.wait_for(closed_for("rebuilding", "run it again"))

    assert gate.run("claims", "rebuild").returncode == 0

    is_decided_once(gate, worker, range(20))


def test_claims_are_rebuilt_under_a_lane_that_is_deciding(valkey: Valkey, deploy_on: NewDeployment) -> None:
    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(20))
    gate.send(ticket(f"T-{n}") for n in range(20, 220))

    redis_call(valkey.url, "FLUSHALL")
    done = gate.run("claims", "rebuild")

    assert done.returncode == 0, done.stderr
    gate.wait_for_records(220, "dispatch", "review")
    is_decided_once(gate, worker, range(220))


def test_a_lane_that_decides_through_a_rebuild_commits_nothing_on_claims_that_are_gone(
    valkey: Valkey, deploy_on: NewDeployment
) -> None:
    gate = deploy_on(valkey.url)
    worker = gate.start_worker(program=faulty_worker.__file__)
    decide(gate, worker, range(4))
    slow = [ticket(f"S-{n}", "SLOW") for n in range(40)]
    gate.send(replace(each, key=b"one") for each in slow)
    gate.wait_for_records(12, "dispatch", "review")

    redis_call(valkey.url, "FLUSHALL")
    assert gate.run("claims", "rebuild").returncode == 0
    gate.send(replace(each, key=b"three") for each in slow)

    gate.wait_for_records(44, "dispatch", "review")
    is_decided_once(gate, worker, range(4))


@pytest.mark.parametrize(("policy", "words"), [("compact", "is compacted"), ("delete", "keeps records 1h")])
def test_a_rebuild_from_outputs_that_cannot_vouch_ends_with_findings_and_opens_nothing(
    valkey: Valkey, deploy_on: NewDeployment, policy: str, words: str
) -> None:
    from .test_conditions_watch import configure

    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(20))
    retention = {} if policy == "compact" else {"retention_ms": "3600000"}
    configure(gate, "review", cleanup_policy=policy, **retention)
    redis_call(valkey.url, "FLUSHALL")

    done = gate.run("claims", "rebuild")

    assert done.returncode == 3, done.stderr
    assert words in done.stdout
    configure(gate, "review")
    worker.wait_for(closed_for("rebuilding", "ended with findings"))
    assert gate.run("claims", "rebuild").returncode == 0
    is_decided_once(gate, worker, range(20))


def test_outputs_that_were_deleted_are_found_by_a_rebuild(valkey: Valkey, deploy_on: NewDeployment) -> None:
    from ...support.meddling import remove

    gate = deploy_on(valkey.url)
    worker = gate.start_worker()
    decide(gate, worker, range(40))
    ends = Counter[tuple[str, int]]()
    for each in gate.committed("dispatch", "review"):
        ends[each.topic, each.partition] = max(ends[each.topic, each.partition], each.offset + 1)
    for (topic, partition), end in ends.items():
        remove(gate, topic.removeprefix(f"{gate.name}-"), {partition: end})
    redis_call(valkey.url, "FLUSHALL")

    done = gate.run("claims", "rebuild", "--json")

    assert done.returncode == 3, done.stderr
    assert all("are gone" in each for each in json.loads(done.stdout)["gaps"])
    assert gate.run("claims", "rebuild", "--accept-gaps").returncode == 0
    worker.wait_for(closed_for("conditions", "are gone"))
