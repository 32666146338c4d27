"""A record on which the process dies: it takes two workers alone and no more, and its neighbours are decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from . import faulty_worker
from .conftest import NewDeployment
from .deployment import Deployment, Sent, Worker, ticket
from .policies import SEED_POLICY
from .supervisor import supervise

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
