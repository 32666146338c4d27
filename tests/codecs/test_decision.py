"""Decision records: the wire's form, its field order, and reading with fields from a later writer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from ticketgate.codecs import (
    Coordinate,
    DecisionRecord,
    Effect,
    Fingerprint,
    IdempotencyKey,
    Malformed,
    ModelRef,
    PolicyRef,
    Stage,
    Status,
    Verdict,
    Violation,
    decode,
    from_epoch_ms,
    read_decision,
    rfc3339,
)


def record(**changes: Any) -> DecisionRecord:
    fields: dict[str, Any] = {
        "ticket_id": "T-1001",
        "tenant": "",
        "verdict": Verdict(
            Status.REVIEW,
            Stage.POLICY,
            ("urgent requires review",),
            "a person decides; the labels were not changed",
        ),
        "selected": ("billing", "urgent"),
        "violations": (Violation("urgent-review", "urgent requires review"),),
        "probabilities": {"urgent": 0.9, "review": 0, "kind": {"bug": 1, "other": 0.0}},
        "answers": {"urgent": {"type": "noul", "noul": 0.9}},
        "policy": PolicyRef("support-triage", "1", "ab"),
        "model": ModelRef("minilm", "cd"),
        "effects": (),
        "idempotency_key": IdempotencyKey("0f" * 32),
        "fingerprint": Fingerprint("e1" * 32),
        "coordinate": Coordinate("tickets", 0, 17),
        "decided_at": datetime(2026, 11, 29, 18, tzinfo=UTC),
        "ticket": {"id": "T-1001", "state": "My card was charged twice."},
    }
    return DecisionRecord(**(fields | changes))


ACCEPTED = {
    "verdict": Verdict(Status.ACCEPT, Stage.POLICY, (), "the rules hold; the labels may still be wrong"),
    "violations": (),
    "effects": (Effect("assign_queue", {"queue": "billing"}, "aa"),),
    "ticket": None,
}


def test_a_record_is_written_in_the_documented_order() -> None:
    assert json.loads(record().encode()) == {
        "schema": "decision/1",
        "ticket_id": "T-1001",
        "tenant": "",
        "verdict": {
            "status": "review",
            "stage": "policy",
            "reasons": ["urgent requires review"],
            "next_step": "a person decides; the labels were not changed",
        },
        "selected": ["billing", "urgent"],
        "violations": [{"rule": "urgent-review", "message": "urgent requires review"}],
        "probabilities": {"urgent": 0.9, "review": 0, "kind": {"bug": 1, "other": 0.0}},
        "answers": {"urgent": {"type": "noul", "noul": 0.9}},
        "policy": {"name": "support-triage", "version": "1", "hash": "ab"},
        "model": {"id": "minilm", "hash": "cd"},
        "effects": [],
        "idempotency_key": "0f" * 32,
        "fingerprint": "e1" * 32,
        "coordinate": {"topic": "tickets", "partition": 0, "offset": 17},
        "decided_at": "2026-11-29T18:00:00.000Z",
        "ticket": {"id": "T-1001", "state": "My card was charged twice."},
    }
    assert list(json.loads(record(truncated=("urgent",)).encode())) == [
        "schema", "ticket_id", "tenant", "verdict", "selected", "violations", "probabilities", "answers", "truncated",
        "policy", "model", "effects", "idempotency_key", "fingerprint", "coordinate", "decided_at", "ticket",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes", [{}, ACCEPTED, {"truncated": ("urgent",)}, {"answers": None, "ticket": None}]
)
def test_a_record_is_read_back_as_it_was_written(changes: dict[str, Any]) -> None:
    written = record(**changes)

    read = read_decision(decode(written.encode()))  # type: ignore[arg-type]

    assert read == written
    assert isinstance(read, DecisionRecord)
    assert read.encode() == written.encode()


def test_fields_of_a_later_writer_are_ignored_at_every_level() -> None:
    value: Any = decode(record(**ACCEPTED).encode())
    value["receipt"] = {"kind": "new"}
    for name in ("verdict", "policy", "model", "coordinate"):
        value[name]["new"] = 1
    value["effects"][0]["new"] = 1

    assert read_decision(value) == record(**ACCEPTED)


def test_every_wrong_field_of_a_record_is_named() -> None:
    value: Any = decode(record().encode())
    del value["fingerprint"]
    value["coordinate"]["offset"] = "17"
    value["verdict"]["status"] = "perhaps"
    value["decided_at"] = "today"
    value["probabilities"]["urgent"] = True

    result = read_decision(value)

    assert isinstance(result, Malformed)
    assert result.stage is Stage.SCHEMA
    for named in (
        '"fingerprint" is missing',
        '"coordinate.offset"',
        '"verdict.status"',
        '"decided_at"',
        '"probabilities',
    ):
        assert named in result.reason


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "not_an_object"),
        ([], "not_an_object"),
        ({"schema": "decision/9"}, "unknown_schema"),
        ({}, "missing_field"),
    ],
)
def test_what_is_no_record_is_refused(value: Any, code: str) -> None:
    result = read_decision(value)

    assert isinstance(result, Malformed)
    assert result.code == code


def test_effects_without_acceptance_cannot_be_written_nor_read() -> None:
    effects = (Effect("send_reply", {}, "aa"),)
    with pytest.raises(ValueError, match="effects on a decision of review"):
        record(effects=effects)

    value: Any = decode(record(**ACCEPTED).encode())
    value["verdict"]["status"] = "deny"
    result = read_decision(value)
    assert isinstance(result, Malformed)
    assert result.code == "contradiction"


def test_labels_must_be_sorted_and_a_time_must_name_its_zone() -> None:
    with pytest.raises(ValueError, match="sorted"):
        record(selected=("urgent", "billing"))
    with pytest.raises(ValueError, match="time zone"):
        record(decided_at=datetime(2026, 11, 29))  # noqa: DTZ001 - the fault under test


def test_a_number_that_is_not_finite_is_not_written_as_null() -> None:
    with pytest.raises(ValueError, match="NaN"):
        record(answers={"urgent": {"type": "noul", "noul": float("nan")}}).encode()


def test_times_are_written_in_utc_with_milliseconds() -> None:
    ahead = timezone(timedelta(hours=5, minutes=30))

    assert rfc3339(datetime(2026, 11, 29, 23, 30, 0, 123_999, ahead)) == "2026-11-29T18:00:00.123Z"
    assert rfc3339(from_epoch_ms(1_795_975_200_001)) == "2026-11-29T18:00:00.001Z"
    assert rfc3339(from_epoch_ms(-1)) == "1969-12-31T23:59:59.999Z"


class Autumn(tzinfo):
    """A zone in the night in which its clocks go back: an hour comes twice."""

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(hours=1 if dt is not None and dt.fold else 2)

    def dst(self, dt: datetime | None) -> timedelta:
        return self.utcoffset(dt) - timedelta(hours=1)

    def tzname(self, dt: datetime | None) -> str:
        return "autumn"


def test_an_hour_that_comes_twice_is_written_as_two() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=Autumn())

    assert rfc3339(first) == "2026-10-25T00:30:00.000Z"
    assert rfc3339(first.replace(fold=1)) == "2026-10-25T01:30:00.000Z"


def test_a_timestamp_beyond_the_calendar_is_the_nearest_moment_in_it() -> None:
    assert rfc3339(from_epoch_ms(2**63 - 1)) == "9999-12-31T23:59:59.999Z"
    assert rfc3339(from_epoch_ms(-(2**63))) == "0001-01-01T00:00:00.000Z"
