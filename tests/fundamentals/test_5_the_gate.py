"""5. All of it together: a worker on a real broker and a real Redis."""

from __future__ import annotations

import json

import pytest

from ..streams.conftest import NewDeployment
from ..support.deployment import Deployment, Sent
from ..support.policies import SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

ANSWERS = {"good": {"urgent": 0.1, "billing": 0.9}, "contradictory": {"urgent": 0.9, "billing": 0.9}}
LABELS = ("urgent", "review", "auto_reply", "billing", "technical")


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    """A deployment that decides by the tests' policy, on answers given by ticket."""
    gate: Deployment = deploy(policy=str(SEED_POLICY))
    answers = {
        name: {label: {"type": "noul", "noul": given.get(label, 0.1)} for label in LABELS}
        for name, given in ANSWERS.items()
    }
    (gate.folder / "answers.json").write_text(json.dumps(answers))
    return gate


def test_each_record_ends_in_one_place_and_a_ticket_sent_again_in_none(gate: Deployment) -> None:
    worker = gate.start_worker(SCORER=f"fixed:{gate.folder / 'answers.json'}")
    worker.wait_ready()

    gate.send(
        [
            Sent(b'{"id": "good", "state": "I paid twice."}', key=b"good"),
            Sent(b'{"id": "contradictory", "state": "Help, now!"}', key=b"contradictory"),
            Sent(b"no ticket at all", key=b"odd"),
            Sent(b'{"id": "good", "state": "I paid twice."}', key=b"good"),
        ]
    )

    worker.wait_for(lambda _: gate.lag() == 0)
    ended = {
        topic: [record.key for record in gate.committed(topic)]
        for topic in ("dispatch", "review", "dead-letter")
    }
    assert ended == {"dispatch": [b"good"], "review": [b"contradictory"], "dead-letter": [b"odd"]}
    worker.wait_for_metric(1, "ticketgate_records_total", outcome="replayed")


def test_a_worker_that_is_killed_leaves_nothing_twice(gate: Deployment) -> None:
    doomed = gate.start_worker(SCORER=f"fixed:{gate.folder / 'answers.json'}", SESSION_TIMEOUT="2s")
    doomed.wait_ready()
    gate.send(Sent(b'{"id": "T-%d", "state": "Help"}' % n, key=b"T-%d" % n) for n in range(300))
    gate.wait_for_records(1, "review")

    doomed.kill()
    gate.start_worker(SCORER=f"fixed:{gate.folder / 'answers.json'}", SESSION_TIMEOUT="2s")

    ids = [json.loads(record.value or b"")["ticket_id"] for record in gate.wait_for_records(300, "review")]
    assert sorted(ids) == sorted({f"T-{n}" for n in range(300)})
