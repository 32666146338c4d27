"""Records to rows: whatever lies on the three topics is a row or passed over, and never ends the reading."""

from __future__ import annotations

import json

from aiokafka import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.operations.review.feeding import rows_of, text_of
from ticketgate.streams.operations.review.rows import Kind, Reviewed

from ....codecs.test_decision import record as decision
from ....support.examples import objects, values

SETTINGS = load_settings(environment={}).settings


def lies(value: bytes | None, topic: str = "review") -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(topic, 0, 7, 1_000, 0, b"T-1", value, None, 3, len(value or b""), ())


def test_a_decision_is_a_row_with_what_it_is_found_by() -> None:
    (row,) = rows_of([lies(decision(ticket={"id": "T-1001", "state": {"a": ["x", 1]}}).encode())], SETTINGS)

    assert isinstance(row, Reviewed)
    assert (row.kind, row.ticket_id, row.place, row.text) == (Kind.DECISION, "T-1001", "review:0:7", "x 1")
    assert (row.stage, row.policy, row.labels) == ("policy", "support-triage", ("billing", "urgent"))
    assert row.rules == ("urgent-review",)


FIELDS = (
    "verdict",
    "policy",
    "ticket",
    "violations",
    "selected",
    "idempotency_key",
    "ticket_id",
    "tenant",
    "schema",
)


@given(
    objects,
    st.dictionaries(st.sampled_from(FIELDS), values),
    st.sampled_from(["review", "settled", "settlements"]),
)
def test_any_object_is_a_row_or_passed_over(
    more: dict[str, object], named: dict[str, object], topic: str
) -> None:
    found = rows_of([lies(json.dumps(more | named).encode(), topic)], SETTINGS)

    assert len(found) <= 1


def test_what_is_no_object_is_passed_over() -> None:
    assert rows_of([lies(b"no JSON"), lies(None), lies(b"[]"), lies(b"")], SETTINGS) == []


@given(values)
def test_any_state_has_a_text_of_one_line(state: object) -> None:
    assert "\n" not in text_of(state)  # type: ignore[arg-type]
