"""What will not pass is not tried for ever: slow models, quotas, wrong clocks and records that alone fail."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support import failing_worker, faulty_worker
from ...support.deployment import Deployment, ticket
from ...support.meddling import set_topic_config
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.quotas import limit_producers
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(
        policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="1", session_timeout="2s"
    )


def ids(gate: Deployment, count: int, *topics: str) -> Counter[str]:
    records = gate.wait_for_records(count, *topics)
    return Counter(json.loads(each.value or b"")["ticket_id"] for each in records)


def test_a_model_too_slow_for_a_whole_batch_gets_its_tickets_out_one_after_another(
    deploy: NewDeployment,
) -> None:
    gate = deploy(
        policy=str(SEED_POLICY),
        # A batch of 64 of these takes 16 s, and 3 s are taken for a hang.
        scorer_timeout="3s",
        partitions="1",
        session_timeout="2s",
    )
    names = [f"S-{n}" for n in range(40)]
    gate.send(ticket(each, "SLOW") for each in names)

    worker = gate.start_worker(program=faulty_worker.__file__)

    gate.wait_for_records(1, "dispatch", "review")
    # A rebalance in the middle costs at most a piece.
    second = gate.start_worker(program=faulty_worker.__file__)
    assert ids(gate, len(names), "dispatch", "review") == Counter(names)
    worker.wait_for(lambda _: gate.lag() == 0)
    assert [each.process.poll() for each in (worker, second)] == [None, None]


def test_a_record_that_makes_our_own_code_fail_goes_to_review_alone_and_its_neighbours_are_decided(
    gate: Deployment,
) -> None:
    gate.send([ticket("A", "FAULT"), *(ticket(f"B-{n}") for n in range(20)), ticket("C", "FAULT secret")])

    worker = gate.start_worker(program=failing_worker.__file__)

    assert ids(gate, 22, "dispatch", "review") == Counter(["A", *(f"B-{n}" for n in range(20)), "C"])
    aside = {
        said["ticket_id"]: said
        for said in (json.loads(each.value or b"") for each in gate.committed("review"))
        if "fault" in said["verdict"]["reasons"][0]
    }
    assert sorted(aside) == ["A", "C"]
    assert "ZeroDivisionError" in aside["A"]["verdict"]["reasons"][0]
    assert "ticket" not in aside["A"]
    worker.wait_ready()
    assert gate.lag() == 0
    assert "secret" not in json.dumps(aside) + worker.log()


def test_two_in_a_row_that_make_our_own_code_fail_are_not_set_aside_and_readyz_says_what_to_do(
    gate: Deployment,
) -> None:
    gate.send([ticket("A"), ticket("B", "FAULT"), ticket("C", "FAULT"), ticket("D")])

    worker = gate.start_worker(program=failing_worker.__file__)

    seen = worker.wait_for(lambda state: "both fail alone" in json.dumps(state))
    assert f"{gate.topic('tickets')}:0:1 and its neighbour both fail alone" in json.dumps(seen)
    assert "run another version" in json.dumps(seen)
    assert ids(gate, 1, "dispatch", "review") == Counter(["A"])
    # Another version decides them.
    worker.stop()
    gate.start_worker()
    assert ids(gate, 4, "dispatch", "review") == Counter("ABCD")


@pytest.mark.parametrize(("ahead_s", "way"), [(7200, "behind"), (-40 * 86400, "ahead of")])
def test_a_worker_whose_clock_is_wrong_names_the_clock_and_which_way(
    gate: Deployment, ahead_s: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.send([ticket("A"), ticket("B")])
    monkeypatch.setenv("CLOCK_AHEAD_S", str(ahead_s))

    worker = gate.start_worker(program=failing_worker.__file__)

    worker.wait_for(lambda state: f"{way} this machine's" in json.dumps(state))
    assert gate.committed("dispatch", "review", "dead-letter") == []
    monkeypatch.delenv("CLOCK_AHEAD_S")
    worker.stop()
    gate.start_worker()
    assert ids(gate, 2, "dispatch", "review") == Counter("AB")


def test_a_time_that_an_output_refuses_from_a_right_clock_names_the_topics_limits(gate: Deployment) -> None:
    kept = {"retention_ms": str(30 * 86_400_000), "segment_ms": str(86_400_000)}
    for topic in ("dispatch", "review"):
        # Nothing arrives within the millisecond that it is stamped in.
        set_topic_config(gate, topic, **kept, message_timestamp_before_max_ms="0")
    gate.send([ticket("A"), ticket("B")])

    worker = gate.start_worker()

    seen = json.dumps(worker.wait_for(lambda state: "this machine's clock" in json.dumps(state)))
    assert "which goes with Redis'" in seen
    assert "message.timestamp.before.max.ms" in seen
    for topic in ("dispatch", "review"):
        set_topic_config(gate, topic, **kept)
    assert ids(gate, 2, "dispatch", "review") == Counter("AB")


def test_a_quota_too_small_for_a_whole_batch_lets_it_pass_in_pieces(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "1",
        "DISPATCH_WITH_TICKET": "true",
        # 2.4 MB at 300 kB a second take 8 s.
        "COMMIT_TIMEOUT": "4s",
        "TRANSACTION_TIMEOUT": "20s",
    }
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "gate", settings) as gate:
        names = [f"L-{n}" for n in range(16)]
        gate.send(ticket(each, "x" * 150_000) for each in names)
        limit_producers(gate.bootstrap, bytes_a_second=300_000)

        gate.start_worker()

        assert ids(gate, len(names), "dispatch", "review") == Counter(names)
