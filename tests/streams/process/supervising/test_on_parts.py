"""`ticketgate worker --processes 2` on a real Kafka and a real Valkey."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ....support.deployment import Deployment, Worker, ticket
from ....support.many_processes import family, kill, living, own_page, processes, socket_of, wait_gone
from ....support.policies import FIXED_ANSWERS, SEED_POLICY
from ...conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


def start(deploy: NewDeployment, **settings: str) -> tuple[Deployment, Worker]:
    """Two processes that are ready."""
    deployment = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", **settings)
    worker = deployment.start_worker(PROCESSES="2")
    worker.wait_for(lambda told: told.get("ready") and len(told["lanes"]) == 6, 90)
    return deployment, worker


def send(deployment: Deployment, first: int, count: int) -> None:
    deployment.send(ticket(f"T-{n}", f"text {n}") for n in range(first, first + count))


def decided(deployment: Deployment) -> Counter[str]:
    """How often each ticket was decided."""
    return Counter(
        json.loads(record.value or b"")["ticket_id"] for record in deployment.committed("dispatch", "review")
    )


def counted(exposed: str) -> Counter[tuple[str, str]]:
    """Each series of counters and histograms."""
    return Counter(
        {
            (sample.name, json.dumps(sample.labels, sort_keys=True)): sample.value
            for family in text_string_to_metric_families(exposed)
            if family.type in ("counter", "histogram") and not family.name.startswith("ticketgate_process")
            for sample in family.samples
        }
    )


def test_two_processes_share_partitions_count_and_answer_as_one(deploy: NewDeployment) -> None:
    deployment, worker = start(deploy, web_keys="one-key", web_rate="1")
    pids = processes(worker)
    everybody = family(worker.process.pid)

    send(deployment, 0, 200)
    deployment.wait_for_records(200, "dispatch", "review")

    worker.wait_for_metric(200, "ticketgate_records_total")
    assert decided(deployment) == Counter({f"T-{n}": 1 for n in range(200)})
    told = worker.ready()["processes"]
    assert {len(each["lanes"]) for each in told.values()} == {3}
    # Nothing is under way, so nobody counts between the three looks.
    total = counted(worker.get("/metrics")[1])
    each = [counted(own_page(pid, "/metrics")) for pid in pids.values()]
    assert all(one["ticketgate_batch_duration_seconds_count", '{"step": "commit"}'] for one in each)
    # A sum of counters leaves out what is 0.
    assert +total == pytest.approx(each[0] + each[1])
    assert worker.metric("ticketgate_lanes") == 6
    assert worker.metric("ticketgate_ready") == 1
    assert worker.metric("ticketgate_process_up") == 2
    assert worker.metric("ticketgate_policy_info") == 1

    # The scorer has answers for tickets alone, and says so to whoever asks.
    request = {"state": "text", "questions": {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}}
    assert post(worker, request)[0] == 401
    replies = [post(worker, request, key="one-key")[0] for _ in range(4)]
    # The rate is of the port, and not of each process behind it.
    assert replies[0] == 502
    assert 429 in replies
    assert worker.get("/openapi.json")[0] == 200
    assert worker.get("/v1/nothing")[0] == 404

    # As a service manager ends a control group: each process gets the signal, and the supervisor tells each besides.
    for pid in everybody:
        os.kill(pid, signal.SIGTERM)
    assert worker.process.wait(60) == 0
    assert not living(everybody)
    assert "a second signal" not in worker.log()
    assert "[worker 1] " in worker.log()
    assert "Traceback" not in worker.log()


def test_a_killed_process_is_replaced_and_nothing_is_decided_twice(deploy: NewDeployment) -> None:
    deployment, worker = start(deploy, session_timeout="6s")
    before = processes(worker)
    send(deployment, 0, 100)
    deployment.wait_for_records(100, "dispatch", "review")
    worker.wait_for_metric(100, "ticketgate_records_total")

    kill(before["worker 1"])
    send(deployment, 100, 100)

    deployment.wait_for_records(200, "dispatch", "review")
    worker.wait_for(lambda told: told.get("ready") and len(told["lanes"]) == 6, 90)
    after = processes(worker)
    assert after["worker 2"] == before["worker 2"]
    assert after["worker 1"] != before["worker 1"]
    assert decided(deployment) == Counter({f"T-{n}": 1 for n in range(200)})
    # What the dead one had counted when it was last asked is not lost with it.
    assert worker.metric("ticketgate_records_total") >= 100
    assert worker.metric("ticketgate_process_restarts_total") == 1
    assert "worker 1 ended by SIGKILL; starting it again in" in worker.log()


def test_nothing_is_left_behind_by_a_killed_supervisor(deploy: NewDeployment) -> None:
    deployment, worker = start(deploy)
    everybody = family(worker.process.pid)
    sockets = [Path(socket_of(pid)) for pid in processes(worker).values()]
    assert len(everybody) >= 3
    send(deployment, 0, 100)

    worker.kill()

    wait_gone(everybody)
    assert not [socket for socket in sockets if socket.parent.exists()]
    successor = deployment.start_worker()
    successor.wait_ready()
    deployment.wait_for_records(100, "dispatch", "review")
    assert decided(deployment) == Counter({f"T-{n}": 1 for n in range(100)})


def post(worker: Worker, request: object, *, key: str | None = None) -> tuple[int, str]:
    """POST /v1/systemone."""
    headers = {"Content-Type": "application/json"} | (
        {} if key is None else {"Authorization": f"Bearer {key}"}
    )
    connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=30)
    try:
        connection.request("POST", "/v1/systemone", json.dumps(request), headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
