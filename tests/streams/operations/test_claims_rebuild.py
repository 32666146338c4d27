"""Redis loses claims, or is another deployment's: lanes refuse and say why, and the remedy works."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Sent, Worker, ticket
from ...support.meddling import delete_group, keys_of, redis_call
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

PARTITIONS = 2


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    """A deployment of two partitions whose decisions cost nothing."""
    return deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions=str(PARTITIONS),
        session_timeout="2s",
    )


def decide(gate: Deployment, *numbers: range) -> None:
    """A worker decides the tickets of these numbers, one range after the other, and is stopped."""
    in_all = len(gate.committed("dispatch", "review"))
    worker = gate.start_worker()
    worker.wait_ready()
    for each in numbers:
        gate.send(ticket(f"T-{n}") for n in each)
        in_all += len(each)
        gate.wait_for_records(in_all, "dispatch", "review")
    assert worker.stop() == 0


def ids(records: list[ConsumerRecord[bytes, bytes]]) -> Counter[str]:
    return Counter(json.loads(record.value or b"")["ticket_id"] for record in records)


def refusing(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Whether every lane waits for a reason in which these words stand."""

    def is_refusing(state: dict[str, Any]) -> bool:
        lanes = [why for part, why in state.get("waiting", {}).items() if part.startswith("lane")]
        return len(lanes) == PARTITIONS and all(word in why for why in lanes for word in words)

    return is_refusing


def wait_for_refusal(worker: Worker, *words: str, remedy: str) -> None:
    """Every lane refuses in /readyz, and the log says what to do."""
    worker.wait_for(refusing(*words))
    assert worker.get("/readyz")[0] == 503
    assert remedy in worker.log()


def duplicates_are_suppressed(gate: Deployment, worker: Worker, numbers: range) -> None:
    """Send the tickets again, and one that is new; nothing but that comes out."""
    before = ids(gate.committed("dispatch", "review"))
    gate.send([*(ticket(f"T-{n}") for n in numbers), *(ticket(f"N-{n}") for n in range(8))])
    after = ids(gate.wait_for_records(before.total() + 8, "dispatch", "review"))
    assert after == before + Counter(f"N-{n}" for n in range(8))
    worker.wait_for_metric(len(numbers), "ticketgate_records_total", outcome="replayed")
    audited = gate.run("audit", "--json")
    assert (audited.returncode, json.loads(audited.stdout)["missing"]) == (0, 0), audited.stdout


class TestRedisIsEmptied:
    def test_lanes_refuse_until_claims_are_rebuilt_and_duplicates_stay_suppressed(
        self, gate: Deployment
    ) -> None:
        decide(gate, range(60))
        claims = keys_of(gate, "claim")
        redis_call(gate.redis_url, "FLUSHALL")
        worker = gate.start_worker()
        wait_for_refusal(worker, "claims_lost", "Redis has lost claims", remedy="ticketgate claims rebuild")

        done = gate.run("claims", "rebuild", "--json")

        report = json.loads(done.stdout)
        assert (done.returncode, report["restored"], report["conflicts"]) == (0, 60, 0)
        assert keys_of(gate, "claim") == claims
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(60))

    def test_a_dry_run_changes_nothing_and_a_second_run_neither(self, gate: Deployment) -> None:
        decide(gate, range(20))
        redis_call(gate.redis_url, "FLUSHALL")

        dry = gate.run("claims", "rebuild", "--dry-run", "--json")
        assert (json.loads(dry.stdout)["restored"], keys_of(gate, "*")) == (20, [])

        first = json.loads(gate.run("claims", "rebuild", "--json").stdout)
        second = json.loads(gate.run("claims", "rebuild", "--json").stdout)
        assert (first["restored"], first["bound_identity"]) == (20, True)
        assert (second["restored"], second["present"], second["bound_identity"]) == (0, 20, False)

    def test_a_claim_lives_for_what_is_left_by_its_records_time(self, gate: Deployment) -> None:
        decide(gate, range(1))
        redis_call(gate.redis_url, "FLUSHALL")

        gate.run("claims", "rebuild")

        shown = json.loads(gate.run("claims", "show", "--ticket", "T-0", "--json").stdout)
        assert shown["owner"].startswith(gate.topic("tickets"))
        ttl_s = load_settings(environment={}).settings.claim_ttl.total_seconds()
        assert ttl_s - 300 < shown["remaining_s"] < ttl_s

    def test_a_collision_is_not_told_twice_afterwards(self, gate: Deployment) -> None:
        worker = gate.start_worker()
        worker.wait_ready()
        gate.send([ticket("T-1"), ticket("T-1", "Something else.")])
        gate.wait_for_records(2, "dispatch", "review")
        worker.stop()
        redis_call(gate.redis_url, "FLUSHALL")
        gate.run("claims", "rebuild")
        worker = gate.start_worker()
        worker.wait_ready()

        gate.send([ticket("T-1", "Something else."), ticket("N-1")])

        assert ids(gate.wait_for_records(3, "dispatch", "review")) == {"T-1": 2, "N-1": 1}
        shown = gate.run("claims", "show", "--ticket", "T-1").stdout
        assert "derived key: " in shown

    def test_a_claim_that_contradicts_the_outputs_is_reported_and_not_changed(self, gate: Deployment) -> None:
        decide(gate, range(10))
        name = keys_of(gate, "claim")[0]
        other = f"{gate.topic('tickets')}:0:999:{'0' * 64}"
        redis_call(gate.redis_url, "SET", name, other)

        done = gate.run("claims", "rebuild", "--json")

        report = json.loads(done.stdout)
        assert (done.returncode, report["conflicts"], report["present"]) == (3, 1, 9)
        assert report["conflicts_first"][0]["claimed_by"] == f"{gate.topic('tickets')}:0:999"
        assert redis_call(gate.redis_url, "GET", name) == other

    def test_the_groups_offsets_lost_as_well_are_taken_from_the_outputs(self, gate: Deployment) -> None:
        decide(gate, range(40))
        redis_call(gate.redis_url, "FLUSHALL")
        delete_group(gate)
        refused = gate.run("claims", "rebuild")
        assert refused.returncode == 2
        assert "--offsets-deleted" in refused.stderr

        rebuilt = gate.run("claims", "rebuild", "--offsets-deleted", "--json")

        assert all(mark["was_reset"] for mark in json.loads(rebuilt.stdout)["marks"])
        worker = gate.start_worker()
        wait_for_refusal(worker, "offsets_reset", remedy="ticketgate replay --replay-from marks")
        worker.stop()
        assert gate.run("replay", "--replay-from", "marks", "--yes").returncode == 0
        worker = gate.start_worker()
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(40))


