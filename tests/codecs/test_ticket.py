"""A ticket's shape: every wrong field named at once, and what counts as nothing to read."""

from __future__ import annotations

from typing import Any

import pytest
from ticketgate.codecs import Malformed, Stage, Ticket, is_empty_state, read_ticket
from ticketgate.codecs.values.versions import Versions


def refusal(**fields: Any) -> Malformed:
    result = read_ticket({"id": "T-1", "state": "x"} | fields)
    assert isinstance(result, Malformed), f"taken as {result!r}"
    assert result.stage is Stage.SCHEMA
    return result


def test_a_ticket_with_all_fields_is_read_as_it_came() -> None:
    ticket = read_ticket(
        {
            "id": "T-1",
            "state": {"subject": "Charged twice"},
            "schema": "ticket/1",
            "tenant": "north",
            "idempotency_key": "order-77/1",
            "received_at": "2026-11-29T18:00:00+01:00",
            "attributes": {"vip": True, "amount": 12.50},
        }
    )

    assert ticket == Ticket(
        "T-1",
        {"subject": "Charged twice"},
        tenant="north",
        idempotency_key="order-77/1",
        received_at="2026-11-29T18:00:00+01:00",
        attributes={"vip": True, "amount": 12.50},
    )


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [], [{}]])
def test_what_is_not_an_object_is_no_ticket(value: Any) -> None:
    result = read_ticket(value)

    assert isinstance(result, Malformed)
    assert result.code == "not_an_object"
    assert "JSON object" in result.reason


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"id": 1}, "wrong_type", '"id" must be text of 1 to 256 characters, not the number 1'),
        ({"id": ""}, "wrong_length", '"id" must be text of 1 to 256 characters, not text of 0 characters'),
        (
            {"id": "é" * 257},
            "wrong_length",
            '"id" must be text of 1 to 256 characters, not text of 257 characters',
        ),
        ({"state": None}, "null_field", '"state" must be text, an object or an array, not null'),
        ({"state": 5}, "wrong_type", '"state" must be text, an object or an array, not the number 5'),
        ({"state": False}, "wrong_type", '"state" must be text, an object or an array, not false'),
        ({"id": None}, "null_field", '"id" must be text of 1 to 256 characters, not null'),
        ({"tenant": 7}, "wrong_type", '"tenant" must be text, not the number 7'),
        ({"schema": 1}, "wrong_value", '"schema" must be "ticket/1" where it stands, not the number 1'),
        ({"schema": "ticket/2"}, "unknown_schema", 'unknown schema "ticket/2"; this worker reads "ticket/1"'),
        (
            {"idempotency_key": "short"},
            "wrong_length",
            '"idempotency_key" must be text of 8 to 256 characters, not text of 5 characters',
        ),
        (
            {"received_at": "yesterday"},
            "wrong_value",
            '"received_at" must be an RFC 3339 time such as 2026-11-29T18:00:00Z, not "yesterday"',
        ),
        ({"attributes": []}, "wrong_type", '"attributes" must be an object, not an array'),
        ({"priority": "P1"}, "unknown_field", 'unknown field "priority": what is yours goes into attributes'),
    ],
)
def test_a_wrong_field_is_named_with_what_it_must_be(fields: dict[str, Any], code: str, reason: str) -> None:
    assert (refusal(**fields).code, refusal(**fields).reason) == (code, reason)


def test_missing_fields_are_named() -> None:
    result = read_ticket({})

    assert isinstance(result, Malformed)
    assert result.code == "missing_field"
    assert '"id" is missing' in result.reason
    assert '"state" is missing' in result.reason


def test_every_wrong_field_is_named_at_once_known_ones_first() -> None:
    result = refusal(
        zeta=1, attributes=7, idempotency_key=12345678, id=None, alpha=2, received_at=0, tenant=[]
    )

    named = [part.split('"')[1] for part in result.reason.split("; ")]
    assert named == ["id", "tenant", "idempotency_key", "received_at", "attributes", "zeta", "alpha"]
    assert result.code == "null_field"


def test_ten_thousand_unknown_fields_give_a_short_reason() -> None:
    result = refusal(**{f"field-{n}-{'x' * 100}": n for n in range(10_000)})

    assert result.reason.endswith("and 9976 more")
    assert len(result.reason) < 5_000


@pytest.mark.parametrize(
    "received_at",
    [
        "2026-11-29T18:00:00Z",
        "2026-11-29t18:00:00.123456789z",
        "2024-02-29T23:59:60-05:30",
        "0001-01-01T00:00:00Z",
    ],
)
def test_rfc_3339_times_are_taken(received_at: str) -> None:
    assert isinstance(read_ticket({"id": "a", "state": "", "received_at": received_at}), Ticket)


@pytest.mark.parametrize(
    "received_at",
    [
        "",
        "2026-11-29",
        "2026-11-29T18:00:00",
        "2026-11-29 18:00:00Z",
        "2026-11-29T18:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T18:00:61Z",
        "2026-11-29T18:00:00+0100",
        "2026-11-29T18:00:00+24:00",
        "2026-11-29T18:00:00+01:60",
        "2026-11-29T18:00:00.Z",
        "٢٠٢٦-11-29T18:00:00Z",
        "2026-11-29T18:00:00Z\n",
        "0001-01-01T00:00:00+00:01",
    ],
)
def test_other_times_are_refused(received_at: str) -> None:
    assert refusal(received_at=received_at).code == "wrong_value"


@pytest.mark.parametrize(
    "state",
    [
        "",
        "   ",
        "\t\r\n\x00",
        "\u00a0\u3000\u200b\u200d\ufeff\u2060",
        "\u00ad\u3164\u2800\u115f\ufe0f",
        {},
        [],
        [[]],
        {"a": {}},
        {"subject": "", "body": None},
        [" ", "\u200b"],
    ],
)
def test_a_state_that_shows_nothing_is_empty(state: Any) -> None:
    assert is_empty_state(state)


@pytest.mark.parametrize(
    "state", ["x", ".", "\u200ba", "💳", {"a": 0}, [False], {"a": [{"b": "x"}]}, "\u0301"]
)
def test_a_state_that_shows_something_is_not_empty(state: Any) -> None:
    assert not is_empty_state(state)


def test_the_version_before_the_newest_is_read_and_older_ones_are_not() -> None:
    versions = Versions[str]("parcel", {2: lambda _: "two", 3: lambda _: "three"})

    assert versions.read({"schema": "parcel/2"}) == "two"
    assert versions.read({}) == "three"
    assert versions.read({"schema": "parcel/1"}) == Malformed(
        Stage.SCHEMA,
        "unknown_schema",
        'unknown schema "parcel/1"; this worker reads "parcel/2" and "parcel/3"',
    )


@pytest.mark.parametrize("numbers", [(), (1, 3), (1, 2, 3), (0,)])
def test_a_gap_in_versions_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="version N"):
        Versions[str]("parcel", {number: lambda _: "" for number in numbers})
