"""Which dead letters are meant, and what of them may be sent again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from ticketgate.codecs.records.headers import CONTENT, COORDINATE, ERROR_STAGE, ORIGINAL_TIMESTAMP
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.lane.taking.dead_letters import DeadLetter, Place, Wanted, read_dead_letter
from ticketgate.streams.operations.dead_letters.resend import Held, Ready, prepare

NOW_MS = 1_700_000_000_000
GOOD = b'{"id": "T-1", "state": "x"}'
REQUEST = b'{"operation": "schedule", "actor_id": "user_demo"}'
PROPOSAL = b'{"case_id": "C-1", "attempt": 2, "call": "{", "request": %b}' % REQUEST
SETTINGS = load_settings(environment={}).settings


def dead(
    value: bytes | None = GOOD,
    *,
    topic: str = "tickets",
    age: timedelta = timedelta(),
    content: bytes = b"",
) -> Record:
    """A dead letter from TOPIC:2:7."""
    ours: list[tuple[str, bytes | None]] = [
        (COORDINATE, f"{topic}:2:7".encode()),
        (ERROR_STAGE, b"parse"),
        ("Ticketgate-Forged", b""),
    ]
    if content:
        ours.append((CONTENT, content))
    at = NOW_MS - round(age.total_seconds() * 1000)
    return Record(b"key", value, (("x", b"\xff"), *ours, ("y", None)), partition=0, timestamp_ms=at)


def prepared(record: Record, *, by_key: bool = False, unmended: bool = False) -> Ready | Held:
    return prepare(record, settings=SETTINGS, now_ms=NOW_MS, by_key=by_key, unmended=unmended)


def test_a_letter_goes_back_to_where_it_lay_without_our_headers() -> None:
    found = prepared(dead())

    assert isinstance(found, Ready)
    assert found.record == Record(b"key", GOOD, (("x", b"\xff"), ("y", None)), 2, NOW_MS)
    assert (found.topic, found.says) == ("tickets", "ticket T-1")


def test_a_letter_from_proposals_goes_back_to_proposals() -> None:
    found = prepared(dead(PROPOSAL, topic="proposals"))

    assert isinstance(found, Ready)
    assert (found.topic, found.record.partition, found.says) == ("proposals", 2, "case C-1, attempt 2")


def test_a_letter_of_neither_input_is_taken_for_a_ticket_of_no_partition() -> None:
    found = prepared(dead(topic="tickets-of-before"))

    assert isinstance(found, Ready)
    assert (found.topic, found.record.partition) == ("tickets", None)


def test_by_key_the_producer_chooses_the_partition() -> None:
    found = prepared(dead(), by_key=True)

    assert isinstance(found, Ready)
    assert found.record.partition is None


@pytest.mark.parametrize(
    ("age", "is_kept"), [(timedelta(days=3), True), (timedelta(days=4), False), (timedelta(days=30), False)]
)
def test_a_time_that_retention_might_soon_take_is_not_kept(age: timedelta, *, is_kept: bool) -> None:
    record = dead(age=age)

    found = prepared(record)

    assert isinstance(found, Ready)
    assert found.record.timestamp_ms == (record.timestamp_ms if is_kept else None)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (dead(b'{"id": 1}'), "mend it"),
        (dead(None), "tombstone"),
        (dead(b"{}", content=b"digest"), "tickets:2:7"),
        (dead(b"\x00", content=b"batch"), "batch"),
        (dead(topic="proposals"), "mend it"),
        (dead(PROPOSAL), "mend it"),
        (dead(PROPOSAL, topic="dispatch"), "dispatch, which workers alone write"),
    ],
)
def test_what_its_inputs_workers_would_not_read_is_held_back(record: Record, reason: str) -> None:
    found = prepared(record)

    assert isinstance(found, Held)
    assert reason in found.reason


def test_unmended_sends_the_original_but_never_a_digest() -> None:
    sent = prepared(dead(b'{"id": 1}'), unmended=True)

    assert isinstance(sent, Ready)
    assert "no worker reads" in sent.says
    assert isinstance(prepared(dead(b"{}", content=b"digest"), unmended=True), Held)
    assert isinstance(prepared(dead(b"{}", topic="dispatch"), unmended=True), Held)


def test_a_digest_that_a_person_replaced_by_the_ticket_is_sent() -> None:
    assert isinstance(prepared(dead(content=b"digest")), Ready)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("t:1", Place("t", 1)),
        ("t:1:7", Place("t", 1, range(7, 8))),
        ("t:1:7-9", Place("t", 1, range(7, 10))),
    ],
)
def test_places_are_written_as_coordinates(text: str, place: Place) -> None:
    assert Place.parse(text) == place


@pytest.mark.parametrize("text", ["", "t", "t:", "t:x", "t:1:", "t:1:7-", "t:1:2:3", "t:1:-1", "t:1\n"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TOPIC:PARTITION"):
        Place.parse(text)


def test_every_condition_must_hold() -> None:
    letter = DeadLetter(Coordinate("t", 1, 7), "parse", "bom", "byte order mark", "")

    assert Wanted().holds(letter, -1)
    assert Wanted(stage="parse", codes=frozenset({"bom"}), places=(Place("t", 1),), since_ms=5).holds(
        letter, 5
    )
    assert not Wanted(stage="schema").holds(letter, 5)
    assert not Wanted(codes=frozenset({"nan"})).holds(letter, 5)
    assert not Wanted(places=(Place("t", 1, range(8, 9)), Place("t", 2))).holds(letter, 5)
    assert not Wanted(since_ms=6).holds(letter, 5)
    assert not Wanted(until_ms=5).holds(letter, 5)
    assert not Wanted(until_ms=5).holds(letter, -1)
    assert not Wanted(places=(Place("t", 1),)).holds(DeadLetter(None, "", "", "", ""), 5)


@pytest.mark.parametrize(
    ("original_ms", "sent_ms"),
    [
        (NOW_MS - 3_600_000, NOW_MS - 3_600_000),
        (NOW_MS - 40 * 86_400_000, None),
        (NOW_MS + 3_600_000, None),
        (-1, None),
    ],
)
def test_the_original_time_is_restored_where_the_input_would_keep_it(
    original_ms: int, sent_ms: int | None
) -> None:
    letter = dead()
    headers = (*letter.headers, (ORIGINAL_TIMESTAMP, str(original_ms).encode()))

    found = prepared(replace(letter, headers=headers, timestamp_ms=NOW_MS))

    assert isinstance(found, Ready)
    assert found.record.timestamp_ms == sent_ms


def test_a_span_of_time_is_of_the_original() -> None:
    letter = read_dead_letter(Record(None, b"{", ((ORIGINAL_TIMESTAMP, b"1000"),), timestamp_ms=NOW_MS))

    assert letter.time_ms(NOW_MS) == 1000
    assert Wanted(until_ms=2000).holds(letter, letter.time_ms(NOW_MS))