class TestRedisIsCutBack:
    def test_lanes_refuse_and_only_what_was_lost_is_restored(
        self, kafka: Kafka, tmp_path: Path, valkey: Valkey, gate: Deployment
    ) -> None:
        folder, older = tmp_path / "valkey", tmp_path / "older"
        decide(gate, range(40))
        shutil.copytree(folder / "appendonlydir", older)
        decide(gate, range(40, 70))
        valkey.kill()
        shutil.rmtree(folder / "appendonlydir")
        shutil.copytree(older, folder / "appendonlydir")
        valkey.start()
        assert len(keys_of(gate, "claim")) == 40
        worker = gate.start_worker()
        wait_for_refusal(worker, "claims_lost", remedy="ticketgate claims rebuild")

        report = json.loads(gate.run("claims", "rebuild", "--json").stdout)

        assert (report["restored"], report["present"], report["conflicts"]) == (30, 40, 0)
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(70))

    def test_a_batch_cut_in_two_is_noticed(self, gate: Deployment) -> None:
        """The log is cut between a batch's claims and the mark that follows them."""
        decide(gate, range(30))
        for partition in range(PARTITIONS):
            mark = f"ticketgate:{gate.name}:claimed:{gate.topic('tickets')}:{partition}"
            redis_call(gate.redis_url, "DECR", mark)
        redis_call(gate.redis_url, "DEL", keys_of(gate, "claim")[0])
        worker = gate.start_worker()
        wait_for_refusal(worker, "claims_lost", remedy="ticketgate claims rebuild")

        report = json.loads(gate.run("claims", "rebuild", "--json").stdout)

        assert (report["restored"], report["present"]) == (1, 29)
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(30))


class TestAnotherDeployment:
    def test_another_group_name_is_refused_until_it_is_set_back(self, gate: Deployment) -> None:
        decide(gate, range(10))
        worker = gate.start_worker(GROUP=f"{gate.name}-other")

        wait_for_refusal(worker, "belongs to group", remedy="set it back")

        worker.stop()
        worker = gate.start_worker()
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(10))

    def test_claims_are_not_rebuilt_for_another_group(self, gate: Deployment) -> None:
        decide(gate, range(10))

        done = gate.run("claims", "rebuild", "--group", f"{gate.name}-other")

        assert done.returncode == 2
        assert "has committed nothing, but there are outputs" in done.stderr
        assert "set TICKETGATE_GROUP" in done.stderr

    def test_another_cluster_is_refused_until_the_namespace_is_another(self, gate: Deployment) -> None:
        decide(gate, range(10))
        identity = f"ticketgate:{gate.name}:identity"
        cluster = redis_call(gate.redis_url, "HGET", identity, "cluster")
        redis_call(gate.redis_url, "HSET", identity, "cluster", "another")
        worker = gate.start_worker()

        wait_for_refusal(worker, "belongs to cluster 'another'", remedy="TICKETGATE_NAMESPACE")

        worker.stop()
        anew = gate.start_worker(NAMESPACE=f"{gate.name}-anew", GROUP=f"{gate.name}-anew")
        anew.wait_ready()
        assert ids(gate.wait_for_records(20, "dispatch", "review")) == {f"T-{n}": 2 for n in range(10)}
        redis_call(gate.redis_url, "HSET", identity, "cluster", str(cluster))
        assert gate.run("audit").returncode == 0


def test_show_tells_of_a_key_that_nobody_claimed(gate: Deployment) -> None:
    done = gate.run("claims", "show", "--ticket", "nobody")

    assert done.returncode == 3
    assert "owner: none" in done.stdout


def test_show_finds_a_claim_by_the_key_that_a_ticket_gives(gate: Deployment) -> None:
    gate.start_worker().wait_ready()
    given = json.dumps({"id": "T-1", "state": "x", "tenant": "acme", "idempotency_key": "given-key-1"})
    gate.send([Sent(given.encode(), key=b"T-1")])
    (found,) = gate.wait_for_records(1, "dispatch", "review")

    by_given = gate.run("claims", "show", "--idempotency-key", "given-key-1", "--tenant", "acme", "--json")
    by_header = gate.run(
        "claims", "show", dict(found.headers)["ticketgate-idempotency-key"].decode(), "--json"
    )

    shown = json.loads(by_given.stdout)
    assert shown["owner"] == dict(found.headers)["ticketgate-coordinate"].decode()
    assert json.loads(by_header.stdout)["key"] == shown["key"]
