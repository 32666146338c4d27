"""Batches that unpack to a giant: a worker with little memory lives, and everybody else's tickets are decided."""

from __future__ import annotations

import json

import pytest

from ...support import limited_worker
from ...support.deployment import Deployment, Sent, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import batch, send_batches
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

# What a broker takes: packed, each is below its 1 MiB.
GIANTS = {"gzip": 300 * 2**20, "zstd": 300 * 2**20, "lz4": 200 * 2**20, "snappy": 15 * 2**20}
LIMIT = 8 * 2**20
MOST = 2**29


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions="1",
        session_timeout="2s",
        max_unpacked_bytes=str(LIMIT),
    )


def small(name: str) -> list[Sent]:
    return [ticket(f"{name}-{n}") for n in range(3)]


def ids(gate: Deployment) -> set[str]:
    found = [json.loads(each.value or b"")["ticket_id"] for each in gate.committed("dispatch", "review")]
    assert len(found) == len(set(found))
    return set(found)


def test_one_giant_in_a_batch_goes_to_dead_letter_by_itself(gate: Deployment) -> None:
    topic = gate.topic("tickets")
    worker = gate.start_worker(program=limited_worker.__file__)
    worker.wait_ready()
    for codec, size in GIANTS.items():
        giant = batch([Sent(bytes(size), key=b"giant")], codec=codec, most_bytes=MOST)
        send_batches(
            gate.bootstrap,
            topic,
            [(0, batch(small(f"{codec}-before"))), (0, giant), (0, batch(small(f"{codec}-after")))],
        )

    gate.wait_for_records(len(GIANTS) * 7, "dispatch", "review", "dead-letter")

    assert ids(gate) == {
        f"{codec}-{when}-{n}" for codec in GIANTS for when in ("before", "after") for n in range(3)
    }
    letters = gate.committed("dead-letter")
    assert len(letters) == len(GIANTS)
    for each in letters:
        headers = dict(each.headers)
        assert headers["ticketgate-error-code"] == b"unreadable_batch"
        assert b"unpacks to more than 8388608 bytes" in (headers["ticketgate-error-reason"] or b"")
        assert headers["ticketgate-content"] in (b"batch", b"digest")
    worker.wait_ready()
    assert worker.process.poll() is None
    assert gate.lag() == 0


def test_a_giant_among_others_is_given_up_by_nobody_but_a_person(gate: Deployment) -> None:
    topic = gate.topic("tickets")
    worker = gate.start_worker(program=limited_worker.__file__)
    hidden = batch([*small("beside"), Sent(bytes(300 * 2**20))], codec="zstd", most_bytes=MOST)
    send_batches(
        gate.bootstrap, topic, [(0, batch(small("before"))), (0, hidden), (0, batch(small("after")))]
    )

    gate.wait_for_records(3, "dispatch", "review")
    seen = json.dumps(worker.wait_for(lambda state: "unreadable_batch" in json.dumps(state)))
    assert f"the batch at {topic}:0:3 to 6 cannot be read: it unpacks to more than 8388608 bytes" in seen
    assert "TICKETGATE_MAX_UNPACKED_BYTES" in seen
    assert ids(gate) == {"before-0", "before-1", "before-2"}
    assert gate.committed("dead-letter") == []

    assert gate.run("dead-letter", "skip", f"{topic}:0:3", "--yes").returncode == 0

    gate.wait_for_records(6, "dispatch", "review")
    worker.wait_ready()
    assert ids(gate) == {f"{when}-{n}" for when in ("before", "after") for n in range(3)}
    assert len(gate.committed("dead-letter")) == 1


def test_a_giant_that_a_larger_limit_takes_is_read_by_the_next_worker(gate: Deployment) -> None:
    topic = gate.topic("tickets")
    worker = gate.start_worker()
    large = batch([*small("beside"), Sent(bytes(12 * 2**20))], codec="zstd", most_bytes=MOST)
    send_batches(gate.bootstrap, topic, [(0, large)])
    worker.wait_for(lambda state: "unreadable_batch" in json.dumps(state))
    assert worker.stop() == 0

    gate.start_worker(MAX_UNPACKED_BYTES=str(2 * LIMIT)).wait_ready()

    gate.wait_for_records(4, "dispatch", "review", "dead-letter")
    assert ids(gate) == {"beside-0", "beside-1", "beside-2"}
    (letter,) = gate.committed("dead-letter")
    assert dict(letter.headers)["ticketgate-error-code"] == b"too_large"
