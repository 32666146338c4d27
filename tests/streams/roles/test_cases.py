"""Every record of the shared cases, in one stream through a real worker, ends where its case says."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from typing import Any

import pytest
from aiokafka import ConsumerRecord

from ...support.deployment import Deployment, Sent
from ...support.shared_files import shared
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

Case = dict[str, Any]
Records = dict[tuple[int, int], list["ConsumerRecord[bytes, bytes]"]]
"""Output records by the input's partition and offset: the coordinate in their header."""


def read_cases() -> list[Case]:
    return [json.loads(line) for line in shared("cases", "cases.jsonl").read_text().splitlines()]


def record_of(case: Case) -> Sent:
    value = case.get("value")
    return Sent(
        value=base64.b64decode(case["value_base64"]) if "value_base64" in case else value and value.encode(),
        key=case["key"].encode() if "key" in case else b"one partition keeps the order of the cases",
        headers=[(name, base64.b64decode(header)) for name, header in case.get("headers", [])],
    )


def test_every_case_ends_where_it_says_and_keeps_what_it_brought(deploy: NewDeployment) -> None:
    cases = read_cases()
    answers = json.loads(shared("cases", "answers.json").read_text())
    gate = deploy(
        policy=str(shared("cases", "policy.toml")), scorer=f"fixed:{shared('cases', 'answers.json')}"
    )
    worker = gate.start_worker()
    worker.wait_ready()
    sent = [(case, record_of(case)) for case in cases for _ in range(case.get("times", 1))]

    places = gate.send(record for _, record in sent)

    worker.wait_for_metric(len(sent), "ticketgate_records_total")
    outputs = by_coordinate(gate)
    found: dict[str, list[ConsumerRecord[bytes, bytes]]] = defaultdict(list)
    for (case, record), place in zip(sent, places, strict=True):
        for output in outputs.get(place, []):
            found[case["name"]].append(output)
            assert_kept(gate, record, output)
    for case in cases:
        assert_ended(gate, case, found[case["name"]], answers)
    assert outputs_of_repeated(cases, found) == {"retried-later": 1}
    assert worker.metric("ticketgate_records_total", outcome="tombstone") == 1
    assert gate.lag() == 0


def by_coordinate(gate: Deployment) -> Records:
    records: Records = defaultdict(list)
    for output in gate.committed("dispatch", "review", "dead-letter"):
        _, partition, offset = dict(output.headers)["ticketgate-coordinate"].decode().rsplit(":", 2)
        records[int(partition), int(offset)].append(output)
    return records


def assert_ended(
    gate: Deployment, case: Case, outputs: list[ConsumerRecord[bytes, bytes]], answers: Any
) -> None:
    expect, name = case["expect"], case["name"]
    if expect["topic"] is None or expect.get("once"):
        return
    assert [output.topic for output in outputs] == [gate.topic(expect["topic"])], name
    (output,) = outputs
    headers = dict(output.headers)
    if expect["topic"] == "dead-letter":
        assert headers["ticketgate-error-stage"].decode() == expect["stage"], name
        assert expect["reason_contains"] in headers["ticketgate-error-reason"].decode(), name
        return
    record = json.loads(output.value or b"")
    assert record["verdict"]["stage"] == expect.get("stage", "policy"), name
    if "selected" in expect:
        assert record["selected"] == expect["selected"], name
    if "violations" in expect:
        assert [each["message"] for each in record["violations"]] == expect["violations"], name
    if record["verdict"]["stage"] in {"policy", "answers"}:
        # As the scorer gave them, whatever they are.
        assert record["answers"] == answers.get(record["ticket_id"], {}), name
    if record["verdict"]["stage"] == "policy":
        given = {question: answer["noul"] for question, answer in answers[record["ticket_id"]].items()}
        assert record["probabilities"] == given, name


def assert_kept(gate: Deployment, sent: Sent, output: ConsumerRecord[bytes, bytes]) -> None:
    """Foreign headers byte for byte, no forged one; in dead-letter the bytes and the key; in review the ticket."""
    foreign = [header for header in output.headers if not header[0].startswith("ticketgate-")]
    assert foreign == [header for header in sent.headers if not header[0].startswith("ticketgate-")]
    assert b"forged" not in [value for _, value in output.headers]
    if output.topic == gate.topic("dead-letter"):
        assert (output.key, output.value) == (sent.key, sent.value)
    elif output.topic == gate.topic("review"):
        assert json.loads(output.value or b"")["ticket"]["state"] == json.loads(sent.value or b"")["state"]
    else:
        assert "ticket" not in json.loads(output.value or b"")


def outputs_of_repeated(cases: list[Case], found: dict[str, list[Any]]) -> dict[str, int]:
    """Cases that together have one effect: how many records each of their tickets came to."""
    groups: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        if case["expect"].get("once"):
            groups[json.loads(case["value"])["id"]].append(case["name"])
    return {names[0]: sum(len(found[name]) for name in names) for names in groups.values()}
