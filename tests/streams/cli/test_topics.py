"""`topics create` on a real broker."""

from __future__ import annotations

import os

import pytest
from ticketgate.streams.parts.kafka import Kafka

from tests.streams.cli.conftest import Run

pytestmark = pytest.mark.kafka


def test_topics_are_made_once_and_then_left_alone(broker: Kafka, ticketgate: Run) -> None:
    first = ticketgate("topics", "create", "--json")
    second = ticketgate("topics", "create", "--json")

    names = [
        os.environ[f"TICKETGATE_TOPIC_{name}"]
        for name in (
            *("TICKETS", "PROPOSALS", "SETTLEMENTS", "DISPATCH", "REVIEW", "REPAIRS", "RECEIPTS"),
            *("SETTLED", "DEAD_LETTER", "POLICIES"),
        )
    ]
    assert first.lines == [{"topic": name, "created": True, "differences": []} for name in names]
    assert second.lines == [{"topic": name, "created": False, "differences": []} for name in names]
    assert (first.code, second.code) == (0, 0)


def test_a_topic_that_differs_is_described_and_not_changed(
    broker: Kafka, ticketgate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticketgate("topics", "create")
    monkeypatch.setenv("TICKETGATE_TICKETS_RETENTION", "3d")

    changed = ticketgate("topics", "create", "--partitions", "4", "--json")
    table = ticketgate("topics", "create", "--partitions", "4")

    assert changed.lines[0]["differences"] == [
        "partitions is 3, not 4",
        "retention.ms is 604800000, not 259200000",
    ]
    assert changed.code == 0
    assert "partitions is 3, not 4; retention.ms is 604800000, not 259200000" in table.out.decode()


def test_more_replicas_than_brokers_is_one_line_that_names_the_setting(
    broker: Kafka, ticketgate: Run
) -> None:
    ran = ticketgate("topics", "create", "--replication", "3")

    assert ran.code == 2
    assert ran.err.startswith("ticketgate: TICKETGATE_REPLICATION: ")
    assert ran.err.count("\n") == 1
