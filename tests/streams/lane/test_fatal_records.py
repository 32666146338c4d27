"""A record on which the process dies: it takes two workers alone and no more, and its neighbours are decided."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from ...support import faulty_worker
from ...support.deployment import Deployment, Sent, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import batch, send_batches
from ...support.supervisor import supervise
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

# One in the batch, and two alone.
DEATHS = 3
SIGSEGV, SIGKILL = -11, -9


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(policy=str(SEED_POLICY), partitions="1", session_timeout="2s")


def start(gate: Deployment) -> Worker:
    return gate.start_worker(program=faulty_worker.__file__)


def run(gate: Deployment, records: Sequence[Sent], *, outcomes: int | None = None) -> list[int]:
    """Send them, and keep workers running until all have their outcome; how the workers ended that died."""
    gate.send(records)
    wanted = len(records) if outcomes is None else outcomes
    return supervise(
        partial(start, gate),
        gate,
        until=lambda: len(gate.committed("dispatch", "review", "dead-letter")) >= wanted,
    )


def reasons(gate: Deployment) -> Mapping[str, tuple[str, ...]]:
    """Why each ticket was reviewed or dispatched; each is there once."""
    found = [json.loads(each.value or b"") for each in gate.committed("dispatch", "review")]
    assert len(found) == len({each["ticket_id"] for each in found})
    return {each["ticket_id"]: tuple(each["verdict"]["reasons"]) for each in found}


def fatal(gate: Deployment) -> set[str]:
    """The tickets that were given up since they end workers."""
    return {name for name, said in reasons(gate).items() if "ended" in str(said)}


def tickets(count: int, **fatal: str) -> list[Sent]:
    return [ticket(f"T{n}", fatal.get(f"T{n}", "My card was charged twice.")) for n in range(count)]


@pytest.mark.parametrize(("word", "code"), [("SEGFAULT", SIGSEGV), ("EXIT", 3), ("OOM", SIGKILL)])
def test_a_ticket_that_ends_the_process_goes_to_review_and_its_neighbours_are_decided(
    gate: Deployment, word: str, code: int
) -> None:
    ends = run(gate, tickets(21, T7=word))

    assert ends == [code] * DEATHS
    assert len(reasons(gate)) == 21
    assert fatal(gate) == {"T7"}


def test_a_ticket_that_ends_the_process_while_it_is_read_goes_to_dead_letter(gate: Deployment) -> None:
    records = tickets(21, T7="UNREADABLE")

    ends = run(gate, records)

    assert ends == [SIGSEGV] * DEATHS
    assert len(reasons(gate)) == 20
    (letter,) = gate.committed("dead-letter")
    assert (letter.key, letter.value) == (records[7].key, records[7].value)
    assert dict(letter.headers)["ticketgate-error-code"] == b"ends_worker"


def test_fatal_tickets_first_last_and_next_to_each_other_are_each_given_up(gate: Deployment) -> None:
    words = {"T0": "EXIT", "T5": "SEGFAULT", "T6": "OOM", "T11": "EXIT"}

    ends = run(gate, tickets(12, **words))

    assert fatal(gate) == set(words)
    # Two alone each, and one at most with others.
    assert len(ends) <= 3 * len(words)


def test_fatal_tickets_on_two_partitions_blame_no_neighbour(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), partitions="2", session_timeout="2s")
    words = {"T3": "EXIT", "T8": "SEGFAULT"}
    topic = gate.topic("tickets")
    send_batches(
        gate.bootstrap, topic, [(0, batch(tickets(5, **words))), (1, batch(tickets(10, **words)[5:]))]
    )

    ends = supervise(
        partial(start, gate), gate, until=lambda: len(gate.committed("dispatch", "review")) >= 10
    )

    assert len(reasons(gate)) == 10
    assert fatal(gate) == set(words)
    assert len(ends) <= 3 * len(words)


def test_what_was_given_up_is_told_and_the_next_ticket_finds_a_quick_lane(gate: Deployment) -> None:
    run(gate, tickets(9, T4="EXIT"))
    worker = gate.workers[-1]
    topic = gate.topic("tickets")

    seen = worker.wait_for(lambda state: state.get("ready") is True and "careful" not in state)

    assert seen["lanes"] == [f"lane {topic}:0"]
    worker.wait_for_metric(1, "ticketgate_fatal_records_total", topic=topic, outcome="review")
    worker.wait_for_metric(1, "ticketgate_worker_deaths_total", topic=topic, doing="deciding")
    worker.wait_for_metric(0, "ticketgate_careful_offsets", topic=topic)
    # A copy is a duplicate of what is in review; under another id it is decided.
    gate.send([ticket("T4", "EXIT"), ticket("T10")])
    gate.wait_for_records(10, "dispatch", "review")
    assert fatal(gate) == {"T4"}


def test_a_record_that_ended_workers_while_it_was_read_is_replayed_once_that_is_mended(
    gate: Deployment,
) -> None:
    run(gate, tickets(3, T1="UNREADABLE"))
    held = gate.run("dead-letter", "replay", "--yes")
    assert (held.returncode, gate.lag()) == (3, 0)
    assert "once that is mended" in held.stdout
    assert gate.workers[-1].stop() == 0
    gate.start_worker(SCORER=f"fixed:{FIXED_ANSWERS}").wait_ready()

    assert gate.run("dead-letter", "replay", "--code", "ends_worker", "--yes").returncode == 0

    gate.wait_for_records(3, "dispatch", "review")
    assert set(reasons(gate)) == {"T0", "T1", "T2"}


def test_a_record_that_ends_workers_while_its_batch_is_unpacked_goes_to_dead_letter(gate: Deployment) -> None:
    batches = [tickets(3), [ticket("fatal", "UNPACKABLE " * 50)], [ticket(f"after-{n}") for n in range(3)]]
    send_batches(gate.bootstrap, gate.topic("tickets"), [(0, batch(each, codec="zstd")) for each in batches])

    ends = supervise(
        partial(start, gate),
        gate,
        until=lambda: len(gate.committed("dispatch", "review", "dead-letter")) >= 7,
    )

    assert ends == [SIGSEGV] * DEATHS
    assert len(reasons(gate)) == 6
    (letter,) = gate.committed("dead-letter")
    assert dict(letter.headers)["ticketgate-error-code"] == b"unreadable_batch"
    assert b"ended while they unpacked it" in (dict(letter.headers)["ticketgate-error-reason"] or b"")


def test_a_batch_of_several_that_ends_workers_is_given_up_by_nobody_but_a_person(gate: Deployment) -> None:
    topic = gate.topic("tickets")
    batches = [
        tickets(3),
        [ticket("beside"), ticket("fatal", "UNPACKABLE " * 50)],
        [ticket(f"after-{n}") for n in range(3)],
    ]
    send_batches(gate.bootstrap, topic, [(0, batch(each, codec="zstd")) for each in batches])

    ends = supervise(
        partial(start, gate), gate, until=lambda: "unreadable_batch" in json.dumps(gate.workers[-1].ready())
    )
    assert ends == [SIGSEGV] * DEATHS
    assert (len(reasons(gate)), gate.committed("dead-letter")) == (3, [])
    looked = gate.run("dead-letter", "skip", f"{topic}:0:3", "--yes")

    assert looked.returncode == 0, looked.stderr
    assert "several workers ended while they unpacked it" in looked.stdout
    gate.wait_for_records(6, "dispatch", "review")
    assert len(gate.committed("dead-letter")) == 1


def test_kills_and_freezes_at_any_moment_blame_nobody(deploy: NewDeployment) -> None:
    """Kills fall into careful moments too, since each makes the next lane careful."""
    gate = deploy(policy=str(SEED_POLICY), partitions="2", session_timeout="2s", batch_size="16")
    rng = random.Random(7)
    count, sent = 1_200, 0
    worker = start(gate)
    for round_ in range(10):
        more = [ticket(f"T{n}") for n in range(sent, sent + count // 10)]
        gate.send(more)
        sent += len(more)
        worker.wait_for(lambda state: state.get("lanes"))
        time.sleep(rng.uniform(0, 0.6))
        if round_ % 3 == 2:
            worker.process.send_signal(signal.SIGSTOP)
            frozen, worker = worker, start(gate)
            worker.wait_for(lambda state: len(state.get("lanes", ())) == 2)
            frozen.process.send_signal(signal.SIGCONT)
            time.sleep(rng.uniform(0, 0.3))
            frozen.kill()
        else:
            worker.kill()
            worker = start(gate)

    gate.wait_for_records(count, "dispatch", "review")

    assert len(reasons(gate)) == count
    assert fatal(gate) == set()
    assert gate.committed("dead-letter") == []
    worker.wait_for(lambda state: state.get("ready") is True and "careful" not in state)
